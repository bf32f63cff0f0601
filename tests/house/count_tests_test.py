# SPDX-License-Identifier: Apache-2.0
"""The count that `./run test` ends with: what ctest and pytest write is told apart case by case."""
import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import count_tests  # noqa: E402

CTEST = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="x" tests="6">
  <testcase name="ok" status="run"><system-out></system-out></testcase>
  <testcase name="bad" status="fail"><failure message=""/></testcase>
  <testcase name="skipped" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/></testcase>
  <testcase name="missing" status="notrun"><skipped message="Unable to find executable"/></testcase>
  <testcase name="off" status="disabled"><system-out>Disabled</system-out></testcase>
</testsuite>
"""
PYTEST = """<testsuites><testsuite name="pytest">
  <testcase classname="a" name="ok"/>
  <testcase classname="a" name="also_ok"/>
  <testcase classname="a" name="skipped"><skipped type="pytest.skip" message="no model"/></testcase>
  {more}
</testsuite></testsuites>
"""


class TheCount(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def xml(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def count(self, *arguments):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = count_tests.main(list(arguments))
        return status, out.getvalue().splitlines()

    def test_ctest_and_pytest_add_up(self):
        status, lines = self.count("fast", "8", self.xml("c", CTEST), "e2e", "0", self.xml("p", PYTEST.format(more="")))
        self.assertEqual(status, 1)
        self.assertEqual(lines[-1], "tests: 8 run, 3 passed, 2 failed, 3 skipped")
        self.assertIn("FAILED   fast: missing", lines)
        self.assertIn("skipped  e2e: skipped", lines)

    def test_skips_are_red_only_when_asked(self):
        path = self.xml("p", PYTEST.format(more=""))
        self.assertEqual(self.count("e2e", "0", path)[0], 0)
        self.assertEqual(self.count("--no-skips", "e2e", "0", path)[0], 1)

    def test_an_error_outside_a_case_is_a_failure(self):
        path = self.xml("p", PYTEST.format(more='<testcase name="setup"><error message="boom"/></testcase>'))
        status, lines = self.count("e2e", "1", path)
        self.assertEqual((status, lines[-1]), (1, "tests: 4 run, 2 passed, 1 failed, 1 skipped"))

    def test_a_driver_that_broke_is_a_failure(self):
        for status, text in (("139", PYTEST.format(more="")), ("0", "<testsuite/>"), ("0", "no xml")):
            with self.subTest(status=status, text=text[:12]):
                self.assertEqual(self.count("e2e", status, self.xml("p", text))[0], 1)
        self.assertEqual(self.count("e2e", "0", str(self.folder / "absent"))[0], 1)


if __name__ == "__main__":
    unittest.main()
