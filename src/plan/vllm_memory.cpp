// SPDX-License-Identifier: Apache-2.0
#include "plan/vllm_memory.h"

#include <fmt/format.h>

#include <algorithm>

namespace plimsoll::plan {
namespace {

constexpr const char* kRuntimeSource = "docs/formulas/vllm_budget.md";
constexpr std::int64_t kQuantizedBarPercent = 3;  // engines lay quantized weights out anew
constexpr Bytes kEncoderBand(3 * kGiB);           // of an encoder's profile run, which is not modelled

DType activation_dtype(const model::ModelSpec& spec) {
  return spec.declared_dtype.value_or(DType::kBF16) == DType::kF16 ? DType::kF16 : DType::kBF16;
}

bool is_hopper(const Question& question) {
  return question.target && question.target->gpu && question.target->gpu->compute_capability == "9.0";
}

// Other engines hold them whole, as far as was measured.
memory::EncoderSplit encoder_split_of(const Question& question) {
  const auto* encoder = facts::find_vllm_encoder(question.model->spec.architecture);
  if (!encoder || (question.settings.has_whole_encoders && encoder->takes_data_mode))
    return memory::EncoderSplit::kNone;
  return encoder->splits_projector ? memory::EncoderSplit::kBlocksAndProjector
                                   : memory::EncoderSplit::kBlocks;
}

Result<memory::VllmWeights> stage_weights(const Question& question,
                                          const memory::VllmWeightSettings& settings) {
  const model::ModelSpec& spec = question.model->spec;
  const bool is_known = question.memo && settings.stage_of_layer.empty();
  return is_known ? question.memo->stage(spec, settings) : memory::vllm_weights(spec, settings);
}

std::string free_memory_refusal(const memory::VllmRules& rules, Bytes total, Bytes free, double share,
                                Bytes asked) {
  return fmt::format(
      "Free memory on device {}({}/{} GiB) on startup is less than desired GPU memory utilization ({}, {} "
      "GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
      rules.names_device ? "cuda:0 " : "", memory::vllm_gib(free), memory::vllm_gib(total), share,
      memory::vllm_gib(asked));
}

// What the figure of the weights does not know of an encoder.
void add_encoder_finding(const Question& question, int tensor_parallel, Row& row) {
  const model::ModelSpec& spec = question.model->spec;
  if (spec.encoders.empty()) return;
  const auto add = [&](std::string message, const char* fix) {
    row.findings.push_back({"ENCODER_SHARE", FindingLevel::kInfo, FindingKind::kCheckFailed,
                            "config.json: /" + spec.encoders.front(), std::move(message), fix});
  };
  if (row.weights_basis == "assumed" && question.settings.is_language_only)
    add("the encoder's part of these weights is not known: they still hold it",
        "take the weights from the engine's own load line");
  else if (row.weights_basis == "formula" && !question.settings.is_language_only && tensor_parallel > 1 &&
           question.rules.engine == facts::EngineName::kVllm && !facts::find_vllm_encoder(spec.architecture))
    add("the encoder is counted whole on every rank: vLLM's class " + spec.architecture +
            " does not split it, or was not looked at",
        "hold the first start against this plan: `plimsoll verify`");
}

}  // namespace

Status add_rank_weights(const Question& question, const VllmRanks& ranks, Row& row) {
  const model::ModelSpec& spec = question.model->spec;
  PLIMSOLL_TRY(row.total_weights, weights_of(question, row));
  memory::VllmWeightSettings settings;
  settings.dtype = activation_dtype(spec);
  settings.tensor_parallel = ranks.tensor;
  settings.data_parallel = ranks.data;
  settings.num_stages = ranks.pipeline;
  settings.stage_of_layer = ranks.stage_of_layer;
  settings.is_expert_parallel = question.settings.is_expert_parallel;
  settings.has_prediction_layers = question.settings.num_speculative_tokens > 0;
  if (question.model->quantization) settings.quantization = &*question.model->quantization;
  settings.linear_format = question.settings.quantization;
  if (is_hopper(question)) settings.expert_width_step = 64;
  settings.has_encoders = !question.settings.is_language_only;
  if (question.rules.engine == facts::EngineName::kVllm) {
    settings.encoder_split = encoder_split_of(question);
    settings.keeps_tables_in_host = !question.settings.has_tables_on_gpu &&
                                    memory::vllm_rules(question.engine_version).keeps_tables_in_host;
  }
  const bool has_formula = spec.quantization.empty() || question.model->quantization;
  bool is_exact = true;
  Bytes in_host;
  PLIMSOLL_TRY(const Bytes buffers, memory::vllm_buffers(spec, settings.dtype));
  for (settings.stage = 0; has_formula && settings.stage < ranks.pipeline; ++settings.stage) {
    const auto stage = stage_weights(question, settings);
    // Heads or widths that cannot be split so are no missing formula.
    if (!stage && stage.error().code == ErrorCode::kNo) return fail(stage.error());
    if (!stage || !stage->unknown.empty()) {
      row.stage_weights.clear();
      break;
    }
    is_exact &= stage->is_exact;
    in_host += stage->in_host;
    row.stage_weights.push_back(stage->bytes + buffers);
  }
  const std::int64_t gpus = std::int64_t{ranks.tensor} * ranks.pipeline;
  if (!row.stage_weights.empty() && in_host > Bytes(0))
    row.findings.push_back(
        {"TABLE_IN_HOST", FindingLevel::kInfo, FindingKind::kCheckFailed, "config.json",
         fmt::format("n-gram tables of {} bytes a rank lie in the host's memory, not on the GPU",
                     with_commas(in_host.value)),
         R"(--engram-config '{"cpu_offload":false}' puts them on the GPU)"});
  if (!row.stage_weights.empty()) {
    row.weights = *std::max_element(row.stage_weights.begin(), row.stage_weights.end());
    row.weights_basis = "formula";
    row.weights_bar = is_exact ? Bytes(0) : Bytes(row.weights.value / 100 * kQuantizedBarPercent * gpus);
    add_encoder_finding(question, ranks.tensor, row);
    return {};
  }
  row.weights = Bytes(row.total_weights.value / gpus);
  row.weights_basis = "assumed";
  row.weights_bar = Bytes(row.total_weights.value / 10);
  add_encoder_finding(question, ranks.tensor, row);
  return {};
}

const Result<memory::VllmWeights>& WeightsMemo::stage(const model::ModelSpec& spec,
                                                      const memory::VllmWeightSettings& settings) {
  const Key key{settings.dtype,
                settings.tensor_parallel,
                settings.data_parallel,
                settings.is_expert_parallel,
                settings.has_prediction_layers,
                settings.stage,
                settings.num_stages,
                settings.expert_width_step,
                settings.linear_format,
                settings.has_encoders,
                settings.encoder_split,
                settings.keeps_tables_in_host};
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  return known_.emplace(key, memory::vllm_weights(spec, settings)).first->second;
}

memory::VllmBatch vllm_batch_of(const Question& question) {
  memory::VllmDevice device;
  if (question.target) {
    device.memory = question.target->memory;
    if (question.target->name) device.name = *question.target->name;
  }
  auto batch = memory::vllm_batch(memory::vllm_rules(question.engine_version), device, length_of(question),
                                  question.settings.max_num_batched_tokens, question.settings.max_num_seqs);
  // What a default would be hangs on the GPU: without one, that of the large ones.
  constexpr std::int64_t kTokensOfLarge = 8192;
  if (!question.target && question.settings.kv_cache_bytes && !question.settings.max_num_batched_tokens)
    batch.tokens = kTokensOfLarge;
  return batch;
}

Result<VllmMemory> vllm_memory(const Question& question, const memory::VllmRules& rules,
                               const VllmRanks& ranks, Row& row) {
  const Settings& settings = question.settings;
  const model::ModelSpec& spec = question.model->spec;
  PLIMSOLL_TRY_VOID(add_rank_weights(question, ranks, row));
  VllmMemory memory;
  memory.batch = vllm_batch_of(question);
  if (settings.kv_cache_bytes) {
    memory.kv_cache = *settings.kv_cache_bytes;
    return memory;
  }
  if (!question.target || question.target->is_here)
    return fail(ErrorCode::kUsage, "planning for vLLM needs a GPU, or the cache's size",
                "--gpu, --kv-cache-memory-bytes", "for example --gpu H100, or --gpu 24GB");

  memory::VllmRuntimeSettings runtime;
  runtime.batch = memory.batch;
  runtime.tensor_parallel = ranks.tensor;
  runtime.pipeline_parallel = ranks.pipeline;
  runtime.data_parallel = ranks.data;
  runtime.dtype = activation_dtype(spec);
  runtime.is_eager = settings.is_eager;
  runtime.is_expert_parallel = settings.is_expert_parallel;
  runtime.has_drafts = settings.num_speculative_tokens > 0;
  memory.runtime = memory::vllm_runtime(spec, runtime, rules, facts::vllm_runtime(question.engine_version));
  memory.has_unknown_encoder = !spec.encoders.empty() && !settings.is_language_only;
  if (memory.has_unknown_encoder) memory.runtime.band += kEncoderBand;

  memory.utilization = settings.memory_utilization.value_or(rules.memory_utilization);
  const double share = memory.utilization;
  const Target& target = *question.target;
  memory.budget = memory::vllm_budget(rules, target.memory, share);
  if (target.available && rules.counts_others)
    memory.taken_by_others = std::max(Bytes(0), target.memory - *target.available);
  if (target.available && rules.checks_free_memory && *target.available < *memory.budget)
    memory.refusal = free_memory_refusal(rules, target.memory, *target.available, share, *memory.budget);
  memory.kv_cache = *memory.budget - row.weights - memory.runtime.total() - memory.taken_by_others;
  return memory;
}

namespace {

void add_parts(const VllmMemory& memory, Row& row) {
  const memory::VllmRuntime& runtime = memory.runtime;
  const bool is_given = !memory.budget;
  const bool is_forward = runtime.forward >= runtime.sampler;
  const char* given = "not asked: the cache's size is given";
  const auto add = [&](const char* part, Bytes bytes, const char* why) {
    row.parts.push_back({part, bytes, is_given ? given : bytes.value == 0 ? why : ""});
  };
  row.parts = {{"weights", row.weights, ""}, {"kv_cache", row.kv_cache, is_given ? "as the flag says" : ""}};
  add("activation", is_forward ? runtime.forward : Bytes(0),
      "less than the sampler takes, which runs after it");
  add("sampler", is_forward ? Bytes(0) : runtime.sampler,
      "less than a forward pass takes, which runs before it");
  add("attention_workspace", Bytes(0), "in non_torch, as recorded starts have it");
  add("moe_workspace", Bytes(0), "in activation: the widest layer counts");
  add("cuda_graph", runtime.graphs, "none, or outside of the budget in this release");
  add("non_torch", runtime.non_torch, "none");
  add("encoder", Bytes(0), memory.has_unknown_encoder ? "not modelled: see the band" : "no encoder runs");
  add("processor_cache", Bytes(0), "in the host's memory");
  add("draft", runtime.drafts, "no drafts");
  add("lora", Bytes(0), "no adapters");
  add("margin", Bytes(0), "the engine gives all that is left to the cache");
}

}  // namespace

void finish_vllm_row(const Question& question, const VllmMemory& memory, const VllmRanks& ranks, Row& row) {
  const std::int64_t gpus = std::int64_t{ranks.tensor} * ranks.pipeline;
  row.budget = memory.budget;
  if (question.target) {
    row.batch_tokens = memory.batch.tokens;
    row.batch_sequences = memory.batch.sequences;
  }
  row.limited_by = memory.budget ? "memory" : "flag";
  add_parts(memory, row);
  add_weights_basis(row, gpus);
  if (!memory.budget) return;
  row.memory_utilization = memory.utilization;
  row.error_bar = memory.runtime.band + Bytes(row.weights_bar.value / gpus);
  add_pool_basis(row, "calibrated", kRuntimeSource);
  for (const auto& [part, bytes] : {std::pair<const char*, Bytes>{"activation", memory.runtime.forward},
                                    {"sampler", memory.runtime.sampler},
                                    {"cuda_graph", memory.runtime.graphs},
                                    {"non_torch", memory.runtime.non_torch},
                                    {"draft", memory.runtime.drafts}})
    row.basis.push_back(
        basis_with_bar(part_field(row, part), "calibrated", bytes, memory.runtime.band, kRuntimeSource));
  if (memory.has_unknown_encoder)
    row.findings.push_back({"ENCODER_PROFILE", FindingLevel::kWarning, FindingKind::kCheckFailed,
                            "config.json",
                            "at the start the engine runs the model's encoder on its largest input; what "
                            "that takes is not modelled, and the band is wider for it",
                            "plan with --language-model-only where only text is served"});
  if (memory.refusal.empty()) return;
  const double most = memory::vllm_largest_utilization(memory::vllm_rules(question.engine_version),
                                                       question.target->memory, *question.target->available);
  row.findings.push_back(
      {"FREE_MEMORY", FindingLevel::kError, FindingKind::kCheckFailed, "--gpu-memory-utilization",
       fmt::format("{} bytes are free at the start and {} are asked for",
                   with_commas(question.target->available->value), with_commas(memory.budget->value)),
       most > 0 ? fmt::format("the highest share that starts is {:.2f}", most)
                : std::string("stop what else holds the GPU's memory")});
}

}  // namespace plimsoll::plan
