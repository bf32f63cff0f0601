// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/pre_tokenizer.h"

#include <algorithm>

#include "base/utf8.h"
#include "text/tokenizer/bert_text.h"
#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/known_patterns.h"

namespace plimsoll::text {
namespace {

using Behavior = PreTokenizer::Behavior;

struct Part {
  Span span;
  bool is_match = false;
};

std::vector<Part> parts_of(std::string_view text, const Regex& pattern, bool invert) {
  std::vector<Part> parts;
  std::size_t at = 0;
  // Expressions that match the empty text cut there, too.
  for (const Span span :
       pattern.can_match_empty() ? pattern.find_all_with_empty(text) : pattern.find_all(text)) {
    if (span.begin > at) parts.push_back({{at, span.begin}, invert});
    parts.push_back({span, !invert});
    at = span.end;
  }
  if (at < text.size()) parts.push_back({{at, text.size()}, invert});
  return parts;
}

std::vector<Span> arranged(std::vector<Part> parts, Behavior behavior) {
  std::vector<Span> out;
  // Merging with the next part is the mirror image of merging with the previous one.
  if (behavior == Behavior::kMergedWithNext) std::reverse(parts.begin(), parts.end());
  bool previous = false;
  for (const Part& part : parts) {
    const bool merges =
        (behavior == Behavior::kContiguous && !out.empty() && part.is_match == previous) ||
        ((behavior == Behavior::kMergedWithPrevious || behavior == Behavior::kMergedWithNext) &&
         part.is_match && !previous && !out.empty());
    if (merges) {
      out.back() = {std::min(out.back().begin, part.span.begin), std::max(out.back().end, part.span.end)};
    } else if (behavior != Behavior::kRemoved || !part.is_match) {
      out.push_back(part.span);
    }
    previous = part.is_match;
  }
  if (behavior == Behavior::kMergedWithNext) std::reverse(out.begin(), out.end());
  return out;
}

void write_bytes(Rewriter& rewriter) {
  const std::string_view text = rewriter.source();
  std::string byte;
  for (std::size_t i = 0; i < text.size();) {
    const auto size = static_cast<std::size_t>(decode_utf8(text.substr(i)).bytes);
    if (characters_to_bytes(text.substr(i, size), byte))
      rewriter.put(byte, i, i + size);
    else
      rewriter.keep(i, i + size);
    i += size;
  }
}

void write_with_prefix(Rewriter& rewriter, std::string_view prefix) {
  rewriter.put(prefix, 0, static_cast<std::size_t>(decode_utf8(rewriter.source()).bytes));
  rewriter.keep(0, rewriter.source().size());
}

void write_marks(Rewriter& rewriter, std::string_view mark) {
  const std::string_view text = rewriter.source();
  std::size_t at = 0;
  for (std::size_t blank; (blank = text.find(' ', at)) != std::string_view::npos; at = blank + 1) {
    rewriter.keep(at, blank);
    rewriter.put(mark, blank, blank + 1);
  }
  rewriter.keep(at, text.size());
}

}  // namespace

Span Piece::source(std::size_t from, std::size_t to) const {
  if (!origin) return {begin + from, begin + to};
  if (from >= to) return {};
  return {(*origin)[begin + from].begin, (*origin)[begin + to - 1].end};
}

Status PreTokenizer::check_steps() const {
  constexpr std::size_t kMaxSteps = 32;
  if (steps_.size() <= kMaxSteps) return {};
  return fail(ErrorCode::kUnsupported, "more than 32 pre-tokenizers are not supported",
              "tokenizer.json: /pre_tokenizer");
}

void PreTokenizer::add_step(Step step) {
  steps_.push_back(std::move(step));
  // A lone expression, alone or before a ByteLevel that only says how the vocabulary is spelled.
  single_ = SIZE_MAX;
  std::size_t splitting = 0;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Step& each = steps_[i];
    if (each.kind == Step::Kind::kMetaspace || each.kind == Step::Kind::kBert || each.add_prefix_space)
      return;
    if (each.kind == Step::Kind::kByteLevel && i + 1 < steps_.size()) return;
    if (!each.splits) continue;
    splitting = i;
    if (splitting > 0) return;
  }
  if (steps_[splitting].splits && !steps_[splitting].pattern.can_match_empty() &&
      ((steps_[splitting].behavior == Behavior::kIsolated) ||
       (steps_[splitting].behavior == Behavior::kRemoved && steps_[splitting].invert))) {
    single_ = splitting;
    keeps_gaps_ = steps_[splitting].behavior == Behavior::kIsolated;
  }
}

Status PreTokenizer::add_split(std::string_view pattern, Behavior behavior, bool invert,
                               RegexFlavour flavour) {
  Step step;
  step.splits = true;
  PLIMSOLL_TRY(step.pattern, Regex::compile(pattern, Regex::Engine::kFastest, flavour));
  step.behavior = behavior;
  step.invert = invert;
  add_step(std::move(step));
  return {};
}

Status PreTokenizer::add_digits(bool individual) {
  return add_split(R"(\p{rust_numeric})", individual ? Behavior::kIsolated : Behavior::kContiguous);
}

Status PreTokenizer::add_punctuation(Behavior behavior) {
  return add_split(R"(\p{rust_punctuation})", behavior);
}

Status PreTokenizer::add_byte_level(bool add_prefix_space, bool use_regex) {
  Step step;
  step.kind = Step::Kind::kByteLevel;
  step.add_prefix_space = add_prefix_space;
  step.splits = use_regex;
  if (use_regex) {
    PLIMSOLL_TRY(step.pattern, Regex::compile(kGpt2Pattern));
  }
  has_byte_level_ = true;
  add_step(std::move(step));
  return {};
}

void PreTokenizer::add_metaspace(std::string mark, Prefix prefix, bool splits) {
  Step step;
  step.kind = Step::Kind::kMetaspace;
  step.pattern = Regex::literal(mark);
  step.mark = std::move(mark);
  step.prefix = prefix;
  needs_origin_ = needs_origin_ || prefix == Prefix::kFirst;
  step.splits = splits;
  step.behavior = Behavior::kMergedWithNext;
  add_step(std::move(step));
}

void PreTokenizer::add_bert() {
  Step step;
  step.kind = Step::Kind::kBert;
  add_step(std::move(step));
}

// One step over the pieces of the step before.
struct PreTokenizer::Pass {
  const Step& step;
  bool becomes_characters;
  bool is_start;
  Storage& storage;
  std::vector<Piece> pieces;

  template <class Write>
  Piece rewritten(const Piece& piece, const Write& write) {
    Rewriter rewriter(piece.text, storage.keeps_origin);
    write(rewriter);
    Piece made{storage.texts.emplace_back(rewriter.take_text()), 0, nullptr};
    if (storage.keeps_origin) {
      std::vector<Span>& origin = storage.origins.emplace_back(rewriter.take_origin());
      for (Span& span : origin) {
        const std::size_t at = span.begin < piece.text.size() ? piece.source(span.begin, span.begin + 1).begin
                               : span.begin > 0               ? piece.source(0, span.begin).end
                                                              : piece.source(0, 0).begin;
        span = span.begin < span.end ? piece.source(span.begin, span.end) : Span{at, at};
      }
      made.origin = &origin;
    }
    return made;
  }

  void keep(const Piece& piece) {
    if (!piece.text.empty())
      pieces.push_back(becomes_characters ? rewritten(piece, write_byte_characters) : piece);
  }

  void take(Piece piece) {
    if (step.add_prefix_space && !piece.text.starts_with(' '))
      piece = rewritten(piece, [](Rewriter& out) { write_with_prefix(out, " "); });
    if (step.kind == Step::Kind::kMetaspace) {
      piece = rewritten(piece, [&](Rewriter& out) { write_marks(out, step.mark); });
      const bool wants = step.prefix == Prefix::kAlways ||
                         (step.prefix == Prefix::kFirst && is_start && piece.source(0, 1).begin == 0);
      if (wants && !piece.text.starts_with(step.mark))
        piece = rewritten(piece, [&](Rewriter& out) { write_with_prefix(out, step.mark); });
    }
    if (step.kind == Step::Kind::kBert) {
      std::vector<Span> spans;
      bert_split(piece.text, spans);
      for (const Span span : spans) keep(piece.part(span.begin, span.end));
    } else if (!step.splits) {
      keep(piece);
    } else {
      for (const Span span : arranged(parts_of(piece.text, step.pattern, step.invert), step.behavior))
        keep(piece.part(span.begin, span.end));
    }
  }
};

std::vector<Piece> PreTokenizer::split(std::string_view utf8, bool is_start, Storage& storage) const {
  std::vector<Piece> pieces;
  if (!utf8.empty()) pieces.push_back({utf8, 0, nullptr});
  storage.keeps_origin = storage.keeps_origin || needs_origin();
  bool in_characters = false;
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    // Only steps behind ByteLevel need to see its characters: usually there are none.
    const bool becomes_characters = steps_[s].kind == Step::Kind::kByteLevel && s + 1 < steps_.size();
    Pass pass{steps_[s], becomes_characters, is_start, storage, {}};
    pass.pieces.reserve(pieces.size());
    for (const Piece& piece : pieces) pass.take(piece);
    pieces = std::move(pass.pieces);
    in_characters = in_characters || becomes_characters;
  }
  if (in_characters) {
    Pass pass{steps_.back(), false, is_start, storage, {}};
    for (Piece& piece : pieces) piece = pass.rewritten(piece, write_bytes);
  }
  return pieces;
}

}  // namespace plimsoll::text
