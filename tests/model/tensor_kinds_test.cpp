// SPDX-License-Identifier: Apache-2.0
#include "model/tensor_kinds.h"

#include <gtest/gtest.h>

namespace plimsoll::model {
namespace {

// A kind is known by its pattern, not by its hash alone.
TEST(TensorKinds, APatternIsThatOfItsNamesOnly) {
  for (const char* name : {"model.layers.0.mlp.up_proj.weight", "a", "0", "a.0", "0.a", "..", "", "a.1b.2"})
    EXPECT_TRUE(has_pattern(name, name_pattern(name))) << name;
  EXPECT_TRUE(has_pattern("a.17.b", "a.*.b"));
  EXPECT_FALSE(has_pattern("a.17.b", "a.17.b"));
  EXPECT_FALSE(has_pattern("a.x.b", "a.*.b"));
  EXPECT_FALSE(has_pattern("a.17", "a.*.b"));
  EXPECT_FALSE(has_pattern("a.17.b.c", "a.*.b"));
  EXPECT_FALSE(has_pattern("a.17.", "a.*"));
}

}  // namespace
}  // namespace plimsoll::model
