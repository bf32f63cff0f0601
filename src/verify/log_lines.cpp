// SPDX-License-Identifier: Apache-2.0
#include "verify/log_lines.h"

#include <algorithm>
#include <span>
#include <vector>

#include "base/json.h"
#include "verify/line_cursor.h"

namespace plimsoll::verify {
namespace {

using Field = std::optional<Printed> EngineStart::*;
using RealField = std::optional<PrintedReal> EngineStart::*;

enum class Unit { kGib, kBareGib, kMib, kCount };
enum class Keep { kLast, kLargest, kSmallest, kSum };

/// The number behind `words`, counted from where the step before ended.
struct Step {
  constexpr Step() = default;
  constexpr Step(std::string_view before) : words(before) {}
  constexpr Step(const char* before, Field whole, Unit in, Keep how = Keep::kLast)
      : words(before), field(whole), unit(in), keep(how) {}
  constexpr Step(const char* before, RealField decimal) : words(before), real(decimal) {}

  std::string_view words;
  Field field = nullptr;  // both null: the words alone have to stand there
  RealField real = nullptr;
  Unit unit = Unit::kGib;
  Keep keep = Keep::kLast;
};

/// The first step has to be found, the others are taken where they are.
struct LineRow {
  Phase phase;
  const char* engine;  // null: more than one engine words it so
  std::string_view must;
  Step steps[8];
};

using S = EngineStart;
constexpr Unit kGib = Unit::kGib, kBare = Unit::kBareGib, kMib = Unit::kMib, kCount = Unit::kCount;
constexpr Keep kLargest = Keep::kLargest, kSmallest = Keep::kSmallest, kSum = Keep::kSum;

// Rows that say more stand before those that say less.
// clang-format off
constexpr LineRow kRows[] = {
    // vLLM, and what this program's engine says in its words.
    {kConfigured, "vllm", "max_seq_len=",
      {{"config: "}, {"max_seq_len=", &S::max_model_len, kCount},
      {"tensor_parallel_size=", &S::tensor_parallel, kCount},
      {"pipeline_parallel_size=", &S::pipeline_parallel, kCount}}},
    {kConfigured, "vllm", "", {{"Using max model len ", &S::max_model_len, kCount}}},
    {kConfigured, "vllm", "",
      {{"Chunked prefill is enabled with max_num_batched_tokens=", &S::max_num_batched_tokens, kCount}}},
    {kConfigured, "vllm", "", {{"Setting attention block size to ", &S::block_size, kCount}}},
    {kConfigured, "vllm", "", {{"Setting kv cache block size to ", &S::block_size, kCount}}},
    {kConfigured, "vllm", "", {{"Forcing kv cache block size to ", &S::block_size, kCount}}},
    {kLoading, nullptr, "", {{"Model loading took ", &S::weights_bytes, kGib, kLargest}}},
    {kLoading, "vllm", "", {{"Loading model weights took ", &S::weights_bytes, kGib, kLargest}}},
    {kProfiled, "vllm", "",
      {{"model weights take ", &S::weights_bytes, kGib, kLargest},
      {"non_torch_memory takes ", &S::non_torch_bytes, kGib, kLargest},
      {"activation peak memory takes ", &S::activation_bytes, kGib, kLargest},
      {"reserved for KV Cache is ", &S::kv_cache_bytes, kGib, kSmallest}}},
    {kProfiled, "vllm", "",
      {{"non_torch_memory takes ", &S::non_torch_bytes, kGib, kLargest},
      {"activation peak memory takes ", &S::activation_bytes, kGib, kLargest},
      {"reserved for KV Cache is ", &S::kv_cache_bytes, kGib, kSmallest}}},
    {kProfiled, "vllm", "",
      {{"total_gpu_memory (", &S::gpu_total_bytes, kGib},
      {"gpu_memory_utilization (", &S::gpu_memory_utilization}, {") = ", &S::budget_bytes, kGib}}},
    {kProfiled, "vllm", "",
      {{"Initial free memory ", &S::gpu_free_bytes, kGib},
      {"reserved ", &S::kv_cache_bytes, kGib, kSmallest}}},
    {kProfiled, "vllm", "",
      {{"Estimated CUDA graph memory: ", &S::cuda_graph_estimate_bytes, kGib, kLargest}}},
    {kProfiled, nullptr, "", {{"Available KV cache memory: ", &S::kv_cache_bytes, kGib, kSmallest}}},
    {kProfiled, "vllm", "",
      {{"Auto-fit max_model_len: reduced from "}, {" to ", &S::max_model_len, kCount}}},
    {kSized, "vllm", "", {{"num_gpu_blocks_override=", &S::num_blocks, kCount}}},
    {kSized, "vllm", "", {{"# GPU blocks: ", &S::num_blocks, kCount, kSmallest}}},
    {kSized, "vllm", "", {{"# cuda blocks: ", &S::num_blocks, kCount, kSmallest}}},
    {kSized, "vllm", "", {{"# rocm blocks: ", &S::num_blocks, kCount, kSmallest}}},
    {kSized, "vllm", "", {{"# xpu blocks: ", &S::num_blocks, kCount, kSmallest}}},
    {kSized, nullptr, "PU",
      {{" KV cache size: ", &S::kv_tokens, kCount, kSmallest},
      {"Maximum concurrency for ", &S::max_model_len, kCount},
      {" tokens per request: ", &S::max_concurrency}}},
    {kSized, nullptr, "",
      {{"Maximum concurrency for ", &S::max_model_len, kCount},
      {" tokens per request: ", &S::max_concurrency}}},
    {kAnywhere, "vllm", " padding layers", {{"Add ", &S::padding_layers, kCount}}},
    {kSummed, "vllm", "",
      {{"cache_config_info with initialization after num_gpu_blocks is"},
      {": ", &S::num_blocks, kCount, kSmallest}}},
    {kSummed, "vllm", "",
      {{"CUDA graph pool memory: ", &S::cuda_graph_bytes, kGib, kLargest},
      {"(actual), ", &S::cuda_graph_estimate_bytes, kGib, kLargest}}},
    {kSummed, "vllm", ", took ",
      {{"Graph capturing finished in "}, {", took ", &S::cuda_graph_bytes, kGib, kLargest}}},
    {kSummed, "vllm", "", {{"Graph capturing took ", &S::cuda_graph_bytes, kGib, kLargest}}},
    {kSummed, "vllm", " for weight,",
      {{"Free memory on device"}, {"(", &S::gpu_free_bytes, kBare, kSmallest},
      {"/", &S::gpu_total_bytes, kGib}, {"utilization is (", &S::gpu_memory_utilization},
      {", ", &S::budget_bytes, kGib}, {"Actual usage is ", &S::weights_bytes, kGib, kLargest},
      {" for weight, ", &S::activation_bytes, kGib, kLargest},
      {" activation, ", &S::non_torch_bytes, kGib, kLargest}}},
    {kSummed, "vllm", " for consumed memory",
      {{"Free memory on device"}, {"(", &S::gpu_free_bytes, kBare, kSmallest},
      {"/", &S::gpu_total_bytes, kGib}, {"utilization is (", &S::gpu_memory_utilization},
      {", ", &S::budget_bytes, kGib}, {" non-torch), ", &S::activation_bytes, kGib, kLargest}}},
    // SGLang; its GB are GiB.
    {kConfigured, "sglang", "", {{"Load weight begin. avail mem=", &S::gpu_free_bytes, kGib, kSmallest}}},
    {kLoading, "sglang", "mem usage=",
      {{"Load weight end."}, {" mem usage=", &S::weights_bytes, kGib, kLargest}}},
    {kSized, "sglang", "",
      {{"KV Cache is allocated."}, {"#tokens: ", &S::kv_tokens, kCount, kSmallest},
      {"K size: ", &S::kv_cache_bytes, kGib, kSmallest},
      {"V size: ", &S::kv_cache_bytes, kGib, kSmallest}}},
    {kSummed, "sglang", "graph", {{"Capture "}, {" mem usage=", &S::cuda_graph_bytes, kGib, kSum}}},
    {kSized, "sglang", "", {{"Memory pool end. avail mem="}}},
    {kSummed, "sglang", "",
      {{"max_total_num_tokens=", &S::kv_tokens, kCount, kSmallest},
      {"chunked_prefill_size=", &S::max_num_batched_tokens, kCount},
      {"context_len=", &S::max_model_len, kCount}}},
    // llama.cpp: a line for each device.
    {kLoading, "llama.cpp", "", {{" model buffer size = ", &S::weights_bytes, kMib, kSum}}},
    {kSized, "llama.cpp", "", {{" KV buffer size = ", &S::kv_cache_bytes, kMib, kSum}}},
    {kSized, "llama.cpp", "", {{" RS buffer size = ", &S::kv_cache_bytes, kMib, kSum}}},
    {kSized, "llama.cpp", " cells,", {{" MiB (", &S::kv_tokens, kCount}}},
    {kSized, "llama.cpp", "", {{" compute buffer size = ", &S::activation_bytes, kMib, kSum}}},
    {kSized, "llama.cpp", " n_ctx ", {{"= ", &S::max_model_len, kCount}}},
};
// clang-format on

constexpr std::string_view kSuggested = "--kv-cache-memory=";
constexpr std::string_view kGraphs = " GiB for CUDAGraph memory";

bool contains(std::string_view line, std::string_view words) {
  return line.find(words) != std::string_view::npos;
}

void keep(std::optional<Printed>& field, Printed found, Keep how) {
  if (!field || how == Keep::kLast || (how == Keep::kLargest && found.value > field->value) ||
      (how == Keep::kSmallest && found.value < field->value)) {
    field = std::move(found);
  } else if (how == Keep::kSum) {
    field->value += found.value;
    field->half_step += found.half_step;
    field->text += " + " + found.text;
  }
}

std::optional<Printed> number_of(LineCursor& cursor, Unit unit) {
  switch (unit) {
    case Unit::kGib:
      return cursor.gibibytes();
    case Unit::kBareGib:
      return cursor.gibibytes(false);
    case Unit::kMib:
      cursor.skip_if(' ');  // columns are padded
      return cursor.mebibytes();
    case Unit::kCount:
      cursor.skip_if(' ');
      return cursor.integer();
  }
  return std::nullopt;
}

std::optional<PrintedReal> real_of(LineCursor& cursor) {
  std::string text;
  const auto value = cursor.decimal(&text);
  if (!value) return std::nullopt;
  if (cursor.starts_with('x')) text += 'x';
  return PrintedReal{value->first, value->second, std::move(text)};
}

struct Found {
  const Step* step;
  Printed number;
};

/// Takes the step's number and moves the cursor behind it; else leaves both as they are.
bool take(const Step& step, LineCursor& cursor, std::vector<Found>& numbers, EngineStart& run) {
  LineCursor ahead = cursor;
  if (!ahead.skip_past(step.words)) return false;
  if (step.field) {
    auto found = number_of(ahead, step.unit);
    if (!found) return false;
    numbers.push_back({&step, std::move(*found)});
  } else if (step.real) {
    auto found = real_of(ahead);
    if (!found) return false;
    run.*step.real = std::move(*found);
  }
  cursor = ahead;
  return true;
}

bool read_row(const LineRow& row, std::string_view line, EngineStart& run) {
  if (!contains(line, row.must)) return false;
  LineCursor cursor(line);
  std::vector<Found> numbers;
  if (!take(row.steps[0], cursor, numbers, run)) return false;
  for (const Step& step : std::span(row.steps).subspan(1))
    if (!step.words.empty()) take(step, cursor, numbers, run);
  // Numbers of one field in one line make up one: keys and values.
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::optional<Printed> whole;
    if (!numbers[i].step) continue;
    for (Found& other : std::span(numbers).subspan(i))
      if (other.step && other.step->field == numbers[i].step->field) {
        keep(whole, std::move(other.number), Keep::kSum);
        if (&other != &numbers[i]) other.step = nullptr;
      }
    keep(run.*numbers[i].step->field, std::move(*whole), numbers[i].step->keep);
  }
  return true;
}

/// What stands before its words.
void read_graphs(std::string_view line, EngineStart& run) {
  const std::size_t end = line.find(kGraphs);
  if (end == std::string_view::npos) return;
  const std::size_t begin = line.rfind(' ', end - 1);
  LineCursor cursor(line.substr(begin == std::string_view::npos ? 0 : begin + 1));
  if (auto found = cursor.gibibytes()) keep(run.cuda_graph_bytes, std::move(*found), Keep::kLargest);
}

void read_suggestion(std::string_view line, EngineStart& run) {
  LineCursor cursor(line);
  if (!cursor.skip_past(kSuggested)) return;
  if (auto bytes = cursor.integer())
    keep(run.suggested_kv_cache_memory_bytes, std::move(*bytes), Keep::kSmallest);
}

bool read_version(std::string_view text, EngineStart& run) {
  for (const auto& [words, engine] :
       {std::pair<std::string_view, const char*>{"vLLM API server version ", "vllm"},
        {"LLM engine (v", "vllm"},
        {"plimsoll version ", "plimsoll"}}) {
    const std::size_t at = text.find(words);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = text.substr(at + words.size());
    run.version = std::string(rest.substr(0, std::min<std::size_t>(rest.find_first_of(" \t)"), 80)));
    run.engine = engine;
    return true;
  }
  return false;
}

/// Our own exact line; it replaces what rounded lines said.
bool read_exact(std::string_view text, EngineStart& run) {
  constexpr std::string_view kWords = "plimsoll memory: ";
  constexpr double kBound = 4.0e18;
  const std::size_t at = text.find(kWords);
  if (at == std::string_view::npos) return false;
  const auto document = parse_json(text.substr(at + kWords.size()), "log", {.max_depth = 8});
  if (!document || !document->is_object()) return false;
  bool is_read = false;
  for (const auto& [name, field] :
       std::initializer_list<std::pair<const char*, Field>>{{"weights_bytes", &S::weights_bytes},
                                                            {"kv_cache_bytes", &S::kv_cache_bytes},
                                                            {"kv_tokens", &S::kv_tokens},
                                                            {"kv_bytes_per_token", &S::kv_bytes_per_token},
                                                            {"num_blocks", &S::num_blocks},
                                                            {"block_size", &S::block_size}}) {
    const auto value = (*document)[name].as_integer();
    if (!value || *value < 0 || static_cast<double>(*value) > kBound) continue;
    run.*field = Printed{*value, 0, std::to_string(*value)};
    is_read = true;
  }
  run.engine = "plimsoll";
  return is_read;
}

}  // namespace

Phase read_known_line(std::string_view line, EngineStart& run) {
  if (read_exact(line, run)) return kSummed;
  const bool has_version = read_version(line, run);
  for (const LineRow& row : kRows) {
    if (!read_row(row, line, run)) continue;
    if (row.phase == kSummed && row.engine && std::string_view(row.engine) == "vllm") {
      read_graphs(line, run);
      read_suggestion(line, run);
    }
    if (!run.engine && row.engine) run.engine = row.engine;
    return has_version ? kConfigured : row.phase;
  }
  return has_version ? kConfigured : kNotKnown;
}

bool read_refusal(std::string_view line, EngineStart& run) {
  const bool is_request = contains(line, "To serve at least one request with ");
  const bool is_tokens = contains(line, "is larger than the maximum number of tokens that can be stored");
  const bool is_free = contains(line, "on startup is less than");
  const bool is_other =
      contains(line, "No available memory for the cache blocks") ||
      contains(line, "Cannot auto-fit max_model_len") ||
      (contains(line, "The KV cache of ") && contains(line, " that was asked for, beside ")) ||
      contains(line, "Not enough memory. Please try to increase --mem-fraction-static") ||
      contains(line, "Loaded weights leave no GPU memory for the KV cache");
  if (!is_request && !is_tokens && !is_free && !is_other) return false;
  constexpr std::size_t kLongestSentence = 1000;
  run.failed = true;
  run.error = std::string(line.substr(0, kLongestSentence));
  LineCursor cursor(line);
  if (is_request && cursor.skip_past("max seq len (")) {
    if (auto tokens = cursor.integer()) run.max_model_len = std::move(*tokens);
    cursor.skip_past(", ");
    cursor.skip_if('(');  // some releases open a bracket here that they never close
    if (auto bytes = cursor.gibibytes()) run.required_kv_cache_bytes = std::move(*bytes);
    if (cursor.skip_past("available "))
      if (cursor.skip_past("memory ("); auto bytes = cursor.gibibytes())
        run.kv_cache_bytes = std::move(*bytes);
    if (cursor.skip_past("maximum model length is "))
      if (auto tokens = cursor.integer()) run.estimated_max_model_len = std::move(*tokens);
  } else if (is_tokens && cursor.skip_past("max seq len (")) {
    if (auto tokens = cursor.integer()) run.max_model_len = std::move(*tokens);
    if (cursor.skip_past("KV cache ("))
      if (auto tokens = cursor.integer()) {
        run.kv_tokens = *tokens;
        run.estimated_max_model_len = std::move(*tokens);
      }
  } else if (is_free && cursor.skip_past("(")) {
    if (auto bytes = cursor.gibibytes(false)) run.gpu_free_bytes = std::move(*bytes);
    if (cursor.skip_past("/"))
      if (auto bytes = cursor.gibibytes()) run.gpu_total_bytes = std::move(*bytes);
    if (cursor.skip_past("("))
      if (auto share = real_of(cursor)) run.gpu_memory_utilization = std::move(*share);
    if (cursor.skip_past(", "))
      if (auto bytes = cursor.gibibytes()) run.budget_bytes = std::move(*bytes);
  }
  if (contains(line, "GPU") && !run.engine && !contains(line, "plimsoll")) run.engine = "vllm";
  return true;
}

bool speaks_of_memory(std::string_view line) {
  return contains(line, "plimsoll memory:") || contains(line, "KV cache size") ||
         contains(line, "Model loading took") || contains(line, "Maximum concurrency") ||
         (contains(line, "memory") && contains(line, " GiB"));
}

}  // namespace plimsoll::verify
