// SPDX-License-Identifier: Apache-2.0
// A row for this program's own engine.
#include <fmt/format.h>

#include "base/division.h"
#include "memory/memory.h"
#include "plan/rows.h"

namespace plimsoll::plan {
namespace {

using memory::EmbeddedAnswer;
using memory::EmbeddedCompute;
using memory::PoolSource;

Result<EmbeddedCompute> compute_of(const Settings& settings) {
  const auto dtype = dtype_from_config(settings.dtype);
  if (settings.dtype != "auto" && dtype != DType::kBF16 && dtype != DType::kF16 && dtype != DType::kF32)
    return fail(ErrorCode::kUsage, "\"" + settings.dtype + "\" is no dtype to compute in", "--dtype",
                "auto or float32");
  return dtype == DType::kF32 ? EmbeddedCompute::kFloat32 : EmbeddedCompute::kAuto;
}

Result<memory::EmbeddedOptions> options_of(const Question& question) {
  const Settings& settings = question.settings;
  memory::EmbeddedOptions options;
  PLIMSOLL_TRY(options.compute, compute_of(settings));
  PLIMSOLL_TRY(options.cache_format, memory::embedded_cache_format(settings.kv_cache_dtype));
  options.threads = settings.threads.value_or(question.machine_threads);
  options.block_size = settings.block_size.value_or(question.rules.block_size);
  options.max_model_len = settings.max_model_len;
  options.longest_model_len = settings.longest_model_len;
  options.kv_cache_bytes = settings.kv_cache_bytes;
  options.num_blocks = settings.num_blocks;
  options.max_num_seqs = settings.max_num_seqs.value_or(options.max_num_seqs);
  options.max_num_batched_tokens = settings.max_num_batched_tokens.value_or(options.max_num_batched_tokens);
  options.memory_utilization = settings.memory_utilization;
  return options;
}

/// As stored, or as `--quantization` makes them.
Result<Bytes> embedded_weights(const Question& question, Row& row) {
  const auto& format = question.settings.quantization;
  if (!format) return weights_of(question, row);
  row.weights_dtype = std::string(memory::to_string(*format));
  const auto& by_headers = question.model->loaded_weights;
  if (const auto found = by_headers.find(*format); found != by_headers.end()) return found->second;
  row.weights_basis = "formula";
  return memory::loaded_weights_bytes(nullptr, question.model->spec, *format);
}

std::string limit_of(PoolSource source) {
  switch (source) {
    case PoolSource::kDemand:
      return "max_num_seqs";
    case PoolSource::kDefaultLimit:
      return "default_limit";
    case PoolSource::kFlag:
      return "flag";
    case PoolSource::kAvailableMemory:
      break;
  }
  return "memory";
}

std::string why_of_pool(const EmbeddedAnswer& answer, const memory::EngineRules& rules) {
  switch (answer.pool_source) {
    case PoolSource::kDemand:
      return "all max_num_seqs sequences at full length need no more";
    case PoolSource::kDefaultLimit:
      return answer.plan.kv_cache <= rules.default_pool_limit
                 ? fmt::format("default limit of {} GiB; --kv-cache-memory-bytes for more",
                               rules.default_pool_limit.value / kGiB)
                 : "default limit of one request at full length; --kv-cache-memory-bytes for more";
    case PoolSource::kFlag:
      return "as the flag says";
    case PoolSource::kAvailableMemory:
      break;
  }
  return "what is left of the memory";
}

std::vector<Part> parts_of(const EmbeddedAnswer& answer, const memory::EngineRules& rules) {
  const memory::EmbeddedPlan& plan = answer.plan;
  const memory::Workspace& space = answer.workspace;
  std::vector<Part> parts{
      {"weights", plan.weights, ""},
      {"kv_cache", plan.kv_cache, why_of_pool(answer, rules)},
      {"activation", space.activation(), "rows of max_num_batched_tokens tokens"},
      {"sampler", space.logits, "logits of max_num_seqs sequences"},
      {"attention_workspace", space.attention_scratch + space.attention_parts + space.thread_rows,
       "a tile of attention and weight rows per thread, parts of long texts"},
      {"non_torch", plan.process_base, "program, tokenizer and heap"},
      {"moe_workspace", Bytes(0), "counted with the activation"},
      {"cuda_graph", Bytes(0), "runs on the CPU"},
      {"encoder", Bytes(0), "text only"},
      {"processor_cache", Bytes(0), "text only"},
      {"draft", Bytes(0), "no draft model"},
      {"lora", Bytes(0), "no adapters"},
  };
  const Bytes margin = answer.budget - plan.peak;
  parts.push_back({"margin", std::max(Bytes(0), margin),
                   margin > Bytes(0) ? "left of the budget" : "the budget is used up or not known"});
  return parts;
}

std::vector<std::string> command_of(const Question& question, const EmbeddedAnswer& answer,
                                    const memory::EmbeddedOptions& options) {
  const Settings& settings = question.settings;
  std::vector<std::string> command{"plimsoll", "serve", question.model->source, "--max-model-len",
                                   std::to_string(answer.plan.max_model_len.value)};
  const auto add = [&](const char* flag, const std::string& value) {
    command.emplace_back(flag);
    command.push_back(value);
  };
  if (options.compute == EmbeddedCompute::kFloat32) add("--dtype", "float32");
  if (options.cache_format) add("--kv-cache-dtype", std::string(to_string(*options.cache_format)));
  if (settings.quantization) add("--quantization", std::string(memory::to_string(*settings.quantization)));
  if (settings.num_blocks)
    add("--num-gpu-blocks-override", std::to_string(*settings.num_blocks));
  else if (settings.kv_cache_bytes)
    add("--kv-cache-memory-bytes", std::to_string(settings.kv_cache_bytes->value));
  if (settings.block_size) add("--block-size", std::to_string(*settings.block_size));
  if (settings.max_num_seqs) add("--max-num-seqs", std::to_string(*settings.max_num_seqs));
  if (settings.max_num_batched_tokens)
    add("--max-num-batched-tokens", std::to_string(*settings.max_num_batched_tokens));
  if (settings.memory_utilization)
    add("--gpu-memory-utilization", fmt::format("{}", *settings.memory_utilization));
  if (settings.threads) add("--threads", std::to_string(*settings.threads));
  return command;
}

void add_basis(const Question& question, const EmbeddedAnswer& answer, Row& row) {
  const char* const page = "docs/formulas/embedded_engine.md";
  add_weights_basis(row, 1);
  if (row.budget && question.target && question.target->is_here)
    row.basis.push_back(
        {"budget_bytes_per_gpu", "measured", {}, {}, "MemAvailable or the control group's limit, now"});
  // All of the process base may be needed again, or none.
  const Bytes base = answer.plan.process_base;
  const Bytes bar = base + row.weights_bar;
  row.basis.push_back(basis_with_bar(part_field(row, "non_torch"), "assumed", base, base, page));
  if (row.budget)
    row.basis.push_back(
        basis_with_bar(part_field(row, "margin"), "assumed", row.parts.back().bytes, bar, page));
  if (answer.pool_source != PoolSource::kFlag)
    row.basis.push_back({"estimated_max_model_len", "assumed", {}, {}, page});
  if (answer.pool_source != PoolSource::kAvailableMemory) return;
  row.error_bar = bar;
  add_pool_basis(row, "assumed", page);
}

/// The pool that a flag could ask for within the budget, when only the default limit keeps it smaller.
std::optional<Bytes> larger_pool(const Question& question, const EmbeddedAnswer& answer) {
  if (answer.pool_source != PoolSource::kDefaultLimit || !answer.fits) return std::nullopt;
  const int sequences = question.settings.max_num_seqs.value_or(memory::EmbeddedOptions{}.max_num_seqs);
  const Bytes block = answer.plan.cache.bytes_per_block;
  return std::min(block * (answer.available_kv_cache / block), answer.required_kv_cache * sequences);
}

/// The command, or why there is none.
void add_command(const Question& question, const EmbeddedAnswer& answer,
                 const memory::EmbeddedOptions& options, Row& row) {
  if (!answer.fits) return;
  if (question.model->stored_weights) {
    row.command = command_of(question, answer, options);
    return;
  }
  row.findings.push_back({"NEEDS_WEIGHTS", FindingLevel::kInfo, FindingKind::kCheckFailed,
                          question.model->source,
                          "there are no weight files here, so nothing can be served yet",
                          "give the folder or the .gguf file with the weights as MODEL"});
}

// All blocks of states are one group here: they differ by nothing but what lies in them.
std::vector<memory::VllmGroup> groups_of(const memory::EmbeddedCache& cache, Tokens length, int chunk) {
  std::vector<memory::VllmGroup> groups;
  memory::VllmGroup states{.kind = memory::VllmKind::kState,
                           .num_layers = std::ranges::count_if(
                               cache.states, [](const auto& place) { return !place.recurrent.empty(); }),
                           .block_size = cache.block_size,
                           .page = {}};
  if (states.num_layers > 0) states.page = Bytes(divided_up(cache.state_bytes.value, states.num_layers));
  for (std::size_t i = 0; i < cache.groups.size(); ++i) {
    const std::int64_t blocks = cache.blocks_for(i, length.value, chunk);
    if (std::holds_alternative<schedule::StateCache>(cache.groups[i])) {
      states.blocks_per_request += blocks;
      continue;
    }
    const auto in_group = [&](const auto& place) { return place.group == static_cast<int>(i); };
    memory::VllmGroup group;
    group.kind = cache.window_of(i) ? memory::VllmKind::kSlidingWindow : memory::VllmKind::kFull;
    group.num_layers = std::ranges::count_if(cache.places, in_group);
    group.block_size = cache.block_size;
    group.page = Bytes(cache.bytes_per_block.value / group.num_layers);
    group.blocks_per_request = blocks;
    groups.push_back(group);
  }
  if (states.num_layers > 0) groups.push_back(states);
  return groups;
}

}  // namespace

Result<Row> make_embedded_row(const Question& question) {
  const Model& model = *question.model;
  if (question.target && question.target->count > 1)
    return fail(ErrorCode::kUnsupported, "the embedded engine runs in the memory of one machine", "--gpu",
                "give one size, or plan for another engine");
  if (model.quantization) PLIMSOLL_TRY_VOID(memory::check_embedded_quantization(*model.quantization));
  PLIMSOLL_TRY(const memory::EmbeddedOptions options, options_of(question));
  Row row;
  PLIMSOLL_TRY(row.weights, embedded_weights(question, row));
  std::optional<Bytes> available;
  if (question.target) available = question.target->available.value_or(question.target->memory);
  PLIMSOLL_TRY(const EmbeddedAnswer answer,
               memory::size_embedded(model.spec, row.weights, options, available));

  const memory::EmbeddedPlan& plan = answer.plan;
  row.model = model.source;
  row.title = model.title;
  row.target = question.target;
  row.kv_cache_dtype = to_string(plan.cache.format);
  row.fits = answer.fits;
  row.total_weights = row.weights;
  if (available) row.budget = answer.budget;
  row.kv_cache = answer.fits ? plan.kv_cache : std::max(Bytes(0), answer.available_kv_cache);
  row.total_kv_cache = row.kv_cache;
  row.required_kv_cache = answer.required_kv_cache;
  row.kv_bytes_per_token = plan.cache.bytes_per_token;
  row.bytes_per_block = plan.cache.bytes_per_block;
  row.block_size = plan.cache.block_size;
  row.num_layers = static_cast<std::int64_t>(model.spec.layers.size());
  row.groups = groups_of(plan.cache, plan.max_model_len, options.max_num_batched_tokens);
  row.num_blocks = plan.num_blocks;
  row.kv_tokens = plan.kv_tokens;
  row.max_model_len = plan.max_model_len;
  row.max_concurrency = plan.max_concurrency;
  row.estimated_max_model_len = answer.longest;
  row.limited_by = limit_of(answer.pool_source);
  row.larger_pool = larger_pool(question, answer);
  row.peak = plan.peak;
  row.parts = parts_of(answer, question.rules);
  row.engine_message = answer.message;
  if (answer.fits) row.log_line = memory::capacity_line(plan);
  add_basis(question, answer, row);
  if (question.target && !question.target->is_here)
    row.findings.push_back(
        {"CPU_ENGINE", FindingLevel::kInfo, FindingKind::kCheckFailed, "--gpu",
         "the embedded engine runs on the CPU; the size given is taken as free main memory",
         "use --here for this machine"});
  if (!question.settings.max_model_len && model.default_length > 0 &&
      row.max_model_len.value > model.default_length)
    row.findings.push_back(
        {"CTX_EXTENDED", FindingLevel::kInfo, FindingKind::kCheckFailed, "--max-model-len",
         fmt::format("this engine goes on to the {} tokens that the declared scaling reaches; vLLM's default "
                     "is {}",
                     row.max_model_len.value, model.default_length),
         "give --max-model-len for another length"});
  add_command(question, answer, options, row);
  return row;
}

}  // namespace plimsoll::plan
