// SPDX-License-Identifier: Apache-2.0
// Tool calls whose arguments are tagged texts: qwen3_coder, GLM, MiniMax M2, Seed-OSS, DeepSeek V3.2.
#include <array>
#include <string>

#include "text/parsers/tagged_arguments.h"
#include "text/parsers/tool_names.h"
#include "text/parsers/tool_parser.h"

namespace plimsoll::text {
namespace {

constexpr std::size_t kMaxNameBytes = 1024;  // names are at most 64 characters in OpenAI's API

class TagParser : public ToolParser {
 public:
  TagParser(const TagGrammar& grammar, const Json& tools)
      : grammar_(grammar), names_(tools), arguments_(grammar, tools) {}

  void finish(DeltaSink& sink) override {
    const std::string_view text = pending_.view();
    switch (state_) {
      case State::kContent:
      case State::kStray:
        sink.content(text);
        break;
      case State::kOuter:
      case State::kName:
        sink.content(raw_);
        if (state_ == State::kName) sink.content(name_);
        if (!raw_.empty()) sink.content(text);
        break;
      case State::kMaybeBody:
        sink.content(raw_);
        sink.content(text);
        break;
      case State::kBody:
        if (!arguments_.is_empty()) arguments_.end_call(sink);
        break;
      case State::kAfterValue:
        arguments_.end_value(sink);
        arguments_.end_call(sink);
        break;
      case State::kMaybeKey:
        arguments_.add(gap_, sink);
        [[fallthrough]];
      case State::kValue:
        arguments_.add(text, sink);
        arguments_.cut_value(sink);
        break;
      case State::kKey:
      case State::kValueOpen:
        break;
    }
    sink.end();
  }

 protected:
  bool step(DeltaSink& sink) override {
    switch (state_) {
      case State::kContent:
        return read_content(sink);
      case State::kOuter:
        return read_outer(sink);
      case State::kName:
        return read_name(sink);
      case State::kMaybeBody:
        return read_maybe_body(sink);
      case State::kBody:
        return read_body(sink);
      case State::kStray:
        return read_stray(sink);
      case State::kKey:
        return read_key(sink);
      case State::kValueOpen:
        return read_value_open(sink);
      case State::kValue:
        return read_value(sink);
      case State::kAfterValue:
        return read_after_value(sink);
      case State::kMaybeKey:
        return read_maybe_key(sink);
    }
    return false;
  }

 private:
  enum class State {
    kContent,
    kOuter,
    kName,
    kMaybeBody,
    kBody,
    kStray,
    kKey,
    kValueOpen,
    kValue,
    kAfterValue,
    kMaybeKey
  };

  /// Takes `marker` off the start of what is pending; nothing when more text must tell.
  std::optional<bool> take(std::string_view marker) {
    const Match match = match_at(pending_.view(), marker);
    if (match == Match::kPartial) return std::nullopt;
    if (match == Match::kYes) pending_.drop(marker.size());
    return match == Match::kYes;
  }

  bool skip_blanks() {
    const std::size_t num_blanks = num_leading_blanks(pending_.view());
    if (!raw_.empty()) raw_ += pending_.view().substr(0, num_blanks);
    pending_.drop(num_blanks);
    return !pending_.view().empty();
  }

  void give_up(DeltaSink& sink) {
    sink.content(raw_);
    raw_.clear();
    state_ = State::kContent;
  }

  bool read_content(DeltaSink& sink) {
    const std::string_view text = pending_.view();
    const bool has_bare_calls = grammar_.outer_open.empty() || !grammar_.call_needs_outer;
    // A close marker is layout only after calls; elsewhere it is text.
    const std::string_view markers[] = {grammar_.outer_open,
                                        has_bare_calls ? grammar_.call_open : std::string_view(),
                                        section_has_calls_ ? grammar_.outer_close : std::string_view(),
                                        grammar_.layout[0],
                                        grammar_.layout[1],
                                        grammar_.layout[2]};
    const MarkerHit hit = find_marker(text, markers);
    sink.content(text.substr(0, hit.at));
    pending_.drop(hit.at);
    if (hit.marker < 0) return false;
    pending_.drop(markers[hit.marker].size());
    section_has_calls_ = (hit.marker == 1 || hit.marker > 2) && section_has_calls_;
    if (hit.marker < 2) {
      raw_ = markers[hit.marker];
      name_.clear();
      state_ = hit.marker == 0 ? State::kOuter : State::kName;
      is_mention_ = hit.marker == 1 && grammar_.bare_needs_body;
    }
    return true;
  }

  bool read_outer(DeltaSink& sink) {
    if (!skip_blanks()) return false;
    const auto is_call = take(grammar_.call_open);
    if (!is_call) return false;
    if (*is_call) {
      if (section_has_calls_) raw_.clear();
      raw_ += grammar_.call_open;
      name_.clear();
      is_mention_ = false;
      state_ = State::kName;
      return true;
    }
    const auto is_again = take(grammar_.outer_open);
    if (!is_again) return false;
    if (*is_again) {
      raw_ += grammar_.outer_open;
      return true;
    }
    const auto is_close = take(grammar_.outer_close);
    if (!is_close) return false;
    if (*is_close) {
      if (!section_has_calls_) raw_ += grammar_.outer_close;
      section_has_calls_ = false;
    }
    give_up(sink);
    return true;
  }

  bool read_name(DeltaSink& sink) {
    const std::string_view text = pending_.view();
    const std::string_view ends[] = {grammar_.name_close, grammar_.key_open, grammar_.call_close};
    const MarkerHit hit = find_marker(text, ends);
    const bool is_too_long = pending_.move_to(name_, hit.at, kMaxNameBytes);
    if (hit.marker < 0 && !is_too_long) return false;
    raw_ += name_;
    const std::string_view name = unquoted(name_);
    if (is_too_long || !names_.accepts(name)) {
      give_up(sink);
      return true;
    }
    if (hit.marker == 0) {
      raw_ += grammar_.name_close;
      pending_.drop(grammar_.name_close.size());
    }
    name_ = std::string(name);
    if (is_mention_) {
      state_ = State::kMaybeBody;
    } else {
      begin_call(sink);
    }
    return true;
  }

  void begin_call(DeltaSink& sink) {
    raw_.clear();
    section_has_calls_ = true;
    arguments_.begin_call(name_);
    sink.begin_call(name_);
    state_ = State::kBody;
  }

  bool read_maybe_body(DeltaSink& sink) {
    if (!skip_blanks()) return false;
    const Match key = match_at(pending_.view(), grammar_.key_open);
    const Match close = match_at(pending_.view(), grammar_.call_close);
    if (key == Match::kPartial || close == Match::kPartial) return false;
    if (key == Match::kYes || close == Match::kYes) {
      begin_call(sink);
    } else {
      give_up(sink);
    }
    return true;
  }

  void end_call(DeltaSink& sink) {
    arguments_.end_call(sink);
    state_ = grammar_.outer_open.empty() ? State::kContent : State::kOuter;
  }

  bool read_body(DeltaSink& sink) {
    if (!skip_blanks()) return false;
    const auto is_key = take(grammar_.key_open);
    if (!is_key) return false;
    if (*is_key) {
      key_.clear();
      state_ = State::kKey;
      return true;
    }
    const auto is_close = take(grammar_.call_close);
    if (!is_close) return false;
    if (*is_close) {
      end_call(sink);
      return true;
    }
    // The call's own end is missing where the section ends or the next call begins.
    for (const std::string_view marker : {grammar_.outer_close, grammar_.call_open, grammar_.outer_open}) {
      const Match match = match_at(pending_.view(), marker);
      if (match == Match::kPartial) return false;
      if (match == Match::kNo) continue;
      end_call(sink);
      return true;
    }
    state_ = State::kStray;
    return true;
  }

  /// Text between the arguments belongs nowhere, so it is content.
  bool read_stray(DeltaSink& sink) {
    const std::string_view text = pending_.view();
    const std::string_view markers[] = {grammar_.key_open, grammar_.call_close, grammar_.outer_close,
                                        grammar_.call_open, grammar_.outer_open};
    const MarkerHit hit = find_marker(text, markers);
    sink.content(text.substr(0, hit.at));
    pending_.drop(hit.at);
    if (hit.marker < 0) return false;
    state_ = State::kBody;
    return true;
  }

  bool read_key(DeltaSink& sink) {
    const std::string_view text = pending_.view();
    const MarkerHit hit = find_marker(text, {&grammar_.key_close, 1});
    if (pending_.move_to(key_, hit.at, kMaxNameBytes)) {
      sink.content(key_);
      state_ = State::kStray;
      return true;
    }
    if (hit.marker < 0) return false;
    pending_.drop(grammar_.key_close.size());
    if (grammar_.value_open.empty()) {
      begin_value(sink);
    } else {
      state_ = State::kValueOpen;
    }
    return true;
  }

  bool read_value_open(DeltaSink& sink) {
    if (!skip_blanks()) return false;
    const auto is_open = take(grammar_.value_open);
    if (!is_open) return false;
    if (*is_open) {
      begin_value(sink);
    } else {
      state_ = State::kBody;
    }
    return true;
  }

  void begin_value(DeltaSink& sink) {
    arguments_.begin_value(key_, sink);
    state_ = State::kValue;
  }

  bool read_value(DeltaSink& sink) {
    const std::string_view text = pending_.view();
    const std::string_view ends[] = {grammar_.value_close, grammar_.call_close,
                                     grammar_.trims_newlines ? grammar_.key_open : std::string_view()};
    const MarkerHit hit = find_marker(text, ends);
    arguments_.add(text.substr(0, hit.at), sink);
    pending_.drop(hit.at);
    if (hit.marker < 0) return false;
    gap_ = ends[hit.marker];
    is_gap_call_close_ = hit.marker == 1;
    pending_.drop(gap_.size());
    state_ = hit.marker == 2 ? State::kMaybeKey : State::kAfterValue;
    return true;
  }

  /// The end of a value may be missing: at the start of a line a declared key that has not come yet goes on.
  bool read_maybe_key(DeltaSink& sink) {
    const std::string_view text = pending_.view();
    const std::string_view ends[] = {grammar_.key_close, "\n"};
    const MarkerHit hit = find_marker(text, ends);
    const bool is_too_long = pending_.move_to(gap_, hit.at, kMaxNameBytes);
    if (hit.marker < 0 && !is_too_long) return false;
    const std::string key = gap_.substr(grammar_.key_open.size());
    if (!is_too_long && hit.marker == 0 && arguments_.goes_on_with(unquoted(key))) {
      pending_.drop(grammar_.key_close.size());
      arguments_.end_value(sink);
      key_ = key;
      begin_value(sink);
    } else {
      arguments_.add(gap_, sink);
      state_ = State::kValue;
    }
    return true;
  }

  /// What reads like the end of a value is one only when the call goes on or ends behind it; values may quote
  /// the markers.
  bool read_after_value(DeltaSink& sink) {
    const std::string_view text = pending_.view();
    const std::size_t num_blanks = num_leading_blanks(text);
    gap_ += text.substr(0, num_blanks);
    pending_.drop(num_blanks);
    if (pending_.view().empty()) return false;
    const std::array<std::string_view, 3> after_value = {grammar_.key_open, grammar_.call_close,
                                                         grammar_.outer_close};
    const std::array<std::string_view, 3> after_call = {grammar_.outer_close, grammar_.outer_open,
                                                        grammar_.call_open};
    for (const std::string_view marker : is_gap_call_close_ ? after_call : after_value) {
      const Match match = match_at(pending_.view(), marker);
      if (match == Match::kPartial) return false;
      if (match == Match::kNo) continue;
      arguments_.end_value(sink);
      state_ = State::kBody;
      if (is_gap_call_close_) end_call(sink);
      return true;
    }
    arguments_.add(gap_, sink);
    state_ = State::kValue;
    return true;
  }

  TagGrammar grammar_;
  ToolNames names_;
  TaggedArguments arguments_;
  State state_ = State::kContent;
  bool section_has_calls_ = false;
  bool is_gap_call_close_ = false;
  bool is_mention_ = false;  // unless an argument or the end follows the name
  std::string raw_;          // since the section or call opened, kept until the call begins
  std::string name_;
  std::string key_;  // with its attributes
  std::string gap_;  // a marker that may end the value, and the blanks after it
};

}  // namespace

std::unique_ptr<ToolParser> make_tag_parser(const TagGrammar& grammar, const Json& tools) {
  return std::make_unique<TagParser>(grammar, tools);
}

}  // namespace plimsoll::text
