// SPDX-License-Identifier: Apache-2.0
#include "text/parsers/reasoning_splitter.h"

namespace plimsoll::text {

ReasoningSplitter::ReasoningSplitter(const ReasoningGrammar& grammar, ReasoningStart start,
                                     bool ends_at_calls)
    : grammar_(grammar), ends_at_calls_(ends_at_calls), state_(State::kStart) {
  if (start == ReasoningStart::kClosed) state_ = State::kClosed;
  if (start == ReasoningStart::kByParser) {
    if (grammar.untagged == ReasoningGrammar::Untagged::kContent) state_ = State::kBefore;
    if (grammar.untagged == ReasoningGrammar::Untagged::kNone) state_ = State::kClosed;
  }
}

void ReasoningSplitter::push(std::string_view text, const Part& reasoning, const Part& content) {
  if (state_ == State::kContent) {
    content(text);
    return;
  }
  pending_.append(text);
  while (step(reasoning, content)) {
  }
}

void ReasoningSplitter::finish(const Part& reasoning, const Part& content) {
  const bool is_content = state_ == State::kClosed || state_ == State::kBefore || state_ == State::kContent;
  const Part& part = is_content ? content : reasoning;
  part(held_);
  part(pending_.view());
}

bool ReasoningSplitter::step(const Part& reasoning, const Part& content) {
  if (pending_.view().empty()) return false;
  switch (state_) {
    case State::kStart:
      return read_start();
    case State::kClosed:
      return read_closed(content);
    case State::kBefore:
      return read_before(content);
    case State::kReasoning:
      return read_reasoning(reasoning, content);
    case State::kMaybeCall:
      return read_maybe_call(reasoning, content);
    case State::kContent: {
      const std::string_view text = pending_.view();
      content(text);
      pending_.drop(text.size());
      return false;
    }
  }
  return false;
}

/// The reasoning is open; a start tag may still stand first.
bool ReasoningSplitter::read_start() {
  const std::size_t num_blanks = num_leading_blanks(pending_.view());
  held_ += pending_.view().substr(0, num_blanks);
  pending_.drop(num_blanks);
  if (pending_.view().empty()) return false;
  const Match match = match_at(pending_.view(), grammar_.open);
  if (match == Match::kPartial) return false;
  if (match == Match::kYes) {
    pending_.drop(grammar_.open.size());
    held_.clear();
  }
  state_ = State::kReasoning;
  return true;
}

/// There is no reasoning, but a model may say so once more.
bool ReasoningSplitter::read_closed(const Part& content) {
  const std::size_t num_blanks = num_leading_blanks(pending_.view());
  held_ += pending_.view().substr(0, num_blanks);
  pending_.drop(num_blanks);
  if (pending_.view().empty()) return false;
  const Match match = match_at(pending_.view(), grammar_.close);
  if (match == Match::kPartial) return false;
  if (match == Match::kYes) {
    pending_.drop(grammar_.close.size());
  } else {
    content(held_);
  }
  held_.clear();
  state_ = State::kContent;
  return true;
}

bool ReasoningSplitter::read_before(const Part& content) {
  const MarkerHit hit = find_marker(pending_.view(), {&grammar_.open, 1});
  content(pending_.view().substr(0, hit.at));
  pending_.drop(hit.at);
  if (hit.marker < 0) return false;
  pending_.drop(grammar_.open.size());
  state_ = State::kReasoning;
  return true;
}

bool ReasoningSplitter::read_reasoning(const Part& reasoning, const Part& content) {
  reasoning(held_);
  held_.clear();
  const std::string_view markers[] = {grammar_.close,
                                      ends_at_calls_ ? grammar_.call_open : std::string_view()};
  const MarkerHit hit = find_marker(pending_.view(), markers);
  reasoning(pending_.view().substr(0, hit.at));
  pending_.drop(hit.at);
  if (hit.marker < 0) return false;
  pending_.drop(markers[hit.marker].size());
  state_ = State::kContent;
  if (hit.marker == 1) {
    held_ = grammar_.call_open;
    state_ = State::kMaybeCall;
    if (grammar_.call_follows[0].empty()) {
      content(held_);
      held_.clear();
      state_ = State::kContent;
    }
  }
  return true;
}

/// Reasoning may talk about calls: only what goes on like one ends it.
bool ReasoningSplitter::read_maybe_call(const Part& reasoning, const Part& content) {
  const std::size_t num_blanks = num_leading_blanks(pending_.view());
  held_ += pending_.view().substr(0, num_blanks);
  pending_.drop(num_blanks);
  if (pending_.view().empty()) return false;
  bool is_call = false;
  for (const std::string_view next : grammar_.call_follows) {
    const Match match = match_at(pending_.view(), next);
    if (match == Match::kPartial) return false;
    is_call |= match == Match::kYes;
  }
  (is_call ? content : reasoning)(held_);
  held_.clear();
  state_ = is_call ? State::kContent : State::kReasoning;
  return true;
}

}  // namespace plimsoll::text
