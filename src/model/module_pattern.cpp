// SPDX-License-Identifier: Apache-2.0
#include "model/module_pattern.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace plimsoll::model {
namespace {

constexpr std::size_t kMaxPattern = 4096;  // far above any real one; bounds the steps of an expression
constexpr int kMaxDepth = 32;              // of parentheses
// Names of modules have some 100 characters in a dozen segments; longer ones match nothing.
constexpr std::size_t kMaxName = 1024;
constexpr int kMaxSegments = 63;
constexpr std::size_t kMaxOthers = 1024;      // patterns that are tried one by one; configs have some dozens
constexpr std::size_t kMaxBeginnings = 8192;  // "model.layers.0*", each put into its place among the others
constexpr std::size_t kUsualSteps = 32;       // of an expression, and characters of a name with wildcards

int segments_of(std::string_view name) {
  return 1 + static_cast<int>(std::count(name.begin(), name.end(), '.'));
}
bool is_module_name(std::string_view name) {
  return name.size() <= kMaxName && segments_of(name) <= kMaxSegments;
}

// '*' stands for any characters, but for dots only where `star_takes_dots`.
bool glob(std::string_view pattern, std::string_view text, bool star_takes_dots) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == text[t] || pattern[p] == '?')) {
      ++p;
      ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (star != std::string_view::npos && (star_takes_dots || text[mark] != '.')) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// The pattern's segments stand somewhere among the module's, whole.
bool has_words(std::string_view pattern, std::string_view module) {
  for (std::size_t begin = 0;;) {
    const std::string_view rest = module.substr(begin);
    for (std::size_t end = rest.find('.');; end = rest.find('.', end + 1)) {
      if (glob(pattern, rest.substr(0, end), false)) return true;
      if (end == std::string_view::npos) break;
    }
    const std::size_t dot = module.find('.', begin);
    if (dot == std::string_view::npos) return false;
    begin = dot + 1;
  }
}

}  // namespace

// Thompson's construction: each part of the expression becomes steps with one loose end.
class ModulePattern::Compiler {
 public:
  Compiler(std::string_view text, std::vector<Step>& steps) : text_(text), steps_(steps) {}

  std::optional<int> compile() {
    const int accept = add({});
    const auto start = alternatives(accept, 0);
    return start && at_ == text_.size() ? start : std::nullopt;
  }

 private:
  int add(Step step) {
    steps_.push_back(step);
    return static_cast<int>(steps_.size()) - 1;
  }
  bool is_at(char c) const { return at_ < text_.size() && text_[at_] == c; }

  // Steps are made from the front; where they lead is a step that is there already or is filled in after.
  std::optional<int> alternatives(int then, int depth) {
    if (depth > kMaxDepth) return std::nullopt;
    auto start = sequence(then, depth);
    while (start && is_at('|')) {
      ++at_;
      const auto other = sequence(then, depth);
      if (!other) return std::nullopt;
      start = add({Step::Kind::kSplit, *start, *other});
    }
    return start;
  }

  // A sequence ends in a split that is joined to what follows it once that is known.
  std::optional<int> sequence(int then, int depth) {
    const int start = add({Step::Kind::kSplit, then, -1});
    int loose = start;
    while (at_ < text_.size() && text_[at_] != '|' && text_[at_] != ')') {
      const int after = add({Step::Kind::kSplit, then, -1});
      const auto part = one(after, depth);
      if (!part) return std::nullopt;
      steps_[static_cast<std::size_t>(loose)].next = *part;
      loose = after;
    }
    return start;
  }

  std::optional<int> one(int then, int depth) {
    const std::size_t sign_at = end_of_one();
    const char sign = sign_at < text_.size() ? text_[sign_at] : '\0';
    if (sign != '*' && sign != '+' && sign != '?') {
      if (sign == '{') return std::nullopt;
      return atom(then, depth);
    }
    const int again = add({Step::Kind::kSplit, -1, then});
    const auto part = atom(sign == '?' ? then : again, depth);
    if (!part) return std::nullopt;
    steps_[static_cast<std::size_t>(again)].next = *part;
    ++at_;
    if (is_at('?')) ++at_;  // a lazy sign matches the same names
    return sign == '+' ? *part : again;
  }

  // Where the part that begins here ends, so that its sign is known before it is compiled.
  std::size_t end_of_one() const {
    std::size_t at = at_;
    int depth = 0;
    bool is_class = false;
    for (; at < text_.size(); ++at) {
      const char c = text_[at];
      if (c == '\\')
        ++at;
      else if (is_class)
        is_class = c != ']';
      else if (c == '[')
        is_class = true;
      else if (c == '(')
        ++depth;
      else if (c == ')')
        --depth;
      if (depth <= 0 && !is_class) return at + 1;
    }
    return at;
  }

  std::optional<int> atom(int then, int depth) {
    const char c = text_[at_++];
    if (c == '(') {
      if (is_at('?')) {
        if (text_.substr(at_, 2) != "?:") return std::nullopt;  // looking ahead or behind
        at_ += 2;
      }
      const auto inner = alternatives(then, depth + 1);
      if (!inner || !is_at(')')) return std::nullopt;
      ++at_;
      return inner;
    }
    if (c == '^') return at_ == 1 ? std::optional(add({Step::Kind::kSplit, then, -1})) : std::nullopt;
    if (c == '$') return add({Step::Kind::kEnd, then});
    if (c == '*' || c == '+' || c == '?' || c == ')') return std::nullopt;
    Step step{Step::Kind::kClass, then};
    if (c == '.')
      step.low = step.high = ~std::uint64_t{0};
    else if (c == '[') {
      if (!read_class(step)) return std::nullopt;
    } else if (c == '\\') {
      if (!read_escape(step)) return std::nullopt;
    } else {
      take(step, c, c);
    }
    return add(step);
  }

  static void take(Step& step, char first, char last) {
    for (int c = first; c >= 0 && c <= last; ++c)
      (c < 64 ? step.low : step.high) |= std::uint64_t{1} << (c & 63);
  }

  bool read_escape(Step& step) {
    if (at_ >= text_.size()) return false;
    const char c = text_[at_++];
    if (c == 'd' || c == 'w') {
      take(step, '0', '9');
      if (c == 'd') return true;
      take(step, 'a', 'z');
      take(step, 'A', 'Z');
      take(step, '_', '_');
      return true;
    }
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) return false;
    take(step, c, c);
    return true;
  }

  bool read_class(Step& step) {
    const bool is_negative = is_at('^');
    if (is_negative) ++at_;
    for (bool is_first = true; at_ < text_.size() && (is_first || text_[at_] != ']'); is_first = false) {
      const char c = text_[at_++];
      if (c == '\\') {
        if (!read_escape(step)) return false;
      } else if (at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']') {
        take(step, c, text_[at_ + 1]);
        at_ += 2;
      } else {
        take(step, c, c);
      }
    }
    if (!is_at(']')) return false;
    ++at_;
    if (is_negative) {
      step.low = ~step.low;
      step.high = ~step.high;
    }
    return true;
  }

  std::string_view text_;
  std::vector<Step>& steps_;
  std::size_t at_ = 0;
};

ModulePattern::ModulePattern(Kind kind, std::string text) : kind_(kind), text_(std::move(text)) {
  if (text_.size() > kMaxPattern) {
    is_usable_ = false;
    return;
  }
  if (kind_ != Kind::kRegex) return;
  const auto start = Compiler(text_, steps_).compile();
  is_usable_ = start.has_value();
  start_ = start.value_or(-1);
}

ModulePattern ModulePattern::prefixed(std::string_view text) {
  if (text.starts_with("re:")) return {Kind::kRegex, std::string(text.substr(3))};
  return {Kind::kWords, std::string(text)};
}

std::int64_t ModulePattern::cost() const {
  return static_cast<std::int64_t>(1 + std::max(steps_.size(), text_.size()) / kUsualSteps);
}

bool ModulePattern::matches(std::string_view module) const {
  if (!is_usable_ || !is_module_name(module)) return false;
  switch (kind_) {
    case Kind::kAny:
      return true;
    case Kind::kWords:
      return has_words(text_, module);
    case Kind::kGlob:
      return glob(text_, module, true) || glob(text_ + ".*", module, true);
    case Kind::kRegex:
      return matches_regex(module);
  }
  return false;
}

bool ModulePattern::matches_regex(std::string_view module) const {
  std::vector<int> now, open{start_};
  std::vector<std::size_t> seen(steps_.size(), 0);  // the round in which a step was last reached, from 1
  for (std::size_t at = 0;; ++at) {
    now.clear();
    while (!open.empty()) {
      const int index = open.back();
      open.pop_back();
      if (index < 0 || seen[static_cast<std::size_t>(index)] == at + 1) continue;
      seen[static_cast<std::size_t>(index)] = at + 1;
      const Step& step = steps_[static_cast<std::size_t>(index)];
      if (step.kind == Step::Kind::kAccept) return true;
      if (step.kind == Step::Kind::kClass) now.push_back(index);
      if (step.kind == Step::Kind::kSplit || (step.kind == Step::Kind::kEnd && at == module.size())) {
        open.push_back(step.next);
        open.push_back(step.other);
      }
    }
    if (at == module.size() || now.empty()) return false;
    const auto c = static_cast<unsigned char>(module[at]);
    for (const int index : now) {
      const Step& step = steps_[static_cast<std::size_t>(index)];
      const bool is_taken = c < 128 && ((c < 64 ? step.low : step.high) >> (c & 63) & 1) != 0;
      if (is_taken) open.push_back(step.next);
    }
  }
}

void ModulePatternSet::add(ModulePattern pattern) {
  if (!pattern.is_usable()) {
    unusable_.push_back(pattern.text());
    return;
  }
  const std::string& text = pattern.text();
  const std::size_t wild = text.find_first_of("*?");
  const bool is_name =
      pattern.kind() == ModulePattern::Kind::kWords || pattern.kind() == ModulePattern::Kind::kGlob;
  if (is_name && wild == std::string::npos) {
    words_.insert(text);
    word_lengths_ |= std::uint64_t{1} << std::min(segments_of(text), kMaxSegments);
  } else if (pattern.kind() == ModulePattern::Kind::kGlob && wild == text.size() - 1 && text.back() == '*') {
    const std::string beginning = text.substr(0, wild);
    auto at = std::lower_bound(beginnings_.begin(), beginnings_.end(), beginning);
    if (at != beginnings_.begin() && beginning.starts_with(*std::prev(at))) return;
    auto end = at;
    while (end != beginnings_.end() && end->starts_with(beginning)) ++end;
    at = beginnings_.erase(at, end);
    if (beginnings_.size() < kMaxBeginnings)
      beginnings_.insert(at, beginning);
    else
      unusable_.push_back(text);
  } else if (others_.size() < kMaxOthers) {
    num_tried_ += pattern.cost();
    others_.push_back(std::move(pattern));
  } else {
    unusable_.push_back(text);
  }
}

bool ModulePatternSet::matches(std::string_view module) const {
  if (!is_module_name(module)) return false;
  if (!words_.empty()) {
    for (std::size_t begin = 0;;) {
      int segments = 1;
      for (std::size_t end = module.find('.', begin);; end = module.find('.', end + 1), ++segments) {
        if ((word_lengths_ >> segments & 1) != 0 && words_.contains(module.substr(begin, end - begin)))
          return true;
        if (end == std::string_view::npos) break;
      }
      const std::size_t dot = module.find('.', begin);
      if (dot == std::string_view::npos) break;
      begin = dot + 1;
    }
  }
  if (!beginnings_.empty()) {
    const auto at = std::upper_bound(beginnings_.begin(), beginnings_.end(), module);
    if (at != beginnings_.begin() && module.starts_with(*std::prev(at))) return true;
  }
  return std::any_of(others_.begin(), others_.end(),
                     [&](const ModulePattern& pattern) { return pattern.matches(module); });
}

}  // namespace plimsoll::model
