// SPDX-License-Identifier: Apache-2.0
#include "verify/log_settings.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "base/dtype.h"
#include "facts/catalogue.h"
#include "plan/plan.h"

namespace plimsoll::verify {
namespace {

constexpr std::size_t kLongestValue = 300;
constexpr int kMostRanks = 4096;  // as --tensor-parallel-size and its like take

constexpr const char* kRankKeys[] = {"tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size",
                                     "decode_context_parallel_size"};

constexpr std::string_view kKeys[] = {"model",
                                      "dtype",
                                      "quantization",
                                      "kv_cache_dtype",
                                      "enforce_eager",
                                      "enable_prefix_caching",
                                      "speculative_config",
                                      "tensor_parallel_size",
                                      "pipeline_parallel_size",
                                      "data_parallel_size",
                                      "decode_context_parallel_size",
                                      "enable_expert_parallel",
                                      "max_num_seqs",
                                      "max_num_batched_tokens",
                                      "block_size",
                                      "num_gpu_blocks_override",
                                      "kv_cache_memory_bytes",
                                      "gpu_memory_utilization"};

/// Up to the comma or bracket that ends it; without its quotes.
std::string value_at(std::string_view text) {
  text = text.substr(0, kLongestValue);
  if (!text.empty() && (text.front() == '\'' || text.front() == '"'))
    return std::string(text.substr(1, text.find(text.front(), 1) - 1));
  return std::string(text.substr(0, text.find_first_of(",}])")));
}

/// A config is `key=value, ...`, given flags are a Python dict.
void read_value(std::string_view text, std::string_view key, bool is_dict,
                std::map<std::string, std::string>& settings) {
  const std::string words = is_dict ? fmt::format("'{}': ", key) : fmt::format(" {}=", key);
  const std::size_t at = text.find(words);
  if (at != std::string_view::npos) settings[std::string(key)] = value_at(text.substr(at + words.size()));
}

Error missing(const std::string& what, const std::string& fix) {
  return {ErrorCode::kUnsupported, what, "log", fix};
}

class Settings {
 public:
  explicit Settings(const std::map<std::string, std::string>& values) : values_(values) {}

  /// Absent where the log does not say, or says None.
  std::optional<std::string> text(const char* key) const {
    const auto found = values_.find(key);
    if (found == values_.end() || found->second == "None") return std::nullopt;
    return found->second;
  }
  std::optional<std::int64_t> count(const char* key) const {
    const auto found = text(key);
    std::int64_t value = 0;
    if (!found) return std::nullopt;
    const auto [end, error] = std::from_chars(found->data(), found->data() + found->size(), value);
    const bool is_whole =
        found->find_first_not_of(" )", static_cast<std::size_t>(end - found->data())) == std::string::npos;
    return error == std::errc{} && is_whole && value >= 0 ? std::optional(value) : std::nullopt;
  }
  std::optional<int> small(const char* key) const {
    const auto value = count(key);
    return value && *value <= 1'000'000'000 ? std::optional(static_cast<int>(*value)) : std::nullopt;
  }
  /// 1 where the log does not say; nothing for what cannot be.
  std::optional<int> ranks(const char* key) const {
    if (!text(key)) return 1;
    const auto value = small(key);
    return value && *value >= 1 && *value <= kMostRanks ? value : std::nullopt;
  }
  std::optional<double> share(const char* key) const {
    const auto found = text(key);
    const double value = found ? std::strtod(found->c_str(), nullptr) : 0;
    return value > 0 && value <= 1 ? std::optional(value) : std::nullopt;
  }
  std::optional<bool> flag(const char* key) const {
    const auto found = text(key);
    return found ? std::optional(*found == "True") : std::nullopt;
  }

 private:
  const std::map<std::string, std::string>& values_;
};

/// The log has to run the weights that the catalogue tells of.
std::optional<std::string> other_weights(const Settings& settings, const plan::Model& model) {
  const auto logged = settings.text("quantization");
  const std::string known = model.quantization ? model.quantization->method : std::string();
  if (logged.value_or("") != known)
    return fmt::format("the log's quantization is {}, the catalogue's model has {}", logged.value_or("none"),
                       known.empty() ? "none" : known);
  const auto dtype = settings.text("dtype");
  const auto own = model.spec.declared_dtype.value_or(DType::kBF16);
  if (dtype && own != DType::kF32 && dtype_from_config(dtype->substr(dtype->rfind('.') + 1)) != own)
    return fmt::format("the log runs in {}, the catalogue's model is {}", *dtype, name(own));
  return std::nullopt;
}

/// The first setting that the log states and that cannot be read: what it means is not guessed.
std::optional<std::string> unreadable(const Settings& log, const EngineStart& run) {
  const auto as_stated = [&](const char* key) {
    return fmt::format("{} is {} in the log", key, log.text(key)->substr(0, 40));
  };
  for (const char* key : kRankKeys)
    if (!log.ranks(key)) return as_stated(key);
  for (const char* key : {"max_num_seqs", "max_num_batched_tokens", "block_size"})
    if (log.text(key) && log.small(key).value_or(0) < 1) return as_stated(key);
  for (const char* key : {"num_gpu_blocks_override", "kv_cache_memory_bytes"})
    if (log.text(key) && !log.count(key)) return as_stated(key);
  if (log.text("gpu_memory_utilization") && !log.share("gpu_memory_utilization"))
    return as_stated("gpu_memory_utilization");
  const auto& share = run.gpu_memory_utilization;
  if (share && !(share->value > 0 && share->value <= 1))
    return fmt::format("gpu_memory_utilization is {} in the log", share->text.substr(0, 40));
  return std::nullopt;
}

/// Of settings that can be read.
plan::Settings planned_settings(const Settings& log, const EngineStart& run) {
  plan::Settings settings;
  if (run.max_model_len) settings.max_model_len = run.max_model_len->value;
  settings.kv_cache_dtype = log.text("kv_cache_dtype").value_or("auto");
  settings.tensor_parallel = log.ranks("tensor_parallel_size");
  settings.pipeline_parallel = log.ranks("pipeline_parallel_size");
  settings.data_parallel = log.ranks("data_parallel_size");
  settings.decode_context_parallel = log.ranks("decode_context_parallel_size");
  settings.is_expert_parallel = log.flag("enable_expert_parallel").value_or(false);
  settings.is_eager = log.flag("enforce_eager").value_or(false);
  settings.prefix_caching = log.flag("enable_prefix_caching");
  settings.max_num_seqs = log.small("max_num_seqs");
  settings.max_num_batched_tokens = log.small("max_num_batched_tokens");
  if (run.max_num_batched_tokens && run.max_num_batched_tokens->value <= 1'000'000'000)
    settings.max_num_batched_tokens = static_cast<int>(run.max_num_batched_tokens->value);
  settings.block_size = log.small("block_size");
  settings.num_blocks = log.count("num_gpu_blocks_override");
  if (const auto bytes = log.count("kv_cache_memory_bytes")) settings.kv_cache_bytes = Bytes(*bytes);
  settings.memory_utilization = log.share("gpu_memory_utilization");
  if (run.gpu_memory_utilization) settings.memory_utilization = run.gpu_memory_utilization->value;
  return settings;
}

}  // namespace

bool read_settings(std::string_view line, std::map<std::string, std::string>& settings) {
  const std::size_t config = line.find("with config: model="), flags = line.find("non-default args: {");
  const bool is_dict = flags != std::string_view::npos;
  if (!is_dict && config == std::string_view::npos) return false;
  const std::string_view text = line.substr(is_dict ? flags : config);
  for (const std::string_view key : kKeys) read_value(text, key, is_dict, settings);
  return true;
}

std::optional<int> stated_ranks(const EngineStart& run, const char* key,
                                const std::optional<Printed>& printed) {
  if (run.settings.contains(key) || !printed) return Settings(run.settings).ranks(key);
  const bool can_be = printed->value >= 1 && printed->value <= kMostRanks;
  return can_be ? std::optional(static_cast<int>(printed->value)) : std::nullopt;
}

Result<Json> plan_from_log(const EngineStart& run) {
  const Settings settings(run.settings);
  const char* const fix = "give --plan";
  if (run.engine != "vllm" || !run.version)
    return fail(missing("only starts of a known release of vLLM are planned from their log", fix));
  const auto model_name = settings.text("model");
  if (!model_name) return fail(missing("the log does not name its model", fix));
  const auto* entry = facts::find_catalogue(*model_name);
  if (!entry) return fail(missing("the catalogue has no " + model_name->substr(0, 100), fix));
  if (settings.text("speculative_config"))
    return fail(missing("what the log's drafts take is not read", fix));
  auto engine = facts::parse_engine("vllm@" + *run.version);
  if (!engine) return fail(missing("vLLM " + *run.version + " is no release", fix));
  PLIMSOLL_TRY(plan::Model model, plan::catalogue_model(*entry));
  if (auto other = other_weights(settings, model)) return fail(missing(*other, fix));
  if (const auto fault = unreadable(settings, run)) return fail(missing(*fault, fix));

  plan::Request request;
  request.engine = std::move(*engine);
  request.models.push_back(std::move(model));
  request.settings = planned_settings(settings, run);
  if (run.gpu_total_bytes) {
    plan::Target target;
    target.memory = Bytes(run.gpu_total_bytes->value);
    target.count = std::int64_t{*request.settings.tensor_parallel} * *request.settings.pipeline_parallel *
                   *request.settings.data_parallel;
    if (run.gpu_free_bytes) target.available = Bytes(run.gpu_free_bytes->value);
    request.targets.push_back(std::move(target));
  } else if (run.kv_cache_bytes && run.kv_cache_bytes->value > 0 && !request.settings.kv_cache_bytes) {
    request.settings.kv_cache_bytes = Bytes(run.kv_cache_bytes->value);
  } else if (!request.settings.kv_cache_bytes) {
    return fail(missing("the log tells neither the GPU's memory nor the cache's", fix));
  }
  PLIMSOLL_TRY(const plan::Plan plan, plan::make_plan(request));
  return plan::to_json(plan);
}

}  // namespace plimsoll::verify
