// SPDX-License-Identifier: Apache-2.0
#include "inspect/claims.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "inspect/card_html.h"
#include "inspect/card_table.h"
#include "inspect/card_text.h"

namespace plimsoll::inspect {
namespace {

constexpr std::size_t kMaxClaims = 64;
constexpr std::size_t kSentence = 500;  // on either side; a card without stops is no prose

std::optional<Claim> made(Claim::Kind kind, const Number& number, double unit, std::string_view text) {
  constexpr double kMost = 1e16;
  const double value = number.value * unit;
  if (!(value >= 1) || value > kMost) return std::nullopt;
  const auto precision = static_cast<std::int64_t>(std::max(1.0, std::round(number.last_digit * unit)));
  return Claim{.kind = kind,
               .value = static_cast<std::int64_t>(std::llround(value)),
               .precision = precision,
               .text = std::string(text.substr(number.begin, number.end - number.begin))};
}

bool holds_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != text.npos; });
}

/// The part of a sentence around a number that belongs to it: up to a full stop, line end or other number.
std::string_view before(std::string_view text, std::size_t at) {
  const std::size_t begin = at > kReach ? at - kReach : 0;
  std::string_view part = text.substr(begin, at - begin);
  for (std::size_t i = part.size(); i-- > 0;)
    if (part[i] == '\n' || part[i] == ';' || is_digit(part[i]) || (part[i] == ',' && i + 1 < part.size()) ||
        (part[i] == '.' && i + 1 < part.size() && part[i + 1] == ' '))
      return part.substr(i + 1);
  return part;
}
std::string_view after(std::string_view text, std::size_t at) {
  const std::string_view part = text.substr(at, kReach);
  for (std::size_t i = 0; i < part.size(); ++i)
    if (part[i] == '\n' || part[i] == ';' || part[i] == ',' || is_digit(part[i]) ||
        (part[i] == '.' && (i + 1 == part.size() || part[i + 1] == ' ' || part[i + 1] == '\n')))
      return part.substr(0, i);
  return part;
}

/// The sentence or line that holds a place.
std::string_view sentence_at(std::string_view text, std::size_t at) {
  std::size_t begin = at, end = at;
  while (begin > 0 && at - begin < kSentence && text[begin - 1] != '\n' &&
         !(text[begin - 1] == ' ' && begin > 1 && text[begin - 2] == '.'))
    --begin;
  while (end < text.size() && end - at < kSentence && text[end] != '\n' &&
         !(text[end] == '.' && end + 1 < text.size() && (text[end + 1] == ' ' || text[end + 1] == '\n')))
    ++end;
  return text.substr(begin, end - begin);
}

/// Sentences about another model or a part of training: their figures are not this model's.
bool speaks_of_another(std::string_view sentence) {
  if (holds_any(sentence, {"this reward model"})) return false;
  return holds_any(sentence,
                   {"distill", "teacher", "draft model", "lora", "trainable", "adapter", "fine-tuned from",
                    "finetuned from", "derived from", "compared to", "outperform", "reward model", "policy",
                    "merge of", "merged from", "parameters each"});
}

/// Sentences about a test of lengths: what was tried is not what is promised.
bool speaks_of_a_test(std::string_view sentence) {
  return holds_any(sentence, {"needle", "evaluated at", "evaluated on", "tested at", "benchmark"});
}

/// Whether a sentence names the model itself: "DeepSeek-R1", not "DeepSeek-R1-Distill", not "QDeepSeek-R1"
/// and not "model".
bool names_it(std::string_view sentence, std::string_view name) {
  if (name.size() < 4 || std::none_of(name.begin(), name.end(), is_digit)) return false;
  const auto goes_on = [&](std::size_t at) {
    return at < sentence.size() && (is_letter(sentence[at]) || is_digit(sentence[at]) || sentence[at] == '-');
  };
  for (std::size_t at = sentence.find(name); at != sentence.npos; at = sentence.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    const bool is_version = end + 1 < sentence.size() && sentence[end] == '.' && is_digit(sentence[end + 1]);
    if (!goes_on(end) && !is_version && (at == 0 || !goes_on(at - 1))) return true;
  }
  return false;
}

/// "128K context", "1M context window", "context length: 131,072".
std::optional<Claim> length_claim(std::string_view text, const Number& number, std::string_view left,
                                  std::string_view right) {
  const bool is_length = number.unit_text == "k" || number.unit_text == "m" || number.unit_text.empty();
  const bool is_told_before =
      holds_any(left, {"context length", "context window", "context size", "sequence length"});
  // Millions are parameters unless the very next word says otherwise.
  const bool is_told_behind =
      number.unit_text == "m" ? right.starts_with(" context") || right.starts_with("-context") ||
                                    right.starts_with(" token context") || right.starts_with("-token context")
                              : holds_any(right.substr(0, 24), {"context"});
  if (!is_length || (!is_told_before && !is_told_behind)) return std::nullopt;
  // 128K means 131,072 or 128,000; both lie within what is said.
  const double unit = number.unit_text == "m" ? 1024.0 * 1024.0 : number.unit;
  return number.value * unit < 512 ? std::nullopt : made(Claim::Kind::kContext, number, unit, text);
}

/// What stands on both sides of a number and says what it counts.
struct Surroundings {
  std::string left;
  std::string_view right;
};

bool ends_in_word(std::string_view text, std::initializer_list<std::string_view> words) {
  text = text.substr(0, text.find_last_not_of(' ') + 1);
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return text.ends_with(word); });
}

std::optional<Claim> size_claim(std::string_view text, const Number& number, const Surroundings& around,
                                bool counts_parameters) {
  const std::string_view left = around.left, right = around.right;
  // "per token" and prose about training data are no sizes: 15T tokens.
  constexpr double kLeast = 1e6;  // written out: "8,190,735,360 parameters"
  const bool is_written_out = number.unit_text.empty() && number.value >= kLeast;
  if ((number.unit < kLeast && !is_written_out) || right.starts_with(" token") || right.starts_with("-token"))
    return std::nullopt;
  if (holds_any(left, {"non-embedding", "without embedding"}) ||
      holds_any(right.substr(0, 30), {"non-embedding", "without embedding", "vision encoder"}))
    return std::nullopt;
  if (holds_any(right.substr(0, 28), {"active", "activated"}) ||
      holds_any(left, {"activates", "activated param", "active param", "activated:", "active:"}) ||
      ends_in_word(left, {"active", "activated"}))
    return made(Claim::Kind::kActive, number, number.unit, text);
  if (counts_parameters || holds_any(right.substr(0, 24), {"total"}) ||
      ends_in_word(left, {"total", "total:"}))
    return made(Claim::Kind::kTotal, number, number.unit, text);
  return std::nullopt;
}

std::optional<Claim> claim_of(std::string_view text, const Number& number, std::string_view heading,
                              std::string_view name) {
  Surroundings around{std::string(heading) + std::string(before(text, number.begin)),
                      after(text, number.end)};
  const auto speaks_of_parameters = [](std::string_view part) {
    return holds_any(part, {"parameter", "params"});
  };
  bool is_listed = false;
  if (const std::size_t end = number.unit < 1e6 ? number.end : list_end(text, number.end);
      end != number.end) {
    // "135M, 360M, and 1.7B parameters": what is said of the last holds for all; "180B, 6B active" is none.
    const std::string_view behind = after(text, end);
    is_listed = speaks_of_parameters(behind) && !holds_any(behind, {"activ"});
    if (is_listed) around.right = behind;
  }
  const bool counts_parameters = speaks_of_parameters(around.left) || speaks_of_parameters(around.right);
  std::optional<Claim> claim;
  if (number.unit_text != "m" || !counts_parameters)
    claim = length_claim(text, number, around.left, around.right);
  if (!claim) claim = size_claim(text, number, around, counts_parameters);
  if (!claim) return std::nullopt;
  const std::string_view sentence = sentence_at(text, number.begin);
  const bool is_length = claim->kind == Claim::Kind::kContext;
  if (is_length ? speaks_of_a_test(sentence) : speaks_of_another(sentence)) return std::nullopt;
  claim->is_listed = is_listed;
  claim->is_own = !is_listed &&
                  (holds_any(sentence, {"this model", "this repo", "this checkpoint", "this reward model"}) ||
                   names_it(sentence, name));
  claim->is_aside = !is_length && (ends_range(text, number.begin) || begins_range(text, number.end));
  return claim;
}

/// Whether the row or column of a table that was looked at last is another model's. A folder of no particular
/// name leaves it open.
bool is_of_another(const CardTable& table, std::string_view heading, std::string_view name) {
  if (name.size() < 4 || std::none_of(name.begin(), name.end(), is_digit)) return false;
  const std::string row = plain(table.row_model().substr(0, 4 * kReach));
  if (row.find_first_not_of(' ') != row.npos) return !names_it(row, name);
  // "DeepSeek V3", not "Params (10^9)": such a column holds one model's figures.
  const bool is_name = std::any_of(heading.begin(), heading.end(), is_digit) &&
                       std::any_of(heading.begin(), heading.end(), is_letter);
  return is_name && !holds_any(heading, {"param", "context", "size", "activ"}) && !names_it(heading, name);
}

}  // namespace

std::vector<Claim> claims_in_text(std::string_view card, std::string_view model_name) {
  const std::string source = with_markdown_tables(shown(card)), text = plain(source),
                    name = plain(model_name);
  CardTable table(source);
  std::vector<Claim> claims;
  std::size_t listed = 0;  // up to here sizes belong to one list
  for (std::size_t at = 0; at < text.size() && claims.size() < kMaxClaims;) {
    if (!is_digit(text[at])) {
      ++at;
      continue;
    }
    // "v2.5", "x7b", "qwen3-30b": part of a name, which claims_in_name reads.
    const bool is_in_name = at > 0 && (is_letter(text[at - 1]) || text[at - 1] == '-' ||
                                       text[at - 1] == '.' || text[at - 1] == '_' || text[at - 1] == '/');
    const Number number = read_number(text, at);
    const bool runs_on =
        number.end < text.size() &&
        (text[number.end] == '_' ||
         (text[number.end] == '-' && number.end + 1 < text.size() && is_digit(text[number.end + 1])));
    if (!is_in_name && !runs_on) {
      const std::string heading = plain(table.heading_at(at).substr(0, kReach));
      if (auto claim = claim_of(text, number, heading, name)) {
        claim->is_listed |= at < listed;
        if (claim->is_listed) listed = std::max(listed, list_end(text, number.end));
        claim->is_aside |= is_of_another(table, heading, name);
        claim->text = source.substr(number.begin, std::min(number.end - number.begin, kReach));
        claims.push_back(std::move(*claim));
      }
    }
    at = std::max(number.end, at + 1);
  }
  return claims;
}

namespace {

/// The end of a size whose point is written "_", as in "1_8b"; 0 where there is none.
std::size_t decimal_end(std::string_view text, std::size_t at) {
  const std::size_t begin = at;
  while (at < text.size() && is_digit(text[at])) ++at;
  if (at == begin || at + 1 >= text.size() || text[at] != '_' || !is_digit(text[at + 1])) return 0;
  ++at;
  while (at < text.size() && is_digit(text[at])) ++at;
  const bool is_size = at < text.size() && (text[at] == 'b' || text[at] == 'm') &&
                       (at + 1 == text.size() || std::string_view("-_ /@").find(text[at + 1]) != text.npos);
  return is_size ? at + 1 : 0;
}

}  // namespace

std::vector<Claim> claims_in_name(std::string_view name) {
  std::vector<Claim> claims;
  const std::string text = plain(name);
  for (std::size_t at = 0; at < text.size() && claims.size() < kMaxClaims;) {
    std::size_t end = std::min(text.find_first_of("-_ /@", at), text.size());
    if (const std::size_t point = decimal_end(text, at); point > 0) end = point;
    std::string_view word = std::string_view(text).substr(at, end - at);
    Claim::Kind kind = Claim::Kind::kSize;
    if (word.size() > 2 && word.front() == 'a' && is_digit(word[1])) {
      kind = Claim::Kind::kActive;
      word.remove_prefix(1);
    }
    double experts = 1;
    if (const std::size_t x = word.find('x'); x != 0 && x < word.size() - 1 && x <= 3 && is_digit(word[0])) {
      experts = read_number(word.substr(0, x), 0).value;  // "8x22b"
      word.remove_prefix(x + 1);
    }
    if (!word.empty() && is_digit(word.front()) && !std::string_view(text).substr(end).starts_with("-tok")) {
      std::string written(word);
      std::replace(written.begin(), written.end(), '_', '.');
      const Number number = read_number(written, 0);
      const bool is_size = number.unit_text == "b" || number.unit_text == "m" || number.unit_text == "t";
      if (is_size && number.end == word.size())
        if (auto claim = made(kind, number, number.unit * experts, word)) {
          claim->text = std::string(name.substr(at, end - at));
          claims.push_back(std::move(*claim));
        }
    }
    at = end + 1;
  }
  // "1m" beside a size is a context length, as in "Qwen2.5-7B-Instruct-1M".
  const bool has_billions = std::any_of(claims.begin(), claims.end(), [](const Claim& claim) {
    return claim.kind == Claim::Kind::kSize && lower(claim.text.back()) == 'b';
  });
  if (has_billions) std::erase_if(claims, [](const Claim& claim) { return lower(claim.text.back()) == 'm'; });
  return claims;
}

bool agrees(const Claim& claim, std::int64_t actual) {
  constexpr double kTolerance = 0.05;
  constexpr double kMostCut = 0.4;  // 2.6 billion are sold as 2B, 1.9 are not as 1B
  const auto said = static_cast<double>(claim.value), found = static_cast<double>(actual);
  const auto unit = static_cast<double>(claim.precision);
  const double below = std::max(unit / 2, kTolerance * said);
  const double above = std::max(std::min(unit, kMostCut * said), kTolerance * said);
  return found >= said - below && found <= said + above;
}

}  // namespace plimsoll::inspect
