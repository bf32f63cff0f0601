// SPDX-License-Identifier: Apache-2.0
// Recorded starts: every line that engines printed is understood, and says what the record says.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iostream>
#include <set>

#include "base/json.h"
#include "tests/testing/golden.h"
#include "verify/log_lines.h"
#include "verify/log_reader.h"

namespace plimsoll::verify {
namespace {

std::vector<Json> rows() {
  std::ifstream file(testing::golden_path("startup_logs/startup_logs.jsonl"));
  std::vector<Json> all;
  for (std::string line; std::getline(file, line);)
    if (auto row = parse_json(line, "startup_logs.jsonl")) all.push_back(std::move(*row));
  return all;
}

// Notes of who collected the records, in no engine's words.
constexpr const char* kNotes[] = {
    "K ",       "KV ",        "model ", "Mamba cache", "SWA pool", "avail after", "max_total_tokens set",
    "The boot", "The follow",
};

bool is_note(const std::string& line) {
  for (const char* words : kNotes)
    if (line.starts_with(words) && !line.starts_with("model weights")) return true;
  return std::isdigit(static_cast<unsigned char>(line.front())) != 0;
}

TEST(RecordedStarts, EveryLineIsUnderstood) {
  int understood = 0, notes = 0;
  for (const Json& row : rows()) {
    for (const Json& item : row["raw"].items()) {
      const std::string& line = *item.as_string();
      EngineStart run;
      if (read_refusal(line, run) || read_known_line(line, run) != kNotKnown) {
        ++understood;
        continue;
      }
      ++notes;
      EXPECT_TRUE(is_note(line)) << *row["id"].as_string() << ": " << line;
    }
  }
  std::cout << understood << " lines understood, " << notes << " are notes\n";
  EXPECT_GT(understood, 30);
  EXPECT_LT(notes, understood / 20 + 2);
}

// A record may be of another rank than the largest.
void expect_no_less(const std::optional<Printed>& found, const Json& recorded, const char* what,
                    const std::string& id) {
  const auto gib = recorded.as_double();
  if (!found || !gib) return;
  EXPECT_GE(static_cast<double>(found->value) / static_cast<double>(kGiB), *gib - 0.011) << id << " " << what;
}

TEST(RecordedStarts, TheFiguresAreThoseOfTheRecord) {
  int compared = 0;
  for (const Json& row : rows()) {
    if (row["engine"] != Json("vllm")) continue;
    const std::string& id = *row["id"].as_string();
    EngineStart run;
    for (const Json& line : row["raw"].items())
      if (!read_refusal(*line.as_string(), run)) read_known_line(*line.as_string(), run);
    expect_no_less(run.non_torch_bytes, row["non_torch_gib"], "non-torch", id);
    expect_no_less(run.activation_bytes, row["activation_peak_gib"], "activation", id);
    if (const auto tokens = row["kv_tokens"].as_integer(); tokens && run.kv_tokens) {
      EXPECT_EQ(run.kv_tokens->value, *tokens) << id;
      ++compared;
    }
    if (const auto concurrency = row["max_concurrency"].as_double(); concurrency && run.max_concurrency) {
      EXPECT_NEAR(run.max_concurrency->value, *concurrency, 0.0051) << id;
    }
  }
  EXPECT_GT(compared, 3);
}

}  // namespace
}  // namespace plimsoll::verify
