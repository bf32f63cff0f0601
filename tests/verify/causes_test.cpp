// SPDX-License-Identifier: Apache-2.0
// For each cause a log in which it alone is true, and one in which it is not.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plan/plan.h"
#include "verify/verify.h"

namespace plimsoll::verify {
namespace {

struct Planned {
  Json document;
  double budget = 0, weights = 0, peak = 0, non_torch = 0, cache = 0, total = 0;  // GiB
  std::int64_t tokens = 0, length = 0;
};

Planned planned(const char* engine, const char* model = "meta-llama/Llama-3.1-8B-Instruct") {
  plan::Request request;
  request.engine = *facts::parse_engine(engine);
  request.models.push_back(*plan::catalogue_model(*facts::find_catalogue(model)));
  request.targets.push_back(*plan::parse_target("H100"));
  request.settings.max_model_len = 8192;
  const auto plan = plan::make_plan(request);
  EXPECT_TRUE(plan) << plan.error().describe();
  Planned result;
  result.document = plan::to_json(*plan);
  const Json& row = result.document["rows"].items()[0];
  const auto gib = [](const Json& bytes) {
    return bytes.as_double().value_or(0) / static_cast<double>(kGiB);
  };
  for (const Json& part : row["memory"].items()) {
    if (part["part"] == Json("activation") || part["part"] == Json("sampler"))
      result.peak += gib(part["bytes"]);
    if (part["part"] == Json("non_torch")) result.non_torch = gib(part["bytes"]);
  }
  result.budget = gib(row["budget_bytes_per_gpu"]);
  result.weights = gib(row["weights_bytes_per_gpu"]);
  result.cache = gib(row["kv_cache_bytes_per_gpu"]);
  result.total = gib(row["gpu"]["memory_bytes"]);
  result.tokens = *row["kv_tokens"].as_integer();
  result.length = *row["max_model_len"].as_integer();
  return result;
}

/// A log that says what was planned, but for what is given.
struct Logged {
  std::string version = "0.33.0", more;
  double share = 0.92, peak = -1, cache = -1, free = -1;
  std::int64_t tokens = -1;
};

std::string log_of(const Planned& plan, const Logged& logged) {
  const double peak = logged.peak < 0 ? plan.peak : logged.peak;
  const double cache = logged.cache < 0 ? plan.cache : logged.cache;
  const double free = logged.free < 0 ? plan.total - 0.6 : logged.free;
  const std::int64_t tokens = logged.tokens < 0 ? plan.tokens : logged.tokens;
  return fmt::format(
      "Initializing a V1 LLM engine (v{}) with config: model='m', max_seq_len={}, tensor_parallel_size=1\n"
      "Model loading took {:.2f} GiB memory and 3.1 seconds\n"
      "Available KV cache memory: {:.2f} GiB\n"
      "GPU KV cache size: {} tokens\n"
      "{}"
      "Free memory on device (cuda:0) ({:.2f}/{:.2f} GiB) on startup. Desired GPU memory utilization is "
      "({}, {:.2f} GiB). Actual usage is {:.2f} GiB for weight, {:.2f} GiB for peak activation, {:.2f} GiB "
      "for "
      "non-torch memory, and 0.0 GiB for CUDAGraph memory.\n",
      logged.version, plan.length, plan.weights, cache, tokens, logged.more, free, plan.total, logged.share,
      plan.total * logged.share, plan.weights, peak, plan.non_torch);
}

std::vector<std::string> causes_of(const Planned& plan, const Logged& logged) {
  LogReader reader;
  reader.feed(log_of(plan, logged));
  const auto report = compare(reader.finish(), &plan.document, nullptr);
  EXPECT_TRUE(report) << report.error().describe();
  std::vector<std::string> ids;
  for (const Cause& cause : report->causes) {
    EXPECT_FALSE(cause.evidence.empty());
    EXPECT_FALSE(cause.fix.empty());
    if (cause.id != "LOG_ROUNDING") ids.push_back(cause.id);  // every log rounds
  }
  return ids;
}

using Ids = std::vector<std::string>;

TEST(Causes, NoneWhereAllIsAsPlanned) {
  EXPECT_EQ(causes_of(planned("vllm@0.33.0"), {}), Ids{});
}

TEST(Causes, OtherProcess) {
  const Planned plan = planned("vllm@0.33.0");
  Logged logged;
  logged.free = plan.total - 9;
  logged.cache = plan.cache - 8;
  logged.tokens = plan.tokens - 65'536;
  EXPECT_EQ(causes_of(plan, logged), Ids{"OTHER_PROCESS"});
  logged.cache = plan.cache;  // memory was taken, and nothing is missing
  logged.tokens = plan.tokens;
  EXPECT_EQ(causes_of(plan, logged), Ids{});
}

TEST(Causes, VersionDefault) {
  const Planned plan = planned("vllm@0.33.0");
  Logged logged;
  logged.version = "0.29.0";
  EXPECT_EQ(causes_of(plan, logged), Ids{});  // the same share
  logged.version = "0.20.2";
  EXPECT_EQ(causes_of(plan, logged), Ids{});
  Planned before = planned("vllm@0.19.1");
  before.document.set("engine", Json::object({{"name", "vllm"}, {"version", "0.19.1"}}));
  Logged after;
  after.version = "0.18.0";
  after.share = 0.90;
  EXPECT_EQ(causes_of(before, after), Ids{});
  after.version = "0.20.0";
  after.share = 0.92;
  EXPECT_EQ(causes_of(before, after), (Ids{"VERSION_DEFAULT", "GRAPH_ACCOUNTING"}));  // both came with 0.20
  after.share = 0.85;                                                                 // asked for: no default
  EXPECT_EQ(causes_of(before, after), Ids{"GRAPH_ACCOUNTING"});
}

TEST(Causes, GraphAccounting) {
  const Planned plan = planned("vllm@0.33.0");
  Logged logged;
  logged.more =
      "CUDA graph pool memory: 8.57 GiB (actual), 33.06 GiB (estimated), difference: 24.49 GiB (286%).\n";
  EXPECT_EQ(causes_of(plan, logged), Ids{"GRAPH_ACCOUNTING"});
  logged.more =
      "CUDA graph pool memory: 0.32 GiB (actual), 0.31 GiB (estimated), difference: 0.01 GiB (3%).\n";
  EXPECT_EQ(causes_of(plan, logged), Ids{});
}

TEST(Causes, HybridPadding) {
  const Planned plan = planned("vllm@0.33.0", "google/gemma-3-1b-it");
  Logged logged;
  logged.tokens = plan.tokens / 2;
  logged.more = "Add 2 padding layers, may waste at most 10.00% KV cache memory\n";
  EXPECT_EQ(causes_of(plan, logged), Ids{"HYBRID_PADDING"});
  logged.tokens = plan.tokens;
  EXPECT_EQ(causes_of(plan, logged), Ids{});
}

TEST(Causes, SamplerBackend) {
  const Planned plan = planned("vllm@0.11.0");
  Logged logged;
  logged.version = "0.11.0";
  logged.share = 0.90;
  EXPECT_EQ(causes_of(plan, logged), Ids{});
  logged.peak = plan.peak * 0.4;
  EXPECT_EQ(causes_of(plan, logged), Ids{"SAMPLER_BACKEND"});
}

TEST(Causes, RankSpread) {
  const Planned plan = planned("vllm@0.33.0");
  // Behind the capacity line it would be another start.
  const std::string log = log_of(plan, {});
  const std::size_t at = log.find("Available KV");
  const auto ids = [&](double other) {
    LogReader reader;
    reader.feed(std::string(log).insert(at, fmt::format("Available KV cache memory: {:.2f} GiB\n", other)));
    std::vector<std::string> found;
    const auto report = compare(reader.finish(), &plan.document, nullptr);
    for (const Cause& cause : report->causes)
      if (cause.id != "LOG_ROUNDING") found.push_back(cause.id);
    return found;
  };
  EXPECT_EQ(ids(plan.cache + 1.2), Ids{"RANK_SPREAD"});
  EXPECT_EQ(ids(plan.cache), Ids{});
}

}  // namespace
}  // namespace plimsoll::verify
