// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/normalizer.h"

#include <algorithm>
#include <array>
#include <memory>
#include <span>

#include "base/utf8.h"
#include "text/tokenizer/base64.h"
#include "text/tokenizer/blanks.h"
#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/charsmap.h"
#include "text/tokenizer/pattern_json.h"
#include "text/tokenizer/unicode_form.h"

namespace plimsoll::text {
namespace {

constexpr int kMaxDepth = 20;  // nested Sequences
constexpr std::size_t kMaxSteps = 32;
constexpr std::size_t kMaxGrowth = 1024;
constexpr const char* kWhere = "tokenizer.json: /normalizer";

constexpr std::pair<std::string_view, UnicodeForm> kForms[] = {{"NFC", UnicodeForm::kNfc},
                                                               {"NFD", UnicodeForm::kNfd},
                                                               {"NFKC", UnicodeForm::kNfkc},
                                                               {"NFKD", UnicodeForm::kNfkd}};

// Origins of a later step seen from the first text: `inner` points into what `outer` describes.
void compose(std::vector<Span>& inner, const std::vector<Span>& outer, std::size_t outer_end) {
  const auto begin_of = [&](std::size_t at) { return at < outer.size() ? outer[at].begin : outer_end; };
  for (Span& span : inner) {
    const std::size_t begin = begin_of(span.begin);
    span = {begin, span.end > span.begin ? outer[span.end - 1].end : begin};
  }
}

void replace_all(Rewriter& rewriter, const Regex& pattern, const std::string& content) {
  const std::string_view text = rewriter.source();
  if (text.empty()) return;  // also where the pattern matches nothing
  std::array<Span, 64> matches;
  std::size_t at = 0;
  if (pattern.can_match_empty()) {
    for (const Span match : pattern.find_all_with_empty(text)) {
      rewriter.keep(at, match.begin);
      rewriter.put(content, match.begin, match.end);
      at = match.end;
    }
    rewriter.keep(at, text.size());
    return;
  }
  for (Regex::Cursor cursor; cursor.at < text.size();) {
    const std::size_t count = pattern.find_some(text, cursor, matches);
    for (const Span match : std::span(matches).first(count)) {
      rewriter.keep(at, match.begin);
      rewriter.put(content, match.begin, match.end);
      at = match.end;
    }
  }
  rewriter.keep(at, text.size());
}

void strip_ends(Rewriter& rewriter, bool left, bool right) {
  const std::string_view text = rewriter.source();
  const std::size_t begin = left ? blanks_at_start(text) : 0;
  const std::size_t end = right ? text.size() - blanks_at_end(text.substr(begin)) : text.size();
  rewriter.keep(begin, end);
}

}  // namespace

Result<Normalizer> Normalizer::from_json(const Json& json) {
  Normalizer normalizer;
  PLIMSOLL_TRY_VOID(normalizer.add(json, 0));
  return normalizer;
}

void Normalizer::add_step(Step step, Check changes_nothing) {
  steps_.push_back({std::move(step), std::move(changes_nothing)});
}

void Normalizer::add_nfc() {
  add_step([](Rewriter& rewriter) { write_form(rewriter, UnicodeForm::kNfc); },
           [](std::string_view text) { return surely_has_form(text, UnicodeForm::kNfc); });
}

void Normalizer::add_prepend(std::string prefix) {
  add_step([prefix = std::move(prefix)](Rewriter& rewriter) {
    // As in the reference, what is put in front stands for the first character, like that itself.
    const auto first = static_cast<std::size_t>(decode_utf8(rewriter.source()).bytes);
    if (first > 0) rewriter.put(prefix, 0, first);
    rewriter.keep(0, rewriter.source().size());
  });
}

void Normalizer::add_replace(Regex pattern, std::string content) {
  add_step([pattern = std::move(pattern), content = std::move(content)](Rewriter& rewriter) {
    replace_all(rewriter, pattern, content);
  });
}

void Normalizer::add_bert(const BertTextOptions& options) {
  add_step([options](Rewriter& rewriter) { bert_normalize(options, rewriter); });
}

Status Normalizer::add_charsmap(std::string_view blob) {
  if (blob.empty()) return {};  // some files carry an empty one: no rules
  PLIMSOLL_TRY(Charsmap charsmap, Charsmap::parse(blob));
  add_step([charsmap = std::make_shared<const Charsmap>(std::move(charsmap))](Rewriter& rewriter) {
    charsmap->apply(rewriter);
  });
  return {};
}

void Normalizer::add_strip(bool left, bool right) {
  add_step([left, right](Rewriter& rewriter) { strip_ends(rewriter, left, right); });
}

std::string_view Normalizer::apply(std::string_view utf8, std::string& storage,
                                   std::vector<Span>* origin) const {
  const std::size_t size = utf8.size();
  bool is_changed = false;
  for (const Stage& stage : steps_) {
    if (stage.changes_nothing && stage.changes_nothing(utf8)) continue;
    Rewriter rewriter(utf8, origin != nullptr);
    stage.step(rewriter);
    if (origin) {
      std::vector<Span> next = rewriter.take_origin();
      if (is_changed) compose(next, *origin, size);
      *origin = std::move(next);
    }
    storage = rewriter.take_text();
    utf8 = storage;
    is_changed = true;
  }
  return utf8;
}

std::string Normalizer::apply(std::string_view utf8) const {
  std::string storage;
  return std::string(apply(utf8, storage));
}

Status Normalizer::add(const Json& json, int depth) {
  if (json.is_null()) return {};
  const std::string* type = json["type"].as_string();
  if (!type) return fail(ErrorCode::kMalformed, "a normalizer has no type", kWhere);
  if (depth > kMaxDepth) return fail(ErrorCode::kMalformed, "normalizers are nested too deeply", kWhere);
  for (const auto& [name, form] : kForms) {
    if (*type != name) continue;
    add_step([form = form](Rewriter& rewriter) { write_form(rewriter, form); },
             [form = form](std::string_view text) { return surely_has_form(text, form); });
    return {};
  }
  if (*type == "Sequence") {
    for (const Json& part : json["normalizers"].items()) {
      PLIMSOLL_TRY_VOID(add(part, depth + 1));
      if (steps_.size() > kMaxSteps || growth_ > kMaxGrowth)
        return fail(ErrorCode::kUnsupported,
                    "more than 32 normalizers, or replacements that make a text 1,024 times as long, are not "
                    "supported",
                    kWhere);
    }
  } else if (*type == "Prepend" && json["prepend"].as_string()) {
    add_prepend(*json["prepend"].as_string());
  } else if (*type == "Strip") {
    add_strip(json["strip_left"].as_bool().value_or(true), json["strip_right"].as_bool().value_or(true));
  } else if (*type == "Replace" && json["content"].as_string()) {
    PLIMSOLL_TRY(Regex pattern, read_pattern(json["pattern"], kWhere));
    growth_ *= std::max<std::size_t>(
        1, json["content"].as_string()->size() /
               std::max<std::size_t>(1, json["pattern"]["String"].as_string()
                                            ? json["pattern"]["String"].as_string()->size()
                                            : 1));
    add_replace(std::move(pattern), *json["content"].as_string());
  } else if (*type == "Lowercase") {
    add_step(lowercase);
  } else if (*type == "StripAccents") {
    add_step(strip_accents);
  } else if (*type == "ByteLevel") {
    add_step(write_byte_characters);
  } else if (*type == "Nmt") {
    add_step(nmt);
  } else if (*type == "BertNormalizer") {
    add_bert({.clean_text = json["clean_text"].as_bool().value_or(true),
              .handle_chinese_chars = json["handle_chinese_chars"].as_bool().value_or(true),
              .strip_accents = json["strip_accents"].as_bool(),
              .lowercase = json["lowercase"].as_bool().value_or(true)});
  } else if (*type == "Precompiled" && json["precompiled_charsmap"].as_string()) {
    std::vector<char> blob;
    if (!append_base64(blob, *json["precompiled_charsmap"].as_string()))
      return fail(ErrorCode::kMalformed, "the precompiled charsmap is no base64", kWhere);
    return add_charsmap(std::string_view(blob.data(), blob.size()));
  } else {
    return fail(ErrorCode::kUnsupported, "normalizer kind " + *type + " is not supported", kWhere);
  }
  return {};
}

}  // namespace plimsoll::text
