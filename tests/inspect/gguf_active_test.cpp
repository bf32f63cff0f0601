// SPDX-License-Identifier: Apache-2.0
// What a GGUF file of any architecture tells by itself: parameters that a token uses, and that llama.cpp runs
// it.
#include "inspect/gguf_active.h"

#include <gtest/gtest.h>

#include "tests/inspect/model_folder.h"
#include "tests/testing/made_files.h"

namespace plimsoll::inspect {
namespace {

constexpr std::uint32_t kText = 8, kArray = 9, kUint32 = 4, kF32 = 0;

struct Part {
  const char* name;
  std::vector<std::uint64_t> dimensions;
};

std::string gguf_of(const std::string& architecture, const std::vector<Part>& parts,
                    const std::vector<std::pair<std::string, std::uint32_t>>& figures) {
  std::string header = testing::gguf_start(parts.size(), 1 + figures.size());
  header += testing::gguf_key("general.architecture", kText, testing::gguf_string(architecture));
  for (const auto& [key, value] : figures)
    header += testing::gguf_key(architecture + "." + key, kUint32, testing::le32(value));
  std::uint64_t offset = 0;
  for (const Part& part : parts) {
    header += testing::gguf_tensor(part.name, part.dimensions, kF32, offset);
    std::uint64_t elements = 1;
    for (const std::uint64_t side : part.dimensions) elements *= side;
    offset += elements * 4;  // the sides below keep it a multiple of 32
  }
  return testing::gguf_file(header, std::string(offset, '\0'));
}

Report inspected(const std::string& file) {
  ModelFolder folder;
  folder.write("m.gguf", file);
  const auto report = inspect(folder.path() + "/m.gguf");
  EXPECT_TRUE(report);
  return report ? *report : Report{};
}

Json llama_cpp(const Report& report) {
  for (const Json& row : report.support.items())
    if (row["engine"] == Json("llama.cpp")) return row["status"];
  return {};
}

const Part kEmbedding{"token_embd.weight", {8, 32}};
const Part kQuery{"blk.0.attn_q.weight", {8, 8}};

// The checks of a config hold for the same facts in a GGUF's keys.
TEST(GgufChecks, TokensEndsAndHeads) {
  const auto text_key = [](const char* key, const char* value) {
    return testing::gguf_key(key, kText, testing::gguf_string(value));
  };
  const auto file = [&](std::uint32_t num_keys, const std::string& keys) {
    return testing::gguf_file(
        testing::gguf_start(1, num_keys) + keys + testing::gguf_tensor("token_embd.weight", {8, 2}, kF32, 0),
        std::string(64, '\0'));
  };
  const std::string llama = text_key("general.architecture", "llama");
  EXPECT_NE(finding_of(inspected(file(1, llama)), "TOK_MISSING"), nullptr);
  EXPECT_EQ(finding_of(inspected(file(2, llama + text_key("tokenizer.ggml.model", "none"))), "TOK_MISSING"),
            nullptr);
  EXPECT_EQ(finding_of(inspected(file(1, text_key("general.architecture", "clip"))), "TOK_MISSING"), nullptr);
  const std::string tokens = testing::gguf_key(
      "tokenizer.ggml.tokens", kArray,
      testing::le32(kText) + testing::le64(2) + testing::gguf_string("a") + testing::gguf_string("b"));
  const auto with_end = [&](std::uint32_t id) {
    return inspected(file(
        3, llama + tokens + testing::gguf_key("tokenizer.ggml.eos_token_id", kUint32, testing::le32(id))));
  };
  EXPECT_EQ(finding_of(with_end(1), "TOK_MISSING"), nullptr);
  EXPECT_EQ(finding_of(with_end(1), "EOS_RANGE"), nullptr);
  ASSERT_NE(finding_of(with_end(2), "EOS_RANGE"), nullptr);
  EXPECT_EQ(finding_of(with_end(2), "EOS_RANGE")->where, "m.gguf: tokenizer.ggml.eos_token_id");
  const Report heads = inspected(gguf_of("llama", {kEmbedding},
                                         {{"block_count", 1},
                                          {"embedding_length", 12},
                                          {"feed_forward_length", 8},
                                          {"attention.head_count", 3},
                                          {"attention.head_count_kv", 2}}));
  EXPECT_NE(finding_of(heads, "CFG_KV_HEADS"), nullptr);
  EXPECT_EQ(finding_of(heads, "CFG_VALUE"), nullptr);
  EXPECT_NE(finding_of(inspected(gguf_of("llama", {}, {})), "WEIGHTS_EMPTY"), nullptr);
}

TEST(GgufActive, AllOfADenseFile) {
  const Report report = inspected(
      gguf_of("plamo", {kEmbedding, kQuery, {"blk.0.ffn_up.weight", {8, 16}}}, {{"block_count", 1}}));
  EXPECT_EQ(report.parameters.total, 256 + 64 + 128);
  EXPECT_EQ(report.parameters.active, 256 + 64 + 128);
  EXPECT_EQ(report.parameters.active_without_embedding, 64 + 128);
  EXPECT_EQ(llama_cpp(report), Json("supported"));
}

TEST(GgufActive, TheShareOfExpertsThatATokenUses) {
  const std::vector<Part> parts{kEmbedding,
                                kQuery,
                                {"blk.0.ffn_gate_inp.weight", {8, 4}},
                                {"blk.0.ffn_up_exps.weight", {8, 16, 4}},
                                {"blk.0.ffn_up_shexp.weight", {8, 16}}};
  const Report report = inspected(
      gguf_of("smallthinker", parts, {{"block_count", 1}, {"expert_count", 4}, {"expert_used_count", 2}}));
  EXPECT_EQ(report.parameters.total, 256 + 64 + 32 + 512 + 128);
  EXPECT_EQ(report.parameters.active, 256 + 64 + 32 + 512 / 2 + 128);
  EXPECT_EQ(finding_of(report, "ACTIVE_UNKNOWN"), nullptr);
  const Report silent = inspected(gguf_of("smallthinker", parts, {{"block_count", 1}}));
  EXPECT_EQ(silent.parameters.active, std::nullopt);
  EXPECT_NE(finding_of(silent, "ACTIVE_UNKNOWN"), nullptr);
}

// Before the stacks each expert was a tensor of its own.
TEST(GgufActive, ExpertsOfTheirOwn) {
  std::vector<Part> parts{kEmbedding, kQuery, {"blk.0.ffn_gate_inp.weight", {8, 4}}};
  for (const char* name : {"blk.0.ffn_up.0.weight", "blk.0.ffn_up.1.weight", "blk.0.ffn_down.0.weight",
                           "blk.0.ffn_down.1.weight", "blk.0.ffn_gate.0.weight", "blk.0.ffn_gate.1.weight"})
    parts.push_back({name, {8, 16}});
  const Report report =
      inspected(gguf_of("plamo", parts, {{"block_count", 1}, {"expert_count", 2}, {"expert_used_count", 1}}));
  EXPECT_EQ(report.parameters.total, 256 + 64 + 32 + 6 * 128);
  EXPECT_EQ(report.parameters.active, 256 + 64 + 32 + 3 * 128);
}

TEST(GgufActive, FiguresThatCannotBeMeant) {
  const std::vector<Part> parts{kEmbedding, kQuery, {"blk.0.ffn_up_exps.weight", {8, 16, 4}}};
  struct Fault {
    std::uint32_t all, used;
    const char* text;
  };
  for (const Fault& fault :
       {Fault{4, 9, "expert_used_count is 9 of 4"}, Fault{4, 0, "expert_used_count is 0 of 4"},
        Fault{2, 1, "expert_count is 2, and blk.0.ffn_up_exps.weight holds 4"}}) {
    const Report report = inspected(
        gguf_of("smallthinker", parts,
                {{"block_count", 1}, {"expert_count", fault.all}, {"expert_used_count", fault.used}}));
    EXPECT_EQ(report.parameters.active, std::nullopt) << fault.text;
    const auto* finding = finding_of(report, "ACTIVE_UNKNOWN");
    ASSERT_NE(finding, nullptr) << fault.text;
    EXPECT_EQ(finding->level, FindingLevel::kWarning);
    EXPECT_NE(finding->message.find(fault.text), std::string::npos) << finding->message;
  }
}

// A vocabulary alone, and a projector, are no models.
TEST(GgufActive, WhatIsNoModelIsTold) {
  const Report empty = inspected(gguf_of("llama", {}, {{"block_count", 1}}));
  ASSERT_NE(finding_of(empty, "WEIGHTS_EMPTY"), nullptr);
  EXPECT_EQ(finding_of(empty, "WEIGHTS_EMPTY")->level, FindingLevel::kError);
  const Report clip = inspected(gguf_of("clip", {{"v.patch_embd.weight", {8, 32}}}, {}));
  EXPECT_EQ(verdict_code(clip.findings), ErrorCode::kUnsupported);
  bool is_named = false;
  for (const Finding& finding : clip.findings)
    is_named |= finding.message.find("projector") != std::string::npos;
  EXPECT_TRUE(is_named);
}

TEST(GgufActive, ANameThatNobodyKnows) {
  EXPECT_EQ(llama_cpp(inspected(gguf_of("nobodys", {kEmbedding}, {}))), Json("unknown"));
}

}  // namespace
}  // namespace plimsoll::inspect
