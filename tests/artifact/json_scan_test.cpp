// SPDX-License-Identifier: Apache-2.0
#include "artifact/json_scan.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

namespace plimsoll::artifact {
namespace {

// Numbers are read eight digits at a time where the text is long enough, and one by one at its end. What has
// nothing behind it may go on: it is for the exact reader.
TEST(JsonScan, PlainNumbersOfEveryLength) {
  std::string digits;
  std::int64_t value = 0;
  for (int length = 1; length <= 20; ++length) {
    const int digit = (length * 7) % 9 + 1;
    digits += static_cast<char>('0' + digit);
    if (length <= 18) value = value * 10 + digit;
    for (const char* behind : {",", "]", "}", " ", "\n", ", 12345678, 12345678", "]}, \"next\": 1"}) {
      const std::string text = digits + behind;
      JsonScan scan(text);
      const auto number = scan.plain_number();
      if (length > 18) {
        EXPECT_EQ(number, std::nullopt) << text;
        EXPECT_EQ(scan.position(), 0) << text;
      } else {
        EXPECT_EQ(number, std::optional(value)) << text;
        EXPECT_EQ(scan.position(), digits.size()) << text;
      }
    }
  }
}

TEST(JsonScan, WhatIsNoPlainNumber) {
  for (const char* text :
       {"", "1", "12345678", "-1", "+1", "01", "00000000", "1.5", "12345678.5", "1e3", "12345678e3", "x",
        "1x", "1234567:", "12345678/", "123456789\"", "\xB0\xB1,", "1\xB0,", "12345678\xB9,"}) {
    JsonScan scan{std::string_view(text)};
    EXPECT_EQ(scan.plain_number(), std::nullopt) << text;
    EXPECT_EQ(scan.position(), 0) << text;
  }
  for (const char* text : {"0,", "0]                "}) {
    JsonScan scan{std::string_view(text)};
    EXPECT_EQ(scan.plain_number(), std::optional<std::int64_t>(0)) << text;
  }
}

}  // namespace
}  // namespace plimsoll::artifact
