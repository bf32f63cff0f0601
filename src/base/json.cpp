// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/utf8.h"

namespace plimsoll {
namespace {

const Json kNull;
const Json::Array kNoItems;
const Json::Object kNoMembers;

void dump_to(std::string& out, const Json& value, int indent, int level);

void new_line(std::string& out, int indent, int level) {
  out += '\n';
  out.append(static_cast<std::size_t>(indent) * static_cast<std::size_t>(level), ' ');
}

bool all_numbers(const Json::Array& items) {
  return std::all_of(items.begin(), items.end(),
                     [](const Json& item) { return item.is_number() || item.is_null(); });
}

void dump_array(std::string& out, const Json::Array& items, int indent, int level) {
  const bool lines = indent > 0 && !all_numbers(items);
  out += '[';
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += lines || indent == 0 ? "," : ", ";
    if (lines) new_line(out, indent, level + 1);
    dump_to(out, items[i], indent, level + 1);
  }
  if (lines && !items.empty()) new_line(out, indent, level);
  out += ']';
}

void dump_object(std::string& out, const Json::Object& members, int indent, int level) {
  out += '{';
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (i > 0) out += ',';
    if (indent > 0) new_line(out, indent, level + 1);
    append_json_string(out, members[i].first);
    out += indent > 0 ? ": " : ":";
    dump_to(out, members[i].second, indent, level + 1);
  }
  if (indent > 0 && !members.empty()) new_line(out, indent, level);
  out += '}';
}

void dump_to(std::string& out, const Json& value, int indent, int level) {
  if (value.is_null()) {
    out += "null";
  } else if (value.is_bool()) {
    out += *value.as_bool() ? "true" : "false";
  } else if (value.is_integer()) {
    out += std::to_string(*value.as_integer());
  } else if (value.is_double()) {
    const double number = *value.as_double();
    out += std::isfinite(number) ? format_double(number) : "null";
  } else if (value.is_string()) {
    append_json_string(out, *value.as_string());
  } else if (value.is_array()) {
    dump_array(out, value.items(), indent, level);
  } else {
    dump_object(out, value.members(), indent, level);
  }
}

}  // namespace

std::optional<bool> Json::as_bool() const {
  if (const auto* value = std::get_if<bool>(&value_)) return *value;
  return std::nullopt;
}

std::optional<std::int64_t> Json::as_integer() const {
  if (const auto* value = std::get_if<std::int64_t>(&value_)) return *value;
  // Doubles hold every whole number up to 2^53 exactly; beyond that "8.0" would no longer be a count.
  if (const auto* value = std::get_if<double>(&value_);
      value && std::fabs(*value) <= 9007199254740992.0 && *value == std::floor(*value))
    return static_cast<std::int64_t>(*value);
  return std::nullopt;
}

std::optional<double> Json::as_double() const {
  if (const auto* value = std::get_if<double>(&value_)) return *value;
  if (const auto* value = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*value);
  return std::nullopt;
}

const Json::Array& Json::items() const {
  const auto* items = std::get_if<Array>(&value_);
  return items ? *items : kNoItems;
}

const Json::Object& Json::members() const {
  const auto* members = std::get_if<Object>(&value_);
  return members ? *members : kNoMembers;
}

std::size_t Json::size() const {
  return is_array() ? items().size() : members().size();
}

const Json& Json::operator[](std::string_view key) const {
  const Object& object = members();
  const auto found =
      std::find_if(object.rbegin(), object.rend(), [&](const Member& member) { return member.first == key; });
  return found == object.rend() ? kNull : found->second;
}

bool Json::contains(std::string_view key) const {
  const Object& object = members();
  return std::any_of(object.begin(), object.end(), [&](const Member& member) { return member.first == key; });
}

const Json& Json::at_pointer(std::string_view pointer) const {
  const Json* value = this;
  while (!pointer.empty()) {
    if (pointer[0] != '/') return kNull;
    const std::size_t end = std::min(pointer.find('/', 1), pointer.size());
    std::string token(pointer.substr(1, end - 1));
    pointer.remove_prefix(end);
    for (std::size_t at = 0; (at = token.find('~', at)) != std::string::npos; ++at)
      token.replace(at, 2, token.compare(at, 2, "~1") == 0 ? "/" : "~");
    if (value->is_array()) {
      std::size_t index = 0;
      const auto [stop, error] = std::from_chars(token.data(), token.data() + token.size(), index);
      if (error != std::errc{} || stop != token.data() + token.size() || index >= value->size()) return kNull;
      value = &value->items()[index];
    } else {
      value = &(*value)[token];
    }
  }
  return *value;
}

Json& Json::set(std::string_view key, Json value) {
  auto& object = mutable_members();
  for (auto& member : object)
    if (member.first == key) {
      member.second = std::move(value);
      return *this;
    }
  object.emplace_back(std::string(key), std::move(value));
  return *this;
}

Json& Json::push_back(Json value) {
  mutable_items().push_back(std::move(value));
  return *this;
}

Json::Array& Json::mutable_items() {
  if (is_null()) value_ = Array{};
  PLIMSOLL_CHECK(is_array(), "items of a JSON value that is no array");
  return std::get<Array>(value_);
}

Json::Object& Json::mutable_members() {
  if (is_null()) value_ = Object{};
  PLIMSOLL_CHECK(is_object(), "members of a JSON value that is no object");
  return std::get<Object>(value_);
}

std::string format_double(double value) {
  char text[40];
  // Plain digits where people write them: 500000.0, not 5e+05.
  const double size = std::abs(value);
  const bool is_plain = size == 0.0 || (size >= 1e-4 && size < 1e15);
  const auto [end, error] = is_plain
                                ? std::to_chars(text, text + sizeof text, value, std::chars_format::fixed)
                                : std::to_chars(text, text + sizeof text, value);
  std::string result(text, end);
  if (result.find_first_not_of("-0123456789") == std::string::npos) result += ".0";
  return result;
}

void append_json_string(std::string& out, std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  const std::string repaired = is_valid_utf8(text) ? std::string() : replace_invalid_utf8(text);
  for (const char c : repaired.empty() ? text : std::string_view(repaired)) {
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        if (byte < 0x20) {
          out += "\\u00";
          out += kHex[byte >> 4];
          out += kHex[byte & 15];
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

std::string dump(const Json& value) {
  std::string out;
  dump_to(out, value, 0, 0);
  return out;
}

std::string dump_pretty(const Json& value, int indent) {
  std::string out;
  dump_to(out, value, indent, 0);
  out += '\n';
  return out;
}

}  // namespace plimsoll
