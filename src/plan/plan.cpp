// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <algorithm>
#include <iterator>
#include <map>

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

namespace {

bool any_fits(const std::vector<Row>& rows) {
  return std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.fits; });
}

}  // namespace

bool Plan::fits() const {
  return is_document_table || (any_fits(rows) && (!against || any_fits(against->rows)));
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
  // The layout as it was asked for.
  const Settings& settings = question.settings;
  row.pipeline_parallel = settings.pipeline_parallel.value_or(1);
  row.data_parallel = settings.data_parallel.value_or(1);
  row.decode_context_parallel = settings.decode_context_parallel.value_or(1);
  row.is_expert_parallel = settings.is_expert_parallel;
  const std::int64_t gpus = question.target ? question.target->num_gpus() : 1;
  const std::int64_t others = std::int64_t{row.pipeline_parallel} * row.data_parallel;
  row.tensor_parallel =
      settings.tensor_parallel.value_or(static_cast<int>(std::max<std::int64_t>(1, gpus / others)));
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

namespace {

/// Models that cannot be planned, by the reason.
class LeftOut {
 public:
  void add(const std::string& model, const std::string& reason) {
    auto& models = by_reason_[reason];
    if (std::find(models.begin(), models.end(), model) == models.end()) models.push_back(model);
  }

  void report(Findings& findings) const {
    for (const auto& [reason, models] : by_reason_) {
      std::string names;
      for (const std::string& model : models) names += (names.empty() ? "" : ", ") + model;
      findings.push_back({"MODELS_LEFT_OUT", FindingLevel::kInfo, FindingKind::kUnsupported, "",
                          reason + ": " + names, "give a folder with the weights of one of them"});
    }
  }

 private:
  std::map<std::string, std::vector<std::string>> by_reason_;
};

Result<Against> begin_against(const facts::EngineChoice& engine, const facts::EngineChoice& other) {
  if (engine.name != facts::EngineName::kVllm || other.name != facts::EngineName::kVllm)
    return fail(ErrorCode::kUsage, "only releases of vLLM can be held against each other", "--against",
                "for example --engine vllm@0.19.1 --against vllm@0.33.0");
  Against against;
  against.engine = other;
  against.rules = rules_between(engine.version, other.version);
  return against;
}

// As many GPUs as the ranks that the flags ask for, where no number says otherwise.
std::optional<Target> with_count(std::optional<Target> target, const Settings& settings) {
  if (target && !target->is_count_given)
    target->count = std::int64_t{settings.tensor_parallel.value_or(1)} *
                    settings.pipeline_parallel.value_or(1) * settings.data_parallel.value_or(1);
  return target;
}

Question question_of(const Request& request, const memory::EngineRules& rules, const Model& model,
                     const std::optional<Target>& target) {
  Question question;
  question.model = &model;
  question.target = request.is_search ? target : with_count(target, request.settings);
  question.settings = request.settings;
  question.rules = rules;
  question.engine_version = request.engine.version;
  question.machine_threads = std::max(1, request.machine_threads);
  question.is_split = !request.is_simple;
  return question;
}

Result<Plan> search_plan(const Request& request, const memory::EngineRules& rules,
                         const std::vector<std::optional<Target>>& targets, Plan plan) {
  if (rules.accounting != memory::Accounting::kVllm || request.against)
    return fail(ErrorCode::kUsage, "a search goes through the layouts of one release of vLLM", "--search",
                "leave --engine out, or give vllm@VERSION");
  plan.search.emplace();
  Search& search = *plan.search;
  search.has_prices =
      std::all_of(targets.begin(), targets.end(), [](const auto& target) { return target && target->price; });
  for (const Model& model : request.models) {
    WeightsMemo memo;
    std::vector<Row> rows;
    for (const auto& target : targets) {
      Question question = question_of(request, rules, model, target);
      question.memo = &memo;
      PLIMSOLL_TRY_VOID(search_layouts(question, rows, search));
    }
    sort_by_cost(rows, search.has_prices);
    std::move(rows.begin(), rows.end(), std::back_inserter(plan.rows));
  }
  return plan;
}

Result<Plan> fit_plan(const Request& request, const memory::EngineRules& rules,
                      const std::vector<std::optional<Target>>& targets, Plan plan) {
  LeftOut left_out;
  for (const auto& target : targets) {
    std::vector<std::pair<Row, std::int64_t>> rows;
    for (const Model& model : request.models) {
      // Of many models, one that cannot be asked for that length is no answer, and no error.
      const std::int64_t context = model.spec.context_tokens();
      if (request.models.size() > 1 && context > 0 && request.settings.max_model_len.value_or(0) > context) {
        left_out.add(model.source, "requests longer than its context were asked for");
        continue;
      }
      auto row = fit_row(question_of(request, rules, model, target));
      if (row) {
        rows.emplace_back(std::move(*row), model::count_parameters(model.spec).value_or(0));
      } else if (row.error().code == ErrorCode::kUnsupported) {
        left_out.add(model.source, row.error().message);
      } else {
        return fail(std::move(row).error());
      }
    }
    sort_by_fit(rows);
    for (auto& [row, parameters] : rows) plan.rows.push_back(std::move(row));
  }
  left_out.report(plan.findings);
  return plan;
}

Status check_kinds(const std::vector<Target>& targets, const memory::EngineRules& rules) {
  const bool has_several = std::any_of(targets.begin(), targets.end(),
                                       [](const Target& target) { return !target.beside.empty(); });
  if (!has_several || rules.accounting == memory::Accounting::kLlamaCpp) return {};
  return fail(ErrorCode::kUsage, "only llama.cpp lays a model on GPUs of several kinds", "--gpu",
              "give --engine llama.cpp, or several --gpu for a row each");
}

// Types of activations that vLLM and SGLang take, with those of them whose memory is planned; llama.cpp has
// no such flag. Source: vllm/config/model.py, ModelDType; sglang/srt/server_args.py, --dtype; both the same.
Status check_dtype(const std::string& dtype, memory::Accounting accounting) {
  if (dtype == "auto" || accounting == memory::Accounting::kEmbedded) return {};
  if (accounting == memory::Accounting::kLlamaCpp)
    return fail(ErrorCode::kUsage, "llama.cpp has no type of activations to choose", "--dtype",
                "leave the flag out");
  for (const char* known : {"half", "float16", "f16", "bfloat16", "bf16"})
    if (dtype == known) return {};
  if (dtype == "float" || dtype == "float32")
    return fail(ErrorCode::kUnsupported, "memory is planned for activations of 16 bit", "--dtype",
                "give auto, bfloat16 or float16");
  return fail(ErrorCode::kUsage, "\"" + dtype.substr(0, 60) + "\" is no type of activations", "--dtype",
              "give auto, bfloat16 or float16");
}

Row not_planned(const Question& question, const Error& error) {
  return impossible_row(question, question.settings.kv_cache_dtype,
                        {"NOT_PLANNED", FindingLevel::kError, FindingKind::kUnsupported, error.where,
                         error.message, error.fix});
}

}  // namespace

Result<Plan> make_plan(const Request& request) {
  if (request.is_simple && request.models.empty()) return make_document_table(request.engine);
  facts::EngineChoice engine = request.engine;
  if (request.is_simple) engine = any_engine();
  const memory::EngineRules rules = memory::rules_for(engine);

  Plan plan;
  plan.engine = engine;
  plan.is_simple = request.is_simple;
  plan.findings = engine.findings;
  // Not a number is in no range, and passes comparisons that only refuse.
  if (const auto share = request.settings.memory_utilization; share && !(*share > 0 && *share <= 1))
    return fail(ErrorCode::kUsage, "a share of " + std::to_string(*share) + " of the memory",
                "--gpu-memory-utilization", "give a number above 0, at most 1");
  PLIMSOLL_TRY_VOID(check_kinds(request.targets, rules));
  PLIMSOLL_TRY_VOID(check_dtype(request.settings.dtype, rules.accounting));
  std::vector<std::optional<Target>> targets(request.targets.begin(), request.targets.end());
  if (targets.empty()) targets.emplace_back();
  if (request.against) {
    PLIMSOLL_TRY(plan.against, begin_against(engine, *request.against));
  }
  if (request.is_search) return search_plan(request, rules, targets, std::move(plan));
  if (request.is_fit) return fit_plan(request, rules, targets, std::move(plan));
  const bool has_several = request.models.size() > 1;
  for (const Model& model : request.models) {
    for (const auto& target : targets) {
      const Question question = question_of(request, rules, model, target);
      auto row = make_row(question);
      if (!row && has_several && row.error().code == ErrorCode::kUnsupported) {
        row = not_planned(question, row.error());
      } else if (!row) {
        return fail(std::move(row).error());
      }
      row->levers = make_levers(question, *row);
      if (plan.against) PLIMSOLL_TRY_VOID(add_against(question, *row, *plan.against));
      plan.rows.push_back(std::move(*row));
    }
    if (request.is_simple) {
      PLIMSOLL_TRY(ModelFigures figures, figures_of(model));
      plan.models.push_back(std::move(figures));
    }
  }
  return plan;
}

}  // namespace plimsoll::plan
