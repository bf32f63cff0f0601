// SPDX-License-Identifier: Apache-2.0
// What Hugging Face tokenizers 0.23.3 takes a character for, where that differs from current Unicode: marks,
// punctuation and control characters of BERT, lower case, characters its normal forms do not know. Python's
// view of text is in text/unicode.h. Plain functions; safe from any thread.
#pragma once

#include <string>

namespace plimsoll::text {

/// clean_text drops it: control, format, private characters, NUL and U+FFFD.
bool is_bert_removed(char32_t c);
/// clean_text makes a blank of it, unless it is removed.
bool is_bert_space(char32_t c);
bool is_bert_chinese(char32_t c);
bool is_bert_punctuation(char32_t c);
/// What strip_accents drops after decomposition.
bool is_bert_accent(char32_t c);
/// What the StripAccents normalizer drops.
bool is_combining_mark(char32_t c);
/// Rust's char::is_whitespace.
bool is_rust_space(char32_t c);

/// The lower case of one character, on its own: one or, for U+0130, two.
void append_lower_case(std::string& out, char32_t c);

/// A character newer than the reference's normal forms: it stays as it is and, like a letter, keeps marks on
/// its two sides apart, in NFC and NFD (or, `compatibility`, also in NFKC and NFKD) alike. Text between such
/// characters may be normalised part by part.
bool has_no_normal_form(char32_t c, bool compatibility);

}  // namespace plimsoll::text
