// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/vocabulary.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "text/tokenizer/byte_level.h"

namespace plimsoll::text {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 30;  // offsets are 32 bits
constexpr std::size_t kBatch = 64;                       // requests for memory that may be under way

std::uint64_t hash_of(std::string_view bytes) {
  std::uint64_t hash = bytes.size() * 0x9E3779B97F4A7C15ull;
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  const auto mix = [&](std::uint64_t word) {
    hash = (hash ^ word) * 0xD6E8FEB86659FD93ull;
    hash ^= hash >> 32;
  };
  for (; left >= 8; at += 8, left -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, 8);
    mix(word);
  }
  std::uint64_t tail = 0;
  if (left > 0) std::memcpy(&tail, at, left);
  mix(tail);
  return hash;
}

}  // namespace

Result<Vocabulary> Vocabulary::build(const std::vector<Entry>& entries, Spelling spelling) {
  Vocabulary made;
  made.spelling_ = spelling;
  std::int64_t highest = -1;
  std::size_t bytes = 0;
  for (const Entry& entry : entries) {
    // Gaps are normal, but an id must not decide how much memory is taken.
    if (entry.id < 0 || entry.id > static_cast<std::int64_t>(entries.size()) * 8 + 100'000)
      return fail(ErrorCode::kMalformed,
                  "token id " + std::to_string(entry.id) + " is out of range for a vocabulary of " +
                      std::to_string(entries.size()) + " tokens",
                  "tokenizer.json: /model/vocab");
    highest = std::max(highest, entry.id);
    bytes += entry.text.size();
  }
  if (bytes > kMaxBytes)
    return fail(ErrorCode::kMalformed, "the vocabulary's text is larger than 1 GiB",
                "tokenizer.json: /model/vocab");
  made.spans_.resize(static_cast<std::size_t>(highest + 1));
  made.block_.reserve(bytes);
  made.slots_.resize(std::bit_ceil(entries.size() + entries.size() / 2 + 16));
  std::string spelled;
  std::vector<TokenId> indexed;
  indexed.reserve(entries.size());
  for (const Entry& entry : entries) {
    const bool is_raw = spelling == Spelling::kByteCharacters && !characters_to_bytes(entry.text, spelled);
    const bool is_mapped = spelling == Spelling::kByteCharacters && !is_raw;
    const std::string_view stored = is_mapped ? std::string_view(spelled) : entry.text;
    const auto id = static_cast<TokenId>(entry.id);
    made.spans_[static_cast<std::size_t>(id)] = {static_cast<std::uint32_t>(made.block_.size()),
                                                 static_cast<std::uint32_t>(stored.size()), true, is_raw};
    made.block_ += stored;
    if (is_raw)
      made.raw_[std::string(entry.text)] = id;
    else
      indexed.push_back(id);
  }
  made.index_all(indexed);
  return made;
}

void Vocabulary::index_all(const std::vector<TokenId>& ids) {
  std::array<std::uint64_t, kBatch> hashes;
  for (std::size_t from = 0; from < ids.size(); from += kBatch) {
    const std::size_t count = std::min(kBatch, ids.size() - from);
    for (std::size_t i = 0; i < count; ++i) {
      hashes[i] = hash_of(bytes_of(ids[from + i]));
      __builtin_prefetch(&slots_[hashes[i] & (slots_.size() - 1)], 1);
    }
    for (std::size_t i = 0; i < count; ++i) index(ids[from + i], hashes[i]);
  }
}

void Vocabulary::index(TokenId id, std::uint64_t hash) {
  const std::string_view bytes = bytes_of(id);
  const auto tag = static_cast<std::uint32_t>(hash >> 32);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
    Slot& slot = slots_[at];
    if (slot.id_plus_1 != 0 &&
        (slot.hash != tag || bytes_of(static_cast<TokenId>(slot.id_plus_1 - 1)) != bytes))
      continue;
    slot = {static_cast<std::uint32_t>(id) + 1, tag};
    return;
  }
}

bool Vocabulary::has(TokenId id) const {
  return id >= 0 && static_cast<std::size_t>(id) < spans_.size() &&
         spans_[static_cast<std::size_t>(id)].is_present;
}

std::string_view Vocabulary::bytes_of(TokenId id) const {
  if (!has(id)) return {};
  const Place& place = spans_[static_cast<std::size_t>(id)];
  return std::string_view(block_).substr(place.offset, place.length);
}

std::string Vocabulary::text_of(TokenId id) const {
  if (!has(id)) return {};
  const std::string_view bytes = bytes_of(id);
  const bool is_mapped =
      spelling_ == Spelling::kByteCharacters && !spans_[static_cast<std::size_t>(id)].is_raw;
  return is_mapped ? bytes_to_characters(bytes) : std::string(bytes);
}

std::optional<TokenId> Vocabulary::find_bytes(std::string_view bytes) const {
  if (slots_.empty()) return std::nullopt;
  const std::uint64_t hash = hash_of(bytes);
  const auto tag = static_cast<std::uint32_t>(hash >> 32);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash & mask; slots_[at].id_plus_1 != 0; at = (at + 1) & mask) {
    const auto id = static_cast<TokenId>(slots_[at].id_plus_1 - 1);
    if (slots_[at].hash == tag && bytes_of(id) == bytes) return id;
  }
  return std::nullopt;
}

void Vocabulary::find_many(std::span<const std::string_view> keys, std::span<TokenId> ids) const {
  std::array<std::uint64_t, kBatch> hashes;
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t from = 0; from < keys.size(); from += kBatch) {
    const std::size_t count = std::min(kBatch, keys.size() - from);
    for (std::size_t i = 0; i < count; ++i) {
      hashes[i] = hash_of(keys[from + i]);
      __builtin_prefetch(&slots_[hashes[i] & mask]);
    }
    // The first slot with the same tag is nearly always the right one.
    for (std::size_t i = 0; i < count; ++i) {
      std::size_t at = hashes[i] & mask;
      while (slots_[at].id_plus_1 != 0 && slots_[at].hash != static_cast<std::uint32_t>(hashes[i] >> 32))
        at = (at + 1) & mask;
      const TokenId id = ids[from + i] = static_cast<TokenId>(slots_[at].id_plus_1) - 1;
      if (id >= 0) __builtin_prefetch(&spans_[static_cast<std::size_t>(id)]);
    }
    for (std::size_t i = 0; i < count; ++i)
      if (const TokenId id = ids[from + i]; id >= 0)
        __builtin_prefetch(block_.data() + spans_[static_cast<std::size_t>(id)].offset);
    for (std::size_t i = 0; i < count; ++i)
      if (const TokenId id = ids[from + i]; id >= 0 && bytes_of(id) != keys[from + i])
        ids[from + i] = find_bytes(keys[from + i]).value_or(kNoToken);
  }
}

bool Vocabulary::append_key(std::string_view text, std::string& key) const {
  if (spelling_ == Spelling::kByteCharacters) return append_bytes(text, key);
  key += text;
  return true;
}

std::optional<TokenId> Vocabulary::find_text(std::string_view text) const {
  if (spelling_ != Spelling::kByteCharacters) return find_bytes(text);
  if (std::string bytes; characters_to_bytes(text, bytes)) return find_bytes(bytes);
  const auto found = raw_.find(std::string(text));
  return found == raw_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace plimsoll::text
