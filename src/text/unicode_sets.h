// SPDX-License-Identifier: Apache-2.0
// Which characters are letters, digits, spaces ... to the reference tokenizers? Sets of code points, their
// algebra, and the sets that the reference's two engines (Oniguruma, Rust) know by name. Python's view of
// characters is unicode.h's. Values without owners; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace plimsoll::text {

constexpr char32_t kLastCodePoint = 0x10FFFF;

/// The code points [first, last].
struct CodePoints {
  char32_t first = 0;
  char32_t last = 0;
  bool operator==(const CodePoints&) const = default;
};

/// A set of code points: ranges in ascending order that neither overlap nor touch.
class CodePointSet {
 public:
  CodePointSet() = default;
  /// From ranges in any order.
  explicit CodePointSet(std::vector<CodePoints> ranges);
  static CodePointSet of(char32_t first, char32_t last) { return CodePointSet({{first, last}}); }

  bool contains(char32_t c) const;
  bool empty() const { return ranges_.empty(); }
  const std::vector<CodePoints>& ranges() const& { return ranges_; }
  void ranges() && = delete;  // would outlive the set

  CodePointSet operator|(const CodePointSet& other) const;
  CodePointSet operator&(const CodePointSet& other) const;
  CodePointSet operator~() const;
  /// With every letter, its other cases.
  CodePointSet with_other_cases() const;

  bool operator==(const CodePointSet&) const = default;

 private:
  std::vector<CodePoints> ranges_;
};

/// The set that \p{name} means: a category or group of categories (L, Lu, LC, Letter ...), a script or a
/// property, however its letters, blanks, '-' and '_' are written. Also Rust's sets that the reference uses
/// outside expressions: rust_white_space, rust_punctuation (ASCII's symbols included), rust_numeric,
/// rust_word, bert_control, accent (StripAccents), bert_accent, bert_ideograph; and the characters that its
/// normal forms do not know: no_normal_form, no_compatibility_form (these besides).
std::optional<CodePointSet> set_named(std::string_view name);

}  // namespace plimsoll::text
