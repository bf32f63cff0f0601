// SPDX-License-Identifier: Apache-2.0
// Which tokens does a text start with? The trie of a vocabulary, and the length a token may have for the
// models that ask this at every place of a text. The trie owns its array: the vocabulary may go. Plain
// functions; safe from any thread.
#pragma once

#include "base/result.h"
#include "text/tokenizer/prefix_trie.h"
#include "text/tokenizer/vocabulary.h"

namespace plimsoll::text {

/// In bytes. Time to encode is the text's length times the longest token's: a file must not make that
/// quadratic. Published tokens of these kinds stay below 100 bytes.
constexpr std::size_t kLongestToken = 1024;

/// Errors: kMalformed when a token is longer than that.
Status check_token_lengths(const Vocabulary& vocabulary);

/// From the bytes of each token to its id.
PrefixTrie trie_of(const Vocabulary& vocabulary);

}  // namespace plimsoll::text
