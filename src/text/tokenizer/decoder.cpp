// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/decoder.h"

#include "base/utf8.h"
#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/byte_tokens.h"
#include "text/tokenizer/pattern_json.h"

namespace plimsoll::text {
namespace {

constexpr int kMaxDepth = 20;  // nested Sequences
constexpr const char* kWhere = "tokenizer.json: /decoder";

std::string replaced(const std::string& text, const Regex& pattern, const std::string& content) {
  std::string out;
  std::size_t at = 0;
  for (const Span span :
       pattern.can_match_empty() ? pattern.find_all_with_empty(text) : pattern.find_all(text)) {
    out.append(text, at, span.begin - at).append(content);
    at = span.end;
  }
  return out.append(text, at);
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  std::size_t at = 0;
  if (from.empty()) {  // as the reference has it: between all characters and at both ends
    for (; at < text.size(); at += static_cast<std::size_t>(decode_utf8(text.substr(at)).bytes))
      out.append(to).append(text.substr(at, static_cast<std::size_t>(decode_utf8(text.substr(at)).bytes)));
    return out.append(to);
  }
  for (std::size_t found; (found = text.find(from, at)) != std::string_view::npos; at = found + from.size())
    out.append(text.substr(at, found - at)).append(to);
  return out.append(text.substr(at));
}

// Runs of byte tokens become their text, or one U+FFFD for each when they are none.
std::vector<std::string> with_bytes_joined(std::vector<std::string> tokens) {
  std::vector<std::string> out;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    if (is_valid_utf8(bytes))
      out.push_back(bytes);
    else
      for (std::size_t i = 0; i < bytes.size(); ++i) out.emplace_back("\uFFFD");
    bytes.clear();
  };
  for (std::string& token : tokens) {
    if (const int byte = byte_of_token(token); byte >= 0) {
      bytes += static_cast<char>(byte);
      continue;
    }
    flush();
    out.push_back(std::move(token));
  }
  flush();
  return out;
}

std::string stripped(std::string_view text, std::string_view character, std::size_t start, std::size_t stop) {
  if (character.empty()) return std::string(text);
  for (; start > 0 && text.starts_with(character); --start) text.remove_prefix(character.size());
  for (; stop > 0 && text.ends_with(character); --stop) text.remove_suffix(character.size());
  return std::string(text);
}

// English as BERT's tokenizer spaces it.
std::string cleaned_up(std::string text) {
  static constexpr std::pair<std::string_view, std::string_view> kChanges[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kChanges) text = replaced(text, from, to);
  return text;
}

}  // namespace

Result<Decoder> Decoder::from_json(const Json& json) {
  Decoder made;
  if (json.is_null()) made.separator_ = " ";
  PLIMSOLL_TRY_VOID(made.add(json, 0));
  return made;
}

Decoder Decoder::byte_level() {
  Decoder made;
  made.steps_.push_back({.kind = Kind::kByteLevel});
  return made;
}

Decoder Decoder::marked(std::string mark, bool strips_first) {
  Decoder made;
  made.steps_.push_back({.kind = Kind::kReplace, .pattern = Regex::literal(mark), .text = " "});
  made.steps_.push_back({.kind = Kind::kByteFallback});
  made.steps_.push_back({.kind = Kind::kFuse});
  if (strips_first) made.steps_.push_back({.kind = Kind::kStrip, .text = " ", .start = 1});
  return made;
}

Decoder Decoder::metaspace(std::string mark, bool strips_first) {
  Decoder made;
  made.steps_.push_back({.kind = Kind::kMetaspace, .text = std::move(mark), .flag = strips_first});
  return made;
}

Decoder Decoder::word_piece(std::string prefix, bool cleans_up) {
  Decoder made;
  made.steps_.push_back({.kind = Kind::kWordPiece, .text = std::move(prefix), .flag = cleans_up});
  return made;
}

Status Decoder::add(const Json& json, int depth) {
  if (json.is_null()) return {};
  const std::string* type = json["type"].as_string();
  if (!type || depth > kMaxDepth) return fail(ErrorCode::kMalformed, "a decoder has no type", kWhere);
  const auto text = [&](const char* key, const char* otherwise) {
    const std::string* value = json[key].as_string();
    return value ? *value : std::string(otherwise);
  };
  const auto count = [&](const char* key) {
    return static_cast<std::size_t>(std::max<std::int64_t>(0, json[key].as_integer().value_or(0)));
  };
  if (*type == "Sequence") {
    for (const Json& part : json["decoders"].items()) PLIMSOLL_TRY_VOID(add(part, depth + 1));
  } else if (*type == "ByteLevel") {
    steps_.push_back({.kind = Kind::kByteLevel});
  } else if (*type == "ByteFallback") {
    steps_.push_back({.kind = Kind::kByteFallback});
  } else if (*type == "Fuse") {
    steps_.push_back({.kind = Kind::kFuse});
  } else if (*type == "Strip") {
    steps_.push_back(
        {.kind = Kind::kStrip, .text = text("content", " "), .start = count("start"), .stop = count("stop")});
  } else if (*type == "WordPiece") {
    steps_.push_back({.kind = Kind::kWordPiece,
                      .text = text("prefix", "##"),
                      .flag = json["cleanup"].as_bool().value_or(true)});
  } else if (*type == "Metaspace") {
    const bool always = json["prepend_scheme"].as_string()
                            ? *json["prepend_scheme"].as_string() != "never"
                            : json["add_prefix_space"].as_bool().value_or(true);
    steps_.push_back({.kind = Kind::kMetaspace, .text = text("replacement", "▁"), .flag = always});
  } else if (*type == "BPEDecoder") {
    steps_.push_back({.kind = Kind::kSuffix, .text = text("suffix", "</w>")});
  } else if (*type == "Replace") {
    Step step{.kind = Kind::kReplace, .text = text("content", "")};
    PLIMSOLL_TRY(step.pattern, read_pattern(json["pattern"], kWhere));
    steps_.push_back(std::move(step));
  } else {
    return fail(ErrorCode::kUnsupported, "decoder kind " + *type + " is not supported", kWhere);
  }
  return {};
}

bool Decoder::joins_bytes() const {
  return steps_.size() == 1 && steps_[0].kind == Kind::kByteLevel;
}

void Decoder::run(const Step& step, std::vector<std::string>& tokens) {
  switch (step.kind) {
    case Kind::kByteLevel: {
      std::string bytes;
      for (const std::string& token : tokens) bytes += token_to_bytes(token);
      tokens = {is_valid_utf8(bytes) ? std::move(bytes) : replace_invalid_utf8(bytes)};
      return;
    }
    case Kind::kReplace:
      for (std::string& token : tokens) token = replaced(token, step.pattern, step.text);
      return;
    case Kind::kByteFallback:
      tokens = with_bytes_joined(std::move(tokens));
      return;
    case Kind::kFuse: {
      std::string joined;
      for (const std::string& token : tokens) joined += token;
      tokens = {std::move(joined)};
      return;
    }
    case Kind::kStrip:
      for (std::string& token : tokens) token = stripped(token, step.text, step.start, step.stop);
      return;
    case Kind::kWordPiece:
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (i > 0 && tokens[i].starts_with(step.text))
          tokens[i].erase(0, step.text.size());
        else if (i > 0)
          tokens[i].insert(0, " ");
        if (step.flag) tokens[i] = cleaned_up(std::move(tokens[i]));
      }
      return;
    case Kind::kMetaspace:
      for (std::size_t i = 0; i < tokens.size(); ++i)
        tokens[i] = replaced(tokens[i], step.text, i == 0 && step.flag ? "" : " ");
      return;
    case Kind::kSuffix:
      for (std::size_t i = 0; i < tokens.size(); ++i)
        tokens[i] = replaced(tokens[i], step.text, i + 1 == tokens.size() ? "" : " ");
      return;
  }
}

std::string Decoder::decode(std::vector<std::string> tokens) const {
  for (const Step& step : steps_) run(step, tokens);
  std::string text;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) text += separator_;
    text += tokens[i];
  }
  return text;
}

std::string Decoder::bytes_of(std::string_view token) const {
  std::string text(token);
  for (const Step& step : steps_) switch (step.kind) {
      case Kind::kByteLevel:
        text = token_to_bytes(text);
        break;
      case Kind::kReplace:
        // A step before may have left part of a character, which expressions must not see.
        if (is_valid_utf8(text)) text = replaced(text, step.pattern, step.text);
        break;
      case Kind::kByteFallback:
        if (const int byte = byte_of_token(text); byte >= 0) return std::string(1, static_cast<char>(byte));
        break;
      case Kind::kWordPiece:
        if (text.starts_with(step.text)) {
          text.erase(0, step.text.size());
        } else {
          text.insert(0, " ");
        }
        break;
      case Kind::kMetaspace:
      case Kind::kSuffix:
        text = replaced(text, step.text, " ");
        break;
      case Kind::kFuse:
      case Kind::kStrip:  // of a whole text only
        break;
    }
  return text;
}

}  // namespace plimsoll::text
