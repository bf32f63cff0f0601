// SPDX-License-Identifier: Apache-2.0
#include "tools/recorded_starts.h"

#include <cmath>
#include <fstream>
#include <sstream>

#include "facts/gpus.h"

namespace plimsoll::starts {
namespace {

const std::vector<int> kSecondEngine{0, 8};
constexpr const char* kLastOfFirst = "0.7.3";

Result<plan::Model> read_model(const std::string& name, const std::string& id, const std::string& changes) {
  const auto* entry = facts::find_catalogue(id);
  if (!entry) return fail(ErrorCode::kMalformed, "the catalogue has no " + id, name, "name an entry of it");
  PLIMSOLL_TRY(const Json values, parse_json(changes, name));
  Json config = entry->config_json();
  for (const auto& [key, value] : values.members()) config.set(key, value);
  plan::Model model;
  model.source = name;
  PLIMSOLL_TRY(model.spec, model::read_spec(config, name));
  plan::read_declared(config, model::read_quantization(config, {}), model);
  return model;
}

Status read_line(const std::string& line, Book& book) {
  const auto cells = cells_of(line);
  if (cells.empty() || line.starts_with('#')) return {};
  const std::string key = cells[0].substr(1);
  const char mark = cells[0].front();
  if (cells.size() == 2 && mark == '!') {
    book.not_fitted[key] = cells[1];
  } else if (cells.size() == 2 && mark == '~') {
    book.unknown_weights[key] = cells[1];
  } else if (cells.size() == 2 && mark == '^') {
    book.not_planned[key] = cells[1];
  } else if (cells.size() == 2 && mark == '?') {
    book.not_foretold[key] = cells[1];
  } else if (cells.size() == 3 && mark == '=') {
    PLIMSOLL_TRY(Json settings, parse_json(cells[1], key));
    book.deduced[key] = {std::move(settings), cells[2]};
  } else if (cells.size() == 3 && mark == '+') {
    PLIMSOLL_TRY(Json settings, parse_json(cells[1], key));
    book.of_model[key] = {std::move(settings), cells[2]};
  } else if (cells.size() == 3) {
    PLIMSOLL_TRY(book.models[cells[0]], read_model(cells[0], cells[1], cells[2]));
  } else {
    return fail(ErrorCode::kMalformed, "a line of another shape", line.substr(0, 60), "see the file's head");
  }
  return {};
}

std::optional<int> count_of(const Json& row, const char* key) {
  const auto value = row[key].as_integer();
  return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
}

// Some records spell flags with hyphens, some as Python does.
void read_flag(std::string flag, plan::Settings& settings) {
  for (char& letter : flag)
    if (letter == '-') letter = '_';
  const std::size_t equals = flag.find('=');
  const std::string name = flag.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : flag.substr(equals + 1);
  if (name == "decode_context_parallel_size") settings.decode_context_parallel = std::stoi(value);
  if (name == "mtp") settings.num_speculative_tokens = std::stoi(value);
  if (name == "enable_prefix_caching") settings.prefix_caching = true;
}

plan::Settings settings_of(const Json& row) {
  plan::Settings settings;
  settings.tensor_parallel = count_of(row, "tp").value_or(1);
  settings.pipeline_parallel = count_of(row, "pp").value_or(1);
  settings.is_expert_parallel = row["ep"] == Json(true);
  settings.is_eager = row["enforce_eager"] == Json(true);
  settings.max_model_len = row["max_model_len"].as_integer();
  settings.max_num_seqs = count_of(row, "max_num_seqs");
  settings.max_num_batched_tokens = count_of(row, "max_num_batched_tokens");
  settings.memory_utilization = row["gpu_memory_utilization"].as_double();
  // A block that states made long is no flag.
  if (row["attn_block_size"].is_null()) settings.block_size = count_of(row, "block_size");
  const std::string* type = row["kv_cache_dtype"].as_string();
  if (type && *type != "auto") settings.kv_cache_dtype = type->starts_with("fp8_e") ? "fp8" : *type;
  for (const Json& flag : row["other_flags"].items())
    if (const auto* text = flag.as_string()) read_flag(*text, settings);
  return settings;
}

}  // namespace

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::stringstream stream(line);
  for (std::string cell; std::getline(stream, cell, '\t');) cells.push_back(cell);
  return cells;
}

Result<Book> read_book(const std::string& path) {
  std::ifstream file(path);
  if (!file) return fail(ErrorCode::kMalformed, "no such file", path, "give data/startup_models.tsv");
  Book book;
  for (std::string line; std::getline(file, line);) PLIMSOLL_TRY_VOID(read_line(line, book));
  return book;
}

std::vector<Json> read_rows(const std::string& path) {
  std::ifstream file(path);
  std::vector<Json> rows;
  for (std::string line; std::getline(file, line);)
    if (auto row = parse_json(line, path)) rows.push_back(std::move(*row));
  return rows;
}

std::optional<std::string> release_of(const std::string& version) {
  if (version.starts_with("0.1.dev")) return std::nullopt;
  std::string text = version.substr(0, version.find('('));
  if (text.ends_with(".x")) text.replace(text.size() - 2, 2, ".9");
  if (text.ends_with('x')) text.back() = '0';
  const auto numbers = facts::release_numbers(text);
  if (numbers.size() == 2) text = std::to_string(numbers[0]) + "." + std::to_string(numbers[1]) + ".0";
  if (numbers.size() < 2) return std::nullopt;
  // The first engine lived on beside the second one and kept its rules.
  if (version.ends_with("(V0)") && numbers >= kSecondEngine) text = kLastOfFirst;
  const auto choice = facts::parse_engine("vllm@" + text);
  return choice ? std::optional(choice->version) : std::nullopt;
}

std::optional<plan::Target> target_of(const Json& row) {
  const std::string* name = row["gpu_name"].as_string();
  const auto* known = name ? facts::find_gpu(*name).value_or(nullptr) : nullptr;
  auto total = row["total_gpu_gib"].as_double();
  const auto size = row["gpu_mem_gib"].as_double();
  const auto budget = row["budget_gib"].as_double(), share = row["gpu_memory_utilization"].as_double();
  if (!total && budget && share) total = *budget / *share;
  const auto listed = known ? known->memory() : std::nullopt;
  if (!total && !listed) total = size;
  if (!total && !listed) return std::nullopt;
  plan::Target target;
  if (name) target.asked = *name;
  if (known)
    target.name = std::string(known->name);
  else if (name)
    target.name = *name;
  target.memory = total ? Bytes(std::llround(*total * static_cast<double>(kGiB))) : *listed;
  target.count = std::int64_t{count_of(row, "tp").value_or(1)} * count_of(row, "pp").value_or(1);
  return target;
}

std::optional<plan::Request> request_of(const Json& row, const Book& book) {
  const std::string* name = row["model"].as_string();
  const std::string* version = row["version"].as_string();
  if (row["engine"] != Json("vllm") || !name) return std::nullopt;
  const auto model = book.models.find(*name);
  if (model == book.models.end()) return std::nullopt;
  const auto release = version ? release_of(*version) : std::nullopt;
  auto engine = facts::parse_engine(release ? "vllm@" + *release : "vllm");
  if (!engine) return std::nullopt;
  plan::Request request;
  request.engine = std::move(*engine);
  request.models = {model->second};
  request.settings = settings_of(row);
  if (const auto all = book.of_model.find(*name); all != book.of_model.end())
    apply(all->second, request);
  return request;
}

void apply(const Deduced& deduced, plan::Request& request) {
  const Json& values = deduced.settings;
  plan::Settings& settings = request.settings;
  if (const auto* release = values["release"].as_string())
    if (auto engine = facts::parse_engine("vllm@" + *release)) request.engine = std::move(*engine);
  if (const auto* type = values["cache_type"].as_string()) settings.kv_cache_dtype = *type;
  if (const auto is_on = values["prefix_caching"].as_bool()) settings.prefix_caching = *is_on;
  if (const auto tokens = count_of(values, "draft_tokens")) settings.num_speculative_tokens = *tokens;
  if (const auto tokens = count_of(values, "batched_tokens")) settings.max_num_batched_tokens = *tokens;
  if (const auto size = count_of(values, "block_size")) settings.block_size = *size;
  if (const auto blocks = values["blocks"].as_integer()) settings.num_blocks = *blocks;
}

}  // namespace plimsoll::starts
