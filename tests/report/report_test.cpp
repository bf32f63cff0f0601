// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace plimsoll::report
