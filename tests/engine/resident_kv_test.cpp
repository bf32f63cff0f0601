// SPDX-License-Identifier: Apache-2.0
// What a sequence makes resident in a pool, read from the page tables, against memory's formulas and against
// the elements that transformers' cache held, for every golden model.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "artifact/artifact.h"
#include "base/json.h"
#include "engine/engine.h"
#include "memory/kv_cache.h"
#include "tests/testing/golden.h"

namespace plimsoll::engine {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kTokens = 4800;

struct Expected {
  std::int64_t full_per_token = 0;    // of layers that keep every token
  std::int64_t per_token_at_200 = 0;  // and of those whose window is not yet full
  std::int64_t windows = 0;           // of all layers with a window or chunks, once it is full
  std::int64_t states = 0;
};

std::int64_t state_bytes(const model::State& state) {
  return 4 * (state.recurrent_elements + state.convolution_elements);  // the engine keeps both in f32
}

// A token reads one fewer than the window besides itself: those are kept.
Expected by_formula(const model::ModelSpec& spec) {
  Expected expected;
  for (const model::Layer& layer : spec.layers) {
    const auto bytes = memory::kv_layer_bytes_per_token(layer, DType::kF32);
    EXPECT_TRUE(bytes);
    const auto* attention = std::get_if<model::Attention>(&layer.mixer);
    const auto window = !attention                ? std::optional<std::int64_t>()
                        : attention->chunk_tokens ? attention->chunk_tokens
                                                  : attention->window_tokens;
    if (window)
      expected.windows += (*window - 1) * bytes->value;
    else
      expected.full_per_token += bytes->value;
    if (window.value_or(INT64_MAX) > 200) expected.per_token_at_200 += bytes->value;
    if (const auto* state = std::get_if<model::State>(&layer.mixer)) expected.states += state_bytes(*state);
    for (const model::State& state : layer.side_states) expected.states += state_bytes(state);
  }
  return expected;
}

class ResidentKvOfModel : public ::testing::TestWithParam<std::string> {};

TEST_P(ResidentKvOfModel, IsWhatMemorySaysAndWhatTheReferenceHeld) {
  const std::string folder = testing::golden_path("models/" + GetParam());
  const auto artifact = artifact::open(folder);
  ASSERT_TRUE(artifact);
  const auto spec = model::read_spec(**artifact);
  ASSERT_TRUE(spec);
  const auto held = read_json_file(folder + "/expected.json");
  ASSERT_TRUE(held);
  const Expected expected = by_formula(*spec);
  EXPECT_EQ(expected.per_token_at_200, 4 * *(*held)["kv"]["elements_per_token_at_200"].as_integer());

  EngineOptions options;
  options.mode = ComputeMode::kFloat32;
  options.block_size = 16;
  const auto report = measure_resident_kv(*spec, options, Tokens(kTokens));
  ASSERT_TRUE(report) << report.error().describe();
  std::int64_t full = 0, windows = 0, states = 0;
  for (const ResidentKv& kind : report->kinds)
    (kind.kind == "full" || kind.kind == "mla" ? full
     : kind.window_tokens                      ? windows
                                               : states) += kind.bytes.value;
  // Groups lie one behind the other: a page at each border belongs to two of them; blocks end in what a
  // smaller group leaves unused, and states begin at borders of 64 bytes.
  const auto slack = static_cast<std::int64_t>(2 * 4096 * (report->kinds.size() + 1));
  EXPECT_NEAR(static_cast<double>(full), static_cast<double>(expected.full_per_token * kTokens),
              static_cast<double>(slack));
  EXPECT_NEAR(static_cast<double>(windows), static_cast<double>(expected.windows),
              static_cast<double>(slack));
  EXPECT_NEAR(static_cast<double>(states), static_cast<double>(expected.states), static_cast<double>(slack));
}

model::ModelSpec spec_of(const std::string& name) {
  const auto artifact = artifact::open(testing::golden_path("models/" + name));
  EXPECT_TRUE(artifact);
  auto spec = model::read_spec(**artifact);
  EXPECT_TRUE(spec);
  return std::move(*spec);
}

TEST(ResidentKv, KindsAreCalledAsInspectCallsThem) {
  using Kinds = std::vector<std::pair<std::string, std::optional<std::int64_t>>>;
  const std::map<std::string, Kinds> expected = {{"deepseek_v3", {{"mla", {}}}},
                                                 {"kimi_linear", {{"kda", {}}, {"mla", {}}}},
                                                 {"llama4_text", {{"chunked", 64}, {"full", {}}}},
                                                 {"gemma2", {{"sliding", 48}, {"full", {}}}},
                                                 {"falcon_h1", {{"full", {}}, {"mamba2", {}}}}};
  std::vector<std::string> names;
  for (const auto& [name, kinds] : expected) names.push_back(name);
  for (const std::string& name : testing::present("models", names)) {
    const auto report = measure_resident_kv(spec_of(name), {}, Tokens(64));
    ASSERT_TRUE(report) << report.error().describe();
    Kinds found;
    for (const ResidentKv& kind : report->kinds) found.emplace_back(kind.kind, kind.window_tokens);
    EXPECT_EQ(found, expected.at(name)) << name;
  }
}

// Every figure is one that a config may state; together they are 16 TiB.
TEST(ResidentKv, StatesLargerThanTheMachineAreRefusedWithBothFigures) {
  model::ModelSpec spec = spec_of("nemotron_h");
  const auto layer = std::ranges::find_if(
      spec.layers, [](const model::Layer& one) { return std::holds_alternative<model::State>(one.mixer); });
  ASSERT_NE(layer, spec.layers.end());
  auto& state = std::get<model::State>(layer->mixer);
  state.state_size = 1 << 20;
  state.heads = 1 << 12;
  state.groups = state.norm_groups = 1;
  state.head_dim = 1 << 10;
  state.recurrent_elements = std::int64_t{state.state_size} << 22;
  const auto report = measure_resident_kv(spec, {}, Tokens(16));
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kNo);
  const std::string& message = report.error().message;
  constexpr std::string_view kBefore = "takes up to ";
  const std::size_t at = message.find(kBefore);
  ASSERT_NE(at, std::string::npos) << message;
  // Whole blocks: they grow by eighths until all rows have a place.
  const double needed_gib = std::stod(message.substr(at + kBefore.size()));
  EXPECT_GE(needed_gib, 16384) << message;
  EXPECT_LE(needed_gib, 16384 * 1.125) << message;
  EXPECT_NE(message.find("of memory is available"), std::string::npos);
}

std::vector<std::string> all_models() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(testing::golden_path("models")))
    if (fs::exists(entry.path() / "expected.json")) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Models, ResidentKvOfModel, ::testing::ValuesIn(all_models()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace plimsoll::engine
