// SPDX-License-Identifier: Apache-2.0
// What a tokenizer does to text before splitting it: Unicode normal forms, replacements, prefixes.
// Immutable after building; any thread may use one.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "text/tokenizer/bert_text.h"
#include "text/tokenizer/regex.h"
#include "text/tokenizer/rewriter.h"

namespace plimsoll::text {

class Normalizer {
 public:
  /// Writes the source's normalised text.
  using Step = std::function<void(Rewriter&)>;
  /// True when the step surely leaves a text as it is: saves writing it.
  using Check = std::function<bool(std::string_view)>;

  /// From the "normalizer" member of tokenizer.json; null means no change.
  /// Errors: kUnsupported naming a kind we lack; kMalformed.
  static Result<Normalizer> from_json(const Json& json);

  // For formats that name their rules (GGUF, SentencePiece), in order.
  void add_nfc();
  void add_step(Step step, Check changes_nothing = nullptr);
  void add_prepend(std::string prefix);
  void add_replace(Regex pattern, std::string content);
  void add_strip(bool left, bool right);
  void add_bert(const BertTextOptions& options);
  /// Errors: kMalformed for what is no charsmap.
  Status add_charsmap(std::string_view blob);

  /// The normalised text, in `storage` unless nothing changes. `utf8` must be valid. With `origin`, per byte
  /// of the answer the bytes of `utf8` it stands for; left empty when nothing changes.
  std::string_view apply(std::string_view utf8, std::string& storage,
                         std::vector<Span>* origin = nullptr) const;
  std::string apply(std::string_view utf8) const;

 private:
  struct Stage {
    Step step;
    Check changes_nothing;
  };
  Status add(const Json& json, int depth);
  std::vector<Stage> steps_;
  std::size_t growth_ = 1;  // how many times as long replacements may make a text
};

}  // namespace plimsoll::text
