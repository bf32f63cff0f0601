// SPDX-License-Identifier: Apache-2.0
#include "text/parsers/json_scanner.h"

#include <optional>
#include <utility>

#include "base/json.h"
#include "text/parsers/markers.h"

namespace plimsoll::text {
namespace {

bool ends_scalar(char c) {
  return is_blank(c) || c == ',' || c == '}' || c == ']' || c == '<';
}

std::optional<std::string> decoded_string(std::string_view quoted) {
  const auto value = parse_json(quoted, "tool call");
  if (!value || !value->as_string()) return std::nullopt;
  return *value->as_string();
}

/// kYes: one of `markers` stands first in `text`.
Match match_any(std::string_view text, std::span<const std::string_view> markers) {
  Match best = Match::kNo;
  for (const std::string_view marker : markers) {
    if (marker.empty() || marker.front() != text.front()) continue;
    const Match match = match_at(text, marker);
    if (match == Match::kYes) return match;
    if (match == Match::kPartial) best = match;
  }
  return best;
}

}  // namespace

std::size_t JsonValueScanner::scan(std::string_view text, std::span<const std::string_view> ends) {
  std::size_t at = 0;
  if (!started_ && !text.empty()) {
    started_ = true;
    scalar_ = text[0] != '{' && text[0] != '[' && text[0] != '"';
  }
  for (; at < text.size() && !done_; ++at) {
    const char c = text[at];
    if (!in_string_ && !ends.empty()) {
      const Match match = match_any(text.substr(at), ends);
      done_ = match == Match::kYes;
      if (match != Match::kNo) return at;
    }
    if (scalar_) {
      if (!ends_scalar(c)) continue;
      done_ = true;
      return at;
    }
    if (escaped_) {
      escaped_ = false;
    } else if (in_string_) {
      escaped_ = c == '\\';
      if (c == '"') in_string_ = false;
    } else if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if (c == '}' || c == ']') {
      --depth_;
    }
    done_ = depth_ == 0 && !in_string_;
  }
  return at;
}

void JsonCallReader::start(bool has_marker) {
  *this = JsonCallReader(needs_arguments_, ends_);
  has_marker_ = has_marker;
}

std::size_t JsonCallReader::read(std::string_view text, DeltaSink& sink) {
  std::size_t at = 0;
  bool is_held = false;
  while (at < text.size() && state_ == State::kMore && !is_held) {
    const bool was_begun = begun_;
    std::size_t num_taken = 0;
    if (place_ == Place::kValueText) {
      num_taken = read_value(text.substr(at), sink);
      is_held = place_ == Place::kValueText && at + num_taken < text.size();
    } else if (take(text[at], sink)) {
      num_taken = 1;
    }
    if (!was_begun && !begun_) raw_ += text.substr(at, num_taken);
    if (begun_) raw_.clear();
    at += num_taken;
  }
  return at;
}

std::size_t JsonCallReader::read_value(std::string_view text, DeltaSink& sink) {
  const std::size_t num_taken = scanner_.scan(text, ends_);
  const std::string_view part = text.substr(0, num_taken);
  if (role_ == Role::kArguments && streams_value_) {
    add_arguments(part, sink);
  } else if (role_ != Role::kOther) {
    value_ += part;
  }
  if (scanner_.is_done()) {
    value_ended(sink);
    place_ = Place::kNext;
  }
  return num_taken;
}

/// Behind a key.
bool JsonCallReader::take_colon() {
  role_ = key_ == "\"name\"" || key_ == "\"tool_name\""         ? Role::kName
          : key_ == "\"arguments\"" || key_ == "\"parameters\"" ? Role::kArguments
                                                                : Role::kOther;
  if (!has_marker_ && !begun_ && role_ == Role::kOther && key_ != "\"type\"" && key_ != "\"id\"") {
    is_other_object_ = true;
    state_ = State::kFailed;
    return false;
  }
  // The first of equal members counts: it has been passed on.
  if ((role_ == Role::kName && has_name_) || (role_ == Role::kArguments && has_arguments_))
    role_ = Role::kOther;
  place_ = Place::kValue;
  return true;
}

/// `c` is a value's first byte, which is read with the value.
bool JsonCallReader::begin_value(char c, DeltaSink& sink) {
  const bool is_fit = role_ == Role::kName        ? c == '"'
                      : role_ == Role::kArguments ? c == '{' || c == '"' || c == 'n'
                                                  : true;
  if (!has_marker_ && !begun_ && !is_fit) {
    is_other_object_ = true;
    state_ = State::kFailed;
    return false;
  }
  scanner_.start();
  value_.clear();
  streams_value_ = c == '{' || c == '[';
  if (role_ == Role::kArguments) {
    has_arguments_ = true;
    begin_when_known(sink);
  }
  place_ = Place::kValueText;
  return false;
}

bool JsonCallReader::take(char c, DeltaSink& sink) {
  if (place_ == Place::kKeyText) {
    key_ += c;
    scanner_.scan({&c, 1});
    if (scanner_.is_done()) place_ = Place::kColon;
    return true;
  }
  if (is_blank(c)) return true;
  switch (place_) {
    case Place::kOpen:
      if (c != '{') break;
      place_ = Place::kKey;
      return true;
    case Place::kKey:
      if (c == '}') {
        object_ended(sink);
        return state_ == State::kDone;
      }
      if (c != '"') break;
      key_ = c;
      scanner_.start();
      scanner_.scan({&c, 1});
      place_ = Place::kKeyText;
      return true;
    case Place::kColon:
      if (c != ':') break;
      return take_colon();
    case Place::kValue:
      if (ends_scalar(c)) break;
      return begin_value(c, sink);
    case Place::kNext:
      if (c == ',') {
        place_ = Place::kKey;
        return true;
      }
      if (c != '}') break;
      object_ended(sink);
      return state_ == State::kDone;
    case Place::kKeyText:
    case Place::kValueText:
      break;
  }
  state_ = State::kFailed;
  return false;
}

void JsonCallReader::value_ended(DeltaSink& sink) {
  if (role_ == Role::kName) {
    if (auto name = decoded_string(value_); name && !name->empty()) {
      name_ = *std::move(name);
      has_name_ = true;
      begin_when_known(sink);
    }
  } else if (role_ == Role::kArguments && !streams_value_) {
    const auto text = decoded_string(value_);
    const auto inner = text ? parse_json(*text, "tool call") : Result<Json>();
    add_arguments(value_ == "null" ? "{}" : text && inner && inner->is_object() ? *text : value_, sink);
  }
}

void JsonCallReader::object_ended(DeltaSink& sink) {
  if (!has_name_ || (needs_arguments_ && !has_arguments_)) {
    state_ = State::kFailed;
    return;
  }
  if (!has_arguments_) add_arguments("{}", sink);
  state_ = State::kDone;
}

void JsonCallReader::begin_when_known(DeltaSink& sink) {
  if (begun_ || !has_name_ || (needs_arguments_ && !has_arguments_)) return;
  begun_ = true;
  sink.begin_call(name_);
  sink.arguments(std::exchange(held_arguments_, {}));
}

void JsonCallReader::add_arguments(std::string_view text, DeltaSink& sink) {
  if (begun_) {
    sink.arguments(text);
  } else {
    held_arguments_ += text;
  }
}

void JsonCallReader::cut(std::string_view rest, DeltaSink& sink) {
  if (!begun_ || place_ != Place::kValueText || role_ != Role::kArguments) return;
  if (!streams_value_) sink.arguments(value_);
  sink.arguments(rest);
}

}  // namespace plimsoll::text
