// SPDX-License-Identifier: Apache-2.0
#include "inspect/sidecar_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/json_view.h"

namespace plimsoll::inspect {
namespace {

struct Sidecar {
  std::string_view file, id;
};
// generation_config.json and tokenizer.json are judged where they are used.
constexpr std::array<Sidecar, 10> kSidecars{{{"tokenizer_config.json", "TOK_JSON"},
                                             {"special_tokens_map.json", "TOK_JSON"},
                                             {"added_tokens.json", "TOK_JSON"},
                                             {"chat_template.json", "TMPL_JSON"},
                                             {"processor_config.json", "PROC_JSON"},
                                             {"preprocessor_config.json", "PROC_JSON"},
                                             {"video_preprocessor_config.json", "PROC_JSON"},
                                             {"hf_quant_config.json", "QUANT_JSON"},
                                             {"quantize_config.json", "QUANT_JSON"},
                                             {"quant_config.json", "QUANT_JSON"}}};

// A pointer of Git LFS, say: what the file is instead is told already.
bool is_told(const Findings& findings, std::string_view path) {
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
    return finding.level == FindingLevel::kError && finding.where.starts_with(path);
  });
}

void tell(Findings& findings, const Sidecar& sidecar, const std::optional<Error>& error) {
  if (is_told(findings, sidecar.file)) return;
  findings.push_back({std::string(sidecar.id), FindingLevel::kError, FindingKind::kMalformed,
                      error && !error->where.empty() ? error->where : std::string(sidecar.file),
                      error ? error->message : fmt::format("{} is not a JSON object", sidecar.file),
                      "download the file again"});
}

// The vocabulary of tokenizers that have no tokenizer.json. Large: looked at without a tree.
void check_vocabulary_file(const Subject& subject, Findings& findings) {
  constexpr Sidecar kVocabulary{"vocab.json", "TOK_JSON"};
  if (!subject.has_file(kVocabulary.file) || subject.has_file("tokenizer.json")) return;
  auto text = subject.artifact.text_file(kVocabulary.file);
  if (!text) return tell(findings, kVocabulary, text.error());
  const auto document = JsonDocument::parse(std::move(*text), kVocabulary.file);
  if (!document) return tell(findings, kVocabulary, document.error());
  if (!document->root().is_object()) tell(findings, kVocabulary, std::nullopt);
}

// Python takes the last of equal keys.
void tell_repeated(Findings& findings, const Sidecar& sidecar, const Json& json) {
  std::unordered_set<std::string_view> seen;
  for (const auto& [key, value] : json.members())
    if (!seen.insert(key).second)
      return add_check(
          findings, "CFG_DUP_KEY", FindingLevel::kWarning, fmt::format("{}: /{}", sidecar.file, key),
          fmt::format("key \"{}\" is there more than once; the last one counts", key), "keep one of them");
}

}  // namespace

void check_sidecars(const Subject& subject, Findings& findings) {
  if (subject.is_gguf()) return;
  for (const Sidecar& sidecar : kSidecars) {
    tell_repeated(findings, sidecar, subject.artifact.json_file(sidecar.file));
    if (subject.has_file(sidecar.file) && !subject.artifact.json_file(sidecar.file).is_object())
      tell(findings, sidecar, subject.artifact.json_file_error(sidecar.file));
  }
  check_vocabulary_file(subject, findings);
}

}  // namespace plimsoll::inspect
