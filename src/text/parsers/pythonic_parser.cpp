// SPDX-License-Identifier: Apache-2.0
// Tool calls as Python calls: [f(a=1), g()] of Llama 3.2 and 4, LFM2 and Olmo 3. An argument is passed on
// when it is whole.
#include <algorithm>
#include <string>

#include "text/parsers/python_literal.h"
#include "text/parsers/tool_parser.h"

namespace plimsoll::text {
namespace {

constexpr std::size_t kMaxNameBytes = 1024;  // names are at most 64 characters in OpenAI's API

bool is_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '-';
}

bool is_name(std::string_view text) {
  return !text.empty() && !(text[0] >= '0' && text[0] <= '9') && text[0] != '-' && text[0] != '.' &&
         std::all_of(text.begin(), text.end(), is_name_byte);
}

class PythonicParser : public ToolParser {
 public:
  explicit PythonicParser(const PythonicGrammar& grammar)
      : grammar_(grammar), state_(grammar.from_start ? State::kStart : State::kContent) {}

  void finish(DeltaSink& sink) override {
    const bool keeps_pending = state_ == State::kStart || state_ == State::kContent || !raw_.empty();
    sink.content(raw_);
    if (keeps_pending) sink.content(pending_.view());
    sink.end();
  }

 protected:
  bool step(DeltaSink& sink) override {
    const std::string_view text = pending_.view();
    if (text.empty()) return false;
    switch (state_) {
      case State::kContent:
        return read_content(sink);
      case State::kStart:
        return read_start(sink);
      case State::kName:
        return read_name(sink);
      case State::kArguments:
        return read_arguments(sink);
      case State::kBetween:
        return read_between();
    }
    return false;
  }

 private:
  enum class State { kContent, kStart, kName, kArguments, kBetween };

  bool read_content(DeltaSink& sink) {
    const std::string_view text = pending_.view();
    const std::string_view markers[] = {grammar_.open,
                                        section_has_calls_ ? grammar_.close : std::string_view()};
    const MarkerHit hit = find_marker(text, markers);
    sink.content(text.substr(0, hit.at));
    pending_.drop(hit.at);
    if (hit.marker < 0) return false;
    section_has_calls_ = false;
    pending_.drop(markers[hit.marker].size());
    if (hit.marker == 0) {
      raw_ = grammar_.open;
      state_ = State::kStart;
    }
    return true;
  }

  /// Takes bytes that layout needs; they are content again when no call follows.
  void keep(std::size_t num_bytes) {
    if (!section_has_calls_) raw_ += pending_.view().substr(0, num_bytes);
    pending_.drop(num_bytes);
  }

  bool give_up(DeltaSink& sink) {
    sink.content(raw_);
    raw_.clear();
    state_ = State::kContent;
    return true;
  }

  bool read_start(DeltaSink& sink) {
    const std::string_view text = pending_.view();
    if (is_blank(text[0])) {
      keep(1);
      return true;
    }
    if (text[0] == '[' || (grammar_.lines && is_name_byte(text[0]))) {
      if (text[0] == '[') keep(1);
      start_name();
      return true;
    }
    const Match match = match_at(text, grammar_.open);
    if (match == Match::kPartial) return false;
    if (match == Match::kNo) return give_up(sink);
    keep(grammar_.open.size());
    return true;
  }

  void start_name() {
    name_.clear();
    is_name_over_ = false;
    state_ = State::kName;
  }

  bool read_name(DeltaSink& sink) {
    const std::string_view text = pending_.view();
    const std::size_t num_blanks = num_leading_blanks(text);
    if (num_blanks > 0) {
      is_name_over_ = !name_.empty();
      keep(num_blanks);
      return true;
    }
    std::size_t at = 0;
    while (at < text.size() && is_name_byte(text[at])) ++at;
    if ((at > 0 && is_name_over_) || name_.size() + at > kMaxNameBytes) return give_up(sink);
    name_ += text.substr(0, at);
    keep(at);
    if (pending_.view().empty()) return false;
    if (is_blank(pending_.view()[0])) return true;
    if (pending_.view()[0] != '(' || !is_name(name_)) return give_up(sink);
    keep(1);
    num_arguments_ = 0;
    has_begun_ = false;
    item_.clear();
    depth_ = 0;
    quote_ = '\0';
    escaped_ = false;
    state_ = State::kArguments;
    return true;
  }

  /// Collects one argument, up to a comma or the call's closing parenthesis.
  bool read_arguments(DeltaSink& sink) {
    const std::string_view text = pending_.view();
    std::size_t at = 0;
    while (at < text.size() && !ends_argument(text[at])) ++at;
    item_ += text.substr(0, at);
    keep_item(at);
    if (pending_.view().empty()) return false;
    const char end = pending_.view()[0];
    keep_item(1);
    if (!end_argument(end, sink)) return give_up(sink);
    item_.clear();
    if (end == ',') return true;
    if (num_arguments_ > 0) sink.arguments("}");
    state_ = State::kBetween;
    return true;
  }

  void keep_item(std::size_t num_bytes) {
    if (!has_begun_) raw_ += pending_.view().substr(0, num_bytes);
    pending_.drop(num_bytes);
  }

  bool ends_argument(char c) {
    if (quote_ != '\0') {
      if (escaped_) {
        escaped_ = false;
      } else if (c == '\\') {
        escaped_ = true;
      } else if (c == quote_) {
        quote_ = '\0';
      }
      return false;
    }
    if (c == '"' || c == '\'') quote_ = c;
    if (depth_ == 0 && (c == ',' || c == ')')) return true;
    if (c == '(' || c == '[' || c == '{') ++depth_;
    if (c == ')' || c == ']' || c == '}') --depth_;
    return false;
  }

  /// False when this is no call after all.
  bool end_argument(char end, DeltaSink& sink) {
    const std::string_view item = trimmed(item_);
    if (item.empty()) {  // f() and a trailing comma
      if (end != ')') return has_begun_;
      begin(sink);
      if (num_arguments_ == 0) sink.arguments("{}");
      return true;
    }
    const std::size_t equals = item.find('=');
    const std::string_view key = trimmed(item.substr(0, equals));
    if (equals == std::string_view::npos || !is_name(key)) {
      if (has_begun_) sink.content(item);
      return has_begun_;
    }
    begin(sink);
    const std::string_view value = trimmed(item.substr(equals + 1));
    std::string text = num_arguments_++ == 0 ? "{" : ", ";
    text += json_string(key) + ": ";
    text += python_literal_to_json(value).value_or(json_string(value));
    sink.arguments(text);
    return true;
  }

  void begin(DeltaSink& sink) {
    if (has_begun_) return;
    has_begun_ = true;
    section_has_calls_ = true;
    raw_.clear();
    sink.begin_call(name_);
  }

  bool read_between() {
    const std::string_view text = pending_.view();
    if (is_blank(text[0])) {
      pending_.drop(1);
    } else if (text[0] == ',' || text[0] == ';') {
      pending_.drop(1);
      section_has_calls_ = false;  // what follows is content unless it is a call
      start_name();
    } else if (text[0] == ']') {
      pending_.drop(1);
      state_ = State::kContent;
    } else if (grammar_.lines && is_name_byte(text[0])) {
      section_has_calls_ = false;
      start_name();
    } else {
      state_ = State::kContent;
    }
    return true;
  }

  PythonicGrammar grammar_;
  State state_;
  bool section_has_calls_ = false;
  bool has_begun_ = false;
  int num_arguments_ = 0;
  int depth_ = 0;      // of brackets within the argument
  char quote_ = '\0';  // that an open string ends with
  bool escaped_ = false;
  std::string name_;
  bool is_name_over_ = false;  // blanks have followed it
  std::string item_;           // the argument so far
  std::string raw_;            // kept while no call has begun
};

}  // namespace

std::unique_ptr<ToolParser> make_pythonic_parser(const PythonicGrammar& grammar) {
  return std::make_unique<PythonicParser>(grammar);
}

}  // namespace plimsoll::text
