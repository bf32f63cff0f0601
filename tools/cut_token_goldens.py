#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cuts the reference ids of the token golden set down to the samples that git keeps.

usage: tools/cut_token_goldens.py FULL_SET/tokens data/golden/tokens

Per family: its meta row, one row of each of some categories and of each kind of field, in the form of the full set.
Of the public cases all rows but models' own templates, which are long and carry their owners' licences.
"""
import json
import sys
from pathlib import Path

CATEGORIES = ["whitespace", "code", "lang_ko", "url", "emoji", "combining", "numbers", "lang_th", "special",
              "mixed_nosep", "control"]
FIELDS = ["ids_noparse", "decoded", "decoded_skip"]
MAX_ROW_CHARACTERS = 430
KEPT_WHOLE = {"smollm2"}  # the demo's model: its rows are in git as they are


def sample(lines: list[str]) -> list[str]:
    rows = [(json.loads(line), line) for line in lines if len(line) <= MAX_ROW_CHARACTERS]
    chosen = [lines[0]]

    def take(fits) -> None:
        """The middle one by length of the rows that fit: neither trivial nor long."""
        fitting = sorted((line for row, line in rows if fits(row) and line not in chosen), key=lambda line: len(line))
        if fitting:
            chosen.append(fitting[len(fitting) // 2])

    for category in CATEGORIES:
        take(lambda row: row.get("cat") == category)
    for field in FIELDS:
        if not any(field in json.loads(line) for line in chosen):
            take(lambda row: field in row)
    take(lambda row: row["kind"] == "bytes")
    for skips in (True, False):
        take(lambda row: row["kind"] == "stream" and row["skip_special"] is skips)
    return chosen


def public_cases(lines: list[str]) -> list[str]:
    rows = [row for line in lines
            if (row := json.loads(line))["kind"] != "template" or len(line) <= MAX_ROW_CHARACTERS]
    for row in rows:
        if "#" not in row["ref"]:  # no issue: a count that our own documents state
            row["ref"] = "stated count"
    return [json.dumps(row, ensure_ascii=False) for row in rows]


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.glob("*.jsonl")):
        if path.stem in KEPT_WHOLE:
            continue
        lines = path.read_text().rstrip("\n").split("\n")
        if path.name == "public_cases.jsonl":
            kept = public_cases(lines)
        else:
            kept = sample(lines)
        (target / path.name).write_text("\n".join(kept) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
