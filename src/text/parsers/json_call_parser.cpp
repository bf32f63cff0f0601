// SPDX-License-Identifier: Apache-2.0
// Tool calls as JSON objects that hold their name: hermes and its relatives, Llama 3's bare objects, lists.
#include <string>

#include "text/parsers/json_scanner.h"
#include "text/parsers/tool_parser.h"

namespace plimsoll::text {
namespace {

class JsonCallParser : public ToolParser {
 public:
  explicit JsonCallParser(const JsonGrammar& grammar)
      : grammar_(grammar),
        state_(grammar.from_start ? State::kGap : State::kContent),
        has_marker_(!grammar.from_start),
        ends_{grammar.opens[0], grammar.opens[1], grammar.opens[2], grammar.close},
        reader_(grammar.needs_arguments, ends_) {}

  void finish(DeltaSink& sink) override {
    if (state_ == State::kObject) {
      if (reader_.has_begun()) {
        reader_.cut(pending_.view(), sink);
      } else {
        sink.content(raw_ + reader_.raw());
        sink.content(pending_.view());
      }
    } else if (state_ == State::kContent || state_ == State::kOtherObject) {
      sink.content(pending_.view());
    } else if (!section_has_calls_) {
      sink.content(raw_);
      sink.content(pending_.view());
    }
    sink.end();
  }

 protected:
  bool step(DeltaSink& sink) override {
    switch (state_) {
      case State::kContent:
        return read_content(sink);
      case State::kGap:
        return read_gap(sink);
      case State::kObject:
        return read_object(sink);
      case State::kOtherObject:
        return read_other_object(sink);
    }
    return false;
  }

 private:
  enum class State { kContent, kGap, kObject, kOtherObject };

  bool read_content(DeltaSink& sink) {
    const std::string_view text = pending_.view();
    // A close marker is layout only after calls; elsewhere it is text.
    const std::string_view markers[] = {grammar_.opens[0],
                                        grammar_.opens[1],
                                        grammar_.opens[2],
                                        section_has_calls_ ? grammar_.close : std::string_view(),
                                        grammar_.within_text ? "{\"name\":" : std::string_view(),
                                        grammar_.within_text ? "{\"type\":" : std::string_view()};
    const MarkerHit hit = find_marker(text, markers);
    sink.content(text.substr(0, hit.at));
    if (hit.marker < 0) {
      pending_.drop(hit.at);
      return false;
    }
    section_has_calls_ = false;
    if (hit.marker > 3) {
      pending_.drop(hit.at);
      has_marker_ = false;
      reader_.start(has_marker_);
      state_ = State::kObject;
      return true;
    }
    if (hit.marker != 3) {
      state_ = State::kGap;
      has_marker_ = true;
      if (!grammar_.drops_opens) raw_ = markers[hit.marker];
    }
    pending_.drop(hit.at + markers[hit.marker].size());
    return true;
  }

  /// Between objects of one section: commas, brackets, blanks, a close marker.
  bool read_gap(DeltaSink& sink) {
    const std::string_view text = pending_.view();
    if (text.empty()) return false;
    if (text[0] == '{') {
      reader_.start(has_marker_);
      state_ = State::kObject;
      return true;
    }
    // A stray closer after a call is a brace too many, not content.
    const std::string_view fillers = section_has_calls_ ? "[],;}" : "[],;";
    if (is_blank(text[0]) || fillers.find(text[0]) != std::string_view::npos) {
      if (!section_has_calls_) raw_ += text[0];
      pending_.drop(1);
      return true;
    }
    for (const std::string_view marker : ends_) {
      const Match match = match_at(text, marker);
      if (match == Match::kPartial) return false;
      if (match == Match::kNo) continue;
      if (!section_has_calls_ && !grammar_.drops_opens) raw_ += marker;
      pending_.drop(marker.size());
      has_marker_ = true;
      if (marker == grammar_.close) {
        leave_section(sink);
        section_has_calls_ = false;
      }
      return true;
    }
    leave_section(sink);
    return true;
  }

  void leave_section(DeltaSink& sink) {
    sink.content(raw_);
    raw_.clear();
    state_ = State::kContent;
  }

  bool read_object(DeltaSink& sink) {
    pending_.drop(reader_.read(pending_.view(), sink));
    if (reader_.has_begun()) {
      section_has_calls_ = true;
      raw_.clear();
    }
    if (reader_.state() == JsonCallReader::State::kMore) return false;
    if (reader_.state() == JsonCallReader::State::kDone) {
      state_ = State::kGap;
      return true;
    }
    raw_ += reader_.raw();
    leave_section(sink);
    if (reader_.is_other_object()) {
      other_.start();
      other_.scan(reader_.raw());
      state_ = State::kOtherObject;
    }
    return true;
  }

  /// The rest of an object that is content: objects within it are no calls either.
  bool read_other_object(DeltaSink& sink) {
    const std::string_view text = pending_.view();
    const std::size_t num_taken = other_.scan(text, ends_);
    sink.content(text.substr(0, num_taken));
    pending_.drop(num_taken);
    if (!other_.is_done()) return false;
    state_ = State::kContent;
    return true;
  }

  JsonGrammar grammar_;
  State state_;
  bool has_marker_;  // stands before the objects
  JsonCallReader::Ends ends_;
  JsonCallReader reader_;
  JsonValueScanner other_;
  bool section_has_calls_ = false;
  std::string raw_;  // the section so far, kept while no call has begun in it
};

}  // namespace

std::unique_ptr<ToolParser> make_json_call_parser(const JsonGrammar& grammar) {
  return std::make_unique<JsonCallParser>(grammar);
}

}  // namespace plimsoll::text
