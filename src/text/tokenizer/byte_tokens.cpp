// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/byte_tokens.h"

#include <algorithm>

namespace plimsoll::text {
namespace {

constexpr std::string_view kDigits = "0123456789ABCDEF";

}  // namespace

std::array<TokenId, 256> byte_token_ids(const Vocabulary& vocabulary) {
  std::array<TokenId, 256> ids;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char spelled[] = {'<', '0', 'x', kDigits[byte >> 4], kDigits[byte & 15], '>'};
    ids[byte] = vocabulary.find_bytes(std::string_view(spelled, sizeof spelled)).value_or(-1);
  }
  return ids;
}

bool has_byte_tokens(const std::array<TokenId, 256>& ids, std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return ids[static_cast<unsigned char>(c)] >= 0; });
}

int byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  const auto high = kDigits.find(token[3]), low = kDigits.find(token[4]);
  if (high == std::string_view::npos || low == std::string_view::npos) return -1;
  return static_cast<int>(high << 4 | low);
}

}  // namespace plimsoll::text
