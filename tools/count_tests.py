#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds up JUnit files and ends with the line `tests: N run, N passed, N failed, N skipped`.

usage: tools/count_tests.py [--no-skips] [SET EXIT_STATUS JUNIT_XML]...

Single test cases are counted. A set whose driver failed without naming a failed case (crash, no tests found, no
file) counts as one failure. Exit 0 only when nothing failed and, with --no-skips, nothing was skipped.
"""
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field


@dataclass
class Count:
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def outcome(case: ElementTree.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail":
        return "failed"
    skipped = case.find("skipped")
    if skipped is not None:
        # ctest writes <skipped> also for a program that is missing; only a skip the test asked for is one.
        asked = case.get("status") is None or "SKIP" in (skipped.get("message") or "").upper()
        return "skipped" if asked else "failed"
    return "skipped" if case.get("status") == "disabled" else "passed"


def count_set(name: str, status: int, path: str) -> Count:
    count = Count()
    try:
        cases = list(ElementTree.parse(path).iter("testcase"))
    except (OSError, ElementTree.ParseError):
        cases = []
    for case in cases:
        title = f"{name}: {case.get('name')}"
        result = outcome(case)
        if result == "passed":
            count.passed += 1
        else:
            getattr(count, result).append(title)
    if (status != 0 and not count.failed) or not cases:
        count.failed.append(f"{name}: the driver ended with status {status} and {len(cases)} cases")
    return count


def main(arguments: list[str]) -> int:
    no_skips = arguments[:1] == ["--no-skips"]
    sets = arguments[no_skips:]
    if len(sets) % 3 or not sets:
        print(__doc__, file=sys.stderr)
        return 2
    counts = [count_set(sets[i], int(sets[i + 1]), sets[i + 2]) for i in range(0, len(sets), 3)]
    passed = sum(count.passed for count in counts)
    failed = [title for count in counts for title in count.failed]
    skipped = [title for count in counts for title in count.skipped]
    for title in skipped:
        print(f"skipped  {title}")
    for title in failed:
        print(f"FAILED   {title}")
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    print(f"tests: {passed + len(failed) + len(skipped)} run, {passed} passed, {len(failed)} failed, "
          f"{len(skipped)} skipped")
    return 1 if failed or (no_skips and skipped) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
