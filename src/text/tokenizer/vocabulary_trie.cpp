// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/vocabulary_trie.h"

namespace plimsoll::text {

Status check_token_lengths(const Vocabulary& vocabulary) {
  for (TokenId id = 0; id < vocabulary.size(); ++id)
    if (const std::size_t bytes = vocabulary.bytes_of(id).size(); bytes > kLongestToken)
      return fail(ErrorCode::kMalformed, "the token with the id " + std::to_string(id) + " has " +
                                             std::to_string(bytes) + " bytes, more than the " +
                                             std::to_string(kLongestToken) + " that a token may have");
  return {};
}

PrefixTrie trie_of(const Vocabulary& vocabulary) {
  std::vector<PrefixTrie::Key> keys;
  keys.reserve(static_cast<std::size_t>(vocabulary.size()));
  for (TokenId id = 0; id < vocabulary.size(); ++id)
    if (vocabulary.has(id)) keys.push_back({vocabulary.bytes_of(id), id});
  return PrefixTrie(std::move(keys));
}

}  // namespace plimsoll::text
