// SPDX-License-Identifier: Apache-2.0
// How good is a model as this engine computes it? Perplexity of a text, distance from the float32 run of the
// same model, recall of a pass key over the length of the context: a row for each way of computing, its speed
// beside it. Owns what it loads while it runs; one thread calls. Source: docs/formulas/eval.md.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/finding.h"
#include "base/json.h"
#include "base/result.h"
#include "engine/engine.h"
#include "serve/eval/scores.h"
#include "serve/eval/windows.h"

namespace plimsoll::serve {

/// One way of computing the model, a row of the table.
struct Variant {
  std::vector<std::pair<std::string, std::string>> settings;  // flags without their dashes: {"dtype", "auto"}
  engine::EngineOptions engine;
  std::string name() const;  // the dtype, and what else is not as by default: "auto KV int8"
};

struct TextTask {
  std::string path;
  std::string text;                                      // or, without a tokenizer,
  std::optional<std::vector<engine::TokenId>> ids = {};  // the text as token ids
  WindowRule rule = WindowRule::kStrided;
  std::optional<std::int64_t> ctx_size = {};     // default 512, or the model's context where that is shorter
  std::optional<std::int64_t> stride = {};       // default half of it
  std::optional<std::int64_t> max_windows = {};  // default all
  std::optional<Variant> reference = {};         // what the rows' distances are measured from
};

struct PasskeyTask {
  std::vector<std::int64_t> lengths;  // tokens, prompt and answer; empty: native and extended context
  std::vector<int> depths = {0, 25, 50, 75, 100};  // percent of the filler before the key
  int trials = 1;                                  // keys for each length and depth
  std::uint64_t seed = 0;
};

struct EvalOptions {
  std::string model;
  std::string lock;
  std::vector<Variant> variants;
  std::optional<TextTask> text;
  std::optional<PasskeyTask> passkey;
  std::function<void(std::string_view)> on_progress = [](std::string_view) {};
};

/// Of one variant; what is empty has a finding that says why.
struct TextRow {
  std::string variant;
  Scores scores = {};
  bool has_figures = false;
  std::optional<double> prompt_tokens_per_s = {}, output_tokens_per_s = {};
  Bytes weights = {};
};

struct TextReport {
  std::string path;
  WindowRule rule = WindowRule::kStrided;
  std::int64_t tokens = 0, ctx_size = 0, stride = 0, windows = 0, scored_tokens = 0;
  std::optional<std::int64_t> scored_bytes;  // of the text; empty without a tokenizer
  std::optional<std::string> reference;      // a variant's name
  std::vector<TextRow> rows;
};

struct PasskeyCell {
  std::string variant;
  std::int64_t length = 0;
  int depth = 0;
  std::optional<int> recalled;  // of the trials
};

struct PasskeyReport {
  std::int64_t native_tokens = 0, extended_tokens = 0;
  int trials = 0;
  std::vector<std::int64_t> lengths;
  std::vector<int> depths;
  std::vector<PasskeyCell> cells;  // by variant, length, depth
};

struct EvalReport {
  std::string model;
  std::vector<Variant> variants;
  std::optional<TextReport> text;
  std::optional<PasskeyReport> passkey;
  Findings findings;
};

/// Errors: those of artifact::open, model::read_spec, text::load_tokenizer and engine::Engine::load; kUsage
///         for sizes that make no sense, ids outside the vocabulary, and a text without a tokenizer.
Result<EvalReport> evaluate(const EvalOptions& options);

/// The document plimsoll.eval/1, and the page for people.
Json to_json(const EvalReport& report);
std::string to_text(const EvalReport& report);

}  // namespace plimsoll::serve
