// SPDX-License-Identifier: Apache-2.0
#include "text/parsers/harmony_parser.h"

namespace plimsoll::text {
namespace {

constexpr std::string_view kStartMarker = "<|start|>";
constexpr std::string_view kChannelMarker = "<|channel|>";
constexpr std::string_view kMessageMarker = "<|message|>";
constexpr std::string_view kFunctions = "functions.";
constexpr std::size_t kMaxHeaderBytes = 1024;  // role, channel, recipient and a content type

/// The word after `label`, up to a blank or the next marker.
std::string_view word_after(std::string_view header, std::string_view label) {
  const std::size_t at = header.find(label);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = header.substr(at + label.size());
  return rest.substr(0, rest.find_first_of(" \t\r\n<"));
}

}  // namespace

void HarmonyParser::push(std::string_view text, DeltaSink& sink) {
  pending_.append(text);
  while (step(sink)) {
  }
}

void HarmonyParser::finish(DeltaSink& sink) {
  // A header that was cut says nothing yet; everything else is text.
  if (state_ == State::kBody) {
    body(pending_.view(), sink);
  } else if (state_ == State::kStart || (state_ == State::kBetween && !pending_.view().starts_with("<|"))) {
    sink.content(pending_.view());
  }
  sink.end();
}

bool HarmonyParser::step(DeltaSink& sink) {
  if (pending_.view().empty()) return false;
  switch (state_) {
    case State::kStart:
      return read_start();
    case State::kHeader:
      return read_header(sink);
    case State::kBody:
      return read_body(sink);
    case State::kBetween:
      return read_between(sink);
  }
  return false;
}

/// The prompt has written "<|start|>assistant", so the answer goes on with a header; without one it is
/// content.
bool HarmonyParser::read_start() {
  const std::string_view text = pending_.view();
  for (const std::string_view beginning :
       {kStartMarker, kChannelMarker, kMessageMarker, std::string_view("to="), std::string_view(" to=")}) {
    const Match match = match_at(text, beginning);
    if (match == Match::kPartial) return false;
    if (match == Match::kNo) continue;
    state_ = State::kHeader;
    return true;
  }
  target_ = Target::kContent;
  state_ = State::kBody;
  return true;
}

bool HarmonyParser::read_header(DeltaSink& sink) {
  const std::string_view text = pending_.view();
  const MarkerHit hit = find_marker(text, {&kMessageMarker, 1});
  if (pending_.move_to(header_, hit.at, kMaxHeaderBytes)) {
    sink.content(header_);
    header_.clear();
    target_ = Target::kContent;
    state_ = State::kBody;
    return true;
  }
  if (hit.marker < 0) return false;
  pending_.drop(kMessageMarker.size());
  begin_message(sink);
  return true;
}

void HarmonyParser::begin_message(DeltaSink& sink) {
  const std::string_view channel = word_after(header_, kChannelMarker);
  const std::string_view recipient = word_after(header_, "to=");
  if (recipient.starts_with(kFunctions) && recipient.size() > kFunctions.size()) {
    const std::string_view name = recipient.substr(kFunctions.size());
    const bool is_call = reads_calls_ && names_.accepts(name);
    target_ = is_call ? Target::kCall : Target::kContent;
    has_arguments_ = false;
    if (is_call) sink.begin_call(std::string(name));
  } else if (channel == "analysis" || !recipient.empty()) {
    // Calls of the model's built-in tools (browser, python) belong to its reasoning.
    target_ = Target::kReasoning;
  } else {
    target_ = Target::kContent;
  }
  header_.clear();
  blanks_.clear();
  state_ = State::kBody;
}

void HarmonyParser::body(std::string_view text, DeltaSink& sink) {
  if (target_ == Target::kReasoning) {
    sink.reasoning(text);
  } else if (target_ == Target::kContent) {
    sink.content(text);
  } else {
    if (!has_arguments_) text.remove_prefix(num_leading_blanks(text));
    if (text.empty()) return;
    const std::string_view kept = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
    if (!kept.empty()) {
      sink.arguments(blanks_);
      sink.arguments(kept);
      blanks_.clear();
      has_arguments_ = true;
    }
    blanks_ += text.substr(kept.size());
  }
}

void HarmonyParser::end_message(DeltaSink& sink) {
  if (target_ == Target::kCall && !has_arguments_) sink.arguments("{}");
  target_ = Target::kContent;
}

bool HarmonyParser::read_body(DeltaSink& sink) {
  const std::string_view text = pending_.view();
  static constexpr std::string_view kEnds[] = {"<|end|>", "<|call|>", "<|return|>", kStartMarker,
                                               kChannelMarker};
  const MarkerHit hit = find_marker(text, kEnds);
  body(text.substr(0, hit.at), sink);
  pending_.drop(hit.at);
  if (hit.marker < 0) return false;
  end_message(sink);
  if (hit.marker < 3) {
    pending_.drop(kEnds[hit.marker].size());
    has_text_between_ = false;
    state_ = State::kBetween;
  } else {
    state_ = State::kHeader;
  }
  return true;
}

bool HarmonyParser::read_between(DeltaSink& sink) {
  if (!has_text_between_) {
    pending_.drop(num_leading_blanks(pending_.view()));
    if (pending_.view().empty()) return false;
  }
  const std::string_view text = pending_.view();
  const std::string_view beginnings[] = {kStartMarker, kChannelMarker};
  const MarkerHit hit = find_marker(text, beginnings);
  has_text_between_ |= hit.at > 0;
  sink.content(text.substr(0, hit.at));
  pending_.drop(hit.at);
  if (hit.marker < 0) return false;
  state_ = State::kHeader;
  return true;
}

}  // namespace plimsoll::text
