// SPDX-License-Identifier: Apache-2.0
#include "model/tensor_kinds.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "artifact/artifact.h"
#include "tests/testing/made_files.h"

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

// Long lists are counted in two halves at a time: each tensor is in the kind of its pattern, dtype and shape,
// and the runs of a kind are those of the whole list.
TEST(TensorKinds, HalvesArePutTogether) {
  constexpr int kLayers = 1'999, kExperts = 3;
  std::string header = "{";
  const auto add = [&](const std::string& name, int rows) {
    header += fmt::format("{}\"{}\":{{\"dtype\":\"F32\",\"shape\":[{},0],\"data_offsets\":[0,0]}}",
                          header.size() > 1 ? "," : "", name, rows);
  };
  add("embed.weight", 1);
  for (int layer = 0; layer < kLayers; ++layer) {
    for (int expert = 0; expert < kExperts; ++expert)
      for (const char* part : {"gate", "up", "down"})
        add(fmt::format("layers.{}.experts.{}.{}.weight", layer, expert, part), layer % 500 == 7 ? 3 : 2);
    add(fmt::format("layers.{}.norm.weight", layer), 2);
  }
  const testing::MadeFolder folder;
  folder.put("model.safetensors", testing::safetensors_file(header + "}"));
  const auto artifact = artifact::open(folder.path().string());
  ASSERT_TRUE(artifact);
  const auto& tensors = (*artifact)->tensors();
  ASSERT_EQ(tensors.size(), 1U + kLayers * (kExperts * 3 + 1));
  const TensorKinds kinds = tensor_kinds(**artifact);
  EXPECT_EQ(kinds.kinds.size(), 1U + 3 * 2 + 1);  // three parts in two shapes
  ASSERT_EQ(kinds.kind_of.size(), tensors.size());
  std::vector<std::vector<NumberRun>> runs(kinds.kinds.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorKind& kind = kinds.kinds[kinds.kind_of[i]];
    ASSERT_EQ(kind.pattern, name_pattern(tensors[i].name));
    ASSERT_TRUE(tensors[i].shape == std::span<const std::int64_t>(kind.shape));
    const std::size_t at = tensors[i].name.find('.') + 1;
    const std::int64_t number =
        tensors[i].name.starts_with("layers.") ? std::stoll(std::string(tensors[i].name.substr(at))) : -1;
    auto& counted = runs[kinds.kind_of[i]];
    if (counted.empty() || counted.back().number != number) counted.push_back({number, 0});
    ++counted.back().count;
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    ASSERT_EQ(kinds.kinds[i].runs.size(), runs[i].size()) << kinds.kinds[i].pattern;
    for (std::size_t k = 0; k < runs[i].size(); ++k) {
      EXPECT_EQ(kinds.kinds[i].runs[k].number, runs[i][k].number);
      EXPECT_EQ(kinds.kinds[i].runs[k].count, runs[i][k].count);
    }
  }
}

}  // namespace
}  // namespace plimsoll::model
