// SPDX-License-Identifier: Apache-2.0
#include "model/tensor_kinds.h"

#include <gtest/gtest.h>

namespace plimsoll::model {
namespace {

// Names of one kind are told apart from others that hash alike.
TEST(TensorKinds, NamesOfOnePattern) {
  const std::string_view names[] = {
      "a",     "0",     "1",     "12",      "a.0",     "a.1",      "a.10",     "0.a",   "10.a",     "..",
      "",      ".",     "a.1b",  "a.1.b",   "a.12.b",  "a.1b.2",   "a.17.b.c", "a.17.", "a.*.b",    "a.x.b",
      "m.0.w", "m.1.w", "m.1.v", "m.1.2.w", "m.3.2.w", "m.3.12.w", "m.3.12w",  "m..w",  "m.12.12.w"};
  for (const auto a : names)
    for (const auto b : names)
      EXPECT_EQ(have_one_pattern(a, b),
                name_pattern(a) == name_pattern(b) && (a == "a.*.b") == (b == "a.*.b"))
          << a << " " << b;
}

}  // namespace
}  // namespace plimsoll::model
