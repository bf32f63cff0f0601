// SPDX-License-Identifier: Apache-2.0
#include "text/parsers/tagged_arguments.h"

#include "text/parsers/markers.h"

namespace plimsoll::text {
namespace {

constexpr std::string_view kCdataOpen = "<![CDATA[";
constexpr std::string_view kCdataClose = "]]>";

bool has_attribute(std::string_view header, std::string_view attribute) {
  return !attribute.empty() && header.find(attribute) != std::string_view::npos;
}

}  // namespace

std::string_view unquoted(std::string_view text) {
  text = trimmed(text);
  if (text.empty() || (text.front() != '"' && text.front() != '\'')) return text;
  const std::size_t end = text.find(text.front(), 1);
  return text.substr(1, end == std::string_view::npos ? std::string_view::npos : end - 1);
}

void TaggedArguments::begin_call(std::string_view tool) {
  types_.begin_call(tool);
  keys_.clear();
}

void TaggedArguments::begin_value(std::string_view header, DeltaSink& sink) {
  key_ = unquoted(header);
  type_ = types_.type_of(key_);
  const bool is_text = has_attribute(header, grammar_.text_attribute);
  is_json_ = !is_text && has_attribute(header, grammar_.json_attribute);
  streams_ = is_text || (!is_json_ && type_.is_text(grammar_.untyped));
  // Whether the value is wrapped shows at its end.
  if (grammar_.takes_cdata) streams_ = false;
  value_.clear();
  is_start_ = true;
  if (streams_) {
    begin_member(sink);
    sink.arguments("\"");
  }
}

void TaggedArguments::begin_member(DeltaSink& sink) {
  const std::string separator = keys_.empty() ? "{" : ", ";
  keys_.insert(key_);
  sink.arguments(separator + json_string(key_) + ": ");
}

void TaggedArguments::add(std::string_view text, DeltaSink& sink) {
  if (text.empty()) return;
  if (is_start_ && grammar_.trims_newlines && text.front() == '\n') text.remove_prefix(1);
  is_start_ = false;
  value_ += text;
  if (!streams_) return;
  const std::size_t num_held = grammar_.trims_newlines && value_.ends_with('\n') ? 1 : 0;
  std::string escaped;
  append_json_escaped(escaped, std::string_view(value_).substr(0, value_.size() - num_held));
  sink.arguments(escaped);
  value_.erase(0, value_.size() - num_held);
}

void TaggedArguments::end_value(DeltaSink& sink) {
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
  sink.arguments(is_json_ ? json_of_untyped(text) : type_.to_json(text, grammar_.untyped));
}

void TaggedArguments::cut_value(DeltaSink& sink) {
  if (!streams_) end_value(sink);
}

void TaggedArguments::end_call(DeltaSink& sink) {
  sink.arguments(keys_.empty() ? "{}" : "}");
}

bool TaggedArguments::goes_on_with(std::string_view key) const {
  return value_.ends_with('\n') && !keys_.contains(key) && types_.is_declared(key);
}

}  // namespace plimsoll::text
