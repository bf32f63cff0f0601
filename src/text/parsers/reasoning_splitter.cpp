// SPDX-License-Identifier: Apache-2.0
#include "text/parsers/reasoning_splitter.h"

namespace plimsoll::text {
namespace {

constexpr std::size_t kMaxNameBytes = 64;  // of a tool, in OpenAI's API

}  // namespace

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
  const bool is_content = state_ == State::kClosed || state_ == State::kClosedOpen ||
                          state_ == State::kBefore || state_ == State::kContent;
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
    case State::kClosedOpen:
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

/// Blanks at the start of what is pending are held; false when nothing is left.
bool ReasoningSplitter::skip_blanks() {
  const std::size_t num_blanks = num_leading_blanks(pending_.view());
  held_ += pending_.view().substr(0, num_blanks);
  pending_.drop(num_blanks);
  return !pending_.view().empty();
}

/// The reasoning is open; a start tag may still stand first, some models repeat it.
bool ReasoningSplitter::read_start() {
  if (!skip_blanks()) return false;
  const Match match = match_at(pending_.view(), grammar_.open);
  if (match == Match::kPartial) return false;
  if (match == Match::kYes) {
    pending_.drop(grammar_.open.size());
    held_.clear();
  } else {
    state_ = State::kReasoning;
  }
  return true;
}

/// There is no reasoning, or it has ended, but a model may say so once more: with an end tag or an empty
/// pair.
bool ReasoningSplitter::read_closed(const Part& content) {
  if (!skip_blanks()) return false;
  const Match close = match_at(pending_.view(), grammar_.close);
  const Match open = state_ == State::kClosed ? match_at(pending_.view(), grammar_.open) : Match::kNo;
  if (close == Match::kPartial || open == Match::kPartial) return false;
  if (open == Match::kYes) {
    held_ += grammar_.open;
    pending_.drop(grammar_.open.size());
    state_ = State::kClosedOpen;
    return true;
  }
  if (close == Match::kYes) {
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
  state_ = State::kStart;
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
  state_ = State::kClosed;
  if (hit.marker == 1) {
    held_ = grammar_.call_open;
    lead_.clear();
    state_ = State::kMaybeCall;
    if (grammar_.call_follows[0].empty()) end_at_call(content);
  }
  return true;
}

void ReasoningSplitter::end_at_call(const Part& content) {
  unclosed_ = grammar_.close;
  content(held_);
  held_.clear();
  state_ = State::kContent;
}

/// Bytes that belong to no marker, so that they need not be looked at again.
bool ReasoningSplitter::takes_into_lead(char c) const {
  if (is_blank(c)) return true;
  if (!grammar_.name_comes_first) return c == '{' && lead_.empty();
  return is_tool_name_byte(c) && !lead_.ends_with(' ') && lead_.size() < kMaxNameBytes;
}

Match ReasoningSplitter::call_follower() const {
  if (grammar_.name_comes_first && lead_.empty()) return Match::kNo;
  bool is_partial = false;
  for (std::string_view next : grammar_.call_follows) {
    const bool has_brace = next.starts_with('{');
    if (has_brace != lead_.starts_with('{')) continue;
    if (has_brace) next.remove_prefix(1);
    const Match match = match_at(pending_.view(), next);
    if (match == Match::kYes) return match;
    is_partial |= match == Match::kPartial;
  }
  return is_partial ? Match::kPartial : Match::kNo;
}

/// Reasoning may talk about calls: only what goes on like one ends it.
bool ReasoningSplitter::read_maybe_call(const Part& reasoning, const Part& content) {
  while (!pending_.view().empty() && takes_into_lead(pending_.view()[0])) {
    const char c = pending_.view()[0];
    held_ += c;
    if (!is_blank(c)) {
      lead_ += c;
    } else if (!lead_.empty() && !lead_.ends_with(' ')) {
      lead_ += ' ';
    }
    pending_.drop(1);
  }
  if (pending_.view().empty()) return false;
  const Match match = call_follower();
  if (match == Match::kPartial) return false;
  if (match == Match::kYes) {
    end_at_call(content);
  } else {
    reasoning(held_);
    held_.clear();
    state_ = State::kReasoning;
  }
  return true;
}

}  // namespace plimsoll::text
