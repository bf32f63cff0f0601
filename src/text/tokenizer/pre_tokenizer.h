// SPDX-License-Identifier: Apache-2.0
// How a tokenizer cuts text into the pieces that its model encodes one by one. Pieces of a byte-level
// tokenizer come out as raw bytes; steps that the file puts behind ByteLevel see the byte characters, as in
// the reference. Immutable after building; any thread may use one.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "text/tokenizer/regex.h"
#include "text/tokenizer/rewriter.h"

namespace plimsoll::text {

/// One piece, and where its bytes come from in the text that was cut.
struct Piece {
  std::string_view text;
  std::size_t begin = 0;                      // without `origin`: byte i of the piece is byte begin + i
  const std::vector<Span>* origin = nullptr;  // else byte i is (*origin)[begin + i]

  /// The part [from, to) of this piece.
  Piece part(std::size_t from, std::size_t to) const {
    return {text.substr(from, to - from), begin + from, origin};
  }
  /// Bytes of the text that bytes [from, to) of the piece stand for.
  Span source(std::size_t from, std::size_t to) const;
};

class PreTokenizer {
 public:
  enum class Behavior { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };
  enum class Prefix { kNever, kFirst, kAlways };  // when a word mark is put before a text

  /// From the "pre_tokenizer" member of tokenizer.json.
  /// Errors: kUnsupported naming a kind we lack or an expression we cannot compile; kMalformed.
  static Result<PreTokenizer> from_json(const Json& json);

  // For formats that name their rules (GGUF), in order.
  Status add_split(std::string_view pattern, Behavior behavior = Behavior::kIsolated, bool invert = false,
                   RegexFlavour flavour = RegexFlavour::kOniguruma);
  Status add_digits(bool individual);
  Status add_punctuation(Behavior behavior);
  Status add_byte_level(bool add_prefix_space, bool use_regex);
  void add_metaspace(std::string mark, Prefix prefix, bool splits);
  void add_bert();

  /// True when a step asks where a text began before it was normalised.
  bool needs_origin() const { return needs_origin_; }
  /// True when the vocabulary is written in byte characters.
  bool is_byte_level() const { return has_byte_level_; }

  /// What transformed pieces lie in: it must outlive them (deques do not move their elements).
  struct Storage {
    bool keeps_origin = false;
    std::deque<std::string> texts;
    std::deque<std::vector<Span>> origins;
  };
  /// Pieces of `utf8` in order, empty ones left out. `is_start`: the text begins what the user gave.
  std::vector<Piece> split(std::string_view utf8, bool is_start, Storage& storage) const;

  /// The one expression whose matches (and, with `keeps_gaps`, what lies between) are the pieces as they
  /// stand; null when there is more to do. It spares the lists.
  const Regex* single_pattern() const { return single_ < steps_.size() ? &steps_[single_].pattern : nullptr; }
  bool keeps_gaps() const { return keeps_gaps_; }

 private:
  struct Step {
    enum class Kind { kSplit, kByteLevel, kMetaspace, kBert } kind = Kind::kSplit;
    bool splits = false;  // by the pattern
    Regex pattern;
    Behavior behavior = Behavior::kIsolated;
    bool invert = false;
    bool add_prefix_space = false;    // kByteLevel
    std::string mark;                 // kMetaspace
    Prefix prefix = Prefix::kAlways;  // kMetaspace
  };
  struct Pass;
  Status add(const Json& json, int depth);
  Status add_json_split(const Json& json);
  void add_metaspace(const Json& json);
  void add_step(Step step);
  Status check_steps() const;

  std::vector<Step> steps_;
  bool has_byte_level_ = false;
  bool needs_origin_ = false;
  std::size_t single_ = SIZE_MAX;  // index of the step of single_pattern()
  bool keeps_gaps_ = false;
};

}  // namespace plimsoll::text
