// SPDX-License-Identifier: Apache-2.0
// Rows by the simple accounting: `--accounting simple`, `--engine any`, and the document's own table.
#include <fmt/format.h>

#include <algorithm>

#include "base/division.h"
#include "memory/kv_dtype.h"
#include "memory/memory.h"
#include "plan/layout.h"
#include "plan/rows.h"

namespace plimsoll::plan {
namespace {

Bytes share_of(Bytes amount, std::int64_t parts) {
  return Bytes(divided_up(amount.value, parts));
}

std::string short_name(DType dtype) {
  return dtype == DType::kF8E4M3 ? "fp8" : std::string(name(dtype));
}

void add_parts(Bytes reserve, Row& row) {
  row.parts = {
      {"weights", row.weights, ""},
      {"kv_cache", row.kv_cache, ""},
      {"margin", reserve, "activations, graphs, buffers: an assumed reserve"},
  };
  for (const char* part : {"activation", "sampler", "attention_workspace", "moe_workspace", "cuda_graph",
                           "non_torch", "encoder", "processor_cache", "draft", "lora"})
    row.parts.push_back({part, Bytes(0), "within the reserve; the simple accounting does not tell it apart"});
}

void add_basis(Bytes reserve, std::int64_t gpus, Row& row) {
  const char* const page = "docs/formulas/simple_accounting.md";
  add_weights_basis(row, gpus);
  // All of the reserve may be needed again, or none.
  row.error_bar = reserve + Bytes(row.weights_bar.value / gpus);
  row.basis.push_back(basis_with_bar(part_field(row, "margin"), "assumed", reserve, reserve, page));
  row.basis.push_back({"estimated_max_model_len", "assumed", {}, {}, page});
  add_pool_basis(row, "assumed", page);
}

std::string refusal(const memory::SimpleInput& input, const memory::SimplePlan& plan, bool is_per_gpu) {
  const char* const each = is_per_gpu ? " per GPU" : "";
  return fmt::format(
      "needs {}{}, has {}{}: weights {}, reserve {}, KV cache of one request of {} tokens {}.{}",
      as_gb(input.weights + plan.reserve + plan.required_kv_cache), each, as_gb(plan.budget), each,
      as_gb(input.weights), as_gb(plan.reserve), with_commas(input.max_model_len),
      as_gb(plan.required_kv_cache),
      plan.longest_model_len.value > 0
          ? " The longest request that fits has " + with_commas(plan.longest_model_len.value) + " tokens."
          : "");
}

}  // namespace

Result<Row> make_simple_row(const Question& question) {
  const Model& model = *question.model;
  if (!question.target)
    return fail(ErrorCode::kUsage, "the simple accounting needs to know how much memory there is", "--gpu",
                "for example --gpu 24GB:1");
  if (!model.spec.has_all_weights && !model.stored_weights)
    return fail(ErrorCode::kUnsupported,
                "the model has an encoder whose parameters its config does not tell, so its weights cannot "
                "be counted",
                "config.json", "give the folder with the weight files");
  const Settings& settings = question.settings;
  if (settings.kv_cache_bytes || settings.num_blocks)
    return fail(
        ErrorCode::kUsage,
        "the formula alone divides the memory it is given; a pool of a given size belongs to an engine",
        "--kv-cache-memory-bytes, --num-gpu-blocks-override", "leave it out, or plan with --engine plimsoll");
  const Target& target = *question.target;
  const std::int64_t gpus = target.count;
  PLIMSOLL_TRY(const DType dtype, memory::kv_dtype(question.settings.kv_cache_dtype, model.spec));
  if (question.is_split)
    if (auto fault = layout_fault(model.spec, gpus))
      return impossible_row(question, short_name(dtype), *fault);

  // Split: the figures are those of one GPU. Not split: of all memory as one sum, as the document counts.
  const std::int64_t ranks = question.is_split ? gpus : 1;
  Row row;
  memory::SimpleInput input;
  PLIMSOLL_TRY(row.total_weights, weights_of(question, row));
  PLIMSOLL_TRY(input.kv_bytes_per_token,
               memory::kv_bytes_per_token(model.spec, dtype, static_cast<int>(ranks)));
  input.weights = share_of(row.total_weights, ranks);
  input.num_gpus = gpus / ranks;
  input.gpu_memory = target.available.value_or(target.memory);
  input.max_model_len = length_of(question);
  if (input.max_model_len < 1 && !settings.max_model_len && input.kv_bytes_per_token.value > 0)
    return fail(ErrorCode::kMalformed, "planning: the config states no length in tokens that can be meant",
                "config.json", "give --max-model-len");
  input.memory_utilization = question.settings.memory_utilization.value_or(question.rules.memory_utilization);
  input.reserve_per_gpu = question.rules.reserve_per_gpu;
  PLIMSOLL_TRY(memory::SimplePlan plan, memory::plan_simple(input));
  if (question.settings.longest_model_len && plan.longest_model_len.value > 0) {
    input.max_model_len = std::min(input.max_model_len, plan.longest_model_len.value);
    PLIMSOLL_TRY(plan, memory::plan_simple(input));
  }
  const Bytes pool = std::max(Bytes(0), plan.kv_cache);
  const auto total_pool = checked_product(pool.value, ranks);
  if (!total_pool)
    return fail(ErrorCode::kUsage, "the sizes asked for do not fit 63 bits", "--gpu", "ask for less");

  if (settings.block_size || settings.max_num_seqs || settings.max_num_batched_tokens || settings.threads)
    row.findings.push_back({"SETTING_NOT_USED", FindingLevel::kWarning, FindingKind::kCheckFailed,
                            "--block-size, --max-num-seqs, --max-num-batched-tokens, --threads",
                            "the formula alone knows no blocks, sequences, steps or threads",
                            "plan for an engine"});
  row.model = model.source;
  row.title = model.title;
  row.kv_cache_dtype = short_name(dtype);
  row.target = target;
  row.fits = plan.fits;
  row.weights = share_of(input.weights, input.num_gpus);
  row.budget = Bytes(plan.budget.value / input.num_gpus);
  row.total_kv_cache = Bytes(*total_pool);
  row.kv_cache = Bytes(pool.value / input.num_gpus);
  row.limited_by = "memory";
  row.required_kv_cache = share_of(plan.required_kv_cache, input.num_gpus);
  row.kv_bytes_per_token = share_of(input.kv_bytes_per_token, input.num_gpus);
  row.num_layers = static_cast<std::int64_t>(model.spec.layers.size());
  // The document rounds to the nearest; an engine holds whole tokens only.
  row.kv_tokens = question.is_split ? plan.longest_model_len : plan.kv_tokens;
  row.max_model_len = Tokens(input.max_model_len);
  row.max_concurrency = plan.max_concurrency;
  if (plan.longest_model_len.value > 0) row.estimated_max_model_len = plan.longest_model_len;
  if (!plan.fits) row.engine_message = refusal(input, plan, question.is_split && !target.is_here);
  add_parts(question.rules.reserve_per_gpu, row);
  add_basis(question.rules.reserve_per_gpu, gpus, row);
  if (question.is_split)
    if (auto copies = kv_replication(model.spec, gpus)) row.findings.push_back(std::move(*copies));
  return row;
}

Result<ModelFigures> figures_of(const Model& model) {
  ModelFigures figures;
  figures.title = model.title;
  figures.parameters = model::count_parameters(model.spec).value_or(0);
  PLIMSOLL_TRY(figures.kv_bytes_per_token, memory::kv_bytes_per_token(model.spec, DType::kBF16));
  figures.kv_bytes_per_token_without_gqa = memory::kv_bytes_per_token_without_gqa(model.spec, DType::kBF16);
  return figures;
}

facts::EngineChoice any_engine() {
  facts::EngineChoice choice;
  choice.name = facts::EngineName::kAny;
  return choice;
}

Result<Plan> make_document_table(const facts::EngineChoice& engine) {
  struct Line {
    std::string_view id, weights;
    std::int64_t gpus, gigabytes, length;
    std::string_view cache;
  };
  constexpr std::string_view k8B = "meta-llama/Llama-3.1-8B";
  constexpr std::string_view k70B = "meta-llama/Llama-3.1-70B";
  constexpr Line kLines[] = {
      {k8B, "bf16", 1, 24, 8192, "auto"},   {k8B, "bf16", 1, 24, 131072, "auto"},
      {k8B, "bf16", 1, 80, 131072, "auto"}, {k70B, "bf16", 2, 80, 8192, "auto"},
      {k70B, "bf16", 4, 80, 8192, "auto"},  {k70B, "fp8", 2, 80, 8192, "auto"},
      {k70B, "fp8", 2, 80, 8192, "fp8"},    {k70B, "int4", 1, 80, 8192, "auto"},
  };
  Plan plan;
  plan.engine = engine;
  plan.is_simple = plan.is_document_table = true;
  const memory::EngineRules rules = memory::rules_for(any_engine());
  PLIMSOLL_TRY(const Model small, catalogue_model(*facts::find_catalogue(k8B)));
  PLIMSOLL_TRY(const Model large, catalogue_model(*facts::find_catalogue(k70B)));
  for (const Line& line : kLines) {
    Question question;
    question.model = line.id == k8B ? &small : &large;
    Target target;
    target.count = line.gpus;
    target.memory = Bytes(line.gigabytes * kGB);
    question.target = target;
    question.settings.max_model_len = line.length;
    question.settings.kv_cache_dtype = std::string(line.cache);
    question.settings.quantization = memory::parse_weight_format(line.weights);
    question.rules = rules;
    PLIMSOLL_TRY(Row row, make_simple_row(question));
    plan.rows.push_back(std::move(row));
  }
  for (const Model* model : {&small, &large}) {
    PLIMSOLL_TRY(ModelFigures figures, figures_of(*model));
    plan.models.push_back(std::move(figures));
  }
  return plan;
}

}  // namespace plimsoll::plan
