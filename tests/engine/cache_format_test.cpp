// SPDX-License-Identifier: Apache-2.0
// The forms that keys, values and latents may be kept in: what they cost, and what they do to the logits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/engine.h"
#include "memory/memory.h"
#include "model/model.h"
#include "tests/engine/loading.h"
#include "tests/testing/golden.h"

namespace plimsoll::engine {
namespace {

std::vector<TokenId> prompt_of(int length) {
  std::vector<TokenId> prompt(static_cast<std::size_t>(length));
  for (std::size_t i = 0; i < prompt.size(); ++i)
    prompt[i] = static_cast<TokenId>((i * 37 + i * i) % 500 + 3);
  return prompt;
}

EngineOptions options_for(const std::string& format) {
  EngineOptions options = small_options(ComputeMode::kFloat32);
  options.cache_format = *memory::embedded_cache_format(format);
  options.num_blocks = 2'000;
  return options;
}

class CacheForm : public ::testing::TestWithParam<std::string> {
 protected:
  std::string model() const { return testing::golden_path("models/" + GetParam()); }
  std::vector<float> logits(const std::string& format) const {
    const auto engine = load_model(model(), options_for(format));
    return engine ? run_alone(*engine, prompt_of(120), greedy(1)).step_logits.at(0) : std::vector<float>();
  }
};
INSTANTIATE_TEST_SUITE_P(Models, CacheForm,
                         ::testing::ValuesIn(testing::present("models", {"llama_plain", "gemma3_text",
                                                                         "jamba", "deepseek_v3"})),
                         [](const auto& test) { return test.param; });

double root_mean_square(const std::vector<float>& values, const std::vector<float>& others) {
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double difference =
        static_cast<double>(values[i]) - (others.empty() ? 0 : static_cast<double>(others[i]));
    sum += difference * difference;
  }
  return std::sqrt(sum / static_cast<double>(values.size()));
}

// A number in e4m3 is off by up to 1/16 of itself, in int8 by 1/254 of its vector's largest. Sums over many
// positions even that out, deeper layers add their own: the worst of these has 0.021 in int8.
TEST_P(CacheForm, RoundsTheLogitsAsMuchAsItsSteps) {
  const auto exact = logits("float32");
  ASSERT_FALSE(exact.empty());
  const double spread = root_mean_square(exact, {});
  for (const auto& [format, bound] : {std::pair("bfloat16", 0.01), {"int8", 0.04}, {"fp8", 0.1}}) {
    const double error = root_mean_square(logits(format), exact);
    RecordProperty(format, std::to_string(error / spread));
    EXPECT_GT(error, 0) << format;
    EXPECT_LT(error, bound * spread) << format;
  }
}

class OneGroup : public CacheForm {};
INSTANTIATE_TEST_SUITE_P(Models, OneGroup,
                         ::testing::ValuesIn(testing::present("models", {"llama_plain", "deepseek_v3"})),
                         [](const auto& test) { return test.param; });

TEST_P(OneGroup, TakesInThePoolWhatTheFormulaSays) {
  const auto artifact = artifact::open(model());
  ASSERT_TRUE(artifact);
  const auto spec = model::read_spec(**artifact);
  ASSERT_TRUE(spec);
  constexpr std::int64_t kPage = 4096;
  for (const char* format : {"bfloat16", "float32", "fp8", "int8"}) {
    const EngineOptions options = options_for(format);
    const auto engine = load_model(model(), options);
    ASSERT_TRUE(engine);
    const MemoryReport memory = engine->memory();
    EXPECT_EQ(memory.kv_cache_dtype, memory::to_string(*options.cache_format));
    EXPECT_EQ(memory.kv_bytes_per_token, *memory::kv_bytes_per_token(*spec, *options.cache_format));
    const auto report = measure_resident_kv(*spec, options, Tokens(512));
    ASSERT_TRUE(report) << report.error().describe();
    // One group of layers and whole blocks: only the last page may reach beyond.
    const std::int64_t expected = 512 * memory.kv_bytes_per_token.value;
    ASSERT_EQ(report->kinds.size(), 1U);
    EXPECT_GE(report->kinds[0].bytes.value, expected) << format;
    EXPECT_LT(report->kinds[0].bytes.value, expected + kPage) << format;
  }
}

}  // namespace
}  // namespace plimsoll::engine
