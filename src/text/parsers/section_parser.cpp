// SPDX-License-Identifier: Apache-2.0
// Tool calls with a header of text and arguments as one JSON value: DeepSeek V3 and V3.1, Kimi K2, Mistral.
#include <algorithm>
#include <array>
#include <string>

#include "text/parsers/json_scanner.h"
#include "text/parsers/tool_parser.h"

namespace plimsoll::text {
namespace {

constexpr std::size_t kMaxHeaderBytes = 1024;  // names are at most 64 characters in OpenAI's API

struct Header {
  std::string name;  // empty: no header of this form
  std::optional<std::string> id;
};

Header parsed_header(std::string_view text, const SectionGrammar& grammar) {
  const std::size_t at = grammar.separator.empty() ? std::string_view::npos : text.find(grammar.separator);
  const bool is_split = at != std::string_view::npos;
  const std::string_view first = trimmed(text.substr(0, is_split ? at : text.size()));
  const std::string_view second =
      is_split ? trimmed(text.substr(at + grammar.separator.size())) : std::string_view();
  switch (grammar.form) {
    case HeaderForm::kName:
      return {std::string(first), {}};
    case HeaderForm::kTypeName:
      return {std::string(is_split ? second : first), {}};
    case HeaderForm::kNameId:
      return {std::string(first),
              is_split && !second.empty() ? std::optional(std::string(second)) : std::nullopt};
    case HeaderForm::kNameIndex: {
      std::string_view name = first;
      if (name.starts_with("functions.")) name.remove_prefix(10);
      const std::size_t colon = name.rfind(':');
      const std::string_view index =
          colon == std::string_view::npos ? std::string_view() : name.substr(colon + 1);
      const bool is_index = !index.empty() && index.find_first_not_of("0123456789") == std::string_view::npos;
      return {std::string(is_index ? name.substr(0, colon) : name),
              is_index ? std::optional(std::string(first)) : std::nullopt};
    }
  }
  return {};
}

class SectionParser : public ToolParser {
 public:
  explicit SectionParser(const SectionGrammar& grammar)
      : grammar_(grammar),
        reader_(false, {grammar.open, grammar.close, grammar.call_open, grammar.call_close}) {}

  void finish(DeltaSink& sink) override {
    const std::string_view text = pending_.view();
    if (state_ == State::kRawArguments) {
      raw_arguments(text, sink);
    } else if (state_ == State::kList && in_object_ && reader_.has_begun()) {
      reader_.cut(text, sink);
    } else if (state_ == State::kList && in_object_) {
      sink.content(raw_ + reader_.raw());
      sink.content(text);
    } else if (state_ == State::kArguments || (state_ == State::kArgumentsStart && text.starts_with('['))) {
      sink.arguments(text);
    } else if (state_ == State::kArgumentsStart && grammar_.call_close.empty()) {
      sink.arguments("{}");  // nothing but the end of the answer closes such a call
    } else if (state_ == State::kContent || !raw_.empty()) {
      sink.content(raw_);
      sink.content(text);
    }
    sink.end();
  }

 protected:
  bool step(DeltaSink& sink) override {
    switch (state_) {
      case State::kContent:
        return read_content(sink);
      case State::kCalls:
        return read_between(sink);
      case State::kHeader:
        return read_header(sink);
      case State::kArgumentsStart:
        return read_arguments_start(sink);
      case State::kArguments:
        return read_arguments(sink);
      case State::kRawArguments:
        return read_raw_arguments(sink);
      case State::kTail:
        return read_tail(sink);
      case State::kList:
        return read_list(sink);
    }
    return false;
  }

 private:
  enum class State { kContent, kCalls, kHeader, kArgumentsStart, kArguments, kRawArguments, kTail, kList };
  enum Marker { kOpen, kClose, kCallOpen, kCallClose, kNumMarkers };
  using Markers = std::array<std::string_view, kNumMarkers>;

  Markers markers() const { return {grammar_.open, grammar_.close, grammar_.call_open, grammar_.call_close}; }

  /// What ends the arguments, also where their brackets are open.
  std::array<std::string_view, kNumMarkers + 1> argument_ends() const {
    return {grammar_.open, grammar_.close, grammar_.call_open, grammar_.call_close, grammar_.fence};
  }

  static std::size_t blank_tail(std::string_view text) {
    std::size_t count = 0;
    while (count < text.size() && is_blank(text[text.size() - 1 - count])) ++count;
    return count;
  }

  bool read_content(DeltaSink& sink) {
    const std::string_view text = pending_.view();
    Markers known = markers();
    // Closing markers are layout only after calls; elsewhere they are text.
    if (!has_section_) known[kClose] = known[kCallClose] = {};
    const MarkerHit hit = find_marker(text, known);
    sink.content(text.substr(0, hit.at));
    pending_.drop(hit.at);
    if (hit.marker < 0) return false;
    take_marker(static_cast<Marker>(hit.marker), sink);
    return true;
  }

  /// One of the markers stands first in what is pending.
  void take_marker(Marker marker, DeltaSink& sink) {
    const std::string_view text = markers()[marker];
    pending_.drop(text.size());
    switch (marker) {
      case kOpen:
        raw_ += text;
        state_ = grammar_.call_open.empty() ? State::kHeader : State::kCalls;
        break;
      case kCallOpen:
        raw_ += text;
        state_ = State::kHeader;
        break;
      case kClose:
        if (!raw_.empty()) raw_ += text;  // a section without calls
        sink.content(raw_);
        raw_.clear();
        has_section_ = false;
        state_ = State::kContent;
        break;
      case kCallClose:
        state_ = has_section_ && grammar_.close.empty() ? State::kContent : State::kCalls;
        break;
      case kNumMarkers:
        break;
    }
    header_.clear();
  }

  /// The marker at the start of what is pending; kNumMarkers: none. Nothing when more text must tell.
  std::optional<Marker> marker_here() const {
    const Markers known = markers();
    for (int marker = 0; marker < kNumMarkers; ++marker) {
      const Match match = match_at(pending_.view(), known[static_cast<std::size_t>(marker)]);
      if (match == Match::kYes) return static_cast<Marker>(marker);
      if (match == Match::kPartial) return std::nullopt;
    }
    return kNumMarkers;
  }

  /// Blanks at the start of what is pending go; false when nothing is left.
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

  bool read_between(DeltaSink& sink) {
    if (!skip_blanks()) return false;
    const auto marker = marker_here();
    if (!marker) return false;
    if (*marker == kNumMarkers) {
      give_up(sink);
    } else {
      take_marker(*marker, sink);
    }
    return true;
  }

  bool read_header(DeltaSink& sink) {
    if (header_.empty() && !skip_blanks()) return false;
    const std::string_view text = pending_.view();
    if (grammar_.takes_list && header_.empty() && (text.starts_with('[') || text.starts_with('{'))) {
      state_ = State::kList;
      return true;
    }
    std::array<std::string_view, kNumMarkers + 2> ends;
    const Markers known = markers();
    std::copy(known.begin(), known.end(), ends.begin());
    ends[kNumMarkers] = grammar_.arguments_open[0];
    ends[kNumMarkers + 1] = grammar_.arguments_open[1];
    const MarkerHit hit = find_marker(text, ends);
    const std::size_t num_before = header_.size();
    const bool is_too_long = pending_.move_to(header_, hit.at, kMaxHeaderBytes);
    raw_ += std::string_view(header_).substr(num_before);
    if (is_too_long) {
      give_up(sink);
      return true;
    }
    if (hit.marker < 0) return false;
    Header header = parsed_header(header_, grammar_);
    if (header.name.empty() || header.name.find_first_of(" \n{}<>\"") != std::string::npos) {
      give_up(sink);
      return true;
    }
    raw_.clear();
    has_section_ = true;
    sink.begin_call(std::move(header.name), std::move(header.id));
    const std::string_view end = ends[static_cast<std::size_t>(hit.marker)];
    if (hit.marker >= kNumMarkers && end != "{") pending_.drop(end.size());
    state_ = State::kArgumentsStart;
    return true;
  }

  bool read_arguments_start(DeltaSink& sink) {
    if (!skip_blanks()) return false;
    const auto marker = marker_here();
    if (!marker) return false;
    if (*marker != kNumMarkers) {
      sink.arguments("{}");
      take_marker(*marker, sink);
      return true;
    }
    const Match fence = match_at(pending_.view(), grammar_.fence);
    if (fence == Match::kPartial) return false;
    if (fence == Match::kYes) {
      sink.arguments("{}");
      state_ = State::kTail;
      return true;
    }
    const char first = pending_.view()[0];
    scanner_.start();
    blanks_.clear();
    state_ = first == '{' || first == '[' || first == '"' ? State::kArguments : State::kRawArguments;
    return true;
  }

  bool read_arguments(DeltaSink& sink) {
    const std::string_view text = pending_.view();
    const std::size_t num_taken = scanner_.scan(text, argument_ends());
    sink.arguments(text.substr(0, num_taken));
    pending_.drop(num_taken);
    if (!scanner_.is_done()) return false;
    state_ = State::kTail;
    return true;
  }

  /// Blanks at their end are layout.
  void raw_arguments(std::string_view text, DeltaSink& sink) {
    const std::string_view kept = text.substr(0, text.size() - blank_tail(text));
    if (!kept.empty()) {
      sink.arguments(blanks_);
      sink.arguments(kept);
      blanks_.clear();
    }
    blanks_ += text.substr(kept.size());
  }

  /// Arguments that are no JSON container are passed on up to the next marker.
  bool read_raw_arguments(DeltaSink& sink) {
    const std::string_view text = pending_.view();
    const MarkerHit hit = find_marker(text, argument_ends());
    raw_arguments(text.substr(0, hit.at), sink);
    pending_.drop(hit.at);
    if (hit.marker < 0) return false;
    state_ = State::kTail;
    return true;
  }

  /// After the arguments: a fence of backticks, one closer too many, then a marker.
  bool read_tail(DeltaSink& sink) {
    if (!skip_blanks()) return false;
    if (const char c = pending_.view()[0]; c == '`' || c == '}' || c == ']') {
      pending_.drop(1);
      return true;
    }
    const auto marker = marker_here();
    if (!marker) return false;
    if (*marker == kNumMarkers) {
      state_ = State::kContent;
    } else {
      take_marker(*marker, sink);
    }
    return true;
  }

  bool read_list(DeltaSink& sink) {
    const std::string_view text = pending_.view();
    if (text.empty()) return false;
    if (in_object_) {
      pending_.drop(reader_.read(text, sink));
      if (reader_.has_begun()) {
        has_section_ = true;
        raw_.clear();
      }
      if (reader_.state() == JsonCallReader::State::kMore) return false;
      in_object_ = false;
      if (reader_.state() == JsonCallReader::State::kFailed) {
        raw_ += reader_.raw();
        give_up(sink);
      }
      return true;
    }
    if (text[0] == '{') {
      reader_.start();
      in_object_ = true;
    } else if (is_blank(text[0]) || text[0] == '[' || text[0] == ',') {
      if (!raw_.empty()) raw_ += text[0];
      pending_.drop(1);
    } else if (raw_.empty()) {
      reader_.start();
      state_ = State::kTail;
    } else {
      give_up(sink);
    }
    return true;
  }

  SectionGrammar grammar_;
  State state_ = State::kContent;
  bool has_section_ = false;  // a call has begun since the section opened
  bool in_object_ = false;    // within an object of a list
  std::string header_;
  std::string raw_;     // since the section or the call opened, kept until the call begins
  std::string blanks_;  // at the end of raw arguments so far
  JsonValueScanner scanner_;
  JsonCallReader reader_;
};

}  // namespace

std::unique_ptr<ToolParser> make_section_parser(const SectionGrammar& grammar) {
  return std::make_unique<SectionParser>(grammar);
}

}  // namespace plimsoll::text
