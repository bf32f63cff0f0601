// SPDX-License-Identifier: Apache-2.0
// Rows by the simple accounting: `--accounting simple`, `--engine any`, and the document's own table.
#include <fmt/format.h>

#include "memory/memory.h"
#include "plan/rows.h"

namespace plimsoll::plan {
namespace {

Result<DType> cache_dtype(const Settings& settings) {
  if (settings.kv_cache_dtype == "auto") return DType::kBF16;
  if (settings.kv_cache_dtype.starts_with("fp8")) return DType::kF8E4M3;  // all of its forms take a byte
  const auto dtype = dtype_from_config(settings.kv_cache_dtype);
  if (!dtype)
    return fail(ErrorCode::kUsage, "\"" + settings.kv_cache_dtype + "\" is no dtype of a cache",
                "--kv-cache-dtype", "auto, bfloat16, float16, float32 or fp8");
  return *dtype;
}

std::string short_name(DType dtype) {
  return dtype == DType::kF8E4M3 ? "fp8" : std::string(name(dtype));
}

std::int64_t length_of(const Question& question) {
  const model::ModelSpec& spec = question.model->spec;
  return question.settings.max_model_len.value_or(spec.context_tokens());
}

void add_parts(const memory::SimplePlan& plan, std::int64_t gpus, Row& row) {
  row.parts = {
      {"weights", row.weights, ""},
      {"kv_cache", row.kv_cache, ""},
      {"margin", Bytes(plan.reserve.value / gpus), "activations, graphs, buffers: an assumed reserve"},
  };
  for (const char* part : {"activation", "sampler", "attention_workspace", "moe_workspace", "cuda_graph",
                           "non_torch", "encoder", "processor_cache", "draft", "lora"})
    row.parts.push_back({part, Bytes(0), "within the reserve; the simple accounting does not tell it apart"});
  row.error_bar = Bytes(plan.reserve.value / gpus);
  const auto middle = static_cast<double>(row.kv_cache.value);
  const auto half = static_cast<double>(row.error_bar.value);
  const char* const page = "docs/formulas/simple_accounting.md";
  row.basis.push_back({"kv_cache_bytes_per_gpu", "assumed", middle - half, middle + half, page});
  row.basis.push_back({"kv_tokens", "assumed", {}, {}, page});
  row.basis.push_back({"max_concurrency", "assumed", {}, {}, page});
}

}  // namespace

Result<Row> make_simple_row(const Question& question) {
  const Model& model = *question.model;
  if (!question.target)
    return fail(ErrorCode::kUsage, "the simple accounting needs to know how much memory there is", "--gpu",
                "for example --gpu 24GB:1");
  const Target& target = *question.target;
  Row row;
  memory::SimpleInput input;
  PLIMSOLL_TRY(input.weights, weights_of(question, row));
  PLIMSOLL_TRY(const DType dtype, cache_dtype(question.settings));
  PLIMSOLL_TRY(input.kv_bytes_per_token, memory::kv_bytes_per_token(model.spec, dtype));
  input.num_gpus = target.count;
  input.gpu_memory = target.available.value_or(target.memory);
  input.max_model_len = length_of(question);
  input.memory_utilization = question.settings.memory_utilization.value_or(question.rules.memory_utilization);
  input.reserve_per_gpu = question.rules.reserve_per_gpu;
  PLIMSOLL_TRY(memory::SimplePlan plan, memory::plan_simple(input));
  if (question.settings.longest_model_len && plan.longest_model_len.value > 0) {
    input.max_model_len = std::min(input.max_model_len, plan.longest_model_len.value);
    PLIMSOLL_TRY(plan, memory::plan_simple(input));
  }

  const std::int64_t gpus = target.count;
  row.model = model.source;
  row.title = model.title;
  row.kv_cache_dtype = short_name(dtype);
  row.target = target;
  row.fits = plan.fits;
  row.total_weights = input.weights;
  row.weights = Bytes((input.weights.value + gpus - 1) / gpus);
  row.budget = Bytes(plan.budget.value / gpus);
  row.total_kv_cache = plan.kv_cache;
  row.kv_cache = Bytes(plan.kv_cache.value / gpus);
  row.required_kv_cache = Bytes((plan.required_kv_cache.value + gpus - 1) / gpus);
  row.kv_bytes_per_token = Bytes((input.kv_bytes_per_token.value + gpus - 1) / gpus);
  row.num_layers = static_cast<std::int64_t>(model.spec.layers.size());
  row.kv_tokens = plan.kv_tokens;
  row.max_model_len = Tokens(input.max_model_len);
  row.max_concurrency = plan.max_concurrency;
  if (plan.longest_model_len.value > 0) row.estimated_max_model_len = plan.longest_model_len;
  if (!plan.fits)
    row.engine_message = fmt::format(
        "One request of {} tokens needs {} of KV cache, and {} are left.{}", with_commas(input.max_model_len),
        as_gb(plan.required_kv_cache), as_gb(plan.kv_cache),
        plan.longest_model_len.value > 0
            ? " The longest request that fits has " + with_commas(plan.longest_model_len.value) + " tokens."
            : "");
  add_parts(plan, gpus, row);
  return row;
}

Result<ModelFigures> figures_of(const Model& model) {
  ModelFigures figures;
  figures.title = model.title;
  figures.parameters = model::count_parameters(model.spec);
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
  PLIMSOLL_TRY(const memory::EngineRules rules, memory::rules_for(any_engine()));
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
