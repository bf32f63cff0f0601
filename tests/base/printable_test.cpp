// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include <gtest/gtest.h>

#include "base/result.h"

namespace plimsoll {
namespace {

TEST(Printable, WhatATerminalObeysIsShown) {
  EXPECT_EQ(printable("plain text, größer, 模型"), "plain text, größer, 模型");
  EXPECT_EQ(printable("a\x1b]0;title\x07 b"), "a\\x1b]0;title\\x07 b");
  EXPECT_EQ(printable("line\nVerdict ok\r\t\x7f"), "line\\x0aVerdict ok\\x0d\\x09\\x7f");
  // U+009B, the one-character form of ESC [, and the marks that turn the direction of writing.
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m \xe2\x80\xae \xe2\x81\xa6 \xe2\x80\xa8"),
            "\\x9b31m \\u202e \\u2066 \\u2028");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("cut \xe6\xa8"), "cut \xEF\xBF\xBD");
}

TEST(Printable, APageKeepsItsLines) {
  EXPECT_EQ(printable_page("one\n\ttwo\r\n\x1b[2J"), "one\n\ttwo\\x0d\n\\x1b[2J");
}

TEST(Printable, ErrorsAreDescribedWithoutControls) {
  const Error error{ErrorCode::kMalformed, "found \x1b[31m\xc2\x9b", "a\nb", "do\x07"};
  EXPECT_EQ(error.describe(), "found \\x1b[31m\\x9b (a\\x0ab)\ndo\\x07");
}

}  // namespace
}  // namespace plimsoll
