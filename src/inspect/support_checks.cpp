// SPDX-License-Identifier: Apache-2.0
#include "inspect/support_checks.h"

#include <fmt/format.h>

#include "facts/facts.h"
#include "memory/memory.h"
#include "model/declarations.h"
#include "text/parsers/output_parser.h"
#include "text/text.h"

namespace plimsoll::inspect {
namespace {

Json text_or_null(std::string_view text) {
  return text.empty() ? Json() : Json(text);
}

// The model's quant_method; empty for plain weights. A GGUF file is a form of its own to engines.
std::string quant_method(const Subject& subject, const Report& report) {
  if (subject.is_gguf()) return "gguf";
  const auto* method = report.weights.quantization["method"].as_string();
  return method ? *method : std::string();
}

Json quantization_json(facts::ServingEngine engine, const std::string& method) {
  if (method.empty()) return {};
  const auto reads = facts::reads_quantization(engine, method);
  return Json::object({{"method", method}, {"supported", reads}});
}

std::string_view general_architecture(const Subject& subject) {
  const std::string* name = subject.figures["general.architecture"].as_string();
  return name ? std::string_view(*name) : std::string_view();
}

struct Wanted {
  std::string architecture, model_type, method;
  text::SuggestedParsers parsers;
};

Json row_json(const facts::EngineSupport& support, const Wanted& wanted) {
  // Parser names are vLLM's; SGLang and others name theirs otherwise.
  const bool is_vllm = support.engine == facts::ServingEngine::kVllm;
  return Json::object(
      {{"engine", facts::to_string(support.engine)},
       {"since", text_or_null(support.since)},
       {"until", text_or_null(support.until)},
       {"status", facts::to_string(support.status)},
       {"features",
        Json::object({{"multimodal", support.multimodal},
                      {"lora", support.lora},
                      {"mtp", support.mtp},
                      {"quantization", quantization_json(support.engine, wanted.method)},
                      {"reasoning_parser", is_vllm ? text_or_null(wanted.parsers.reasoning_parser) : Json()},
                      {"tool_call_parser", is_vllm ? text_or_null(wanted.parsers.tool_parser) : Json()}})},
       {"note", text_or_null(support.note)},
       {"source", support.source}});
}

// Why the embedded engine does not compute the model; empty when it does.
std::string own_refusal(const Subject& subject, const Report& report) {
  if (!report.spec) return "the architecture is not read here";
  if (const Status can = memory::check_embedded(*report.spec); !can) return can.error().message;
  if (const auto declared = model::declared_quantization(subject.artifact))
    if (const Status can = memory::check_embedded_quantization(*declared); !can) return can.error().message;
  return {};
}

// What the embedded engine itself says.
Json own_row(const Subject& subject, const Report& report, const Wanted& wanted) {
  const bool is_known = report.spec.has_value();
  const std::string note = own_refusal(subject, report);
  const bool is_supported = is_known && note.empty();
  const bool is_text_only = is_known && report.spec->encoders.empty();
  return Json::object(
      {{"engine", "plimsoll"},
       {"since", nullptr},
       {"until", nullptr},
       {"status", is_supported ? "supported" : "unsupported"},
       {"features",
        Json::object({{"multimodal", is_text_only ? Json() : Json(false)},
                      {"lora", false},
                      {"mtp", false},
                      {"quantization", wanted.method.empty() ? Json()
                                                             : Json::object({{"method", wanted.method},
                                                                             {"supported", is_supported}})},
                      {"reasoning_parser", text_or_null(wanted.parsers.reasoning_parser)},
                      {"tool_call_parser", text_or_null(wanted.parsers.tool_parser)}})},
       {"note", text_or_null(note)},
       {"source", "the engine's own check of this model"}});
}

}  // namespace

void check_support(const Subject& subject, Report& report) {
  Wanted wanted{
      report.architecture.value_or(""), report.model_type.value_or(""), quant_method(subject, report), {}};
  if (const auto source = text::chat_template_source(subject.artifact))
    wanted.parsers = text::suggest_parsers(*source, wanted.model_type);
  report.support = Json::array();
  for (const facts::ServingEngine engine : facts::serving_engines()) {
    auto support = facts::support_of(engine, wanted.architecture, wanted.model_type);
    // The class that a GGUF's name stands for may be known to an engine that lists classes, or to none.
    if (subject.is_gguf() && support.status == facts::SupportStatus::kUnknown)
      support = facts::support_of_gguf(engine, general_architecture(subject));
    const bool is_llama_cpp =
        engine == facts::ServingEngine::kLlamaCpp || engine == facts::ServingEngine::kOllama;
    const bool is_convertible = support.status != facts::SupportStatus::kUnknown;
    if (is_llama_cpp && !subject.is_gguf() && is_convertible && support.note.empty())
      support.note = "wants GGUF: convert the folder first";
    const bool reads =
        wanted.method.empty() || facts::reads_quantization(engine, wanted.method).value_or(true);
    if (!reads && support.status != facts::SupportStatus::kUnknown) {
      support.status = facts::SupportStatus::kUnsupported;
      support.note = "knows the architecture, does not read these quantized weights";
    } else if (support.status == facts::SupportStatus::kUnsupported && !support.until.empty()) {
      add_check(report.findings, "SUPPORT_REMOVED", FindingLevel::kInfo,
                subject.config_file + ": /architectures",
                fmt::format("{} {} was the last to serve {}", facts::to_string(engine), support.until,
                            wanted.architecture),
                "use that release or another engine");
    }
    report.support.push_back(row_json(support, wanted));
  }
  report.support.push_back(own_row(subject, report, wanted));
}

}  // namespace plimsoll::inspect
