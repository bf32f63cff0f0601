// SPDX-License-Identifier: Apache-2.0
// Which text has which id? The vocabulary of tokenizer.json or a GGUF file as plain tables, for naming ids
// and finding faults; encoding text is the text room's work. Views into the artifact's JSON, which must
// outlive it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/finding.h"
#include "inspect/subject.h"

namespace plimsoll::inspect {

struct Vocabulary {
  bool is_known = false;  // the tables below say all there is
  std::string_view kind;  // BPE Unigram WordPiece, or GGUF's tokenizer.ggml.model; empty when not known
  std::unordered_map<std::string_view, std::int64_t> ids;
  std::unordered_map<std::int64_t, std::string_view> texts;
  std::vector<std::string_view> added;  // tokens that text is searched for whole: specials among them
  std::int64_t size = 0;                // highest id + 1

  std::optional<std::int64_t> id_of(std::string_view text) const;
  std::optional<std::string_view> text_of(std::int64_t id) const;
  /// The longest added token that `text` begins with, blanks before it aside; empty when there is none.
  std::string_view added_at_start(std::string_view text) const;
};

/// Reads the vocabulary and appends its faults: TOK_MISSING, TOK_JSON, TOK_KIND, TOK_ID,
/// TOK_DUP_ID, TOK_MERGE.
Vocabulary read_vocabulary(const Subject& subject, Findings& findings);

}  // namespace plimsoll::inspect
