// SPDX-License-Identifier: Apache-2.0
#include "memory/embedded.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/memory/worked_case.h"

namespace plimsoll::memory {
namespace {

using testing::WorkedCase;

TEST(Embedded, TheFormulaPagesWorkedCase) {
  const WorkedCase page("embedded_engine.md");
  EmbeddedOptions options;
  options.threads = static_cast<int>(page.integer("threads"));
  options.max_model_len = page.integer("max_model_len");
  const auto spec = llama(testing::kLlama8B);
  const auto answer = size_embedded(spec, Bytes(page.integer("weights_bytes")), options,
                                    Bytes(page.integer("available_bytes")));
  ASSERT_TRUE(answer) << answer.error().describe();
  const EmbeddedPlan& plan = answer->plan;
  EXPECT_TRUE(answer->fits);
  EXPECT_EQ(answer->budget.value, page.integer("budget_bytes"));
  EXPECT_EQ(plan.cache.bytes_per_block.value, page.integer("bytes_per_block"));
  EXPECT_EQ(answer->workspace.activation().value, page.integer("activation_bytes"));
  EXPECT_EQ(answer->workspace.logits.value, page.integer("logits_bytes"));
  EXPECT_EQ(answer->workspace.thread_rows.value, page.integer("thread_rows_bytes"));
  EXPECT_EQ(answer->workspace.attention_scratch.value, page.integer("attention_scratch_bytes"));
  EXPECT_EQ(answer->workspace.attention_parts.value, page.integer("attention_parts_bytes"));
  EXPECT_EQ(plan.workspace.value, page.integer("workspace_bytes"));
  EXPECT_EQ(plan.process_base.value, page.integer("process_base_bytes"));
  EXPECT_EQ(answer->available_kv_cache.value, page.integer("free_for_pool_bytes"));
  EXPECT_EQ(plan.num_blocks.value, page.integer("num_blocks"));
  EXPECT_EQ(plan.kv_cache.value, page.integer("kv_cache_bytes"));
  EXPECT_EQ(plan.kv_tokens.value, page.integer("kv_tokens"));
  EXPECT_DOUBLE_EQ(plan.max_concurrency, std::strtod(page.text("max_concurrency").c_str(), nullptr));
  ASSERT_TRUE(answer->longest);
  EXPECT_EQ(answer->longest->value, page.integer("longest_model_len"));
  EXPECT_EQ(answer->pool_source, PoolSource::kDefaultLimit);
}

// 4 layers x 2 x 2 heads x 16 x 2 bytes = 512 bytes per token; 8,192 per block.
const testing::LlamaShape kTiny{4, 64, 4, 2, 16, 128, 512, 2048};

// An encoder of the same sizes keeps nothing, and its steps hold the longest text.
TEST(Embedded, EncodersHaveNoPoolAndRoomForTheLongestText) {
  auto spec = llama(kTiny);
  for (model::Layer& layer : spec.layers)
    layer.mixer = model::TwoSided{std::get<model::Attention>(layer.mixer)};
  spec.pooling.emplace();
  EmbeddedOptions options;
  options.max_num_batched_tokens = 250;
  options.max_model_len = 100;
  auto answer = size_embedded(spec, Bytes(1'000'000), options, Bytes(kGiB));
  ASSERT_TRUE(answer) << answer.error().describe();
  EXPECT_TRUE(answer->fits);
  EXPECT_EQ(answer->plan.kv_cache.value, 0);
  EXPECT_EQ(answer->plan.num_blocks.value, 0);
  EXPECT_EQ(answer->plan.kv_tokens.value, 0);
  EXPECT_DOUBLE_EQ(answer->plan.max_concurrency, 2.0);
  EXPECT_EQ(answer->workspace.residual.value, 250 * 64 * 4);
  EXPECT_EQ(answer->workspace.logits.value, 0);
  options.max_model_len = 1000;
  answer = size_embedded(spec, Bytes(1'000'000), options, Bytes(kGiB));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->workspace.residual.value, 1000 * 64 * 4);
  ASSERT_TRUE(answer->longest);
  EXPECT_EQ(answer->longest->value, 2048);
  // Little memory: the longest text that fits is named.
  const Bytes base = answer->plan.process_base;
  options.memory_utilization = 1.0;
  answer = size_embedded(spec, Bytes(1'000'000), options, base + Bytes(2'000'000));
  ASSERT_TRUE(answer);
  EXPECT_FALSE(answer->fits);
  ASSERT_TRUE(answer->longest);
  const std::int64_t longest = answer->longest->value;
  EXPECT_GT(longest, 0);
  EXPECT_LT(longest, 1000);
  options.max_model_len = longest;
  EXPECT_TRUE(plan_embedded(spec, Bytes(1'000'000), options, base + Bytes(2'000'000)));
  options.max_model_len = longest + 1;
  EXPECT_FALSE(plan_embedded(spec, Bytes(1'000'000), options, base + Bytes(2'000'000)));
}

TEST(Embedded, AnExampleByHand) {
  EmbeddedOptions options;
  options.threads = 2;
  options.max_num_seqs = 3;
  options.max_num_batched_tokens = 8;
  options.max_model_len = 100;  // 7 blocks
  const auto answer = size_embedded(llama(kTiny), Bytes(1'000'000), options, Bytes(kGiB));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->plan.cache.bytes_per_token.value, 512);
  EXPECT_EQ(answer->plan.cache.bytes_per_block.value, 8192);
  EXPECT_EQ(answer->plan.num_blocks.value, 21);
  EXPECT_EQ(answer->pool_source, PoolSource::kDemand);
  EXPECT_DOUBLE_EQ(answer->plan.max_concurrency, 3.0);
  // 8 tokens x (64 x 5 + 2 x 32 + 2 x 128 + 16) + 3 x 512 + 2 x 24 x 128 floats, of attention 2 threads x 32
  // x (16 + 128 + 3 x 32) and 16 spans x 4 heads x 32, and 8 x 2 x 4 blocks of 40 bytes
  EXPECT_EQ(answer->plan.workspace.value,
            4 * (8 * 656 + 3 * 512 + 2 * 24 * 128 + 2 * 32 * 240 + 16 * 4 * 32) + 8 * 2 * 4 * 40);
  options.threads = 1;
  EXPECT_EQ(embedded_workspace(llama(kTiny), options)->attention_parts.value, 0);  // nobody shares
  EXPECT_EQ(answer->plan.peak.value, 1'000'000 + 21 * 8192 + answer->plan.workspace.value + 64 * kMiB);
}

TEST(Embedded, APoolBeyondAllMemoryDoesNotFitHoweverLarge) {
  EmbeddedOptions options;
  options.max_model_len = 128;
  options.kv_cache_bytes = Bytes(INT64_MAX);
  const auto answer = size_embedded(llama(kTiny), Bytes(1'000'000), options, Bytes(kGiB));
  ASSERT_TRUE(answer);
  EXPECT_FALSE(answer->fits);
  EXPECT_EQ(answer->plan.peak.value, INT64_MAX);
  EXPECT_FALSE(size_embedded(llama(kTiny), Bytes(1'000'000), options, std::nullopt)->fits);
}

TEST(Embedded, ConcurrencyCountsWholeBlocksInTheLogLineToo) {
  EmbeddedOptions options;
  options.max_model_len = 100;  // 7 blocks
  options.num_blocks = 20;
  const auto plan = plan_embedded(llama(kTiny), Bytes(1'000'000), options, Bytes(kGiB));
  ASSERT_TRUE(plan);
  EXPECT_EQ(capacity_line(*plan),
            "CPU KV cache size: 320 tokens, Maximum concurrency for 100 tokens per request: 2.86x");
}

TEST(Embedded, OptionsThatTheEngineWouldRefuseAreRefused) {
  for (const auto& change :
       std::vector<void (*)(EmbeddedOptions&)>{[](EmbeddedOptions& o) { o.block_size = kMaxBlockSize + 1; },
                                               [](EmbeddedOptions& o) { o.max_num_seqs = 100'000; },
                                               [](EmbeddedOptions& o) { o.max_num_batched_tokens = 0; },
                                               [](EmbeddedOptions& o) { o.max_model_len = 0; }}) {
    EmbeddedOptions options;
    change(options);
    const auto answer = size_embedded(llama(kTiny), Bytes(1'000'000), options, Bytes(kGiB));
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::kUsage);
  }
}

TEST(Embedded, Float32DoublesTheCache) {
  EmbeddedOptions options;
  options.compute = EmbeddedCompute::kFloat32;
  const auto plan = plan_embedded(llama(kTiny), Bytes(1'000'000), options, Bytes(kGiB));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->cache.format, DType::kF32);
  EXPECT_EQ(plan->cache.bytes_per_token.value, 1024);
}

TEST(Embedded, InputsInEightBitsAreForAutoAlone) {
  EmbeddedOptions options;
  options.max_num_batched_tokens = 3;
  EXPECT_EQ(embedded_workspace(llama(kTiny), options)->codes.value, 3 * 2 * 4 * 40);
  options.compute = EmbeddedCompute::kFloat32;
  EXPECT_EQ(embedded_workspace(llama(kTiny), options)->codes.value, 0);
}

TEST(Embedded, HeadsWiderThanTheHiddenSizeGetTheirRoom) {
  auto shape = kTiny;
  shape.head_dim = 32;  // 4 x 32 = 128 above hidden 64
  EmbeddedOptions options;
  options.max_num_batched_tokens = 1;
  const auto space = embedded_workspace(llama(shape), options);
  ASSERT_TRUE(space);
  EXPECT_EQ(space->query.value, 4 * 128);
  EXPECT_EQ(space->attention_out.value, 4 * 128);
  EXPECT_EQ(space->residual.value, 4 * 64);
}

TEST(Embedded, APoolBelowOneRequestIsRefusedWithTheLongestLength) {
  EmbeddedOptions options;
  options.kv_cache_bytes = Bytes(10 * 8192 + 8191);  // floored to 10 blocks = 160 tokens
  options.max_model_len = 161;
  const auto plan = plan_embedded(llama(kTiny), Bytes(1'000'000), options, Bytes(kGiB));
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, ErrorCode::kNo);
  EXPECT_NE(plan.error().message.find("max seq len (161)"), std::string::npos) << plan.error().message;
  EXPECT_NE(plan.error().message.find("estimated maximum model length is 160"), std::string::npos);
  EXPECT_EQ(plan.error().where, "--kv-cache-memory-bytes");
  EXPECT_NE(plan.error().fix.find(std::to_string(11 * 8192)), std::string::npos) << plan.error().fix;
  options.max_model_len = 160;
  const auto fitting = plan_embedded(llama(kTiny), Bytes(1'000'000), options, Bytes(kGiB));
  ASSERT_TRUE(fitting);
  EXPECT_EQ(fitting->num_blocks.value, 10);
  EXPECT_EQ(fitting->kv_cache.value, 10 * 8192);
}

TEST(Embedded, TheNamedLengthFitsAndTheNextDoesNot) {
  const auto spec = llama(testing::kLlama8B);
  EmbeddedOptions options;
  options.threads = 3;
  const Bytes weights(16'060'522'496);
  for (const std::int64_t available : {19 * kGiB, 20 * kGiB + 12'345, 24 * kGiB}) {
    options.max_model_len.reset();
    const auto refused = size_embedded(spec, weights, options, Bytes(available));
    ASSERT_TRUE(refused);
    EXPECT_FALSE(refused->fits);
    ASSERT_TRUE(refused->longest);
    options.max_model_len = refused->longest->value;
    EXPECT_TRUE(plan_embedded(spec, weights, options, Bytes(available))) << available;
    options.max_model_len = refused->longest->value + 1;
    EXPECT_FALSE(plan_embedded(spec, weights, options, Bytes(available))) << available;
  }
}

TEST(Embedded, TheLongestLengthCanBeAskedFor) {
  EmbeddedOptions options;
  options.longest_model_len = true;
  options.num_blocks = 10;
  const auto short_pool = plan_embedded(llama(kTiny), Bytes(1), options, std::nullopt);
  ASSERT_TRUE(short_pool);
  EXPECT_EQ(short_pool->max_model_len.value, 160);
  options.num_blocks = 1000;
  EXPECT_EQ(plan_embedded(llama(kTiny), Bytes(1), options, std::nullopt)->max_model_len.value, 2048);
}

TEST(Embedded, BlocksGoBeforeBytes) {
  EmbeddedOptions options;
  options.num_blocks = 200;
  options.kv_cache_bytes = Bytes(8192);
  const auto answer = size_embedded(llama(kTiny), Bytes(1), options, Bytes(kGiB));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->plan.num_blocks.value, 200);
  EXPECT_EQ(answer->pool_source, PoolSource::kFlag);
}

TEST(Embedded, AGivenPoolLargerThanTheMachineIsRefused) {
  EmbeddedOptions options;
  options.kv_cache_bytes = Bytes(2 * kGiB);
  const auto answer = size_embedded(llama(kTiny), Bytes(1), options, Bytes(kGiB));
  ASSERT_TRUE(answer);
  EXPECT_FALSE(answer->fits);
  EXPECT_NE(answer->message.find("1.00 GiB is available"), std::string::npos) << answer->message;
}

TEST(Embedded, WeightsThatDoNotFitLeaveNoLength) {
  const auto answer = size_embedded(llama(testing::kLlama70B), Bytes(141'107'412'992), {}, Bytes(24 * kGiB));
  ASSERT_TRUE(answer);
  EXPECT_FALSE(answer->fits);
  EXPECT_FALSE(answer->longest);
  EXPECT_LT(answer->available_kv_cache.value, 0);
  EXPECT_NE(answer->message.find("No available memory"), std::string::npos);
}

TEST(Embedded, NonsenseIsRefused) {
  const auto code = [](auto change, std::optional<Bytes> available = Bytes(kGiB)) {
    EmbeddedOptions options;
    change(options);
    const auto answer = size_embedded(llama(kTiny), Bytes(1), options, available);
    return answer ? ErrorCode::kInternal : answer.error().code;
  };
  EXPECT_EQ(code([](auto& o) { o.block_size = 0; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](auto& o) { o.num_blocks = 0; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](auto& o) { o.num_blocks = INT64_MAX; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](auto& o) { o.kv_cache_bytes = Bytes(0); }), ErrorCode::kUsage);
  EXPECT_EQ(code([](auto& o) { o.max_num_seqs = 0; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](auto& o) { o.threads = 0; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](auto& o) { o.memory_utilization = 0.0; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](auto& o) { o.max_model_len = 2049; }), ErrorCode::kUsage);  // beyond the context
  EXPECT_EQ(code([](auto&) {}, std::nullopt), ErrorCode::kUsage);
}

TEST(Embedded, StatesAreNotKept) {
  auto spec = llama(kTiny);
  spec.layers[1].mixer = model::State{.kind = model::StateKind::kMamba, .recurrent_elements = 4096};
  const auto answer = size_embedded(spec, Bytes(1), {}, Bytes(kGiB));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnsupported);
}

TEST(Embedded, AbsurdSizesAreRefusedNotOverflowed) {
  auto shape = kTiny;
  shape.hidden = shape.intermediate = INT32_MAX;
  shape.vocab = INT64_MAX;
  const auto space = embedded_workspace(llama(shape), {});
  ASSERT_FALSE(space);
  EXPECT_EQ(space.error().code, ErrorCode::kMalformed);
}

}  // namespace
}  // namespace plimsoll::memory
