// SPDX-License-Identifier: Apache-2.0
// The ids a tokenizer puts around the ids of one text (BOS, EOS, CLS, SEP). Plain values.
#pragma once

#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "text/text.h"

namespace plimsoll::text {

struct PostProcessor {
  std::vector<TokenId> before;
  std::vector<TokenId> after;
  bool has_template = false;

  /// From the "post_processor" member of tokenizer.json; null adds nothing.
  /// Errors: kUnsupported naming a kind we lack; kMalformed.
  static Result<PostProcessor> from_json(const Json& json);
};

}  // namespace plimsoll::text
