// SPDX-License-Identifier: Apache-2.0
#include "serve/eval/eval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <sstream>

#include "serve/offline.h"
#include "tests/testing/golden.h"
#include "tests/testing/tensor_file.h"

namespace plimsoll::serve {
namespace {

using engine::ComputeMode;
using engine::TokenId;

TEST(EvalWindows, EveryTokenButTheFirstIsScoredOnceWhenTheyOverlap) {
  const auto windows = make_windows(WindowRule::kStrided, 20, 8, 4);
  EXPECT_EQ(windows, (std::vector<Window>{{0, 8, 1}, {4, 12, 8}, {8, 16, 12}, {12, 20, 16}}));
  for (std::int64_t tokens = 2; tokens < 40; ++tokens)
    for (std::int64_t stride = 1; stride < 8; ++stride) {
      std::int64_t next = 1;
      for (const Window& window : make_windows(WindowRule::kStrided, tokens, 8, stride)) {
        EXPECT_EQ(window.first_scored, next);
        EXPECT_LE(window.end - window.begin, 8);
        next = window.end;
      }
      EXPECT_EQ(next, tokens);
    }
}

TEST(EvalWindows, SideBySideTheFirstOfEachIsPredictedByNothing) {
  EXPECT_EQ(make_windows(WindowRule::kStrided, 17, 8, 8), (std::vector<Window>{{0, 8, 1}, {8, 16, 9}}));
}

TEST(EvalWindows, LlamaCppScoresTheSecondHalves) {
  EXPECT_EQ(make_windows(WindowRule::kLlamaCpp, 20, 8, 0), (std::vector<Window>{{0, 8, 5}, {8, 16, 13}}));
  EXPECT_EQ(make_windows(WindowRule::kLlamaCpp, 15, 8, 0), std::vector<Window>{});
  EXPECT_EQ(make_windows(WindowRule::kStrided, 1, 8, 4), std::vector<Window>{});
}

// Softmax of (0, ln 2, ln 5) is (1/8, 2/8, 5/8); of (0, 0, ln 2) it is (1/4, 1/4, 1/2).
TEST(EvalScores, OfDistributionsKnownByHand) {
  const auto ln = [](double value) { return static_cast<float>(std::log(value)); };
  const std::vector<float> logits{0, ln(2), ln(5)}, reference{0, 0, ln(2)};
  const RowScore score = score_row(logits, reference, 1);
  EXPECT_NEAR(score.nll, std::log(4.0), 1e-6);
  EXPECT_NEAR(score.reference_nll, std::log(4.0), 1e-6);
  EXPECT_NEAR(score.kl, 0.25 * std::log(0.25 / 0.125) + 0.5 * std::log(0.5 / 0.625), 1e-6);
  EXPECT_NEAR(score.abs_delta_logit, (std::log(2.0) + std::log(2.5)) / 3, 1e-6);
  EXPECT_TRUE(score.is_same_top);
  EXPECT_FALSE(score_row(std::vector<float>{1, 0, 0}, reference, 1).is_same_top);
  const RowScore same = score_row(reference, reference, 2);
  EXPECT_EQ(same.kl, 0.0);
  EXPECT_EQ(same.abs_delta_logit, 0.0);
}

TEST(EvalScores, ATokenThatCannotComeHasNoPart) {
  const std::vector<float> logits{-INFINITY, 0, 0};
  const RowScore same = score_row(logits, logits, 1);
  EXPECT_NEAR(same.nll, std::log(2.0), 1e-6);
  EXPECT_EQ(same.kl, 0.0);
  Scores scores;
  scores.add(score_row(logits, {}, 1));
  EXPECT_TRUE(scores.is_finite());
  scores.add(score_row(logits, {}, 0));
  EXPECT_FALSE(scores.is_finite());
  Scores broken;
  broken.add(score_row(std::vector<float>{0, NAN, 0}, {}, 0));
  EXPECT_FALSE(broken.is_finite());
}

TEST(EvalScores, SummariesOfFourPositions) {
  Scores scores;
  for (const double kl : {0.1, 0.4, 0.2, 0.3})
    scores.add(
        {.nll = kl * 10, .reference_nll = 2, .kl = kl, .abs_delta_logit = kl, .is_same_top = kl > 0.1});
  EXPECT_DOUBLE_EQ(scores.nll().mean, 2.5);
  EXPECT_DOUBLE_EQ(scores.nll().error, std::sqrt(5.0 / 4 / 3));
  const Divergence divergence = scores.divergence();
  EXPECT_DOUBLE_EQ(divergence.kl.mean, 0.25);
  EXPECT_DOUBLE_EQ(divergence.kl_median, 0.25);
  EXPECT_DOUBLE_EQ(divergence.kl_p90, 0.37);
  EXPECT_EQ(divergence.kl_max, 0.4);
  EXPECT_EQ(divergence.same_top, 0.75);
  EXPECT_DOUBLE_EQ(divergence.mean_abs_delta_logit, 0.25);
  EXPECT_DOUBLE_EQ(divergence.perplexity_ratio, std::exp(0.5));
  const double base = std::exp(-2.0);
  double mean = 0, squares = 0;
  for (const double nll : {1.0, 4.0, 2.0, 3.0}) {
    mean += (std::exp(-nll) - base) / 4;
    squares += std::pow(std::exp(-nll) - base, 2) / 4;
  }
  EXPECT_DOUBLE_EQ(divergence.mean_delta_p, mean);
  EXPECT_DOUBLE_EQ(divergence.rms_delta_p, std::sqrt(squares));
}

Variant variant(const std::string& dtype, int step_tokens = 64) {
  Variant made{.settings = {{"dtype", dtype}}, .engine = {}};
  made.engine.mode = dtype == "float32" ? ComputeMode::kFloat32 : ComputeMode::kAuto;
  made.engine.threads = 1;
  made.engine.kv_cache_bytes = Bytes(1 << 20);
  made.engine.max_num_batched_tokens = step_tokens;
  return made;
}

EvalOptions over_ids(const std::string& model, std::vector<TokenId> ids, std::vector<Variant> variants) {
  EvalOptions options;
  options.model = testing::golden_path("models/" + model);
  options.variants = std::move(variants);
  options.text = TextTask{.path = "ids.json", .text = {}, .ids = std::move(ids)};
  return options;
}

std::vector<TokenId> made_ids(int count) {
  std::vector<TokenId> ids;
  for (int i = 0; i < count; ++i) ids.push_back((i * 37 + i * i) % 500 + 3);
  return ids;
}

std::vector<TokenId> ids_of(const Json& list) {
  std::vector<TokenId> ids;
  for (const Json& id : list.items()) ids.push_back(static_cast<TokenId>(*id.as_integer()));
  return ids;
}

/// Mean of -ln p(next id) over rows [first, ...), in the plainest way.
double mean_nll(const std::vector<std::vector<float>>& rows, const std::vector<TokenId>& ids,
                std::size_t first) {
  double sum = 0;
  for (std::size_t t = first; t + 1 < ids.size(); ++t) {
    double total = 0;
    for (const float logit : rows[t]) total += std::exp(static_cast<double>(logit));
    sum += std::log(total) - rows[t][static_cast<std::size_t>(ids[t + 1])];
  }
  return sum / static_cast<double>(ids.size() - 1 - first);
}

class EvalGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(EvalGolden, PerplexityIsThatOfTheReferenceLogits) {
  const std::string folder = testing::golden_path("models/" + GetParam());
  const auto expected = read_json_file(folder + "/expected.json");
  ASSERT_TRUE(expected);
  const auto ids = ids_of(expected->at_pointer("/prompts/p1/ids"));
  const auto all = testing::read_float_tensors(folder + "/expected_logits.safetensors").at("p1.all");
  std::vector<std::vector<float>> rows;
  for (std::int64_t t = 0; t < all.shape[0]; ++t)
    rows.emplace_back(all.values.begin() + t * all.shape[1], all.values.begin() + (t + 1) * all.shape[1]);
  for (const WindowRule rule : {WindowRule::kStrided, WindowRule::kLlamaCpp}) {
    auto text = ids;
    // llama.cpp's rule wants two windows; the second one is not run.
    if (rule == WindowRule::kLlamaCpp) text.insert(text.end(), ids.begin(), ids.end());
    EvalOptions options = over_ids(GetParam(), text, {variant("float32")});
    options.text->rule = rule;
    options.text->ctx_size = std::ssize(ids);
    options.text->max_windows = 1;
    const auto report = evaluate(options);
    ASSERT_TRUE(report) << report.error().describe();
    const TextRow& row = report->text->rows.front();
    ASSERT_TRUE(row.has_figures);
    const std::size_t first = rule == WindowRule::kLlamaCpp ? ids.size() / 2 : 0;
    EXPECT_EQ(report->text->scored_tokens, std::ssize(ids) - 1 - static_cast<std::int64_t>(first));
    // The logits agree to 2e-3 (tests/engine/golden_test.cpp), so a mean of their differences does too.
    EXPECT_NEAR(row.scores.nll().mean, mean_nll(rows, ids, first), 2e-3);
  }
}

INSTANTIATE_TEST_SUITE_P(, EvalGolden,
                         ::testing::ValuesIn(testing::present("models", {"llama_f32", "qwen3", "gemma2",
                                                                         "qwen2_sliding"})));

TEST(Eval, Float32AgainstItselfIsNoDistanceAtAll) {
  // Two engines: another name is another row.
  Variant reference = variant("float32", 24);
  reference.settings = {{"dtype", "float32 again"}};
  EvalOptions options = over_ids("llama_plain", made_ids(150), {variant("float32", 24)});
  options.text->ctx_size = 64;
  options.text->reference = reference;
  const auto report = evaluate(options);
  ASSERT_TRUE(report) << report.error().describe();
  const TextRow& row = report->text->rows.front();
  ASSERT_TRUE(row.has_figures);
  const Divergence divergence = row.scores.divergence();
  EXPECT_EQ(divergence.kl_max, 0.0);
  EXPECT_EQ(divergence.mean_abs_delta_logit, 0.0);
  EXPECT_EQ(divergence.rms_delta_p, 0.0);
  EXPECT_EQ(divergence.same_top, 1.0);
  EXPECT_EQ(divergence.perplexity_ratio, 1.0);
  EXPECT_EQ(row.scores.count(), 149);
  EXPECT_GT(row.prompt_tokens_per_s.value_or(0), 0);
  EXPECT_GT(row.output_tokens_per_s.value_or(0), 0);
}

TEST(Eval, TheStepsOfTheEngineMakeNoDifference) {
  std::vector<double> found;
  for (const int step_tokens : {7, 64}) {
    const auto report = evaluate(over_ids("llama_plain", made_ids(100), {variant("auto", step_tokens)}));
    ASSERT_TRUE(report) << report.error().describe();
    found.push_back(report->text->rows.front().scores.nll().mean);
  }
  EXPECT_EQ(found[0], found[1]);
}

// The logits of both modes, asked for one by one, and the sums over them written out.
TEST(Eval, DistancesAreThoseOfTheLogitsOfBothModes) {
  const auto ids = made_ids(40);
  std::map<std::string, std::vector<std::vector<float>>> rows;
  for (const std::string dtype : {"auto", "float32"}) {
    LoadOptions load;
    load.model = testing::golden_path("models/llama_plain");
    load.engine = variant(dtype).engine;
    load.engine.max_model_len = 64;
    auto offline = Offline::load(load);
    ASSERT_TRUE(offline);
    Json body = Json::object({{"max_tokens", 1}, {"return_logits", Json(Json::Array{Json("prompt")})}});
    body.set("prompt_token_ids", Json(Json::Array(ids.begin(), ids.end())));
    const auto answer = (*offline)->run_one(body, nullptr);
    ASSERT_TRUE(answer);
    for (const Json& row : answer->at_pointer("/logits/prompt").items()) {
      auto& into = rows[dtype].emplace_back();
      for (const Json& logit : row.items()) into.push_back(static_cast<float>(*logit.as_double()));
    }
  }
  EvalOptions options = over_ids("llama_plain", ids, {variant("auto")});
  options.text->ctx_size = 40;
  options.text->reference = variant("float32");
  const auto report = evaluate(options);
  ASSERT_TRUE(report) << report.error().describe();
  const Divergence found = report->text->rows.front().scores.divergence();
  double kl = 0, delta = 0;
  for (std::size_t t = 0; t + 1 < ids.size(); ++t) {
    const auto &p = rows["float32"][t], &q = rows["auto"][t];
    double sum_p = 0, sum_q = 0;
    for (const float logit : p) sum_p += std::exp(static_cast<double>(logit));
    for (const float logit : q) sum_q += std::exp(static_cast<double>(logit));
    for (std::size_t i = 0; i < p.size(); ++i) {
      kl += std::exp(static_cast<double>(p[i])) / sum_p * (p[i] - std::log(sum_p) - q[i] + std::log(sum_q));
      delta +=
          std::fabs(static_cast<double>(p[i]) - static_cast<double>(q[i])) / static_cast<double>(p.size());
    }
  }
  EXPECT_GT(found.kl.mean, 0);
  EXPECT_NEAR(found.kl.mean, kl / 39, 1e-10);
  EXPECT_NEAR(found.mean_abs_delta_logit, delta / 39, 1e-10);
  EXPECT_NEAR(found.perplexity_ratio,
              std::exp(mean_nll(rows["auto"], ids, 0) - mean_nll(rows["float32"], ids, 0)), 1e-9);
}

TEST(Eval, ATextThatIsTooShortHasNoFiguresAndAFindingThatSaysWhy) {
  EvalOptions options = over_ids("llama_plain", made_ids(50), {variant("auto")});
  options.text->rule = WindowRule::kLlamaCpp;
  options.text->ctx_size = 32;
  const auto report = evaluate(options);
  ASSERT_TRUE(report) << report.error().describe();
  ASSERT_EQ(report->findings.size(), 1u);
  EXPECT_EQ(report->findings.front().id, "EVAL_TEXT_SHORT");
  const Json document = to_json(*report);
  const Json& row = document.at_pointer("/text/rows/0");
  EXPECT_EQ(row["dtype"], Json("auto"));
  for (const char* name :
       {"perplexity", "bits_per_byte", "divergence", "prompt_tokens_per_s", "weights_bytes"}) {
    EXPECT_TRUE(row.contains(name)) << name;
    EXPECT_TRUE(row[name].is_null()) << name;
  }
}

// Every figure stands apart from its neighbours, however large.
TEST(Eval, ColumnsOfThePageNeverTouch) {
  EvalReport report{
      .model = "m", .variants = {variant("auto")}, .text = TextReport{}, .passkey = {}, .findings = {}};
  TextRow row{.variant = "auto"};
  row.scores.add({.nll = 40, .reference_nll = 1, .kl = 39});
  row.scores.add({.nll = 30, .reference_nll = 1, .kl = 29});
  row.has_figures = true;
  row.prompt_tokens_per_s = 123456789.5;
  row.output_tokens_per_s = 12345678.5;
  report.text->rows.push_back(row);
  report.text->reference = "float32";
  std::istringstream page(to_text(report));
  std::vector<std::size_t> columns;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("auto ")) continue;
    std::istringstream cells(line);
    columns.push_back(0);
    for (std::string cell; cells >> cell;) ++columns.back();
  }
  EXPECT_EQ(columns, (std::vector<std::size_t>{7, 9}));
}

TEST(Eval, WhatMakesNoSenseIsRefused) {
  auto ids = made_ids(40);
  ids[7] = 512;
  EXPECT_EQ(evaluate(over_ids("llama_plain", ids, {variant("auto")})).error().code, ErrorCode::kUsage);
  EvalOptions wide = over_ids("llama_plain", made_ids(40), {variant("auto")});
  wide.text->ctx_size = 16;
  wide.text->stride = 17;
  EXPECT_EQ(evaluate(wide).error().where, "--stride");
  EvalOptions narrow = over_ids("llama_plain", made_ids(40), {variant("auto")});
  narrow.text->rule = WindowRule::kLlamaCpp;
  narrow.text->ctx_size = 2;
  EXPECT_EQ(evaluate(narrow).error().where, "--max-model-len");
  EvalOptions text = over_ids("llama_plain", {}, {variant("auto")});
  text.text->ids.reset();
  EXPECT_EQ(evaluate(text).error().message, "the model has no tokenizer");
  EvalOptions passkey = over_ids("llama_plain", {}, {variant("auto")});
  passkey.text.reset();
  passkey.passkey = PasskeyTask{};
  EXPECT_EQ(evaluate(passkey).error().where, "--passkey");
}

}  // namespace
}  // namespace plimsoll::serve
