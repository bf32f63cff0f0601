// SPDX-License-Identifier: Apache-2.0
// Reading side of base/json.h, on simdjson's on-demand parser: large tokenizer files parse at memory speed,
// and numbers stay available as text, so that integers beyond 64 bits do not end the document.
#include <simdjson.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include "base/json.h"
#include "base/mapped_file.h"

namespace plimsoll {
namespace {

namespace ondemand = simdjson::ondemand;

struct Reader {
  std::string_view source;
  std::string_view text;
  int max_depth;
  std::int64_t max_values;
  std::int64_t num_values = 0;

  tl::unexpected<Error> malformed(std::string reason, const char* at = nullptr) const {
    std::string where(source);
    if (at && at >= text.data() && at <= text.data() + text.size())
      where += ": byte " + std::to_string(at - text.data());
    return fail(ErrorCode::kMalformed, "JSON cannot be read: " + std::move(reason), std::move(where),
                "check that the file is complete and is JSON");
  }

  Result<Json> number(std::string_view token) const {
    while (!token.empty() &&
           (token.back() == ' ' || token.back() == '\n' || token.back() == '\r' || token.back() == '\t'))
      token.remove_suffix(1);
    const char* end = token.data() + token.size();
    const std::string_view digits = token.substr(token.starts_with('-') ? 1 : 0);
    const bool leading_zero = digits.size() > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9';
    if (digits.empty() || digits[0] < '0' || digits[0] > '9' || leading_zero || digits.back() == '.' ||
        digits.find(".e") != std::string_view::npos || digits.find(".E") != std::string_view::npos)
      return malformed("bad number", token.data());
    if (token.find_first_not_of("-0123456789") == std::string_view::npos) {
      std::int64_t whole = 0;
      const auto [stop, error] = std::from_chars(token.data(), end, whole);
      if (error == std::errc{} && stop == end) return Json(whole);
    }
    double value = 0;
    const auto [stop, error] = std::from_chars(token.data(), end, value);
    if (stop != end) return malformed("bad number", token.data());
    if (error == std::errc::result_out_of_range) {  // 1e999 reads as infinity in Python, 1e-999 as zero
      const bool tiny =
          token.find("e-") != std::string_view::npos || token.find("E-") != std::string_view::npos;
      value = tiny ? 0.0 : std::numeric_limits<double>::infinity();
      return Json(token[0] == '-' ? -value : value);
    }
    if (error != std::errc{}) return malformed("bad number", token.data());
    return Json(value);
  }

  Result<Json> object(ondemand::object object, int depth) {
    Json::Object members;
    for (auto field : object) {
      std::string_view key;
      if (const auto error = field.unescaped_key().get(key)) return malformed(simdjson::error_message(error));
      std::string name(key);
      ondemand::value child;
      if (const auto error = field.value().get(child)) return malformed(simdjson::error_message(error));
      PLIMSOLL_TRY(Json value, this->value(child, depth + 1));
      members.emplace_back(std::move(name), std::move(value));
    }
    return Json(std::move(members));
  }

  Result<Json> array(ondemand::array array, int depth) {
    Json::Array items;
    for (auto element : array) {
      ondemand::value child;
      if (const auto error = element.get(child)) return malformed(simdjson::error_message(error));
      PLIMSOLL_TRY(Json value, this->value(child, depth + 1));
      items.push_back(std::move(value));
    }
    return Json(std::move(items));
  }

  Result<Json> value(ondemand::value& value, int depth) {
    if (++num_values > max_values)
      return malformed("more than " + std::to_string(max_values) + " values, which no such file has");
    if (depth > max_depth) return malformed("nested deeper than " + std::to_string(max_depth));
    ondemand::json_type type{};
    if (const auto error = value.type().get(type)) return malformed(simdjson::error_message(error));
    switch (type) {
      case ondemand::json_type::object: {
        ondemand::object members;
        if (const auto error = value.get_object().get(members))
          return malformed(simdjson::error_message(error));
        return object(members, depth);
      }
      case ondemand::json_type::array: {
        ondemand::array items;
        if (const auto error = value.get_array().get(items)) return malformed(simdjson::error_message(error));
        return array(items, depth);
      }
      case ondemand::json_type::string: {
        std::string_view string;
        if (const auto error = value.get_string().get(string))
          return malformed(simdjson::error_message(error));
        return Json(std::string(string));
      }
      case ondemand::json_type::boolean: {
        bool flag = false;
        if (const auto error = value.get_bool().get(flag)) return malformed(simdjson::error_message(error));
        return Json(flag);
      }
      case ondemand::json_type::null: {
        bool null = false;
        if (const auto error = value.is_null().get(null); error || !null) return malformed("bad literal");
        return Json();
      }
      // The token is not consumed: the enclosing loop steps over it, so its range is ours to judge.
      case ondemand::json_type::number:
        return number(value.raw_json_token());
    }
    return malformed("unknown kind of value");
  }
};

// Python's json writes NaN, Infinity and -Infinity, which JSON lacks: give them as null outside strings.
// Returns false when there is nothing to replace.
bool replace_bare_constants(std::string& text) {
  bool in_string = false, changed = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (in_string) {
      if (text[i] == '\\')
        ++i;
      else if (text[i] == '"')
        in_string = false;
      continue;
    }
    if (text[i] == '"') in_string = true;
    for (const std::string_view constant : {"-Infinity", "Infinity", "NaN"}) {
      if (text.compare(i, constant.size(), constant) != 0) continue;
      text.replace(i, constant.size(),
                   std::string("null").append(constant.size() > 4 ? constant.size() - 4 : 0, ' '), 0,
                   std::string::npos);
      changed = true;
      break;
    }
  }
  return changed;
}

Result<Json> parse_once(std::string_view text, std::string_view source, const JsonReadOptions& options) {
  simdjson::padded_string padded(text);
  ondemand::parser parser;
  ondemand::document document;
  Reader reader{source, std::string_view(padded), options.max_depth, options.max_values};
  if (const auto error = parser.iterate(padded).get(document))
    return reader.malformed(simdjson::error_message(error));
  bool is_scalar = false;
  if (const auto error = document.is_scalar().get(is_scalar))
    return reader.malformed(simdjson::error_message(error));
  if (is_scalar) {  // on-demand documents treat bare scalars apart; wrap them so that one path reads all
    PLIMSOLL_TRY(Json wrapped, parse_once("[" + std::string(text) + "]", source, options));
    if (wrapped.size() != 1) return reader.malformed("text after the value");
    return std::move(wrapped.mutable_items()[0]);
  }
  Json result;
  ondemand::json_type type{};
  if (const auto error = document.type().get(type)) return reader.malformed(simdjson::error_message(error));
  if (type == ondemand::json_type::object) {
    ondemand::object members;
    if (const auto error = document.get_object().get(members))
      return reader.malformed(simdjson::error_message(error));
    PLIMSOLL_TRY(result, reader.object(members, 1));
  } else {
    ondemand::array items;
    if (const auto error = document.get_array().get(items))
      return reader.malformed(simdjson::error_message(error));
    PLIMSOLL_TRY(result, reader.array(items, 1));
  }
  const char* rest = nullptr;
  if (document.current_location().get(rest) == simdjson::SUCCESS)
    return reader.malformed("text after the value", rest);
  return result;
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view source, const JsonReadOptions& options) {
  try {
    auto result = parse_once(text, source, options);
    if (result || !options.allow_bare_constants) return result;
    std::string repaired(text);
    if (!replace_bare_constants(repaired)) return result;
    return parse_once(repaired, source, options);
  } catch (const std::exception& error) {  // simdjson_error, bad_alloc of the library
    return fail(ErrorCode::kMalformed, std::string("JSON cannot be read: ") + error.what(),
                std::string(source));
  }
}

Result<Json> read_json_file(const std::string& path, std::int64_t max_bytes) {
  PLIMSOLL_TRY(std::string text, read_file(path, max_bytes));
  return parse_json(text, path);
}

}  // namespace plimsoll
