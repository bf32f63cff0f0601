#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cuts the expected values of the GGUF golden set down to the files that git keeps.

usage: tools/cut_gguf_goldens.py FULL_SET/gguf data/golden/gguf NAME.gguf...

Copies the named GGUF files and writes expected_gguf.json and expected_gguf_logits.safetensors with their rows
alone, in the form of the full set, so that one test reads both.
"""
import json
import shutil
import struct
import sys
from pathlib import Path


def cut_logits(source: Path, target: Path, names: set[str]) -> None:
    raw = source.read_bytes()
    (header_bytes,) = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8 : 8 + header_bytes])
    data = raw[8 + header_bytes :]
    kept, body = {}, bytearray()
    for key, entry in header.items():
        if key == "__metadata__":
            kept[key] = entry
        elif any(key.startswith(name + ".") for name in names):
            start, end = entry["data_offsets"]
            kept[key] = {**entry, "data_offsets": [len(body), len(body) + end - start]}
            body += data[start:end]
    text = json.dumps(kept, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    target.write_bytes(struct.pack("<Q", len(text)) + text + body)


def main() -> int:
    if len(sys.argv) < 4:
        print(__doc__, file=sys.stderr)
        return 2
    source, target, names = Path(sys.argv[1]), Path(sys.argv[2]), set(sys.argv[3:])
    expected = json.loads((source / "expected_gguf.json").read_text())
    if missing := names - set(expected["files"]):
        print(f"not in the full set: {sorted(missing)}", file=sys.stderr)
        return 3
    target.mkdir(parents=True, exist_ok=True)
    for name in sorted(names):
        shutil.copyfile(source / name, target / name)
    expected["files"] = {name: row for name, row in expected["files"].items() if name in names}
    (target / "expected_gguf.json").write_text(json.dumps(expected, indent=1) + "\n")
    cut_logits(source / "expected_gguf_logits.safetensors", target / "expected_gguf_logits.safetensors", names)
    return 0


if __name__ == "__main__":
    sys.exit(main())
