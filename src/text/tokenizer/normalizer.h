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

namespace plimsoll::text {

class Normalizer {
 public:
  using Step = std::function<std::string(std::string)>;

  /// From the "normalizer" member of tokenizer.json; null means no change.
  /// Errors: kUnsupported naming a kind we lack; kMalformed.
  static Result<Normalizer> from_json(const Json& json);
  /// Canonical composition.
  static Normalizer nfc();

  bool is_empty() const { return steps_.empty(); }
  /// `utf8` must be valid.
  std::string apply(std::string_view utf8) const;

 private:
  Status add(const Json& json, int depth);
  std::vector<Step> steps_;
};

}  // namespace plimsoll::text
