// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/normalizer.h"

#include <utf8proc.h>

#include <cstdlib>
#include <memory>

#include "text/tokenizer/regex.h"
#include "text/unicode.h"

namespace plimsoll::text {
namespace {

constexpr int kMaxDepth = 20;  // nested Sequences

Normalizer::Step unicode_form(int options) {
  return [options](std::string text) {
    if (is_ascii(text)) return text;
    utf8proc_uint8_t* mapped = nullptr;
    const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                   static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                                   static_cast<utf8proc_option_t>(options | UTF8PROC_STABLE));
    const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
    if (size < 0) return text;
    return std::string(reinterpret_cast<const char*>(mapped), static_cast<std::size_t>(size));
  };
}

std::string replace_all(const std::string& text, const Regex& pattern, const std::string& content) {
  std::string out;
  std::size_t at = 0;
  for (const Span span : pattern.find_all(text)) {
    out.append(text, at, span.begin - at).append(content);
    at = span.end;
  }
  return out.append(text, at);
}

Result<Regex> read_pattern(const Json& pattern) {
  if (const std::string* text = pattern["String"].as_string()) return Regex::literal(*text);
  if (const std::string* text = pattern["Regex"].as_string()) return Regex::compile(*text);
  return fail(ErrorCode::kMalformed, "a pattern must be a String or a Regex");
}

}  // namespace

Result<Normalizer> Normalizer::from_json(const Json& json) {
  Normalizer normalizer;
  PLIMSOLL_TRY_VOID(normalizer.add(json, 0));
  return normalizer;
}

Normalizer Normalizer::nfc() {
  Normalizer normalizer;
  normalizer.steps_.push_back(unicode_form(UTF8PROC_COMPOSE));
  return normalizer;
}

std::string Normalizer::apply(std::string_view utf8) const {
  std::string text(utf8);
  for (const Step& step : steps_) text = step(std::move(text));
  return text;
}

Status Normalizer::add(const Json& json, int depth) {
  if (json.is_null()) return {};
  const std::string* type = json["type"].as_string();
  if (!type) return fail(ErrorCode::kMalformed, "a normalizer has no type", "tokenizer.json: /normalizer");
  if (depth > kMaxDepth)
    return fail(ErrorCode::kMalformed, "normalizers are nested too deeply", "tokenizer.json: /normalizer");
  if (*type == "Sequence") {
    for (const Json& part : json["normalizers"].items()) PLIMSOLL_TRY_VOID(add(part, depth + 1));
  } else if (*type == "NFC") {
    steps_.push_back(unicode_form(UTF8PROC_COMPOSE));
  } else if (*type == "NFD") {
    steps_.push_back(unicode_form(UTF8PROC_DECOMPOSE));
  } else if (*type == "NFKC") {
    steps_.push_back(unicode_form(UTF8PROC_COMPOSE | UTF8PROC_COMPAT));
  } else if (*type == "NFKD") {
    steps_.push_back(unicode_form(UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT));
  } else if (*type == "Lowercase") {
    steps_.push_back([](std::string text) { return to_lower(text); });
  } else if (*type == "Prepend" && json["prepend"].as_string()) {
    steps_.push_back([prefix = *json["prepend"].as_string()](std::string text) {
      return text.empty() ? text : prefix + text;
    });
  } else if (*type == "Strip") {
    const bool left = json["strip_left"].as_bool().value_or(true);
    const bool right = json["strip_right"].as_bool().value_or(true);
    steps_.push_back([left, right](std::string text) {
      std::string_view rest = text;
      if (left) rest = strip(rest, Side::kLeft);
      if (right) rest = strip(rest, Side::kRight);
      return std::string(rest);
    });
  } else if (*type == "Replace" && json["content"].as_string()) {
    PLIMSOLL_TRY(Regex pattern, read_pattern(json["pattern"]));
    steps_.push_back([pattern, content = *json["content"].as_string()](std::string text) {
      return replace_all(text, pattern, content);
    });
  } else {
    return fail(ErrorCode::kUnsupported, "normalizer kind " + *type + " is not supported",
                "tokenizer.json: /normalizer");
  }
  return {};
}

}  // namespace plimsoll::text
