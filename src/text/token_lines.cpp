// SPDX-License-Identifier: Apache-2.0
#include "text/token_lines.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "text/chat.h"

namespace plimsoll::text {
namespace {

tl::unexpected<TemplateError> value_error(std::string message) {
  return tl::unexpected(TemplateError{"ValueError", std::move(message)});
}

std::optional<std::string> from_hex(std::string_view hex) {
  std::string bytes;
  if (hex.size() % 2 != 0) return std::nullopt;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(hex.data() + i, hex.data() + i + 2, value, 16);
    if (error != std::errc{} || end != hex.data() + i + 2) return std::nullopt;
    bytes += static_cast<char>(value);
  }
  return bytes;
}

Json streamed(const std::shared_ptr<const Tokenizer>& tokenizer, const std::vector<TokenId>& ids,
              bool skip_special) {
  StreamDecoder decoder(tokenizer, skip_special);
  Json chunks = Json::array();
  std::string all;
  for (const TokenId id : ids) {
    const auto chunk = decoder.push(id);
    if (chunk) all += *chunk;
    chunks.push_back(chunk);
  }
  const std::string rest = decoder.flush();
  return Json::object({{"chunks", std::move(chunks)}, {"flush", rest}, {"text", all + rest}});
}

// Spans in bytes of the repaired text as [begin, end) in characters. A character whose bytes are several ids'
// belongs to each of them.
Json offsets_json(std::string_view text, const std::vector<Span>& spans) {
  const std::string repaired = is_valid_utf8(text) ? std::string(text) : replace_invalid_utf8(text);
  std::vector<std::int64_t> begun(repaired.size() + 1);  // characters that begin before a byte
  for (std::size_t i = 0; i < repaired.size(); ++i)
    begun[i + 1] = begun[i] + ((static_cast<unsigned char>(repaired[i]) & 0xC0u) != 0x80u);
  Json offsets = Json::array();
  for (const Span span : spans) {
    const bool is_inside = span.begin < repaired.size() && begun[span.begin + 1] == begun[span.begin];
    offsets.push_back(Json(Json::Array{begun[span.begin] - (is_inside ? 1 : 0), begun[span.end]}));
  }
  return offsets;
}

Tokens num_tokens(const Tokenizer& tokenizer, std::string_view text, const EncodeOptions& options) {
  return Tokens(static_cast<std::int64_t>(tokenizer.encode(text, options).size()));
}

TokenCount counted(Tokens tokens, Tokens content) {
  return {tokens, tokens - std::min(tokens, content)};
}

}  // namespace

Json encoded(const Tokenizer& tokenizer, std::string_view text, const EncodeOptions& options,
             bool wants_offsets) {
  const Encoding encoding = wants_offsets ? tokenizer.encode_with_spans(text, options)
                                          : Encoding{tokenizer.encode(text, options), {}};
  Json ids = Json::array(), pieces = Json::array();
  for (const TokenId id : encoding.ids) {
    ids.push_back(id);
    pieces.push_back(replace_invalid_utf8(tokenizer.token_bytes(id)));
  }
  Json answer = Json::object({{"ids", std::move(ids)}, {"pieces", std::move(pieces)}});
  if (wants_offsets) answer.set("offsets", offsets_json(text, encoding.spans));
  return answer;
}

LineAnswer encode_line(const Tokenizer& tokenizer, const Json& line, const EncodeOptions& defaults,
                       bool wants_offsets) {
  EncodeOptions options;
  options.add_special_tokens = line["add_special_tokens"].as_bool().value_or(defaults.add_special_tokens);
  options.parse_special = line["parse_special"].as_bool().value_or(defaults.parse_special);
  wants_offsets = line["offsets"].as_bool().value_or(wants_offsets);
  if (const std::string* text = line["text"].as_string())
    return encoded(tokenizer, *text, options, wants_offsets);
  const std::string* hex = line["hex"].as_string();
  if (!hex) return value_error("the line holds neither text nor hex");
  const auto bytes = from_hex(*hex);
  if (!bytes) return value_error("hex holds no pairs of hexadecimal digits");
  return encoded(tokenizer, *bytes, options, wants_offsets);
}

LineAnswer decode_line(const std::shared_ptr<const Tokenizer>& tokenizer, const Json& line,
                       bool skip_special) {
  if (!line["ids"].is_array()) return value_error("the line holds no array ids");
  std::vector<TokenId> ids;
  for (const Json& item : line["ids"].items()) {
    const auto id = item.as_integer();
    if (!id || *id < 0 || *id > std::numeric_limits<TokenId>::max())
      return value_error("not a token id: " + dump(item));
    ids.push_back(static_cast<TokenId>(*id));
  }
  const bool skip = line["skip_special_tokens"].as_bool().value_or(skip_special);
  if (line["stream"].as_bool().value_or(false)) return streamed(tokenizer, ids, skip);
  return Json::object({{"text", tokenizer->decode(ids, skip)}});
}

LineAnswer answer_line(std::string_view line, const std::function<LineAnswer(const Json&)>& work) {
  const auto json = parse_json(line, "line");
  if (!json) return value_error(json.error().message);
  if (!json->is_object()) return value_error("the line holds no JSON object");
  return work(*json);
}

Json line_json(const LineAnswer& answer) {
  if (answer) return *answer;
  const TemplateError& error = answer.error();
  Json body = Json::object({{"class", error.type}, {"message", error.message}});
  if (error.line > 0) body.set("line", error.line);
  if (error.column > 0) body.set("column", error.column);
  return Json::object({{"error", std::move(body)}});
}

Error line_error(const TemplateError& error) {
  const ErrorCode code = error.type == "LimitError" ? ErrorCode::kUnsupported : ErrorCode::kMalformed;
  return {code, error.type + ": " + error.message, place_in_template(error), ""};
}

Result<Json> parse_ids(std::string_view text) {
  constexpr std::string_view kBetween = " \t\r\n,[]";
  Json ids = Json::array();
  std::size_t at = 0;
  while ((at = text.find_first_not_of(kBetween, at)) != text.npos) {
    const std::size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    std::int64_t id = 0;
    const auto [stop, error] = std::from_chars(text.data() + at, text.data() + end, id);
    if (error != std::errc{} || stop != text.data() + end)
      return fail(ErrorCode::kUsage, "not a token id: " + std::string(text.substr(at, end - at)), "",
                  "give ids as 1,2,3");
    ids.push_back(id);
    at = end;
  }
  return ids;
}

TokenCount count_text(const Tokenizer& tokenizer, std::string_view text, const EncodeOptions& options) {
  return counted(num_tokens(tokenizer, text, options),
                 num_tokens(tokenizer, text, {false, options.parse_special}));
}

TokenCount count_chat(const Tokenizer& tokenizer, const PromptGuard::Prompt& prompt, const Json& messages) {
  Tokens content;
  const auto add = [&](const Json& words) {
    if (const std::string* text = words.as_string()) content += num_tokens(tokenizer, *text, {false, false});
  };
  for (const Json& message : messages.items()) {
    add(message["content"]);
    for (const Json& part : message["content"].items()) add(part["text"]);
  }
  return counted(num_tokens(tokenizer, prompt.text, {false, prompt.parse_special, prompt.barriers}), content);
}

Tokens input_room(const TokenCount& count, Tokens max_model_len, Tokens reserved_output) {
  return std::max(Tokens(0), max_model_len - reserved_output - count.template_overhead);
}

}  // namespace plimsoll::text
