// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>

namespace plimsoll {
namespace {

TEST(Text, LowerCaseOfAsciiAlone) {
  EXPECT_EQ(lower_ascii("Model.SAFETENSORS-[@`{]"), "model.safetensors-[@`{]");
  EXPECT_EQ(lower_ascii("\xC3\x84 \xFF"), "\xC3\x84 \xFF");  // bytes of other scripts are no letters here
  EXPECT_EQ(lower_ascii(""), "");
}

TEST(Text, HexDigitsInLowerCase) {
  EXPECT_TRUE(is_hex("0123456789abcdef", 16));
  EXPECT_TRUE(is_hex("", 0));
  for (const char* wrong : {"0123456789abcde", "0123456789abcdeF", "0123456789abcdeg", "0123456789abcde "})
    EXPECT_FALSE(is_hex(wrong, 16)) << wrong;
}

}  // namespace
}  // namespace plimsoll
