// SPDX-License-Identifier: Apache-2.0
// Recorded starts of vLLM: from the bytes of the cache that a log prints, its tokens and requests come out
// within what the print's last digit leaves open.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include "plan/plan.h"
#include "tests/testing/golden.h"

namespace plimsoll::plan {
namespace {

// Records that cannot come out so, and why.
const std::map<std::string, std::string> kExceptions{};

std::map<std::string, Model> known_models() {
  std::map<std::string, Model> models;
  std::ifstream file(testing::data_path("startup_models.tsv"));
  for (std::string line; std::getline(file, line);) {
    std::stringstream cells(line);
    std::string name, id, values;
    std::getline(cells, name, '\t') && std::getline(cells, id, '\t') && std::getline(cells, values, '\t');
    const auto* entry = values.empty() ? nullptr : facts::find_catalogue(id);
    const auto changed = entry ? parse_json(values, name) : parse_json("null", name);
    if (!entry || !changed) continue;
    Json config = entry->config_json();
    for (const auto& [key, value] : changed->members()) config.set(key, value);
    Model model;
    auto spec = model::read_spec(config, name);
    EXPECT_TRUE(spec) << name << ": " << spec.error().describe();
    if (!spec) continue;
    model.spec = std::move(*spec);
    read_declared(config, model::read_quantization(config, {}), model);
    models.emplace(name, std::move(model));
  }
  return models;
}

/// "0.9.x" is the last of its line; of "0.2x" only the decade is known.
std::string release_of(std::string version) {
  if (version == "0.2x") return "0.21.0";
  if (const auto x = version.find(".x"); x != std::string::npos) return version.substr(0, x) + ".9";
  if (const auto end = version.find_first_of("(+"); end != std::string::npos) version.resize(end);
  if (const auto dash = version.find('-'); dash != std::string::npos && version.rfind("0.1.dev", 0) != 0)
    version.resize(dash);
  return version;
}

Request request_of(const Json& row, const Model& model) {
  Request request;
  request.engine = *facts::parse_engine("vllm@" + release_of(*row["version"].as_string()));
  request.models = {model};
  Settings& settings = request.settings;
  settings.tensor_parallel = static_cast<int>(row["tp"].as_integer().value_or(1));
  settings.pipeline_parallel = static_cast<int>(row["pp"].as_integer().value_or(1));
  settings.max_model_len = row["max_model_len"].as_integer();
  if (const auto size = row["block_size"].as_integer()) settings.block_size = static_cast<int>(*size);
  if (const auto size = row["max_num_batched_tokens"].as_integer())
    settings.max_num_batched_tokens = static_cast<int>(*size);
  const std::string dtype = row["kv_cache_dtype"].as_string() ? *row["kv_cache_dtype"].as_string() : "auto";
  settings.kv_cache_dtype = dtype.starts_with("fp8_e") ? "fp8" : dtype;
  for (const Json& flag : row["other_flags"].items()) {
    const std::string& text = *flag.as_string();
    if (text.starts_with("decode_context_parallel_size="))
      settings.decode_context_parallel = std::stoi(text.substr(text.find('=') + 1));
    if (text.starts_with("mtp=")) settings.num_speculative_tokens = std::stoi(text.substr(4));
  }
  return request;
}

struct Edge {
  double tokens = 0, requests = 0;
};

std::optional<Edge> at(Request request, double gib) {
  request.settings.kv_cache_bytes = Bytes(std::llround(gib * static_cast<double>(kGiB)));
  const auto plan = make_plan(request);
  if (!plan || !plan->rows[0].fits) return std::nullopt;
  return Edge{static_cast<double>(plan->rows[0].kv_tokens.value), plan->rows[0].max_concurrency};
}

TEST(RecordedStarts, TokensAndRequestsFollowFromTheBytes) {
  const auto models = known_models();
  std::ifstream file(testing::golden_path("startup_logs/startup_logs.jsonl"));
  int compared = 0, excepted = 0;
  for (std::string line; std::getline(file, line);) {
    const auto row = parse_json(line, "startup_logs.jsonl");
    ASSERT_TRUE(row);
    const std::string id = *(*row)["id"].as_string();
    const auto gib = (*row)["available_kv_gib"].as_double();
    const auto* name = (*row)["model"].as_string();
    const auto tokens = (*row)["kv_tokens"].as_integer();
    const auto requests = (*row)["max_concurrency"].as_double();
    const bool is_asked = (*row)["engine"] == Json("vllm") && gib && *gib > 0 && name &&
                          models.contains(*name) && (*row)["version"].as_string() && (tokens || requests) &&
                          (*row)["failed"] != Json(true);
    if (!is_asked) continue;
    const Request request = request_of(*row, models.at(*name));
    const auto low = at(request, *gib - 0.0051), high = at(request, *gib + 0.0051);
    const bool is_in =
        low && high &&
        (!tokens ||
         (low->tokens <= static_cast<double>(*tokens) && static_cast<double>(*tokens) <= high->tokens)) &&
        (!requests || (low->requests - 0.0051 <= *requests && *requests <= high->requests + 0.0051));
    if (const auto why = kExceptions.find(id); why != kExceptions.end()) {
      ++excepted;
      EXPECT_FALSE(is_in) << id << " is no exception any more: " << why->second;
      continue;
    }
    ++compared;
    EXPECT_TRUE(is_in) << id << " " << *name << " " << *(*row)["version"].as_string() << ": logged "
                       << tokens.value_or(-1) << " tokens, " << requests.value_or(-1) << " requests; planned "
                       << (low ? low->tokens : -1) << " to " << (high ? high->tokens : -1) << ", "
                       << (low ? low->requests : -1) << " to " << (high ? high->requests : -1);
  }
  std::cout << compared << " starts compared, " << excepted << " exceptions\n";
  EXPECT_GT(compared, 5);
}

}  // namespace
}  // namespace plimsoll::plan
