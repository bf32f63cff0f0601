// SPDX-License-Identifier: Apache-2.0
// Token ids <-> the bytes they stand for. Bytes lie in one block; look-up by bytes is one hash probe without
// allocation. Built once, then read-only for any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "text/text.h"

namespace plimsoll::text {

/// How a file spells its tokens.
enum class Spelling {
  kPlain,           // as text: "▁the", "##ing"
  kByteCharacters,  // GPT-2's characters for bytes: "Ġthe"
  kBytes            // any bytes as they are
};

class Vocabulary {
 public:
  struct Entry {
    std::string_view text;  // as the file spells it
    std::int64_t id = 0;
  };
  /// Of equal tokens the last one counts. Errors: kMalformed when an id is negative or absurdly far above the
  /// number of tokens.
  static Result<Vocabulary> build(const std::vector<Entry>& entries, Spelling spelling);

  Spelling spelling() const { return spelling_; }
  /// Highest id + 1.
  std::int64_t size() const { return static_cast<std::int64_t>(spans_.size()); }
  /// What models match pieces against: raw bytes, or the token's text where tokens are spelled plainly. ""
  /// for ids that nothing has.
  std::string_view bytes_of(TokenId id) const;
  bool has(TokenId id) const;
  /// The file's spelling.
  std::string text_of(TokenId id) const;
  /// The token that stands for exactly these bytes.
  std::optional<TokenId> find_bytes(std::string_view bytes) const;
  /// find_bytes for many keys at once, several times as fast on a large vocabulary: the memory of all is on
  /// its way before the first is looked at. `ids`: one per key, kNoToken where there is none.
  void find_many(std::span<const std::string_view> keys, std::span<TokenId> ids) const;
  static constexpr TokenId kNoToken = -1;
  /// Appends what find_bytes takes for a token spelled so in the file; false when it can be no such token.
  bool append_key(std::string_view text, std::string& key) const;
  /// The token spelled so in the file.
  std::optional<TokenId> find_text(std::string_view text) const;

 private:
  struct Place {
    std::uint32_t offset = 0;
    std::uint32_t length = 0;
    bool is_present = false;
    bool is_raw = false;  // its text is no string of byte characters and stands for itself
  };
  struct Slot {
    std::uint32_t id_plus_1 = 0;  // 0: empty
    std::uint32_t hash = 0;       // upper half: most strangers are told apart without reading their bytes
  };
  void index(TokenId id, std::uint64_t hash);
  void index_all(const std::vector<TokenId>& ids);

  Spelling spelling_ = Spelling::kPlain;
  std::string block_;
  std::vector<Place> spans_;  // by id
  std::vector<Slot> slots_;   // open addressing; a power of two long
  std::unordered_map<std::string, TokenId> raw_;
};

}  // namespace plimsoll::text
