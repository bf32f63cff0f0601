// SPDX-License-Identifier: Apache-2.0
// Layers and KV bytes of published configs against golden/configs: every row, every column. Where the table
// itself reads a config too simply, the row stands here with the right figures and the reason.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <variant>

#include "inspect/inspect.h"
#include "tests/inspect/published_rows.h"

namespace plimsoll::inspect {
namespace {

struct Figures {
  std::int64_t full = 0, sliding = 0, state = 0;  // layers
  std::int64_t growing = 0, windowed = 0;         // bytes per token, two for each value
};

struct Correction {
  Figures right;
  const char* reason;
};

const std::map<std::string, Correction> kCorrections = {
    {"XiaomiMiMo/MiMo-V2-Flash",
     {{9, 39, 0, 23'040, 199'680}, "hybrid_layer_pattern: windows of 128 with 8 KV heads, full with 4"}},
    {"_transformers-default/gemma3n_text", {{7, 28, 0, 8'192, 32'768}, "15 layers read the keys of others"}},
    {"google/gemma-4-E2B-it", {{7, 28, 0, 6'144, 12'288}, "20 layers read the keys of others"}},
    {"_transformers-default/gpt_neo",
     {{12, 12, 0, 98'304, 98'304}, "attention_types: every second is local"}},
    {"_transformers-default/kimi_linear",
     {{6, 0, 21, 6'912, 0}, "linear_attn_config: KDA but for six layers"}},
    {"_transformers-default/longcat_flash",
     {{28, 0, 0, 64'512, 0}, "two attentions, each with a cache, a layer"}},
    {"_transformers-default/mllama",
     {{40, 0, 0, 131'072, 0}, "8 of 40 layers look at the image and do not grow"}},
    {"_transformers-default/nemotron_h", {{1, 0, 1, 4'096, 0}, "feed-forward layers keep nothing"}},
    {"_transformers-default/zamba2",
     {{9, 0, 45, 184'320, 0}, "heads read hidden and embedding: twice as wide"}},
    {"allenai/Olmo-3-7B-Instruct", {{8, 24, 0, 131'072, 393'216}, "three of four layers have the window"}},
    {"allenai/Olmo-3.1-32B-Instruct", {{16, 48, 0, 65'536, 196'608}, "three of four layers have the window"}},
    {"meta-llama/Llama-4-Maverick-17B-128E-Instruct",
     {{12, 36, 0, 49'152, 147'456}, "chunked but for every fourth layer"}},
    {"meta-llama/Llama-4-Scout-17B-16E-Instruct",
     {{12, 36, 0, 49'152, 147'456}, "chunked but for every fourth layer"}},
    {"mistralai/Mistral-7B-Instruct-v0.1", {{0, 32, 0, 0, 131'072}, "a window of 4,096 in every layer"}},
    {"nvidia/Llama-3_3-Nemotron-Super-49B-v1", {{49, 0, 0, 200'704, 0}, "31 blocks have no attention"}},
    {"nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16",
     {{12, 0, 48, 12'288, 0}, "feed-forward layers keep nothing"}},
    {"nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-FP8",
     {{12, 0, 48, 12'288, 0}, "feed-forward layers keep nothing"}},
    {"nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-NVFP4",
     {{6, 0, 23, 6'144, 0}, "feed-forward layers keep nothing"}},
};
// Windows of raw vectors beside compressed ones: the table has no formula for them.
const std::set<std::string> kCompressed = {"deepseek_v4", "deepseek_ref"};

Figures figures_of(const Report& report) {
  Figures figures;
  for (const LayerRun& run : report.layers) {
    if (const auto* attention = std::get_if<model::Attention>(&run.layer.mixer))
      (attention->window_tokens || attention->chunk_tokens ? figures.sliding : figures.full) += run.count;
    else if (std::holds_alternative<model::Latent>(run.layer.mixer))
      figures.full += run.count;
    else if (std::holds_alternative<model::State>(run.layer.mixer))
      figures.state += run.count;
  }
  figures.growing = report.kv_cache->growing_bytes_per_token.value;
  figures.windowed = report.kv_cache->bytes_per_token.value - figures.growing;
  return figures;
}

void expect_window(const PublishedRow& row, const Report& report) {
  const auto window = row.number("window");
  for (const LayerRun& run : report.layers)
    if (const auto* attention = std::get_if<model::Attention>(&run.layer.mixer);
        attention && attention->window_tokens && window && *window > 0) {
      EXPECT_EQ(attention->window_tokens, window);
    }
}

void expect_figures(const PublishedRow& row, const Figures& found) {
  const auto correction = kCorrections.find(row.model());
  const bool is_corrected = correction != kCorrections.end();
  const Figures right = is_corrected ? correction->second.right : Figures{};
  bool differs = false;
  const auto expect = [&](const char* column, std::int64_t ours, std::int64_t corrected) {
    const auto listed = row.number(column);
    if (is_corrected) {
      EXPECT_EQ(ours, corrected) << column << ": " << correction->second.reason;
    } else if (listed) {
      EXPECT_EQ(ours, *listed) << column;
    }
    differs |= listed != corrected;
  };
  expect("full", found.full, right.full);
  expect("swa", found.sliding, right.sliding);
  expect("state", found.state, right.state);
  expect("full_B_per_tok", found.growing, right.growing);
  expect("swa_B_per_tok", found.windowed, right.windowed);
  if (is_corrected) {
    EXPECT_TRUE(differs) << "the table has it right now: drop the correction";
  }
}

TEST(PublishedKv, FindingsSayWhatToDo) {
  for (const PublishedRow& row : published_rows()) {
    const auto report = inspect(row.config());
    ASSERT_TRUE(report) << row.model();
    for (const Finding& finding : report->findings)
      EXPECT_TRUE(finding.level == FindingLevel::kInfo || !finding.fix.empty())
          << row.model() << ": " << finding.id << " has no fix";
  }
}

TEST(PublishedKv, LayersAndBytesOfEveryConfig) {
  const auto rows = published_rows();
  if (rows.empty()) GTEST_SKIP() << "PLIMSOLL_GOLDEN names no full set";
  std::size_t compared = 0, corrected = 0;
  for (const PublishedRow& row : rows) {
    SCOPED_TRACE(row.model());
    const auto report = inspect(row.config());
    ASSERT_TRUE(report) << report.error().describe();
    const auto layers = row.number("layers");
    if (!report->kv_cache) {
      EXPECT_FALSE(layers && row.number("full_B_per_tok").value_or(0) > 0) << "not read";
      std::cout << row.model() << ": no layers are known\n";
      continue;
    }
    if (layers) {
      EXPECT_EQ(static_cast<std::int64_t>(report->spec->layers.size()), *layers);
    }
    if (kCompressed.contains(row.cells.at("model_type"))) continue;
    expect_figures(row, figures_of(*report));
    expect_window(row, *report);
    corrected += kCorrections.contains(row.model()) ? 1 : 0;
    ++compared;
  }
  const bool is_full_set = rows.size() > 100;  // else the copies in this repository
  EXPECT_GE(compared, is_full_set ? 150U : 30U);
  EXPECT_TRUE(corrected == kCorrections.size() || !is_full_set) << corrected;
}

// What engines logged, or what published reports measured.
TEST(PublishedKv, BytesThatEnginesShowed) {
  std::size_t compared = 0;
  for (const PublishedRow& row : published_rows()) {
    const auto known = row.number("kv_bytes_per_token_known");
    if (!known) continue;
    SCOPED_TRACE(row.model());
    const auto report = inspect(row.config());
    ASSERT_TRUE(report && report->kv_cache);
    EXPECT_EQ(report->kv_cache->bytes_per_token.value, *known);
    ++compared;
  }
  if (compared == 0) GTEST_SKIP() << "PLIMSOLL_GOLDEN names no full set";
  EXPECT_GE(compared, 4U);
}

// The engine's own table of what it reads from configs.
TEST(PublishedKv, HeadsAndLayersThatVllmReads) {
  std::map<std::string, PublishedRow> engine;
  for (const PublishedRow& row : published_rows("configs/vllm_arch_truth.tsv")) engine[row.model()] = row;
  std::size_t compared = 0;
  for (const PublishedRow& row : published_rows()) {
    const auto known = engine.find(row.model());
    if (known == engine.end()) continue;
    SCOPED_TRACE(row.model());
    const auto report = inspect(row.config());
    ASSERT_TRUE(report && report->spec);
    const PublishedRow& truth = known->second;
    EXPECT_EQ(report->spec->hidden_size, truth.number("hidden"));
    EXPECT_EQ(static_cast<std::int64_t>(report->spec->layers.size()), truth.number("layers"));
    EXPECT_EQ(report->spec->vocab_size, truth.number("vocab"));
    std::int64_t experts = 0;
    for (const model::Layer& layer : report->spec->layers)
      experts = std::max<std::int64_t>(experts, layer.ffn.experts);
    EXPECT_EQ(experts, truth.number("experts"));
    for (const model::Layer& layer : report->spec->layers) {
      if (const auto* attention = std::get_if<model::Attention>(&layer.mixer)) {
        EXPECT_EQ(attention->q_heads, truth.number("q_heads"));
        EXPECT_EQ(attention->head_dim, truth.number("head_size"));
        EXPECT_EQ(attention->kv_heads, truth.number("kv_heads"));
      }
      if (const auto* latent = std::get_if<model::Latent>(&layer.mixer)) {
        EXPECT_EQ(latent->width(), truth.number("head_size"));
      }
    }
    ++compared;
  }
  if (engine.empty()) GTEST_SKIP() << "PLIMSOLL_GOLDEN names no full set";
  EXPECT_GE(compared, 3U);
}

}  // namespace
}  // namespace plimsoll::inspect
