// SPDX-License-Identifier: Apache-2.0
// Which files are the weights, by names alone; and that a folder of such files is read so.
#include "artifact/weight_set.h"

#include <gtest/gtest.h>

#include "artifact/artifact.h"
#include "tests/testing/made_files.h"

namespace plimsoll::artifact {
namespace {

using Kind = WeightSet::Kind;
using Names = std::vector<std::string>;

struct Case {
  std::vector<std::string_view> paths;  // sorted
  Kind kind;
  Names files;
  std::string index;
  Names others;
};

const std::vector<Case> kCases = {
    {{"config.json", "x/model.safetensors"}, Kind::kNone, {}, "", {}},
    {{"model-00001-of-00002.safetensors", "model.safetensors"},
     Kind::kSafetensors,
     {"model.safetensors"},
     "",
     {}},
    {{"model-00001-of-00001.safetensors", "model.safetensors", "model.safetensors.index.json"},
     Kind::kSafetensors,
     {"model.safetensors"},
     "",
     {}},
    {{"consolidated.safetensors", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
      "model.safetensors.index.json"},
     Kind::kSafetensors,
     {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"},
     "model.safetensors.index.json",
     {}},
    {{"model-00001-of-00001.fp16.safetensors", "model.safetensors.index.fp16.json"},
     Kind::kSafetensors,
     {"model-00001-of-00001.fp16.safetensors"},
     "model.safetensors.index.fp16.json",
     {}},
    // Without an index one set is taken, not all that lies there.
    {{"adapter-00001-of-00001.safetensors", "model-00001-of-00002.safetensors",
      "model-00002-of-00002.safetensors", "other-00001-of-00001.safetensors"},
     Kind::kSafetensors,
     {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"},
     "",
     {}},
    {{"adapter_model.safetensors", "optimizer.safetensors", "weights.safetensors"},
     Kind::kSafetensors,
     {"weights.safetensors"},
     "",
     {}},
    {{"adapter_model.safetensors"}, Kind::kNone, {}, "", {}},
    {{"a.safetensors", "b.safetensors", "optimizer.safetensors"},
     Kind::kSafetensors,
     {"a.safetensors", "b.safetensors"},
     "",
     {}},
    {{"model.safetensors.index.json"}, Kind::kSafetensors, {}, "model.safetensors.index.json", {}},
    {{"m-Q4-00001-of-00002.gguf", "m-Q4-00002-of-00002.gguf", "m-Q8.gguf", "mmproj-x.gguf"},
     Kind::kGguf,
     {"m-Q4-00001-of-00002.gguf", "m-Q4-00002-of-00002.gguf"},
     "",
     {"m-Q8.gguf"}},
    {{"imatrix.gguf", "m-mmproj-f16.gguf", "x-Q8.gguf", "x-imatrix.gguf"},
     Kind::kGguf,
     {"x-Q8.gguf"},
     "",
     {}},
    {{"mmproj-x.gguf"}, Kind::kGguf, {"mmproj-x.gguf"}, "", {}},
    {{"model.safetensors", "pytorch_model.bin", "x.gguf"}, Kind::kSafetensors, {"model.safetensors"}, "", {}},
    {{"a.ckpt", "pytorch_model.bin", "x/y.safetensors"},
     Kind::kPickle,
     {"a.ckpt", "pytorch_model.bin"},
     "",
     {}},
    {{"optimizer.pt", "rng_state.pth", "scheduler.pt", "training_args.bin"}, Kind::kNone, {}, "", {}},
};

TEST(WeightSet, OneRuleByNames) {
  for (const Case& one : kCases) {
    const WeightSet set = choose_weight_set(one.paths);
    const std::string_view last = one.paths.back();
    EXPECT_EQ(set.kind, one.kind) << last;
    EXPECT_EQ(set.files, one.files) << last;
    EXPECT_EQ(set.index, one.index) << last;
    EXPECT_EQ(set.others, one.others) << last;
  }
}

// What the reader of a folder maps is what was chosen: for a hub's listing that is what is downloaded.
TEST(WeightSet, AFolderIsReadSo) {
  for (const Case& one : kCases) {
    if (one.kind != Kind::kSafetensors || !one.index.empty()) continue;
    const testing::MadeFolder folder;
    folder.put("config.json", R"({"model_type":"llama"})");
    for (const std::string_view path : one.paths)
      folder.put(std::string(path), testing::safetensors_file(
                                        R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "1234"));
    const auto artifact = open(folder.path().string());
    ASSERT_TRUE(artifact);
    Names read;
    for (const int file : (*artifact)->weights_files())
      read.push_back((*artifact)->files()[static_cast<std::size_t>(file)].path);
    EXPECT_EQ(read, one.files);
  }
}

TEST(WeightSet, PartsAreThoseOfOneSplit) {
  const Names names = {"a-00002-of-00002.gguf", "a-00001-of-00002.gguf", "a-00001-of-00003.gguf", "b.gguf"};
  EXPECT_EQ(parts_of("a-00001-of-00002.gguf", names),
            (Names{"a-00001-of-00002.gguf", "a-00002-of-00002.gguf"}));
  EXPECT_EQ(parts_of("b.gguf", names), Names{"b.gguf"});
}

}  // namespace
}  // namespace plimsoll::artifact
