// SPDX-License-Identifier: Apache-2.0
// Ranks apart, the settings that a start states, and the plan that is made of them.
#include "verify/log_settings.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "verify/verify.h"

namespace plimsoll::verify {
namespace {

Report report_of(const std::string& text) {
  LogReader reader;
  reader.feed(text);
  auto report = compare(reader.finish(), nullptr, nullptr);
  EXPECT_TRUE(report) << report.error().describe();
  return report ? std::move(*report) : Report();
}

std::string start(const std::string& model, const std::string& more = "quantization=None",
                  const std::string& flags = "'max_num_seqs': 512") {
  return fmt::format(
      "INFO 01-15 10:00:00 [utils.py:233] non-default args: {{'model': '{0}', {2}}}\n"
      "(EngineCore_DP0 pid=12) INFO [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: "
      "model='{0}', speculative_config=None, tokenizer='{0}', dtype=torch.bfloat16, max_seq_len=131072, "
      "tensor_parallel_size=1, pipeline_parallel_size=1, data_parallel_size=1, {1}, enforce_eager=False, "
      "kv_cache_dtype=auto, enable_prefix_caching=True, compilation_config={{'dtype': 'none'}}\n"
      "Model loading took 14.9888 GiB and 5.1 seconds\n"
      "Available KV cache memory: 54.82 GiB\n"
      "GPU KV cache size: 449,072 tokens\n"
      "Maximum concurrency for 131,072 tokens per request: 3.43x\n",
      model, more, flags);
}

constexpr const char* kLlama = "meta-llama/Llama-3.1-8B-Instruct";

TEST(LogSettings, AStartIsPlannedByItsOwnWords) {
  const Report report = report_of(start(kLlama));
  ASSERT_TRUE(report.from_log);
  ASSERT_TRUE(report.from_log->plan) << report.from_log->missing;
  EXPECT_FALSE(report.plan);
  EXPECT_TRUE(report.deltas.empty());
  ASSERT_EQ(report.from_log->deltas.size(), 4U);
  for (const Delta& delta : report.from_log->deltas)
    EXPECT_TRUE(delta.within_error_bar || delta.part == "weights") << delta.part;
  EXPECT_NEAR(report.from_log->deltas[0].plan / kGiB, 14.98878, 1e-5);
  EXPECT_EQ(report.log.runs.back().settings.at("max_num_seqs"), "512");
  EXPECT_EQ(report.log.runs.back().settings.at("dtype"), "torch.bfloat16");
  EXPECT_FALSE(report.answer());
}

// With the GPU's memory known the cache itself is foretold.
TEST(LogSettings, TheBudgetIsPlannedWhereTheGpuIsKnown) {
  const Report report = report_of(
      start(kLlama, "quantization=None", "'gpu_memory_utilization': 0.95, 'max_num_seqs': 1024") +
      "Free memory on device (cuda:0) (78.6/79.18 GiB) on startup. Desired GPU memory utilization is (0.95, "
      "75.22 GiB). Actual usage is 14.99 GiB for weight, 4.76 GiB for peak activation, 0.13 GiB for "
      "non-torch memory, and 0.5 GiB for CUDAGraph memory.\n");
  ASSERT_TRUE(report.from_log && report.from_log->plan);
  EXPECT_EQ((*report.from_log->plan)["gpu"]["memory_bytes"].as_integer(), std::llround(79.18 * kGiB));
  for (const Delta& delta : report.from_log->deltas)
    if (delta.part == "kv_cache") {
      EXPECT_NEAR(delta.plan / kGiB, 55.3, 0.6);
    }
}

TEST(LogSettings, WhatDoesNotSufficeIsNamed) {
  const auto missing = [](const std::string& text) { return report_of(text).from_log.value().missing; };
  EXPECT_NE(missing(start("/models/mine")).find("/models/mine"), std::string::npos);
  EXPECT_NE(missing(start(kLlama, "quantization=fp8")).find("fp8"), std::string::npos);
  EXPECT_NE(missing("Available KV cache memory: 1.00 GiB\n").find("release"), std::string::npos);
  const std::string nameless =
      "Initializing a V1 LLM engine (v0.11.0) with config: max_seq_len=8\nAvailable KV cache memory: 1 GiB\n";
  EXPECT_NE(missing(nameless).find("model"), std::string::npos);
  // What a log names is not opened.
  EXPECT_FALSE(report_of(start("/etc")).from_log->plan);
}

TEST(LogSettings, HostileValuesAreNoNumbers) {
  for (const char* flags : {"'max_num_seqs': 99999999999999999999", "'max_num_seqs': -1", "'block_size': '",
                            "'gpu_memory_utilization': 1e999", "'kv_cache_memory_bytes': nan"})
    EXPECT_TRUE(report_of(start(kLlama, "quantization=None", flags)).from_log) << flags;
}

TEST(LogSettings, RanksStandApart) {
  LogReader reader;
  reader.feed(
      "(Worker_TP0 pid=11) INFO Model loading took 7.51 GiB memory and 3.1 seconds\n"
      "(Worker_TP1 pid=12) INFO Model loading took 7.52 GiB memory and 3.1 seconds\n"
      "(Worker_TP0 pid=11) INFO Available KV cache memory: 58.10 GiB\n"
      "(Worker_TP1 pid=12) INFO Available KV cache memory: 57.25 GiB\n");
  EXPECT_FALSE(reader.has_settled());
  reader.feed("INFO init engine (profile, create kv cache, warmup model) took 20.0 seconds\n");
  EXPECT_TRUE(reader.has_settled());
  const auto report = compare(reader.finish(), nullptr, nullptr);
  ASSERT_TRUE(report);
  const auto& ranks = report->log.runs.back().ranks;
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_EQ(ranks.at("Worker_TP1 pid=12").kv_cache_bytes->text, "57.25 GiB");
  EXPECT_EQ(ranks.at("Worker_TP0 pid=11").weights_bytes->text, "7.51 GiB");
  const Json document = to_json(*report);
  EXPECT_EQ(document["log"]["ranks"].size(), 2U);
  EXPECT_EQ(document["log"]["ready"], Json(true));
  ASSERT_EQ(report->causes.size(), 1U);
  EXPECT_NE(report->causes[0].evidence.find("(Worker_TP1 pid=12)"), std::string::npos);
}

TEST(LogSettings, RanksOfSglang) {
  LogReader reader;
  reader.feed("[2026-01-01 00:00:00 TP1] Load weight end. type=X, avail mem=70.1 GB, mem usage=7.5 GB.\n");
  const Log log = reader.finish();
  EXPECT_EQ(log.runs.back().ranks.count("TP1"), 1U);
}

TEST(LogSettings, ARefusalSettlesAStart) {
  LogReader reader;
  reader.feed("ValueError: No available memory for the cache blocks.\n");
  EXPECT_TRUE(reader.has_settled());
}

TEST(LogSettings, RanksThatCannotBeAreNotPlanned) {
  for (const char* ranks :
       {"tensor_parallel_size=0", "tensor_parallel_size=1000000000", "tensor_parallel_size=-1",
        "tensor_parallel_size=99999999999", "tensor_parallel_size=two", "tensor_parallel_size=1.5"}) {
    std::string text = start(kLlama);
    text.replace(text.find("tensor_parallel_size=1"), std::string("tensor_parallel_size=1").size(), ranks);
    const Report report = report_of(text);
    EXPECT_FALSE(report.from_log.value().plan) << ranks;
    EXPECT_NE(report.from_log->missing.find("tensor_parallel_size"), std::string::npos);
    EXPECT_TRUE(to_json(report)["log"]["num_ranks"].is_null()) << ranks;
  }
}

TEST(LogSettings, WhatCannotBeReadIsNotGuessed) {
  for (const char* flags : {"'gpu_memory_utilization': nan", "'gpu_memory_utilization': inf",
                            "'gpu_memory_utilization': 1.5", "'max_num_seqs': -1", "'max_num_seqs': 0",
                            "'block_size': 99999999999", "'kv_cache_memory_bytes': many"}) {
    const Report report = report_of(start(kLlama, "quantization=None", flags));
    EXPECT_FALSE(report.from_log.value().plan) << flags;
    const std::string key = std::string(flags).substr(1, std::string(flags).find("':") - 1);
    EXPECT_NE(report.from_log->missing.find(key), std::string::npos) << report.from_log->missing;
  }
}

Log log_of(std::string_view text) {
  LogReader reader;
  reader.feed(text);
  return reader.finish();
}

// One engine refuses, the other goes on printing: the start has failed.
TEST(LogSettings, ARefusalHoldsForTheWholeStart) {
  const std::string text =
      "(EngineCore_DP0 pid=1) INFO Initializing a V1 LLM engine (v0.19.0) with config: max_seq_len=8192\n"
      "(EngineCore_DP0 pid=1) INFO Model loading took 15.00 GiB memory and 3.1 seconds\n"
      "(EngineCore_DP0 pid=1) ValueError: No available memory for the cache blocks.\n"
      "(EngineCore_DP1 pid=2) INFO Initializing a V1 LLM engine (v0.19.0) with config: max_seq_len=8192\n"
      "(EngineCore_DP1 pid=2) INFO Model loading took 15.00 GiB memory and 3.1 seconds\n"
      "(EngineCore_DP1 pid=2) INFO Available KV cache memory: 56.34 GiB\n"
      "(EngineCore_DP1 pid=2) ValueError: No available memory for the cache blocks.\n";
  const Log log = log_of(text);
  ASSERT_EQ(log.num_runs, 1);
  EXPECT_TRUE(log.runs[0].failed);
  // Started again: by the server's own words, or by the process that had refused.
  EXPECT_EQ(log_of(text + "(APIServer pid=3) INFO vLLM API server version 0.19.0\n").num_runs, 2);
  EXPECT_EQ(log_of(text + "(EngineCore_DP0 pid=4) INFO Model loading took 15.00 GiB memory\n").num_runs, 2);
  EXPECT_EQ(log_of(text + text).num_runs, 2);
}

// Settings that a second engine states when the first is loaded, or has its cache, open no start.
TEST(LogSettings, LateEnginesOpenNoStart) {
  const std::string first =
      "(EngineCore_DP0 pid=1) INFO Initializing a V1 LLM engine (v0.19.0) with config: max_seq_len=8192\n"
      "(EngineCore_DP0 pid=1) INFO Model loading took 15.00 GiB memory and 3.1 seconds\n";
  const std::string second =
      "(EngineCore_DP1 pid=2) INFO Initializing a V1 LLM engine (v0.19.0) with config: max_seq_len=8192\n";
  const std::string sized =
      "(EngineCore_DP0 pid=1) INFO Available KV cache memory: 40.00 GiB\n"
      "(EngineCore_DP0 pid=1) INFO GPU KV cache size: 327,680 tokens\n";
  const std::string chunks =
      "(EngineCore_DP1 pid=2) INFO Chunked prefill is enabled with max_num_batched_tokens=8192.\n";
  EXPECT_EQ(log_of(first + second + sized).num_runs, 1);
  EXPECT_EQ(log_of(first + second + sized + chunks).num_runs, 1);
  EXPECT_EQ(log_of(first + sized + chunks + second).num_runs, 1);
  EXPECT_EQ(log_of(first + second + sized + chunks + first).num_runs, 2);
  // A server that states its flags again has started again, before its engines say so.
  const std::string server = "(APIServer pid=3) INFO non-default args: {'model': 'm', 'max_num_seqs': 8}\n";
  const Log twice = log_of(server + first + sized + server + first);
  ASSERT_EQ(twice.num_runs, 2);
  EXPECT_EQ(twice.runs[1].settings.at("max_num_seqs"), "8");
}

// Engines of one start that do not keep step, padding that is told before the profile: still one start.
TEST(LogSettings, OneStartOfSeveralProcesses) {
  LogReader reader;
  reader.feed(
      "(EngineCore_DP0 pid=1) INFO Initializing a V1 LLM engine (v0.19.0) with config: max_seq_len=8192\n"
      "(EngineCore_DP1 pid=2) INFO Initializing a V1 LLM engine (v0.19.0) with config: max_seq_len=8192\n"
      "(EngineCore_DP0 pid=1) INFO Model loading took 15.00 GiB memory and 3.1 seconds\n"
      "(EngineCore_DP0 pid=1) INFO Add 4 padding layers, may waste at most 6.67% KV cache memory\n"
      "(EngineCore_DP0 pid=1) INFO Available KV cache memory: 40.00 GiB\n"
      "(EngineCore_DP0 pid=1) INFO GPU KV cache size: 327,680 tokens\n"
      "(EngineCore_DP1 pid=2) INFO Model loading took 15.00 GiB memory and 3.1 seconds\n"
      "(EngineCore_DP1 pid=2) INFO Available KV cache memory: 56.34 GiB\n"
      "(EngineCore_DP1 pid=2) INFO GPU KV cache size: 461,536 tokens\n");
  const Log log = reader.finish();
  ASSERT_EQ(log.num_runs, 1);
  EXPECT_EQ(log.runs[0].kv_cache_bytes->text, "40.00 GiB");
  EXPECT_EQ(log.runs[0].kv_tokens->value, 327'680);
  EXPECT_EQ(log.runs[0].padding_layers->value, 4);
}

TEST(LogSettings, TheSameProcessesAgainAreAnotherStart) {
  const std::string once =
      "(EngineCore_DP0 pid=1) INFO Model loading took 15.00 GiB memory and 3.1 seconds\n"
      "(EngineCore_DP0 pid=1) INFO Available KV cache memory: 40.00 GiB\n";
  LogReader reader;
  reader.feed(once + once);
  EXPECT_EQ(reader.finish().num_runs, 2);
  reader.feed("vLLM API server version 0.19.0\n" + once + "vLLM API server version 0.19.0\n");
  EXPECT_EQ(reader.finish().num_runs, 2);
}

}  // namespace
}  // namespace plimsoll::verify
