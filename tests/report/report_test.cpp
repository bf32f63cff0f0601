// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace plimsoll::report {
namespace {

TEST(FigureBlock, PadsLabelsAndCentresTitles) {
  FigureBlock block(20, 10, 6);
  block.rule(" odd ", '=');
  block.row("Count:", std::int64_t{12});
  block.row("Mean:", std::optional(1.005));
  block.row("None:", std::optional<double>());
  block.row("A label too long:", "x");
  block.rule("", '-');
  EXPECT_EQ(block.text(),
            "======= odd ========\n"
            "Count:     12    \n"
            "Mean:      1.00  \n"
            "None:      -     \n"
            "A label too long: x     \n"
            "--------------------\n");
}

TEST(FigureBlock, ATitleWiderThanTheBlockStaysWhole) {
  FigureBlock block(3, 1, 1);
  block.rule("longer", '=');
  EXPECT_EQ(block.text(), "longer\n");
}

TEST(Pieces, StandSideBySide) {
  const std::vector<std::string> pieces = {"Why", " is", "\n\x1b[2J", "\xC2\x9B", "é"};
  EXPECT_EQ(side_by_side(pieces, false), "Why| is|\\n\\x1b[2J|\\x9b|é");
  const std::string coloured = side_by_side(pieces, true);
  EXPECT_EQ(coloured.find("\033[30;48;5;153mWhy\033[0m\033[30;48;5;157m is\033[0m"), 0u);
  EXPECT_EQ(coloured.find("\x1b[2J"), std::string::npos);
}

}  // namespace
}  // namespace plimsoll::report
