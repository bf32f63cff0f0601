// SPDX-License-Identifier: Apache-2.0
#include "text/parsers/argument_types.h"

#include <algorithm>

#include "text/parsers/markers.h"
#include "text/parsers/python_literal.h"

namespace plimsoll::text {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view beginning) { return text.starts_with(beginning); });
}

using Kind = ArgumentKind;

/// Schemas of the field name types loosely; these are the spellings vLLM takes.
Kind kind_of(std::string_view name) {
  const std::string type = lower(trimmed(name));
  if (type == "string" || type == "str" || type == "text" || type == "varchar" || type == "char" ||
      type == "enum")
    return Kind::kText;
  if (type == "null") return Kind::kNull;
  if (starts_with_any(type, {"int", "uint", "long", "short", "unsigned"})) return Kind::kInteger;
  if (starts_with_any(type, {"num", "float", "double"})) return Kind::kNumber;
  if (type == "boolean" || type == "bool" || type == "binary") return Kind::kBoolean;
  if (type == "object" || type == "array" || type == "arr" || starts_with_any(type, {"dict", "list"}))
    return Kind::kContainer;
  return Kind::kOther;
}

constexpr int kMaxLooks = 64;  // at schemas and type names per argument: a schema may refer to itself

void add_kind(std::string_view name, std::vector<Kind>& kinds) {
  const Kind kind = kind_of(name);
  if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
}

void collect_kinds(const Json& schema, const Json& root, int& num_looks, std::vector<Kind>& kinds) {
  if (++num_looks > kMaxLooks) return;
  if (const std::string* reference = schema["$ref"].as_string()) {
    if (reference->starts_with("#")) {
      collect_kinds(root.at_pointer(std::string_view(*reference).substr(1)), root, num_looks, kinds);
    }
    return;
  }
  const Json& type = schema["type"];
  if (const std::string* name = type.as_string()) {
    add_kind(*name, kinds);
    return;
  }
  for (const Json& name : type.items()) {
    if (++num_looks > kMaxLooks) return;
    if (name.as_string()) add_kind(*name.as_string(), kinds);
  }
  for (const std::string_view key : {"anyOf", "oneOf"}) {
    for (const Json& option : schema[key].items()) {
      if (num_looks > kMaxLooks) return;
      collect_kinds(option, root, num_looks, kinds);
    }
  }
}

bool is_integer_text(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  if (text.empty() || (text.size() > 1 && text.front() == '0')) return false;
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// JSON text of `text` as one kind, or nothing when it is none of that kind.
std::optional<std::string> as_kind(std::string_view text, Kind kind) {
  const std::string_view bare = trimmed(text);
  const std::string word = bare.size() <= 5 ? lower(bare) : std::string();
  if (kind == Kind::kText) return json_string(text);
  if (word == "null" || word == "none") return "null";
  switch (kind) {
    case Kind::kInteger:
      if (is_integer_text(bare)) return std::string(bare);
      return std::nullopt;
    case Kind::kNumber: {
      const auto number = python_literal_to_json(bare);
      const bool is_number =
          number && (number->front() == '-' || (number->front() >= '0' && number->front() <= '9'));
      return is_number ? number : std::nullopt;
    }
    case Kind::kBoolean:
      if (word == "true" || word == "false") return word;
      return std::nullopt;
    case Kind::kContainer:
    case Kind::kOther: {
      std::string value = json_of_untyped(bare);
      if (value.front() != '"') return value;
      // Some models write a container as the JSON string of its text.
      const auto inner = parse_json(value, "argument");
      if (kind == Kind::kContainer && inner && inner->as_string()) {
        std::string unwrapped = json_of_untyped(*inner->as_string());
        if (unwrapped.front() == '{' || unwrapped.front() == '[') return unwrapped;
      }
      return kind == Kind::kOther ? std::optional(std::move(value)) : std::nullopt;
    }
    case Kind::kNull:
    case Kind::kText:
      break;
  }
  return std::nullopt;
}

}  // namespace

void append_json_escaped(std::string& out, std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  append_json_escaped(out, text);
  out += '"';
  return out;
}

std::string json_of_untyped(std::string_view text) {
  const std::string_view bare = trimmed(text);
  // NaN and Infinity are Python's, not JSON's: they stay texts.
  if (parse_json(bare, "argument", {.max_depth = 200, .allow_bare_constants = false}))
    return std::string(bare);
  if (auto literal = python_literal_to_json(bare)) return *std::move(literal);
  return json_string(text);
}

ArgumentType::ArgumentType(const Json& schema, const Json& root) {
  int num_looks = 0;
  collect_kinds(schema, root, num_looks, kinds_);
}

bool ArgumentType::is_text(UntypedValue untyped) const {
  if (kinds_.empty()) return untyped == UntypedValue::kText;
  // A nullable string is one only when its text is known.
  return std::all_of(kinds_.begin(), kinds_.end(), [](Kind kind) { return kind == Kind::kText; });
}

std::string ArgumentType::to_json(std::string_view text, UntypedValue untyped) const {
  if (kinds_.empty()) return untyped == UntypedValue::kText ? json_string(text) : json_of_untyped(text);
  // null first: a nullable string's "null" is no text.
  if (std::find(kinds_.begin(), kinds_.end(), Kind::kNull) != kinds_.end()) {
    if (auto value = as_kind(text, Kind::kNull)) return *std::move(value);
  }
  for (const Kind kind : kinds_) {
    if (auto value = as_kind(text, kind)) return *std::move(value);
  }
  return json_string(text);
}

ArgumentTypes::ArgumentTypes(Json tools) : tools_(std::move(tools)) {
  for (const Json& entry : tools_.items()) {
    const Json& function = entry.contains("function") ? entry["function"] : entry;
    const Json& root = function.contains("parameters") ? function["parameters"] : function["input_schema"];
    if (const std::string* name = function["name"].as_string()) by_name_.emplace(*name, Tool{&root});
  }
}

void ArgumentTypes::begin_call(std::string_view tool) {
  const auto found = by_name_.find(tool);
  tool_ = found == by_name_.end() ? nullptr : &found->second;
  if (!tool_ || tool_->is_indexed) return;
  for (const auto& [name, schema] : (*tool_->root)["properties"].members())
    found->second.parameters[name] = &schema;
  found->second.is_indexed = true;
}

bool ArgumentTypes::is_declared(std::string_view parameter) const {
  return tool_ && tool_->parameters.contains(parameter);
}

ArgumentType ArgumentTypes::type_of(std::string_view parameter) const {
  if (!tool_) return {};
  const auto found = tool_->parameters.find(parameter);
  return found == tool_->parameters.end() ? ArgumentType() : ArgumentType(*found->second, *tool_->root);
}

}  // namespace plimsoll::text
