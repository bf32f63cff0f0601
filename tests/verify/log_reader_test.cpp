// SPDX-License-Identifier: Apache-2.0
#include "verify/log_reader.h"

#include <gtest/gtest.h>

namespace plimsoll::verify {
namespace {

Log read(std::string_view text, std::size_t piece = std::string_view::npos) {
  LogReader reader;
  for (std::size_t at = 0; at < text.size(); at += std::min(piece, text.size() - at))
    reader.feed(text.substr(at, piece));
  return reader.finish();
}

constexpr std::string_view kServe =
    "[2026-01-02 03:04:05.678] [info] plimsoll version 0.1.0\n"
    "[2026-01-02 03:04:05.678] [info] Model loading took 0.25 GiB memory and 0.123456 seconds\n"
    "[2026-01-02 03:04:05.678] [info] Available KV cache memory: 0.06 GiB\r\n"
    "[2026-01-02 03:04:05.678] [info] CPU KV cache size: 2,912 tokens, Maximum concurrency for 2,048 tokens "
    "per "
    "request: 1.42x\n"
    "plimsoll memory: {\"weights_bytes\":269060352,\"kv_cache_bytes\":67092480,\"kv_bytes_per_token\":23040,"
    "\"num_blocks\":182,\"block_size\":16,\"kv_tokens\":2912}\n"
    "Listening on http://127.0.0.1:8000\n";

TEST(LogReader, ReadsOurOwnStart) {
  const Log log = read(kServe);
  ASSERT_EQ(log.runs.size(), 1U);
  const EngineStart& run = log.runs[0];
  EXPECT_EQ(run.engine, "plimsoll");
  EXPECT_EQ(run.version, "0.1.0");
  EXPECT_EQ(run.weights_bytes->value, 269'060'352);
  EXPECT_EQ(run.weights_bytes->half_step, 0);
  EXPECT_EQ(run.kv_cache_bytes->value, 67'092'480);
  EXPECT_EQ(run.kv_bytes_per_token->value, 23'040);
  EXPECT_EQ(run.num_blocks->value, 182);
  EXPECT_EQ(run.block_size->value, 16);
  EXPECT_EQ(run.kv_tokens->value, 2912);
  EXPECT_EQ(run.max_model_len->value, 2048);
  EXPECT_DOUBLE_EQ(run.max_concurrency->value, 1.42);
  EXPECT_EQ(run.max_concurrency->text, "1.42x");
  EXPECT_FALSE(run.failed);
  EXPECT_TRUE(run.unread_lines.empty());
}

TEST(LogReader, PiecesOfAnySizeReadAlike) {
  for (const std::size_t piece : {1U, 2U, 7U, 100U}) {
    const Log log = read(kServe, piece);
    ASSERT_EQ(log.runs.size(), 1U) << piece;
    EXPECT_EQ(log.runs[0].kv_tokens->value, 2912);
    EXPECT_EQ(log.runs[0].max_model_len->value, 2048);
  }
}

TEST(LogReader, WithoutTheExactLineTheRoundedOnesCount) {
  const Log log = read(
      "Model loading took 14.96 GiB memory and 3.2 seconds\n"
      "Available KV cache memory: 4.00 GiB\n"
      "CPU KV cache size: 32,768 tokens, Maximum concurrency for 8,192 tokens per request: 4.00x");
  ASSERT_EQ(log.runs.size(), 1U);
  const EngineStart& run = log.runs[0];
  EXPECT_EQ(run.engine, "plimsoll");
  EXPECT_EQ(run.weights_bytes->value, 16'063'177'687);  // 14.96 x 2^30, to the nearest
  EXPECT_EQ(run.weights_bytes->text, "14.96 GiB");
  EXPECT_NEAR(static_cast<double>(run.weights_bytes->half_step), 0.005 * kGiB, 2);
  EXPECT_EQ(run.kv_cache_bytes->value, 4 * kGiB);
  EXPECT_FALSE(run.num_blocks);
  EXPECT_FALSE(run.block_size);
}

TEST(LogReader, SeveralStartsAreSeveralRuns) {
  const std::string twice = std::string(kServe) + "Traceback\n" + std::string(kServe);
  const Log log = read(twice);
  EXPECT_EQ(log.num_runs, 2);
  ASSERT_EQ(log.runs.size(), 2U);
  EXPECT_EQ(log.runs[0].kv_tokens->value, log.runs[1].kv_tokens->value);
}

TEST(LogReader, ARefusalIsAFailedStart) {
  const Log log = read(
      "plimsoll: To serve at least one request with the model's max seq len (131072), (16.00 GiB KV cache is "
      "needed, "
      "which is larger than the available KV cache memory (4.01 GiB). Based on the available memory, the "
      "estimated "
      "maximum model length is 32832. Try increasing `kv_cache_memory_bytes` or decreasing `max_model_len` "
      "when "
      "initializing the engine. (--max-model-len)\n");
  ASSERT_EQ(log.runs.size(), 1U);
  const EngineStart& run = log.runs[0];
  EXPECT_TRUE(run.failed);
  EXPECT_EQ(run.engine, "plimsoll");
  EXPECT_EQ(run.max_model_len->value, 131'072);
  EXPECT_EQ(run.required_kv_cache_bytes->value, 16 * kGiB);
  EXPECT_EQ(run.kv_cache_bytes->text, "4.01 GiB");
  EXPECT_EQ(run.estimated_max_model_len->value, 32'832);
  EXPECT_NE(run.error.find("131072"), std::string::npos);
}

TEST(LogReader, OurOtherRefusalsAreFailedStartsToo) {
  for (const char* line :
       {"plimsoll: The KV cache of 2.00 GiB that was asked for, beside 1.00 GiB of weights, needs",
        "plimsoll: No available memory for the cache blocks: weights of 131.42 GiB leave no room"}) {
    const Log log = read(line);
    ASSERT_EQ(log.runs.size(), 1U);
    EXPECT_TRUE(log.runs[0].failed) << line;
    EXPECT_EQ(log.runs[0].engine, "plimsoll");
  }
}

TEST(LogReader, AStartAfterARefusalIsAnother) {
  const Log log = read("plimsoll: No available memory for the cache blocks: x\n" + std::string(kServe));
  ASSERT_EQ(log.runs.size(), 2U);
  EXPECT_TRUE(log.runs[0].failed);
  EXPECT_FALSE(log.runs[1].failed);
}

TEST(LogReader, RanksGiveTheLargestWeightsAndTheSmallestCache) {
  const Log log = read(
      "[gpu_model_runner.py:5335] Model loading took 54.82 GiB memory and 389.4 seconds\n"
      "[gpu_model_runner.py:5335] Model loading took 54.90 GiB memory and 389.4 seconds\n"
      "[gpu_worker.py:560] Available KV cache memory: 28.85 GiB\n"
      "[gpu_worker.py:560] Available KV cache memory: 28.70 GiB\n"
      "[kv_cache_utils.py:2178] GPU KV cache size: 574,336 tokens\n"
      "[kv_cache_utils.py:2179] Maximum concurrency for 400,000 tokens per request: 1.44x\n");
  ASSERT_EQ(log.runs.size(), 1U);
  const EngineStart& run = log.runs[0];
  EXPECT_EQ(run.engine, "vllm");
  EXPECT_EQ(run.weights_bytes->text, "54.90 GiB");
  EXPECT_EQ(run.kv_cache_bytes->text, "28.70 GiB");
  EXPECT_EQ(run.kv_tokens->value, 574'336);
  EXPECT_EQ(run.max_model_len->value, 400'000);
}

TEST(LogReader, WordsOfBothEnginesAreDecidedByALaterLine) {
  const std::string shared =
      "Model loading took 1.00 GiB memory and 1 seconds\nAvailable KV cache memory: 2.00 GiB\n";
  EXPECT_EQ(read(shared + "GPU KV cache size: 100 tokens\n").runs.at(0).engine, "vllm");
  EXPECT_EQ(read(shared + "CPU KV cache size: 100 tokens\n").runs.at(0).engine, "plimsoll");
  EXPECT_EQ(read(shared).runs.at(0).engine, "vllm");
}

TEST(LogReader, LinesOfMemoryThatSayNothingKnownAreKept) {
  const Log log = read(
      "Model loading took ages\n"
      "CPU KV cache size: many tokens\n"
      "plimsoll memory: {\"weights_bytes\":\n"
      "Something used memory: 3.5 GiB\n"
      "An ordinary line\n");
  ASSERT_EQ(log.runs.size(), 1U);
  EXPECT_FALSE(log.runs[0].engine);
  EXPECT_EQ(log.runs[0].unread_lines.size(), 4U);
}

TEST(LogReader, AbsurdNumbersAreNotBelieved) {
  const Log log = read(
      "CPU KV cache size: 99999999999999999999999999 tokens\n"
      "Available KV cache memory: 99999999999999 GiB\n"
      "plimsoll memory: {\"weights_bytes\":-1,\"kv_tokens\":1e300}\n");
  ASSERT_EQ(log.runs.size(), 1U);
  EXPECT_FALSE(log.runs[0].kv_tokens);
  EXPECT_FALSE(log.runs[0].kv_cache_bytes);
  EXPECT_FALSE(log.runs[0].weights_bytes);
  EXPECT_EQ(log.runs[0].unread_lines.size(), 3U);
}

TEST(LogReader, HugeLinesAndManyStartsStayBounded) {
  LogReader reader;
  const std::string piece(1 << 20, 'x');
  for (int i = 0; i < 20; ++i) reader.feed(piece);  // one line of 20 MiB
  reader.feed("\n");
  for (int i = 0; i < 1000; ++i)
    reader.feed("Model loading took 1.00 GiB memory and 1 seconds\nAvailable KV cache memory: 1.00 GiB\n");
  for (int i = 0; i < 1000; ++i) reader.feed("lost memory: 1 GiB" + std::string(5000, '!') + "\n");
  const Log log = reader.finish();
  EXPECT_EQ(log.num_runs, 1000);
  EXPECT_LE(log.runs.size(), 65U);
  ASSERT_LE(log.runs.back().unread_lines.size(), 50U);
  for (const std::string& line : log.runs.back().unread_lines) EXPECT_LE(line.size(), 300U);
}

TEST(LogReader, BytesThatAreNoTextDoNoHarm) {
  std::string bytes;
  std::uint32_t state = 1;
  for (int i = 0; i < 200'000; ++i) {
    state = state * 1664525U + 1013904223U;
    bytes += static_cast<char>(state >> 24);
  }
  const Log log = read(bytes);
  EXPECT_TRUE(log.runs.empty());
}

}  // namespace
}  // namespace plimsoll::verify
