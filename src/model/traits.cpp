// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "model/model.h"

namespace plimsoll::model {

std::string_view describe(Trait trait) {
  static constexpr std::array<std::string_view, 18> kTexts{
      "norms of mean and variance",
      "norms that multiply by one plus their weight",
      "norms behind attention and feed-forward",
      "attention and feed-forward side by side",
      "learned position embeddings",
      "ALiBi positions",
      "soft-capped logits or scores",
      "attention sinks",
      "gated attention output",
      "norms over all query heads at once",
      "residual streams (hyper-connections)",
      "embeddings that enter each layer",
      "an encoder and a decoder",
      "scales of its own",
      "attention of its own kind",
      "feed-forward of its own kind",
      "rotary positions of its own kind",
      "arithmetic that was not held against a reference",
  };
  static_assert(kTexts.size() == static_cast<std::size_t>(Trait::kUnknown) + 1);
  return kTexts[static_cast<std::size_t>(trait)];
}

}  // namespace plimsoll::model
