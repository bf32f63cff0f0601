// SPDX-License-Identifier: Apache-2.0
#include "inspect/conversation.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "inspect/card_checks.h"
#include "inspect/model_card.h"

namespace plimsoll::inspect {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool holds_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != text.npos; });
}

// Classes of config.json end in what their head does.
bool is_writing_class(std::string_view name) {
  for (const std::string_view ending :
       {"ForCausalLM", "LMHeadModel", "ForConditionalGeneration", "ForVision2Seq", "ForImageTextToText"})
    if (name.ends_with(ending)) return true;
  return holds_any(name, {"Chat", "MiniCPM"});
}

// GGUF names the family alone; encoders and embedders say how they pool.
bool is_writing_gguf(const Subject& subject) {
  const auto* name = subject.figures["general.architecture"].as_string();
  if (name && (holds_any(*name, {"bert", "clip", "embedding"}) || name->starts_with("t5"))) return false;
  for (const auto& [key, value] : subject.figures.members())
    if ((key.ends_with(".pooling_type") && value.as_integer().value_or(0) != 0) ||
        (key.ends_with(".attention.causal") && value == Json(false)))
      return false;
  return true;
}

bool writes_text(const Subject& subject, const Report& report) {
  const auto& spec = report.spec;
  if (spec && std::find(spec->traits.begin(), spec->traits.end(), model::Trait::kEncoderDecoder) !=
                  spec->traits.end())
    return false;
  if (subject.is_gguf()) return is_writing_gguf(subject);
  if (subject.has_file("modules.json")) return false;  // of sentence-transformers: the model embeds
  return !report.architecture || is_writing_class(*report.architecture);
}

bool is_base(const Subject& subject, const Report& report) {
  const std::string name = "-" + lower(model_name(subject, report)) + "-";
  if (holds_any(name, {"instruct", "chat", "-it-", "-sft", "-dpo"})) return false;
  if (holds_any(name, {"-base", "-pt-", "-pretrain"})) return true;
  const auto card = read_model_card(subject.artifact);
  return card &&
         holds_any(lower(card->text), {"pretrained", "pre-trained", "base model", "foundation model"});
}

}  // namespace

Conversation conversation_of(const Subject& subject, const Report& report) {
  if (!writes_text(subject, report)) return Conversation::kNone;
  return is_base(subject, report) ? Conversation::kBase : Conversation::kUnknown;
}

}  // namespace plimsoll::inspect
