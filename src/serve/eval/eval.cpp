// SPDX-License-Identifier: Apache-2.0
#include "serve/eval/eval.h"

#include "serve/eval/subject.h"
#include "serve/loaded_model.h"

namespace plimsoll::serve {

std::string Variant::name() const {
  std::string name;
  for (const auto& [key, value] : settings)
    if (key == "dtype")
      name += value;
    else if (key == "kv_cache_dtype" && value != "auto")
      name += " KV " + value;
    else if (key == "quantization" && value != "none")
      name += " weights " + value;
  return name;
}

std::optional<engine::TokenId> Subject::leading_token() const {
  if (!tokenizer) return std::nullopt;
  const auto ids = tokenizer->encode("");
  const auto bos = tokenizer->bos();
  return !ids.empty() && bos == ids.front() ? bos : std::nullopt;
}

Result<std::unique_ptr<engine::Engine>> Subject::load(engine::EngineOptions options,
                                                      std::int64_t max_model_len) const {
  options.max_model_len = max_model_len;
  options.on_progress = on_progress;
  return engine::Engine::load(artifact, spec, options);
}

Finding eval_finding(std::string id, FindingLevel level, std::string where, std::string message,
                     std::string fix) {
  return {.id = std::move(id),
          .level = level,
          .kind = FindingKind::kCheckFailed,
          .where = std::move(where),
          .message = std::move(message),
          .fix = std::move(fix)};
}

Result<EvalReport> evaluate(const EvalOptions& options) {
  Subject subject;
  subject.on_progress = options.on_progress;
  PLIMSOLL_TRY(subject.artifact,
               artifact::open(options.model, {.need = artifact::Need::kTensors, .lock = options.lock}));
  if (auto error = artifact::first_error(subject.artifact->findings())) return fail(std::move(*error));
  PLIMSOLL_TRY(subject.spec, model::read_spec(*subject.artifact));
  PLIMSOLL_TRY_VOID(check_generates(subject.spec));
  if (text::has_tokenizer(*subject.artifact)) {
    PLIMSOLL_TRY(subject.tokenizer, text::load_tokenizer(*subject.artifact));
  }
  EvalReport report{.model = options.model,
                    .variants = options.variants,
                    .text = std::nullopt,
                    .passkey = std::nullopt,
                    .findings = {}};
  if (options.text) {
    PLIMSOLL_TRY(report.text, evaluate_text(subject, options, report.findings));
  }
  if (options.passkey) {
    PLIMSOLL_TRY(report.passkey, evaluate_passkey(subject, options, report.findings));
  }
  // What was computed from a file that became shorter meanwhile is of no model.
  if (auto error = artifact::cut_error(*subject.artifact)) return fail(std::move(*error));
  return report;
}

}  // namespace plimsoll::serve
