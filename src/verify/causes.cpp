// SPDX-License-Identifier: Apache-2.0
#include "verify/causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "memory/memory.h"

namespace plimsoll::verify {
namespace {

const Delta* find(const std::vector<Delta>& deltas, std::string_view part) {
  const auto at = std::find_if(deltas.begin(), deltas.end(), [&](const Delta& d) { return d.part == part; });
  return at == deltas.end() ? nullptr : &*at;
}

Cause setting_differs(double likelihood, std::int64_t bytes, std::string evidence, const std::string& flag) {
  return {"SETTING_DIFFERS", likelihood, bytes, std::move(evidence),
          fmt::format("give {} to both plan and engine", flag)};
}

/// What the log itself says of its settings, beside the plan's.
void add_settings(const Predicted& plan, const EngineStart& run, const std::vector<Delta>& deltas,
                  std::vector<Cause>& causes) {
  struct Setting {
    const char *name, *flag;
    std::optional<std::int64_t> planned;
    const std::optional<Printed>& logged;
  };
  const Delta* cache = find(deltas, "kv_cache");
  const std::int64_t bytes = cache && !cache->within_error_bar ? std::abs(*cache->difference_bytes) : 0;
  for (const Setting& setting : {
           Setting{"max_model_len", "--max-model-len", plan.max_model_len, run.max_model_len},
           Setting{"block size", "--block-size", plan.block_size, run.block_size},
           Setting{"KV bytes per token", "--kv-cache-dtype or --dtype", plan.kv_bytes_per_token,
                   run.kv_bytes_per_token},
       }) {
    if (!setting.planned || !setting.logged || *setting.planned == setting.logged->value) continue;
    causes.push_back(
        setting_differs(0.8, bytes,
                        fmt::format("{}: planned {}, the engine used {}", setting.name,
                                    with_commas(*setting.planned), with_commas(setting.logged->value)),
                        setting.flag));
  }
}

bool is_whole(double value) {
  return value >= 1 && std::abs(value - std::round(value)) < 1e-6;
}

/// A pool of another size although no memory decided it: another flag did.
void add_pool_setting(const Predicted& plan, const EngineStart& run, const std::vector<Delta>& deltas,
                      std::vector<Cause>& causes) {
  const Delta* cache = find(deltas, "kv_cache");
  if (!cache || cache->within_error_bar || !causes.empty()) return;
  const std::int64_t bytes = std::abs(*cache->difference_bytes);
  if (plan.limited_by == "flag") {
    causes.push_back(setting_differs(0.8, bytes,
                                     fmt::format("the plan's KV cache of {} bytes was set by a flag, and the "
                                                 "engine's has {}",
                                                 with_commas(static_cast<std::int64_t>(cache->plan)),
                                                 with_commas(static_cast<std::int64_t>(cache->log))),
                                     "--num-gpu-blocks-override or --kv-cache-memory-bytes"));
    return;
  }
  if (plan.limited_by != "max_num_seqs" || !plan.kv_bytes_per_request.value_or(0)) return;
  const double requests = cache->log / static_cast<double>(*plan.kv_bytes_per_request);
  if (!run.kv_cache_bytes || run.kv_cache_bytes->half_step > 0 || !is_whole(requests)) return;
  causes.push_back(
      setting_differs(0.7, bytes,
                      fmt::format("max_num_seqs: the plan's KV cache is that of {:.0f} sequences, the "
                                  "engine's that of {:.0f}",
                                  plan.max_concurrency.value_or(0), requests),
                      "--max-num-seqs"));
}

/// Less room than planned, with the same settings as far as the log tells.
void add_other_process(const std::vector<Delta>& deltas, std::vector<Cause>& causes) {
  const Delta* cache = find(deltas, "kv_cache");
  if (!cache || cache->within_error_bar || *cache->difference_bytes >= 0 || !causes.empty()) return;
  const Delta* weights = find(deltas, "weights");
  const bool weights_agree = !weights || weights->within_error_bar;
  const std::int64_t missing = -*cache->difference_bytes;
  causes.push_back(
      {"OTHER_PROCESS", weights_agree ? 0.7 : 0.3, missing,
       fmt::format("the KV cache has {} less than planned{}", as_gib(Bytes(missing)),
                   weights_agree ? ", while the weights are as planned" : ""),
       "look what else held memory when the engine started (nvidia-smi, top), stop it and start again, "
       "or plan with what was free"});
}

/// Every process takes so much before it starts, for its context.
constexpr std::int64_t kOwnContext = kGiB;

std::string gib(std::int64_t bytes) {
  return as_gib(Bytes(bytes));
}

/// What is missing of the planned cache; 0 when nothing is.
std::int64_t missing_of(const std::vector<Delta>& deltas) {
  const Delta* cache = find(deltas, "kv_cache");
  return cache && !cache->within_error_bar && *cache->difference_bytes < 0 ? -*cache->difference_bytes : 0;
}

/// Memory that was not free when the engine started, as it says itself.
void add_others(const EngineStart& run, const std::vector<Delta>& deltas, std::vector<Cause>& causes) {
  if (!run.gpu_total_bytes || !run.gpu_free_bytes) return;
  const std::int64_t others = run.gpu_total_bytes->value - run.gpu_free_bytes->value;
  const bool is_refused =
      run.failed && run.budget_bytes && run.gpu_free_bytes->value < run.budget_bytes->value;
  if (others <= kOwnContext || (missing_of(deltas) == 0 && !is_refused)) return;
  causes.push_back(
      {"OTHER_PROCESS", is_refused ? 0.95 : 0.7, others,
       fmt::format("{} of {} were free at the start: {} were taken by others", run.gpu_free_bytes->text,
                   run.gpu_total_bytes->text, gib(others)),
       is_refused ? fmt::format("stop them, or give --gpu-memory-utilization {:.2f}",
                                std::floor(static_cast<double>(run.gpu_free_bytes->value) /
                                           static_cast<double>(run.gpu_total_bytes->value) * 100) /
                                    100)
                  : std::string("look what holds the memory (nvidia-smi), stop it and start again, or plan "
                                "with --gpu-free-bytes")});
}

/// The release took another share of the memory by default than the planned one does.
void add_version(const Predicted& plan, const EngineStart& run, std::vector<Cause>& causes) {
  if (!run.version || plan.version.empty() || !run.gpu_memory_utilization || !plan.budget ||
      !plan.gpu_memory || *plan.gpu_memory < 1)
    return;
  const memory::VllmRules& planned = memory::vllm_rules(plan.version);
  const memory::VllmRules& logged = memory::vllm_rules(*run.version);
  const double share = static_cast<double>(*plan.budget) / static_cast<double>(*plan.gpu_memory);
  const double apart = planned.memory_utilization - logged.memory_utilization;
  const bool are_defaults = std::abs(share - planned.memory_utilization) < 1e-6 &&
                            std::abs(run.gpu_memory_utilization->value - logged.memory_utilization) < 1e-9;
  if (std::abs(apart) < 1e-9 || !are_defaults) return;
  const auto bytes = static_cast<std::int64_t>(std::abs(apart) * static_cast<double>(*plan.gpu_memory));
  causes.push_back(
      {"VERSION_DEFAULT", 0.9, bytes,
       fmt::format("--gpu-memory-utilization is {} by default in {}, and {} in {}: {} x {} = {}",
                   logged.memory_utilization, *run.version, planned.memory_utilization, plan.version,
                   fmt::format("{:.2f}", std::abs(apart)), gib(*plan.gpu_memory), gib(bytes)),
       fmt::format("plan with --engine vllm@{}, or give --gpu-memory-utilization to both", *run.version)});
}

/// Graphs are inside the budget in one of the two releases only, or were estimated otherwise.
void add_graphs(const Predicted& plan, const EngineStart& run, std::vector<Cause>& causes) {
  const char* fix =
      "give --kv-cache-memory-bytes, fewer graph sizes or --enforce-eager; "
      "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0 takes them out of the budget";
  if (!plan.graphs) return;
  const auto& estimate = run.cuda_graph_estimate_bytes;
  const std::int64_t logged = estimate ? estimate->value : 0;
  if (run.version && !plan.version.empty()) {
    const bool in_plan = memory::vllm_rules(plan.version).budgets_graphs;
    const bool in_log = memory::vllm_rules(*run.version).budgets_graphs;
    if (in_plan != in_log) {
      const std::int64_t bytes = in_log ? logged : *plan.graphs;
      causes.push_back({"GRAPH_ACCOUNTING", 0.8, bytes,
                        fmt::format("CUDA graphs are inside the budget in {} and not in {}: {}",
                                    in_log ? *run.version : plan.version,
                                    in_log ? plan.version : *run.version, gib(bytes)),
                        fix});
      return;
    }
    if (!in_log) return;
  }
  const std::int64_t apart = logged - *plan.graphs;
  if (estimate && std::abs(apart) > plan.runtime_bar + estimate->half_step)
    causes.push_back({"GRAPH_ACCOUNTING", 0.8, std::abs(apart),
                      fmt::format("CUDA graphs were estimated at {}{}, planned {}: {} apart", estimate->text,
                                  run.cuda_graph_bytes ? " and took " + run.cuda_graph_bytes->text : "",
                                  gib(*plan.graphs), gib(std::abs(apart))),
                      fix});
}

/// Layers that fill groups up hold nothing, and their bytes are missing in the tokens.
void add_padding(const Predicted& plan, const EngineStart& run, const std::vector<Delta>& deltas,
                 std::vector<Cause>& causes) {
  const Delta* tokens = find(deltas, "kv_tokens");
  const Delta* cache = find(deltas, "kv_cache");
  if (!run.padding_layers || !tokens || tokens->within_error_bar || tokens->log >= tokens->plan) return;
  if (cache && !cache->within_error_bar) return;
  causes.push_back(
      {"HYBRID_PADDING", 0.8,
       tokens->difference_bytes
           ? std::abs(*tokens->difference_bytes)
           : bounded_product(1 - tokens->log / tokens->plan, static_cast<double>(plan.kv_cache.value_or(0))),
       fmt::format("the engine filled its groups up with {} layers: {:.0f} of {:.0f} planned tokens",
                   run.padding_layers->value, tokens->log, tokens->plan),
       "compare bytes and requests; from 0.21 on tokens are requests x their length"});
}

/// A sampler that sorts no logits takes less than half.
void add_sampler(const Predicted& plan, const EngineStart& run, std::vector<Cause>& causes) {
  if (!plan.sampler || *plan.sampler == 0 || !run.activation_bytes || *plan.sampler != plan.activation)
    return;
  const std::int64_t apart = *plan.sampler - run.activation_bytes->value;
  constexpr double kMostOfIt = 0.6;  // 3.9 copies in place of 9.7 are 0.4
  if (static_cast<double>(run.activation_bytes->value) > kMostOfIt * static_cast<double>(*plan.sampler))
    return;
  causes.push_back({"SAMPLER_BACKEND", 0.7, apart,
                    fmt::format("the sampler was planned at {}, and the peak was {}: {} less",
                                gib(*plan.sampler), run.activation_bytes->text, gib(apart)),
                    "FlashInfer's sampler sorts no logits; without it --max-num-seqs decides what is taken"});
}

/// " (Worker_TP1 pid=3)", where the log names the rank with the smallest cache.
std::string named_rank(const EngineStart& run) {
  for (const auto& [tag, figures] : run.ranks)
    if (figures.kv_cache_bytes && figures.kv_cache_bytes->value == run.kv_cache_bytes->value)
      return " (" + tag + ")";
  return {};
}

/// The smallest rank decides for all.
void add_spread(const EngineStart& run, std::vector<Cause>& causes) {
  if (!run.kv_cache_bytes || !run.most_kv_cache) return;
  const std::int64_t spread = run.most_kv_cache->value - run.kv_cache_bytes->value;
  if (spread <= run.most_kv_cache->half_step + run.kv_cache_bytes->half_step) return;
  causes.push_back(
      {"RANK_SPREAD", 0.6, spread,
       fmt::format("ranks had from {}{} to {} for their cache, and the smallest decides: {}",
                   run.kv_cache_bytes->text, named_rank(run), run.most_kv_cache->text, gib(spread)),
       "look what else runs on that rank's GPU; the first rank also samples"});
}

/// Of parts that agree: where another does not, it is no answer.
void add_rounding(const EngineStart& run, const std::vector<Delta>& deltas, std::vector<Cause>& causes) {
  const bool agree =
      std::all_of(deltas.begin(), deltas.end(), [](const Delta& delta) { return delta.within_error_bar; });
  for (const auto& [part, printed] :
       {std::pair<const char*, const std::optional<Printed>&>{"weights", run.weights_bytes},
        {"kv_cache", run.kv_cache_bytes}}) {
    const Delta* delta = find(deltas, part);
    if (!delta || !printed || *delta->difference_bytes == 0) continue;
    if (std::abs(*delta->difference_bytes) > printed->half_step) continue;
    causes.push_back({"LOG_ROUNDING", agree ? 0.95 : 0.1, std::abs(*delta->difference_bytes),
                      fmt::format("{} was printed as {}, which is within {} bytes of the plan", part,
                                  printed->text, with_commas(printed->half_step)),
                      "nothing: the log shows fewer digits than there are"});
  }
}

}  // namespace

std::int64_t bounded_product(double a, double b) {
  constexpr double kLargest = 4e18;
  return static_cast<std::int64_t>(std::clamp(a * b, -kLargest, kLargest));
}

std::vector<Cause> find_causes(const Predicted& plan, const EngineStart& run,
                               const std::vector<Delta>& deltas) {
  std::vector<Cause> causes;
  add_settings(plan, run, deltas, causes);
  add_version(plan, run, causes);
  add_graphs(plan, run, causes);
  add_padding(plan, run, deltas, causes);
  add_sampler(plan, run, causes);
  add_spread(run, causes);
  add_others(run, deltas, causes);
  add_pool_setting(plan, run, deltas, causes);
  add_other_process(deltas, causes);
  add_rounding(run, deltas, causes);
  std::stable_sort(causes.begin(), causes.end(),
                   [](const Cause& a, const Cause& b) { return a.likelihood > b.likelihood; });
  return causes;
}

}  // namespace plimsoll::verify
