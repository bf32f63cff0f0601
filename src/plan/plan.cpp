// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <algorithm>

#include "model/context_length.h"
#include "plan/rows.h"

namespace plimsoll::plan {

Result<Model> catalogue_model(const facts::CatalogueEntry& entry) {
  Model model;
  model.source = std::string(entry.id);
  model.title = std::string(entry.title.empty() ? entry.id : entry.title);
  const Json config = entry.config_json();
  PLIMSOLL_TRY(model.spec, model::read_spec(config, entry.id));
  read_declared(config, model::read_quantization(config, {}), model);
  return model;
}

void read_declared(const Json& config, const std::optional<model::Quantization>& declared, Model& model) {
  model.quantization = declared;
  model.default_length = model::default_length(config, model.spec);
  if (const auto checkpoint = memory::stored_checkpoint(model.spec, declared))
    model.declared_weights = checkpoint->bytes;
  model.most_declared = memory::most_checkpoint_bytes(model.spec, declared);
}

bool Plan::fits() const {
  return is_document_table || std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.fits; });
}

namespace {

/// How far a real checkpoint may be from the formula. Source: docs/formulas/weights.md, "How sure".
std::int64_t percent_of_bar(memory::WeightFormat format) {
  const int bits = memory::bits_per_weight(format);
  return bits > 8 ? 1 : bits > 4 ? 15 : 40;
}

/// A config that names no dtype: engines take 16 bits, the files may have 32.
void assume_dtype(const Model& model, Row& row) {
  std::string message = "the config names no dtype: weights are counted in 16 bits";
  if (model.declared_weights && model.most_declared) {
    row.weights_are_least = true;
    row.weights_bar = *model.most_declared - *model.declared_weights;
    message += ", which is " + with_commas(model.declared_weights->value) + " bytes; in 32 they would be " +
               with_commas(model.most_declared->value);
  }
  row.weights_basis = "assumed";
  row.findings.push_back({"DTYPE_ASSUMED", FindingLevel::kWarning, FindingKind::kCheckFailed, "config.json",
                          std::move(message), "give --quantization, or the folder with its weights"});
}

}  // namespace

Result<Bytes> weights_of(const Question& question, Row& row) {
  const Model& model = *question.model;
  const bool is_declared =
      model.spec.declared_dtype && memory::weight_format(*model.spec.declared_dtype).has_value();
  const memory::WeightFormat format = question.settings.quantization.value_or(
      is_declared ? *memory::weight_format(*model.spec.declared_dtype) : memory::WeightFormat::kBFloat16);
  row.weights_dtype = std::string(memory::to_string(format));
  if (model.stored_weights && !question.settings.quantization) {
    if (!is_declared) row.weights_dtype = "as stored";
    return *model.stored_weights;
  }

  if (!model.spec.quantization.empty() && !question.settings.quantization) {
    if (!model.declared_weights)
      return fail(ErrorCode::kUnsupported,
                  "what weights quantized by " + model.spec.quantization +
                      " take cannot be told from this model's config",
                  "config.json: /quantization_config",
                  "give the folder with its weight files, or --quantization for another format");
    row.weights_dtype = model.spec.quantization;
    row.weights_basis = "formula";
    if (!model.spec.declared_dtype) assume_dtype(model, row);
    return *model.declared_weights;
  }

  const bool is_assumed = !is_declared && !question.settings.quantization;
  row.weights_basis = "formula";
  if (is_assumed) assume_dtype(model, row);
  // As inspect counts it: buffers in their own type, prediction layers with the rest.
  if (model.declared_weights && !question.settings.quantization) {
    if (!row.weights_are_least)
      row.weights_bar = Bytes(model.declared_weights->value / 100 * percent_of_bar(format));
    return *model.declared_weights;
  }
  const auto parameters = model::count_parameters(model.spec);
  if (!parameters)
    return fail(ErrorCode::kUnsupported,
                "the parameters of this model's encoder cannot be told from its config", "config.json",
                "give the folder with its weight files: their headers hold the exact count");
  PLIMSOLL_TRY(const Bytes bytes, memory::weights_bytes(*parameters, format));
  row.weights_bar = Bytes(bytes.value / 100 * percent_of_bar(format));
  return bytes;
}

std::int64_t length_of(const Question& question) {
  const Model& model = *question.model;
  return question.settings.max_model_len.value_or(model.default_length > 0 ? model.default_length
                                                                           : model.spec.context_tokens());
}

Row impossible_row(const Question& question, std::string cache_dtype, Finding fault) {
  Row row;
  row.model = question.model->source;
  row.title = question.model->title;
  row.kv_cache_dtype = std::move(cache_dtype);
  row.target = question.target;
  row.can_be = false;
  row.max_model_len = Tokens(length_of(question));
  row.engine_message = fault.message + "; " + fault.fix + ".";
  row.findings.push_back(std::move(fault));
  return row;
}

Result<Row> make_row(const Question& question) {
  switch (question.rules.accounting) {
    case memory::Accounting::kSimple:
      return make_simple_row(question);
    case memory::Accounting::kVllm:
      return make_vllm_row(question);
    case memory::Accounting::kSglang:
      return make_sglang_row(question);
    case memory::Accounting::kLlamaCpp:
      return make_llama_cpp_row(question);
    case memory::Accounting::kEmbedded:
      break;
  }
  return make_embedded_row(question);
}

Result<Plan> make_plan(const Request& request) {
  if (request.is_simple && request.models.empty()) return make_document_table(request.engine);
  facts::EngineChoice engine = request.engine;
  if (request.is_simple) engine = any_engine();
  const memory::EngineRules rules = memory::rules_for(engine);

  Plan plan;
  plan.engine = engine;
  plan.is_simple = request.is_simple;
  plan.findings = engine.findings;
  std::vector<std::optional<Target>> targets(request.targets.begin(), request.targets.end());
  if (targets.empty()) targets.emplace_back();
  for (const Model& model : request.models) {
    for (const auto& target : targets) {
      const Question question{&model,
                              target,
                              request.settings,
                              rules,
                              engine.version,
                              std::max(1, request.machine_threads),
                              !request.is_simple};
      PLIMSOLL_TRY(Row row, make_row(question));
      row.levers = make_levers(question, row);
      plan.rows.push_back(std::move(row));
    }
    if (request.is_simple) {
      PLIMSOLL_TRY(ModelFigures figures, figures_of(model));
      plan.models.push_back(std::move(figures));
    }
  }
  return plan;
}

}  // namespace plimsoll::plan
