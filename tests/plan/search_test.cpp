// SPDX-License-Identifier: Apache-2.0
// Layouts: which are found, in which order, and why the others are not.
#include <algorithm>
#include <functional>
#include <set>

#include "facts/attention_kernels.h"
#include "tests/plan/requests.h"

namespace plimsoll::plan {
namespace {

Plan search(
    const std::string& gpu, std::string_view id, std::int64_t length = 8192,
    const std::function<void(Request&)>& change = [](Request&) {}) {
  Request request = request_for("vllm", gpu, id);
  request.is_search = true;
  request.settings.max_model_len = length;
  change(request);
  const auto plan = make_plan(request);
  EXPECT_TRUE(plan) << plan.error().describe();
  return plan ? *plan : Plan();
}

const Rejected* rejected(const Plan& plan, std::string_view id, int tensor) {
  for (const Rejected& layout : plan.search->rejected)
    if (layout.id == id && layout.tensor_parallel == tensor) return &layout;
  return nullptr;
}

TEST(Search, FindsWhatFitsAndSaysWhyTheRestDoesNot) {
  const Plan plan = search("H100:8", "meta-llama/Llama-3.1-70B");
  ASSERT_FALSE(plan.rows.empty());
  EXPECT_EQ(plan.search->num_layouts,
            static_cast<std::int64_t>(plan.rows.size() + plan.search->rejected.size()));
  for (const Row& row : plan.rows) {
    EXPECT_TRUE(row.fits);
    EXPECT_EQ(row.target->count,
              std::int64_t{row.tensor_parallel} * row.data_parallel *
                  static_cast<std::int64_t>(std::max<std::size_t>(1, row.stage_blocks.size())));
    EXPECT_LE(row.target->count, 8);
  }
  // 140 GB of weights: 8 bits on one GPU come before 16 bits on two.
  EXPECT_EQ(plan.rows.front().weights_dtype, "fp8");
  const auto plain = std::find_if(plan.rows.begin(), plan.rows.end(),
                                  [](const Row& row) { return row.weights_dtype != "fp8"; });
  ASSERT_NE(plain, plan.rows.end());
  EXPECT_GT(*plain->cost, *plan.rows.front().cost);
  const Rejected* heads = rejected(plan, "TP_DIVISIBILITY", 3);
  ASSERT_TRUE(heads);
  EXPECT_NE(heads->reason.find("64 query heads and 8 KV heads"), std::string::npos);
  const Rejected* memory = rejected(plan, "DOES_NOT_FIT", 1);
  ASSERT_TRUE(memory);
  EXPECT_GT(memory->missing->value, 0);
  EXPECT_NE(memory->reason.find("GiB more on each GPU"), std::string::npos);
  EXPECT_TRUE(rejected(plan, "DCP_DIVISIBILITY", 8));
}

TEST(Search, IsSortedByCostAndTheSameEachTime) {
  const Plan plan = search("H100:8", "Qwen/Qwen3-8B");
  EXPECT_TRUE(std::is_sorted(plan.rows.begin(), plan.rows.end(),
                             [](const Row& a, const Row& b) { return *a.cost < *b.cost; }));
  // At one cost: the model as it is, before what rounds its cache or its weights.
  EXPECT_EQ(plan.rows.front().target->count, 1);
  EXPECT_EQ(plan.rows.front().weights_dtype, "bf16");
  EXPECT_EQ(plan.rows.front().kv_cache_dtype, "bf16");
  EXPECT_EQ(dump(to_json(plan)), dump(to_json(search("H100:8", "Qwen/Qwen3-8B"))));
  EXPECT_EQ(to_text(plan), to_text(search("H100:8", "Qwen/Qwen3-8B")));
}

TEST(Search, KeepsWhatFlagsSay) {
  const Plan plan = search("H100:8", "Qwen/Qwen3-8B", 8192, [](Request& request) {
    request.settings.tensor_parallel = 2;
    request.settings.pipeline_parallel = 1;
    request.settings.kv_cache_dtype = "fp8";
  });
  std::set<int> copies;
  for (const Row& row : plan.rows) {
    EXPECT_EQ(row.tensor_parallel, 2);
    EXPECT_EQ(row.kv_cache_dtype, "fp8");
    copies.insert(row.data_parallel);
  }
  EXPECT_EQ(copies, (std::set<int>{1, 2, 3, 4}));
}

TEST(Search, ExpertsAreWholeOrSlicedOverAllCopies) {
  const Plan plan = search("H200:8", "Qwen/Qwen3-235B-A22B");
  const auto of = [&](int tensor, int data, bool is_expert_parallel) {
    return std::find_if(plan.rows.begin(), plan.rows.end(), [&](const Row& row) {
      return row.tensor_parallel == tensor && row.data_parallel == data && row.stage_blocks.size() <= 1 &&
             row.is_expert_parallel == is_expert_parallel && row.kv_cache_dtype == "bf16" &&
             row.weights_dtype == "bf16" && row.decode_context_parallel == 1;
    });
  };
  const auto tensor = of(8, 1, false), copies = of(2, 4, false), whole = of(2, 4, true);
  ASSERT_NE(tensor, plan.rows.end());
  ASSERT_NE(copies, plan.rows.end());
  ASSERT_NE(whole, plan.rows.end());
  EXPECT_EQ(copies->weights, whole->weights);
  // What is not experts is held four times as often.
  EXPECT_GT(copies->weights, tensor->weights);
  EXPECT_LT(copies->weights.value, tensor->weights.value * 5 / 4);
}

TEST(Search, KernelsOfOldGpusKeepNoSmallFloats) {
  const Plan turing = search("T4:8", "Qwen/Qwen3-8B");
  ASSERT_FALSE(turing.rows.empty());
  for (const Row& row : turing.rows) EXPECT_EQ(row.kv_cache_dtype, "bf16");
  const Rejected* cache = rejected(turing, "KV_DTYPE_UNSUPPORTED", 1);
  ASSERT_TRUE(cache);
  EXPECT_NE(cache->reason.find("7.5"), std::string::npos);
  const Plan volta = search("V100-32GB:8", "Qwen/Qwen3-8B");
  EXPECT_TRUE(volta.rows.empty());
  EXPECT_FALSE(volta.fits());
  EXPECT_TRUE(rejected(volta, "FORMAT_UNSUPPORTED", 1));
  // FlashInfer does it for heads of 128 on Ampere, no kernel with sinks does.
  const auto has_fp8 = [](const Plan& plan) {
    return std::any_of(plan.rows.begin(), plan.rows.end(),
                       [](const Row& row) { return row.kv_cache_dtype == "fp8"; });
  };
  EXPECT_TRUE(has_fp8(search("A100-80GB", "Qwen/Qwen3-8B")));
  EXPECT_FALSE(has_fp8(search("A100-80GB:4", "openai/gpt-oss-120b")));
  EXPECT_TRUE(has_fp8(search("L40S:8", "openai/gpt-oss-120b")));
}

TEST(Search, PricesGoBeforeMemory) {
  const auto with_prices = [](const char* first, const char* second) {
    return [=](Request& request) {
      EXPECT_TRUE(add_price(first, request.targets));
      EXPECT_TRUE(add_price(second, request.targets));
    };
  };
  const Plan cheap = search("H100:1", "Qwen/Qwen3-8B", 8192, with_prices("H100=1", "L40S=2"));
  EXPECT_TRUE(cheap.search->has_prices);
  EXPECT_EQ(cheap.rows.front().target->name, "H100-SXM5-80GB");
  const Plan dear = search("H100:1", "Qwen/Qwen3-8B", 8192, with_prices("H100=3.5", "L40S=2"));
  EXPECT_EQ(dear.rows.front().target->name, "L40S");
  EXPECT_EQ(*dear.rows.front().cost, 2.0);
  std::vector<Target> targets;
  for (const char* text : {"H100", "H100=", "H100=-1", "H100=x", "=2", "A100=2"})
    EXPECT_FALSE(add_price(text, targets)) << text;
}

TEST(Search, GoesThroughTheCatalogue) {
  const auto targets = catalogue_targets();
  EXPECT_GT(targets.size(), 30U);
  Request request = request_for("vllm", "", "Qwen/Qwen3-8B");
  request.targets = targets;
  request.is_search = true;
  const auto plan = make_plan(request);
  ASSERT_TRUE(plan);
  EXPECT_GT(plan->search->num_layouts, 5000);
  const std::string text = to_text(*plan);
  EXPECT_NE(text.find("cheapest first, by GPU memory"), std::string::npos) << text.substr(0, 300);
  EXPECT_NE(text.find(" more; --format json has all"), std::string::npos);
}

TEST(Search, IsOfVllm) {
  Request request = request_for("plimsoll", "24GB");
  request.is_search = true;
  EXPECT_EQ(make_plan(request).error().code, ErrorCode::kUsage);
}

TEST(Layouts, ThatCannotBe) {
  const auto finding = [](std::string_view id, const std::function<void(Settings&)>& change) {
    Request request = request_for("vllm", "H100:8", id);
    change(request.settings);
    const Json row = row_of(request);
    return row["findings"].size() > 0 ? *row["findings"].items()[0]["id"].as_string() : std::string();
  };
  EXPECT_EQ(finding("Qwen/Qwen3-8B", [](Settings& s) { s.is_expert_parallel = true; }), "EP_WITHOUT_EXPERTS");
  EXPECT_EQ(finding("Qwen/Qwen3-8B", [](Settings& s) { s.decode_context_parallel = 2; }), "DCP_DIVISIBILITY");
  EXPECT_EQ(finding("deepseek-ai/DeepSeek-V3", [](Settings& s) { s.decode_context_parallel = 8; }),
            "KV_REPLICATED");  // latent vectors are kept by all ranks, and shared out
}

TEST(Layouts, GpusAreCountedByTheirRanks) {
  Request request = request_for("vllm", "H100", "Qwen/Qwen3-8B");
  request.settings.tensor_parallel = 2;
  request.settings.data_parallel = 2;
  const Json row = row_of(request);
  EXPECT_EQ(row["gpu"]["count"], Json(4));
  EXPECT_EQ(row["data_parallel"], Json(2));
  EXPECT_EQ(*row["all_replicas"]["kv_tokens"].as_integer(), 2 * *row["kv_tokens"].as_integer());
}

TEST(InstalledGpus, AreATarget) {
  const auto target =
      target_of(facts::parse_nvidia_smi("NVIDIA H100 80GB HBM3, 81559 MiB, 580.65.06, 9.0\n"
                                        "NVIDIA H100 80GB HBM3, 81000 MiB, 580.65.06, 9.0\n"));
  ASSERT_TRUE(target);
  EXPECT_EQ(target->name, "H100-SXM5-80GB");
  EXPECT_EQ(target->count, 2);
  EXPECT_EQ(target->memory.value, 81'000 * kMiB);
  ASSERT_TRUE(target->gpu);
  // The driver of a GPU that shares the machine's memory tells no size.
  const auto shared = target_of(facts::parse_nvidia_smi("NVIDIA GB10, [N/A], 580.95.05, 12.1\n"));
  ASSERT_TRUE(shared);
  EXPECT_EQ(shared->memory.value, 122'570 * kMiB);
  EXPECT_FALSE(target_of(facts::parse_nvidia_smi("Some Board, [N/A], 580.95.05, 12.1\n")));
  EXPECT_FALSE(target_of({}));
}

}  // namespace
}  // namespace plimsoll::plan
