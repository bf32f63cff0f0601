// SPDX-License-Identifier: Apache-2.0
#include "engine/outputs.h"

namespace plimsoll::engine {

Outputs::Outputs(std::size_t expected) : items_(expected) {
  for (Output& output : items_) output.tokens.reserve(1);
}

Output& Outputs::add(RequestId request) {
  if (count_ == items_.size()) items_.emplace_back();
  Output& output = items_[count_++];
  output.request = request;
  output.tokens.clear();
  output.logprobs.clear();
  output.logits.clear();
  output.prompt_logits.clear();
  output.prompt_logprobs.clear();
  output.embedding.clear();
  output.finish.reset();
  output.stop_token.reset();
  output.cached_prompt_tokens = 0;
  output.error.clear();
  return output;
}

}  // namespace plimsoll::engine
