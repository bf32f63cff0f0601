// SPDX-License-Identifier: Apache-2.0
// Healthy weights under names and in shapes that differ from the spec's: files of a model without its head,
// stacks as matrices, encoders, other schemes of names. None is a fault, and a real fault is one still.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "inspect/inspect.h"
#include "model/model.h"
#include "tests/inspect/header_folder.h"

namespace plimsoll::inspect {
namespace {

using Tensors = std::vector<HeaderTensor>;

// Every weight of the spec as a tensor: experts one by one where their name counts them, else as a stack.
Tensors tensors_of(const model::ModelSpec& spec) {
  Tensors tensors;
  for (const model::Weight& weight : spec.weights) {
    const std::size_t at = weight.hf_name.find("{}");
    std::vector<std::int64_t> shape = weight.shape;
    if (weight.hf_name.empty()) continue;
    if (at == std::string::npos) {
      if (weight.copies > 1) shape.insert(shape.begin(), weight.copies);
      tensors.push_back({weight.hf_name, "BF16", shape});
      continue;
    }
    for (int i = 0; i < weight.copies; ++i)
      tensors.push_back({std::string(weight.hf_name).replace(at, 2, std::to_string(i)), "BF16", shape});
  }
  return tensors;
}

struct Checked {
  Report report;
  std::int64_t expected = 0;  // parameters by the spec
};

Checked checked(const std::string& config_text, const std::function<void(Tensors&)>& change) {
  const auto config = parse_json(config_text, "test");
  EXPECT_TRUE(config);
  const auto spec = model::read_spec(*config, "config.json");
  EXPECT_TRUE(spec) << spec.error().describe();
  if (!spec) return {};
  Tensors tensors = tensors_of(*spec);
  change(tensors);
  const HeaderFolder folder(*config, tensors);
  auto report = inspect(folder.path());
  EXPECT_TRUE(report) << report.error().describe();
  if (!report) return {};
  return {std::move(*report), model::count_parameters(*spec).value_or(-1)};
}

bool has(const Report& report, const std::string& id) {
  return std::any_of(report.findings.begin(), report.findings.end(),
                     [&](const Finding& finding) { return finding.id == id; });
}

void expect_no_complaint(const Checked& result) {
  for (const char* id : {"CFG_LAYERS_MISMATCH", "CFG_MISSING_TENSOR", "CFG_SHAPE_MISMATCH",
                         "CFG_NAMES_UNKNOWN", "ST_UNEXPECTED_TENSOR"})
    EXPECT_FALSE(has(result.report, id)) << id;
  EXPECT_EQ(result.report.parameters.total, result.expected);
}

void rename(Tensors& tensors, std::string_view from, std::string_view to) {
  for (HeaderTensor& tensor : tensors)
    if (tensor.name.starts_with(from)) tensor.name.replace(0, from.size(), to);
}

constexpr const char* kLlama = R"({"architectures":["LlamaForCausalLM"],"model_type":"llama",
    "hidden_size":16,"num_hidden_layers":2,"num_attention_heads":2,"intermediate_size":32,"vocab_size":64,
    "max_position_embeddings":64,"tie_word_embeddings":false})";
constexpr const char* kGpt2 = R"({"architectures":["GPT2LMHeadModel"],"model_type":"gpt2","n_embd":16,
    "n_layer":2,"n_head":2,"vocab_size":64,"n_positions":32})";
constexpr const char* kDbrx = R"({"architectures":["DbrxForCausalLM"],"model_type":"dbrx","d_model":16,
    "n_layers":2,"n_heads":2,"vocab_size":64,"max_seq_len":64,"attn_config":{"kv_n_heads":1},
    "ffn_config":{"hidden_size":16,"ffn_hidden_size":8,"moe_num_experts":4,"moe_top_k":2}})";
constexpr const char* kT5 = R"({"architectures":["T5ForConditionalGeneration"],"model_type":"t5","d_model":16,
    "d_kv":8,"d_ff":32,"num_layers":2,"num_heads":2,"vocab_size":64})";
constexpr const char* kBert = R"({"architectures":["BertForMaskedLM"],"model_type":"bert","hidden_size":16,
    "num_hidden_layers":2,"num_attention_heads":2,"intermediate_size":32,"vocab_size":64,
    "max_position_embeddings":32,"tie_word_embeddings":true})";

TEST(OtherNames, AFileOfTheModelWithoutItsHead) {
  const Checked result = checked(kLlama, [](Tensors& tensors) {
    std::erase_if(tensors, [](const HeaderTensor& tensor) { return tensor.name == "lm_head.weight"; });
    rename(tensors, "model.", "");
  });
  for (const char* id : {"CFG_LAYERS_MISMATCH", "CFG_MISSING_TENSOR", "CFG_NAMES_UNKNOWN"})
    EXPECT_FALSE(has(result.report, id)) << id;
  EXPECT_EQ(result.report.parameters.total, result.expected - 64 * 16);
}

TEST(OtherNames, AWrappersPrefix) {
  expect_no_complaint(
      checked(kLlama, [](Tensors& tensors) { rename(tensors, "model.", "language_model.model."); }));
  expect_no_complaint(checked(kGpt2, [](Tensors& tensors) { rename(tensors, "transformer.", ""); }));
}

TEST(OtherNames, StacksBelowOneAnother) {
  expect_no_complaint(checked(kDbrx, [](Tensors& tensors) {
    for (HeaderTensor& tensor : tensors)
      if (tensor.shape.size() == 3) tensor.shape = {tensor.shape[0] * tensor.shape[1], tensor.shape[2]};
  }));
}

TEST(OtherNames, EncodersAreOnesThatTheArchitectureHas) {
  expect_no_complaint(checked(kT5, [](Tensors&) {}));
}

// The layer before a tied head, its norm and the words' bias are parameters; the copy of the embedding is
// none.
TEST(OtherNames, WhatStandsBesideATiedHeadCounts) {
  expect_no_complaint(checked(kBert, [](Tensors&) {}));
  const Checked stored = checked(kLlama, [](Tensors&) {});
  expect_no_complaint(stored);
  const Checked with_copy = checked(kBert, [](Tensors& tensors) {
    tensors.push_back({"cls.predictions.decoder.weight", "BF16", {64, 16}});
  });
  EXPECT_EQ(with_copy.report.parameters.total, with_copy.expected);
}

TEST(OtherNames, AnUnknownSchemeIsToldOnceAndIsNoDamage) {
  const Checked result = checked(kLlama, [](Tensors& tensors) { rename(tensors, "model.", "own_words."); });
  expect_no_complaint(result);  // a prefix like any other
  const Checked other = checked(kLlama, [](Tensors& tensors) {
    for (HeaderTensor& tensor : tensors) std::replace(tensor.name.begin(), tensor.name.end(), '.', '/');
  });
  EXPECT_TRUE(has(other.report, "CFG_NAMES_UNKNOWN"));
  EXPECT_FALSE(has(other.report, "CFG_LAYERS_MISMATCH"));
  EXPECT_FALSE(has(other.report, "CFG_MISSING_TENSOR"));
}

TEST(OtherNames, FaultsAreFaultsStill) {
  const Checked short_one = checked(kLlama, [](Tensors& tensors) {
    std::erase_if(tensors,
                  [](const HeaderTensor& tensor) { return tensor.name.find(".1.") != std::string::npos; });
  });
  EXPECT_TRUE(has(short_one.report, "CFG_LAYERS_MISMATCH"));
  const Checked holed = checked(kLlama, [](Tensors& tensors) {
    std::erase_if(tensors, [](const HeaderTensor& tensor) {
      return tensor.name == "model.layers.1.mlp.up_proj.weight";
    });
    rename(tensors, "model.", "");
  });
  EXPECT_TRUE(has(holed.report, "CFG_MISSING_TENSOR"));
  const Checked wide = checked(kDbrx, [](Tensors& tensors) {
    for (HeaderTensor& tensor : tensors)
      if (tensor.shape.size() == 3) tensor.shape[0] += 1;
  });
  EXPECT_TRUE(has(wide.report, "CFG_SHAPE_MISMATCH"));
}

// A gate's bias corrects a router where experts stand beside it; elsewhere it is half of a feed-forward's.
TEST(OtherNames, ABiasUnderTheNameOfAGate) {
  const Json config =
      *parse_json(R"({"architectures":["NobodysForCausalLM"],"num_hidden_layers":1})", "test");
  const auto total_with = [&](const Tensors& others) {
    Tensors tensors{{"layers.0.ffn.gate.weight", "BF16", {8, 4}}, {"layers.0.ffn.gate.bias", "F32", {8}}};
    tensors.insert(tensors.end(), others.begin(), others.end());
    const HeaderFolder folder(config, tensors);
    const auto report = inspect(folder.path());
    return report ? report->parameters.total.value_or(-1) : -1;
  };
  EXPECT_EQ(total_with({{"layers.0.ffn.up.weight", "BF16", {8, 4}}}), 32 + 8 + 32);
  EXPECT_EQ(total_with({{"layers.0.ffn.experts.0.w1.weight", "BF16", {2, 4}}}), 32 + 8);
}

}  // namespace
}  // namespace plimsoll::inspect
