// SPDX-License-Identifier: Apache-2.0
#include "text/unicode_sets.h"

#include <algorithm>
#include <string>

#include "text/unicode_table.h"

namespace plimsoll::text {
namespace {

constexpr std::string_view kCategoryNames =
    "cn lu ll lt lm lo mn mc me nd nl no pc pd ps pe pi pf po sm sc sk so zs zl zp cc cf co ";

struct LongName {
  std::string_view name;
  std::string_view means;  // a category, the first letter of several, or another name
};
constexpr LongName kLongNames[] = {
    {"letter", "l"},
    {"uppercaseletter", "lu"},
    {"lowercaseletter", "ll"},
    {"titlecaseletter", "lt"},
    {"modifierletter", "lm"},
    {"otherletter", "lo"},
    {"mark", "m"},
    {"nonspacingmark", "mn"},
    {"spacingmark", "mc"},
    {"enclosingmark", "me"},
    {"number", "n"},
    {"decimalnumber", "nd"},
    {"letternumber", "nl"},
    {"othernumber", "no"},
    {"punctuation", "p"},
    {"symbol", "s"},
    {"mathsymbol", "sm"},
    {"currencysymbol", "sc"},
    {"modifiersymbol", "sk"},
    {"othersymbol", "so"},
    {"separator", "z"},
    {"spaceseparator", "zs"},
    {"lineseparator", "zl"},
    {"paragraphseparator", "zp"},
    {"other", "c"},
    {"control", "cc"},
    {"format", "cf"},
    {"privateuse", "co"},
    {"unassigned", "cn"},
    {"dashpunctuation", "pd"},
    {"openpunctuation", "ps"},
    {"closepunctuation", "pe"},
    {"initialpunctuation", "pi"},
    {"finalpunctuation", "pf"},
    {"otherpunctuation", "po"},
    {"connectorpunctuation", "pc"},
    {"punct", "p"},
    {"digit", "nd"},
    {"space", "whitespace"},
    {"alpha", "alphabetic"},
    {"upper", "uppercase"},
    {"lower", "lowercase"},
    {"cntrl", "cc"},
};

std::string folded_name(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == ' ' || c == '_' || c == '-') continue;
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  }
  return out;
}

// Bit per category for "l", "lu", "lc"; 0 when it names none.
std::uint32_t categories_named(std::string_view name) {
  std::uint32_t bits = 0;
  for (std::size_t i = 0; 3 * i < kCategoryNames.size(); ++i) {
    const std::string_view category = kCategoryNames.substr(3 * i, 2);
    const bool is_cased = category == "lu" || category == "ll" || category == "lt";
    if (category == name || (name.size() == 1 && category[0] == name[0]) || (name == "lc" && is_cased))
      bits |= 1u << i;
  }
  return bits;
}

CodePointSet of_categories(std::uint32_t bits) {
  std::vector<CodePoints> ranges;
  const auto starts = category_starts();
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const char32_t end = i + 1 < starts.size() ? starts[i + 1] >> 8 : kLastCodePoint + 1;
    if (bits >> (starts[i] & 0xFFu) & 1u) ranges.push_back({starts[i] >> 8, end - 1});
  }
  return CodePointSet(std::move(ranges));
}

}  // namespace

CodePointSet::CodePointSet(std::vector<CodePoints> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const CodePoints& a, const CodePoints& b) { return a.first < b.first; });
  for (const CodePoints& range : ranges) {
    if (range.first > range.last) continue;
    if (!ranges_.empty() && range.first <= ranges_.back().last + 1)
      ranges_.back().last = std::max(ranges_.back().last, range.last);
    else
      ranges_.push_back(range);
  }
}

bool CodePointSet::contains(char32_t c) const {
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), c,
                                      [](char32_t value, const CodePoints& r) { return value < r.first; });
  return after != ranges_.begin() && c <= std::prev(after)->last;
}

CodePointSet CodePointSet::operator|(const CodePointSet& other) const {
  std::vector<CodePoints> all = ranges_;
  all.insert(all.end(), other.ranges_.begin(), other.ranges_.end());
  return CodePointSet(std::move(all));
}

CodePointSet CodePointSet::operator~() const {
  CodePointSet out;
  char32_t next = 0;
  for (const CodePoints& range : ranges_) {
    if (range.first > next) out.ranges_.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLastCodePoint) out.ranges_.push_back({next, kLastCodePoint});
  return out;
}

CodePointSet CodePointSet::operator&(const CodePointSet& other) const {
  CodePointSet out;
  auto a = ranges_.begin();
  auto b = other.ranges_.begin();
  while (a != ranges_.end() && b != other.ranges_.end()) {
    const CodePoints common{std::max(a->first, b->first), std::min(a->last, b->last)};
    if (common.first <= common.last) out.ranges_.push_back(common);
    if (a->last < b->last)
      ++a;
    else
      ++b;
  }
  return out;
}

CodePointSet CodePointSet::with_other_cases() const {
  std::vector<CodePoints> representatives, all = ranges_;
  for (const auto& [other, smallest] : case_folds())
    if (contains(other) || contains(smallest)) representatives.push_back({smallest, smallest});
  const CodePointSet touched(std::move(representatives));
  for (const auto& [other, smallest] : case_folds()) {
    if (!touched.contains(smallest)) continue;
    all.push_back({other, other});
    all.push_back({smallest, smallest});
  }
  return CodePointSet(std::move(all));
}

std::optional<CodePointSet> set_named(std::string_view name) {
  std::string wanted = folded_name(name);
  for (const LongName& long_name : kLongNames)
    if (long_name.name == wanted) {
      wanted = long_name.means;
      break;
    }
  if (wanted == "any") return CodePointSet::of(0, kLastCodePoint);
  if (wanted == "ascii") return CodePointSet::of(0, 0x7F);
  if (wanted == "alnum") return *set_named("alphabetic") | *set_named("nd");
  if (wanted == "xdigit") return CodePointSet({{U'0', U'9'}, {U'A', U'F'}, {U'a', U'f'}});
  if (const std::uint32_t bits = categories_named(wanted)) return of_categories(bits);
  for (const NamedSet& set : named_sets())
    if (set.name == wanted) return CodePointSet({set.ranges.begin(), set.ranges.end()});
  return std::nullopt;
}

}  // namespace plimsoll::text
