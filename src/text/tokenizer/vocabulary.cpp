// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/vocabulary.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "text/tokenizer/byte_level.h"

namespace plimsoll::text {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 30;  // offsets are 32 bits

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

Result<Vocabulary> Vocabulary::build(const std::vector<Entry>& entries) {
  Vocabulary made;
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
  made.slots_.resize(std::bit_ceil(entries.size() * 2 + 16));
  for (const Entry& entry : entries) {
    Place& place = made.spans_[static_cast<std::size_t>(entry.id)];
    const auto spelled = characters_to_bytes(entry.text);
    const std::string_view stored = spelled ? std::string_view(*spelled) : entry.text;
    place = {static_cast<std::uint32_t>(made.block_.size()), static_cast<std::uint32_t>(stored.size()), true,
             !spelled};
    made.block_ += stored;
    if (spelled)
      made.index(static_cast<TokenId>(entry.id));
    else
      made.raw_[std::string(entry.text)] = static_cast<TokenId>(entry.id);
  }
  return made;
}

void Vocabulary::index(TokenId id) {
  const std::string_view bytes = bytes_of(id);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t slot = hash_of(bytes) & mask;; slot = (slot + 1) & mask) {
    if (slots_[slot] != 0 && bytes_of(static_cast<TokenId>(slots_[slot] - 1)) != bytes) continue;
    slots_[slot] = static_cast<std::uint32_t>(id) + 1;  // of equal tokens the last one counts
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
  return spans_[static_cast<std::size_t>(id)].is_raw ? std::string(bytes) : bytes_to_characters(bytes);
}

std::optional<TokenId> Vocabulary::find_bytes(std::string_view bytes) const {
  if (slots_.empty()) return std::nullopt;
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t slot = hash_of(bytes) & mask; slots_[slot] != 0; slot = (slot + 1) & mask)
    if (bytes_of(static_cast<TokenId>(slots_[slot] - 1)) == bytes)
      return static_cast<TokenId>(slots_[slot] - 1);
  return std::nullopt;
}

std::optional<TokenId> Vocabulary::find_text(std::string_view text) const {
  if (const auto bytes = characters_to_bytes(text)) return find_bytes(*bytes);
  const auto found = raw_.find(std::string(text));
  return found == raw_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace plimsoll::text
