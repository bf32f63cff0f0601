# SPDX-License-Identifier: Apache-2.0
"""The sources hold to the house rules, and each rule catches a planted violation."""
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import rules  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
LICENCE = "// SPDX-License-Identifier: Apache-2.0\n"


class TheHouse(unittest.TestCase):
    def holds(self, rule):
        wrong = rule(ROOT)
        self.assertFalse(wrong, "\n" + "\n".join(wrong))

    def test_arrows_point_down(self):
        self.assertGreater(len(rules.files(ROOT / "src", rules.CODE)), 20, "the sources were not found")
        self.holds(rules.wrong_arrows)

    def test_libraries_stay_in_their_rooms(self):
        self.holds(rules.misplaced_libraries)

    def test_files_and_functions_are_short(self):
        self.holds(rules.too_long)

    def test_every_file_names_its_licence(self):
        self.holds(rules.without_licence)

    def test_headers_say_what_they_answer(self):
        self.holds(rules.without_opening)

    def test_no_machine_and_no_registry_is_named(self):
        self.holds(rules.foreign_places)

    def test_findings_are_explained(self):
        self.holds(rules.undocumented_findings)

    def test_no_name_is_vague(self):
        self.holds(rules.vague_names)

    def test_todos_have_numbers(self):
        self.holds(rules.loose_todos)

    def test_pins_are_listed(self):
        self.holds(rules.unlisted_pins)

    def test_data_is_small_and_listed(self):
        self.holds(rules.heavy_or_orphaned_data)


class APlantedViolation(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name)
        self.write("src/model/model.h", LICENCE + "// What is this?\n#include \"artifact/artifact.h\"\n")
        self.write("src/artifact/artifact.h", LICENCE + "// What lies here?\n")

    def tearDown(self):
        self.folder.cleanup()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def caught(self, rule, *words):
        wrong = rule(self.root)
        self.assertEqual(len(wrong), 1, wrong)
        for word in words:
            self.assertIn(word, wrong[0])

    def test_an_arrow_upwards(self):
        self.assertEqual(rules.wrong_arrows(self.root), [])
        self.write("src/artifact/open.cpp", LICENCE + "\n  #  include \"model/model.h\"\n")
        self.caught(rules.wrong_arrows, "src/artifact/open.cpp:3", "artifact may not include room model")

    def test_an_arrow_past_the_face(self):
        self.write("src/artifact/inner.h", LICENCE + "// Inner.\n")
        self.write("src/model/model.cpp", LICENCE + "#include \"artifact/inner.h\"\n")
        self.caught(rules.wrong_arrows, "artifact/inner.h is not a face")
        self.write("src/artifact/artifact.h", LICENCE + "// What lies here? Also a face: inner.h.\n")
        self.assertEqual(rules.wrong_arrows(self.root), [])

    def test_a_room_without_a_row(self):
        self.write("src/attic/attic.cpp", LICENCE + "#include \"model/model.h\"\n")
        self.caught(rules.wrong_arrows, "attic is not in the table")

    def test_a_header_that_is_nowhere(self):
        self.write("src/model/model.cpp", LICENCE + "#include \"boost/asio.hpp\"\n")
        self.caught(rules.wrong_arrows, "no file below src")

    def test_a_library_in_another_room(self):
        self.write("src/model/model.cpp", LICENCE + "#include <simdjson.h>\n#include <vector>\n")
        self.caught(rules.misplaced_libraries, "src/model/model.cpp:2", "simdjson")

    def test_a_library_in_a_header(self):
        self.write("src/http/http.h", LICENCE + "// What?\n#include <boost/asio.hpp>\n")
        self.caught(rules.misplaced_libraries, "src/http/http.h:3")

    def test_a_library_without_a_row(self):
        self.write("src/model/model.cpp", LICENCE + "#include <Eigen/Dense.h>\n")
        self.caught(rules.misplaced_libraries, "without a row")

    def test_a_long_file(self):
        self.write("src/model/long.cpp", LICENCE + "\n" * rules.MAX_FILE_LINES)
        self.write("src/model/long_table.cpp", LICENCE + "\n" * rules.MAX_FILE_LINES)
        self.caught(rules.too_long, "src/model/long.cpp: 801 lines")

    def test_a_long_function(self):
        body = "  if (x) {\n    y = \"}\";  // }\n  }\n" * 33
        short = "int g() {\n" + body + "}\n"  # 101 lines with its braces
        self.write("src/model/long.cpp", LICENCE + "namespace a {\nclass B : public C {\n" + short + "};\n}\n")
        self.caught(rules.too_long, "src/model/long.cpp:4: 101 lines in `int g()`")

    def test_a_long_table_is_no_function(self):
        self.write("src/model/rows.cpp", LICENCE + "const Row rows[] = {\n" + "    {1, 2},\n" * 200 + "};\n")
        self.assertEqual(rules.too_long(self.root), [])

    def test_a_missing_licence(self):
        self.write("src/model/model.cpp", "int x;\n")
        self.caught(rules.without_licence, "src/model/model.cpp")

    def test_a_finding_without_a_page(self):
        self.write("docs/formats/x.md", "`CFG_TOLD` (error), and a longer word CFG_NEW_OTHER.\n")
        self.write("src/model/rows_table.cpp", LICENCE + 'f("WORD_OF_FACTS");\n')
        self.write("src/model/model.cpp", LICENCE + 'f("CFG_TOLD", "PLIMSOLL_X", "NO_PROXY", "CFG_" "X"); // "CFG_NOT"\n')
        self.assertEqual(rules.undocumented_findings(self.root), [])
        self.write("src/model/model.cpp", LICENCE + 'f(is_new ? "CFG_NEW" : "CFG_TOLD");\n')
        self.caught(rules.undocumented_findings, "src/model/model.cpp", "`CFG_NEW`")

    def test_a_header_without_opening(self):
        self.write("src/model/spec.h", LICENCE + "#pragma once\n")
        self.caught(rules.without_opening, "src/model/spec.h")

    def test_a_machine_path(self):
        self.write("tools/x.sh", "cat " + "/home" + "/somebody/notes\n")
        self.caught(rules.foreign_places, "tools/x.sh:1")

    def test_a_vague_name(self):
        self.write("src/model/string_utils.cpp", LICENCE)
        self.caught(rules.vague_names, "utils")

    def test_a_loose_todo(self):
        self.write("src/model/model.cpp", LICENCE + "// TODO(#12): later\n// TODO: some day\n")
        self.caught(rules.loose_todos, "src/model/model.cpp:3")

    def test_a_pin_that_drifted(self):
        self.write("tools/packages.txt", "pip one==1.0  why\npip two==2.0  why\n")
        self.write("tests/e2e/requirements.txt", "one==1.0\ntwo==2.1\n")
        self.caught(rules.unlisted_pins, "two==2.0")

    def test_data_without_a_page_in_the_index(self):
        self.write("data/PROVENANCE.md", "PROVENANCE/engine.md\n")
        self.write("data/PROVENANCE/engine.md", "x")
        self.write("data/PROVENANCE/model.md", "x")
        self.caught(rules.heavy_or_orphaned_data, "PROVENANCE/model.md")


if __name__ == "__main__":
    unittest.main()
