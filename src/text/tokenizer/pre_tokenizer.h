// SPDX-License-Identifier: Apache-2.0
// How a tokenizer cuts text into the pieces that its model encodes one by one. Pieces come out as raw bytes;
// steps that the file puts behind ByteLevel see the byte characters, as in the reference.
// Immutable after building; any thread may use one.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "text/tokenizer/regex.h"

namespace plimsoll::text {

class PreTokenizer {
 public:
  enum class Behavior { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };

  /// From the "pre_tokenizer" member of tokenizer.json.
  /// Errors: kUnsupported naming a kind we lack or an expression we cannot compile; kMalformed.
  static Result<PreTokenizer> from_json(const Json& json);

  // For formats that name their rules (GGUF), in order.
  Status add_split(std::string_view pattern, Behavior behavior = Behavior::kIsolated, bool invert = false);
  Status add_digits(bool individual);
  Status add_punctuation(Behavior behavior);
  Status add_byte_level(bool add_prefix_space, bool use_regex);

  /// True when the vocabulary is written in byte characters.
  bool is_byte_level() const { return has_byte_level_; }

  /// Pieces of `utf8` in order, empty ones left out; views stay valid as long as `storage` (a deque:
  /// its strings never move) and `utf8` do.
  std::vector<std::string_view> split(std::string_view utf8, std::deque<std::string>& storage) const;

 private:
  struct Step {
    bool is_byte_level = false;
    bool add_prefix_space = false;
    bool splits = false;  // by the pattern
    Regex pattern;
    Behavior behavior = Behavior::kIsolated;
    bool invert = false;
  };
  Status add(const Json& json, int depth);

  std::vector<Step> steps_;
  bool has_byte_level_ = false;
};

}  // namespace plimsoll::text
