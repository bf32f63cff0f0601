// SPDX-License-Identifier: Apache-2.0
// Recorded starts of vLLM: from the bytes of the cache that a log prints, its tokens and requests come out
// within what the print's last digit leaves open.
#include "tools/recorded_starts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>

#include "tests/testing/golden.h"

namespace plimsoll::starts {
namespace {

constexpr double kLargePool = 1024;   // GiB
constexpr double kHalfDigit = 0.005;  // the engine prints two decimals

Book book() {
  auto read = read_book(testing::data_path("startup_models.tsv"));
  EXPECT_TRUE(read) << read.error().describe();
  return read ? std::move(*read) : Book();
}

std::vector<Json> rows() {
  return read_rows(testing::golden_path("startup_logs/startup_logs.jsonl"));
}

std::optional<plan::Row> row_with(plan::Request request, double gib) {
  request.settings.kv_cache_bytes = Bytes(std::llround(gib * static_cast<double>(kGiB)));
  const auto plan = plan::make_plan(request);
  if (!plan || !plan->rows[0].fits) return std::nullopt;
  return plan->rows[0];
}

/// What a log says of one pool.
struct Logged {
  double gib = 0;
  std::optional<std::int64_t> tokens;  // by its line, or else by its blocks
  std::optional<double> requests;
};

/// Nothing for rows that log no pool with its tokens or requests.
std::optional<Logged> logged_of(const Json& row) {
  const auto gib = row["available_kv_gib"].as_double();
  Logged logged{gib.value_or(0), row["kv_tokens"].as_integer(), row["max_concurrency"].as_double()};
  if (!logged.tokens) logged.tokens = row["kv_tokens_eff"].as_integer();
  if (!gib || *gib <= 0 || (!logged.tokens && !logged.requests)) return std::nullopt;
  return logged;
}

/// Of a start that failed because its longest request is longer than the pool: the pool's tokens still count.
void ask_for_no_more(Logged& logged, plan::Request& request) {
  auto& length = request.settings.max_model_len;
  if (!logged.tokens || !length || *logged.tokens >= *length) return;
  length = logged.tokens;
  logged.requests.reset();
}

struct Verdict {
  bool is_inside = false;
  std::string text;
};

Verdict judge(const plan::Request& request, const Logged& logged) {
  const auto low = row_with(request, logged.gib - kHalfDigit);
  const auto high = row_with(request, logged.gib + kHalfDigit);
  if (!high) return {false, "planned: does not fit"};
  const std::int64_t fewest = low ? low->kv_tokens.value : 0;
  const double least = low ? low->max_concurrency : 0;
  const bool has_tokens =
      !logged.tokens || (fewest <= *logged.tokens && *logged.tokens <= high->kv_tokens.value);
  const bool has_requests = !logged.requests || (least - kHalfDigit <= *logged.requests &&
                                                 *logged.requests <= high->max_concurrency + kHalfDigit);
  std::string text = "logged " + std::to_string(logged.tokens.value_or(-1)) + " tokens, " +
                     std::to_string(logged.requests.value_or(-1)) + " requests; planned " +
                     std::to_string(fewest) + " to " + std::to_string(high->kv_tokens.value) + ", " +
                     std::to_string(least) + " to " + std::to_string(high->max_concurrency);
  return {has_tokens && has_requests, std::move(text)};
}

TEST(RecordedStarts, TokensAndRequestsFollowFromTheBytes) {
  const Book known = book();
  int inside = 0, deduced = 0, excepted = 0;
  for (const Json& row : rows()) {
    auto logged = logged_of(row);
    auto request = request_of(row, known);
    if (!logged || !request) continue;
    const std::string& id = *row["id"].as_string();
    ask_for_no_more(*logged, *request);
    const Verdict plain = judge(*request, *logged);
    const auto note = known.deduced.find(id);
    if (note == known.deduced.end()) {
      inside += plain.is_inside;
      EXPECT_TRUE(plain.is_inside) << id << " " << request->models[0].source << " " << request->engine.version
                                   << ": " << plain.text;
      continue;
    }
    EXPECT_FALSE(plain.is_inside) << id << " needs no note any more: " << note->second.reason;
    if (note->second.settings.members().empty()) {
      ++excepted;
      continue;
    }
    ++deduced;
    apply(note->second, *request);
    const Verdict with = judge(*request, *logged);
    EXPECT_TRUE(with.is_inside) << id << " with what its log shows: " << with.text;
  }
  std::cout << inside << " starts inside by their flags, " << deduced << " by flags that their logs show, "
            << excepted << " exceptions\n";
  EXPECT_GT(inside, 3);
}

/// Whether the planner says that it cannot start: from model, GPU and flags; where no GPU is known from the
/// bytes that were left for the cache, or from its tokens. Nothing where none is known, or the model.
std::optional<bool> is_refused(const Json& row, const Book& known) {
  auto request = request_of(row, known);
  if (!request) return std::nullopt;
  if (const auto note = known.deduced.find(*row["id"].as_string()); note != known.deduced.end())
    apply(note->second, *request);
  const auto gib = row["available_kv_gib"].as_double();
  if (const auto target = target_of(row); target &&
                                          !known.unknown_weights.contains(*row["model"].as_string()) &&
                                          !known.not_planned.contains(*row["model"].as_string())) {
    request->targets = {*target};
    const auto plan = plan::make_plan(*request);
    return plan ? std::optional(!plan->rows[0].fits) : std::nullopt;
  }
  if (gib) return *gib <= 0 || !row_with(*request, *gib + kHalfDigit);
  const auto tokens = row["kv_tokens"].as_integer();
  if (!tokens) return std::nullopt;
  auto asked = *request;
  asked.settings.max_model_len = 1;
  const auto one = row_with(asked, kLargePool);
  if (!one || !one->block_size) return std::nullopt;
  const double bytes = static_cast<double>(*tokens / *one->block_size * one->bytes_per_block->value);
  return !row_with(*request, bytes / static_cast<double>(kGiB));
}

/// The longest length for the bytes of the cache; 0 where the planner has none.
std::int64_t longest_with(plan::Request request, double gib) {
  request.settings.kv_cache_bytes = Bytes(std::llround(gib * static_cast<double>(kGiB)));
  const auto plan = plan::make_plan(request);
  if (!plan || !plan->rows[0].estimated_max_model_len) return 0;
  return plan->rows[0].estimated_max_model_len->value;
}

TEST(RecordedStarts, FailuresAreForetold) {
  const Book known = book();
  int failed = 0, foretold = 0;
  for (const Json& row : rows()) {
    if (row["failed"] != Json(true)) continue;
    ++failed;
    const std::string& id = *row["id"].as_string();
    const bool is_foretold = is_refused(row, known).value_or(false);
    foretold += is_foretold;
    const auto why = known.not_foretold.find(id);
    if (why == known.not_foretold.end())
      EXPECT_TRUE(is_foretold) << id;
    else
      EXPECT_FALSE(is_foretold) << id << " needs no note any more: " << why->second;
    std::cout << id
              << (is_foretold ? ": foretold"
                              : ": not foretold: " +
                                    (why == known.not_foretold.end() ? std::string("?") : why->second))
              << "\n";
  }
  std::cout << foretold << " of " << failed << " failed starts foretold\n";
  EXPECT_GT(foretold, 0);
}

TEST(RecordedStarts, TheLongestLengthIsTheEngines) {
  const Book known = book();
  int compared = 0;
  for (const Json& row : rows()) {
    const auto logged = row["est_max_model_len"].as_integer();
    const auto gib = row["available_kv_gib"].as_double();
    auto request = request_of(row, known);
    if (!logged || !gib || !request) continue;
    const std::string& id = *row["id"].as_string();
    if (const auto note = known.deduced.find(id); note != known.deduced.end()) {
      if (note->second.settings.members().empty()) continue;
      apply(note->second, *request);
    }
    ++compared;
    EXPECT_LE(longest_with(*request, *gib - kHalfDigit), *logged) << id;
    EXPECT_GE(longest_with(*request, *gib + kHalfDigit), *logged) << id;
  }
  std::cout << compared << " longest lengths compared\n";
}

}  // namespace
}  // namespace plimsoll::starts
