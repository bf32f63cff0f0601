// SPDX-License-Identifier: Apache-2.0
#include "serve/choice_text.h"

#include <algorithm>

namespace plimsoll::serve {

StopMatcher::Found StopMatcher::push(std::string_view text, bool may_end) {
  held_ += text;
  if (!may_end) num_barred_ = held_.size();
  Found found;
  std::size_t first_end = std::string::npos;
  for (const std::string& stop : stops_) {
    const std::size_t from = num_barred_ < stop.size() ? 0 : num_barred_ - stop.size() + 1;
    const auto position = held_.find(stop, from);
    if (position == std::string::npos || position + stop.size() >= first_end) continue;
    first_end = position + stop.size();
    found.stop = stop;
  }
  if (found.stop) {
    found.text = held_.substr(0, first_end - found.stop->size());
    held_.clear();
    return found;
  }
  // Keep the longest end of the text that a stop string begins with.
  std::size_t keep = 0;
  for (const std::string& stop : stops_) {
    std::size_t length = std::min(stop.size() - 1, held_.size());
    while (length > keep && held_.compare(held_.size() - length, length, stop, 0, length) != 0) --length;
    keep = std::max(keep, length);
  }
  found.text = held_.substr(0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  num_barred_ -= std::min(num_barred_, found.text.size());
  return found;
}

std::string StopMatcher::flush() {
  return std::exchange(held_, {});
}

ChoiceText::ChoiceText(std::shared_ptr<const text::Tokenizer> tokenizer, ChoiceTextOptions options)
    : matcher_(options.stop), options_(std::move(options)) {
  if (tokenizer) decoder_.emplace(std::move(tokenizer), options_.skip_special_tokens);
}

std::string ChoiceText::match(std::string_view text) {
  if (options_.stop.empty()) return std::string(text);
  auto found = matcher_.push(text, num_tokens_ > options_.min_tokens);
  if (!found.stop) return std::move(found.text);
  stop_ = found.stop;
  return options_.include_stop ? found.text + *found.stop : std::move(found.text);
}

std::string ChoiceText::push(TokenId id) {
  ++num_tokens_;
  if (!decoder_) return {};
  const auto text = decoder_->push(id);
  if (!text) return {};
  return match(*text);
}

std::string ChoiceText::flush() {
  if (!decoder_) return {};
  std::string text = match(decoder_->flush());
  if (!stop_) text += matcher_.flush();
  return text;
}

ChoiceText::Taken ChoiceText::finished(std::string text, const engine::Output& output) const {
  Taken taken{.text = std::move(text), .finish = std::nullopt, .stop_reason = {}};
  if (stop_) {
    taken.finish = "stop";
    taken.stop_reason = *stop_;
  } else if (output.finish) {
    taken.finish = std::string(engine::to_string(*output.finish));
    const auto& asked = options_.asked_stop_ids;
    if (output.stop_token && std::find(asked.begin(), asked.end(), *output.stop_token) != asked.end())
      taken.stop_reason = *output.stop_token;
  }
  return taken;
}

ChoiceText::Taken ChoiceText::take(const engine::Output& output, std::size_t token) {
  const bool is_last = output.finish && token + 1 == output.tokens.size();
  const bool is_stop_token = is_last && output.finish == engine::FinishReason::kStop;
  std::string text;
  if (!is_stop_token || options_.include_stop) text = push(output.tokens[token]);
  if (!is_last) return finished(std::move(text), {});
  if (!stop_) text += flush();
  return finished(std::move(text), output);
}

ChoiceText::Taken ChoiceText::take_end(const engine::Output& output) {
  return finished(flush(), output);
}

}  // namespace plimsoll::serve
