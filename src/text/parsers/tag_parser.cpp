// SPDX-License-Identifier: Apache-2.0
// Tool calls whose arguments are tagged texts: qwen3_coder, GLM, MiniMax M2, Seed-OSS, DeepSeek V3.2.
#include <array>
#include <set>
#include <string>

#include "text/parsers/tool_parser.h"

namespace plimsoll::text {
namespace {

constexpr std::size_t kMaxNameBytes = 1024;  // names are at most 64 characters in OpenAI's API

constexpr std::string_view kCdataOpen = "<![CDATA[";
constexpr std::string_view kCdataClose = "]]>";

std::string_view unquoted(std::string_view text) {
  text = trimmed(text);
  if (text.empty() || (text.front() != '"' && text.front() != '\'')) return text;
  const std::size_t end = text.find(text.front(), 1);
  return text.substr(1, end == std::string_view::npos ? std::string_view::npos : end - 1);
}

class TagParser : public ToolParser {
 public:
  TagParser(const TagGrammar& grammar, const Json& tools) : grammar_(grammar), types_(tools) {}

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
        if (!raw_.empty()) sink.content(text);
        break;
      case State::kBody:
        if (!keys_.empty()) sink.arguments("}");
        break;
      case State::kAfterValue:
        end_value(sink);
        sink.arguments("}");
        break;
      case State::kMaybeKey:
        add_value(gap_, sink);
        [[fallthrough]];
      case State::kValue:
        add_value(text, sink);
        if (!streams_) end_value(sink);
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
                                        section_has_calls_ ? grammar_.outer_close : std::string_view()};
    const MarkerHit hit = find_marker(text, markers);
    sink.content(text.substr(0, hit.at));
    pending_.drop(hit.at);
    if (hit.marker < 0) return false;
    pending_.drop(markers[hit.marker].size());
    section_has_calls_ = hit.marker == 1 && section_has_calls_;
    if (hit.marker < 2) {
      raw_ = markers[hit.marker];
      name_.clear();
      state_ = hit.marker == 0 ? State::kOuter : State::kName;
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
    name_ += text.substr(0, hit.at);
    raw_ += text.substr(0, hit.at);
    pending_.drop(hit.at);
    if (hit.marker < 0 && name_.size() <= kMaxNameBytes) return false;
    const std::string_view name = unquoted(name_);
    if (hit.marker < 0 || name.empty() || name.find_first_of(" \n{}<>\"") != std::string_view::npos) {
      give_up(sink);
      return true;
    }
    if (hit.marker == 0) pending_.drop(grammar_.name_close.size());
    name_ = std::string(name);
    raw_.clear();
    section_has_calls_ = true;
    keys_.clear();
    sink.begin_call(name_);
    state_ = State::kBody;
    return true;
  }

  void end_call(DeltaSink& sink) {
    sink.arguments(keys_.empty() ? "{}" : "}");
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
    key_ += text.substr(0, hit.at);
    pending_.drop(hit.at);
    if (hit.marker < 0) {
      if (key_.size() <= kMaxNameBytes) return false;
      sink.content(key_);
      state_ = State::kBody;
      return true;
    }
    pending_.drop(grammar_.key_close.size());
    is_attribute_text_ = key_.find("string=\"true\"") != std::string::npos;
    is_attribute_json_ = !is_attribute_text_ && key_.find("string=\"false\"") != std::string::npos;
    key_ = std::string(unquoted(key_));
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
    const bool has_attribute = grammar_.string_attribute && (is_attribute_text_ || is_attribute_json_);
    streams_ = has_attribute ? is_attribute_text_ : types_.is_text(name_, key_, grammar_.untyped);
    // Whether the value is wrapped shows at its end.
    if (grammar_.takes_cdata) streams_ = false;
    value_.clear();
    gap_.clear();
    is_value_start_ = true;
    state_ = State::kValue;
    if (streams_) {
      begin_member(sink);
      sink.arguments("\"");
    }
  }

  void begin_member(DeltaSink& sink) {
    std::string text = keys_.empty() ? "{" : ", ";
    keys_.insert(key_);
    sink.arguments(text + json_string(key_) + ": ");
  }

  /// Part of a value's text. value_ holds all of it, or, of a text that is passed on, the line end that may
  /// turn out to be layout.
  void add_value(std::string_view text, DeltaSink& sink) {
    if (text.empty()) return;
    if (is_value_start_ && grammar_.trims_newlines && text.front() == '\n') text.remove_prefix(1);
    is_value_start_ = false;
    value_ += text;
    if (!streams_) return;
    const std::size_t num_held = grammar_.trims_newlines && value_.ends_with('\n') ? 1 : 0;
    std::string escaped;
    append_json_escaped(escaped, std::string_view(value_).substr(0, value_.size() - num_held));
    sink.arguments(escaped);
    value_.erase(0, value_.size() - num_held);
  }

  void end_value(DeltaSink& sink) {
    if (streams_) {
      sink.arguments("\"");
      return;
    }
    begin_member(sink);
    std::string_view text = value_;
    if (grammar_.trims_newlines && text.ends_with('\n')) text.remove_suffix(1);
    if (grammar_.takes_cdata && text.starts_with(kCdataOpen) && text.ends_with(kCdataClose) &&
        text.size() >= kCdataOpen.size() + kCdataClose.size()) {
      text = text.substr(kCdataOpen.size(), text.size() - kCdataOpen.size() - kCdataClose.size());
    }
    const bool is_json = grammar_.string_attribute && is_attribute_json_;
    sink.arguments(is_json ? json_of_untyped(text) : types_.to_json(name_, key_, text, grammar_.untyped));
  }

  bool read_value(DeltaSink& sink) {
    const std::string_view text = pending_.view();
    const std::string_view ends[] = {grammar_.value_close, grammar_.call_close,
                                     grammar_.trims_newlines ? grammar_.key_open : std::string_view()};
    const MarkerHit hit = find_marker(text, ends);
    add_value(text.substr(0, hit.at), sink);
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
    gap_ += text.substr(0, hit.at);
    pending_.drop(hit.at);
    if (hit.marker < 0 && gap_.size() <= kMaxNameBytes) return false;
    const std::string key(unquoted(std::string_view(gap_).substr(grammar_.key_open.size())));
    if (hit.marker == 0 && value_.ends_with('\n') && !keys_.contains(key) && types_.is_declared(name_, key)) {
      pending_.drop(grammar_.key_close.size());
      end_value(sink);
      key_ = key;
      begin_value(sink);
    } else {
      add_value(gap_, sink);
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
      end_value(sink);
      state_ = State::kBody;
      if (is_gap_call_close_) end_call(sink);
      return true;
    }
    add_value(gap_, sink);
    state_ = State::kValue;
    return true;
  }

  TagGrammar grammar_;
  ArgumentTypes types_;
  State state_ = State::kContent;
  bool section_has_calls_ = false;
  std::set<std::string> keys_;  // of the call so far
  std::string raw_;             // since the section or call opened, kept until the call begins
  std::string name_;
  std::string key_;  // with its attributes until the key is whole
  bool is_attribute_text_ = false;
  bool is_attribute_json_ = false;
  bool streams_ = false;  // the value is a text and is passed on as it comes
  bool is_value_start_ = true;
  bool is_gap_call_close_ = false;
  std::string value_;
  std::string gap_;  // a marker that may end the value, and the blanks after it
};

}  // namespace

std::unique_ptr<ToolParser> make_tag_parser(const TagGrammar& grammar, const Json& tools) {
  return std::make_unique<TagParser>(grammar, tools);
}

}  // namespace plimsoll::text
