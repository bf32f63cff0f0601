// SPDX-License-Identifier: Apache-2.0
// How the spellings of tokens become text again: byte characters, byte tokens, word marks. A list of steps
// over the tokens of one sequence, as tokenizer.json gives them. Immutable; any thread may use one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "text/tokenizer/regex.h"

namespace plimsoll::text {

class Decoder {
 public:
  /// From the "decoder" member of tokenizer.json; null joins tokens with blanks.
  /// Errors: kUnsupported naming a kind we lack; kMalformed.
  static Result<Decoder> from_json(const Json& json);
  /// Tokens are byte characters.
  static Decoder byte_level();
  // Tokens carry marks for blanks: inside a text with byte tokens (`strips_first`: the first blank is not the
  // user's), or before words.
  static Decoder marked(std::string mark, bool strips_first);
  static Decoder metaspace(std::string mark, bool strips_first);
  static Decoder word_piece(std::string prefix, bool cleans_up);

  /// True when a sequence decodes to the joined bytes of its tokens, whatever stands beside them.
  bool joins_bytes() const;
  /// Text of tokens, as they are spelled; bytes that are not UTF-8 become U+FFFD.
  std::string decode(std::vector<std::string> tokens) const;
  /// The bytes that one token contributes inside a text: byte tokens give their byte, marks their blank.
  std::string bytes_of(std::string_view token) const;

 private:
  enum class Kind { kByteLevel, kReplace, kByteFallback, kFuse, kStrip, kWordPiece, kMetaspace, kSuffix };
  struct Step {
    Kind kind = Kind::kFuse;
    Regex pattern{};        // kReplace
    std::string text{};     // what replaces; the stripped character; prefix, mark or suffix
    std::size_t start = 0;  // kStrip: at most so many from either end
    std::size_t stop = 0;
    bool flag = false;  // kWordPiece: clean up; kMetaspace: the first mark stands for nothing
  };
  Status add(const Json& json, int depth);
  static void run(const Step& step, std::vector<std::string>& tokens);

  std::vector<Step> steps_;
  std::string separator_;  // between tokens when there is no step
};

}  // namespace plimsoll::text
