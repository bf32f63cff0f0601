// SPDX-License-Identifier: Apache-2.0
#include "artifact/json_place.h"

#include <algorithm>
#include <string>

namespace plimsoll::artifact {
namespace {

constexpr std::size_t kMaxLevels = 1000;

enum class Expect { kValue, kValueOrClose, kKey, kKeyOrClose, kColon, kCommaOrClose, kEnd };

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  // Offset of the first fault, or npos.
  std::size_t run() {
    Expect expect = Expect::kValue;
    while (true) {
      at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
      if (at_ == text_.size()) return expect == Expect::kEnd ? std::string_view::npos : at_;
      if (!step(expect)) return at_;
    }
  }

 private:
  // Takes one token; false leaves at_ on the fault.
  bool step(Expect& expect) {
    const char c = text_[at_];
    switch (expect) {
      case Expect::kKeyOrClose:
        if (c == '}') return close('{', expect);
        [[fallthrough]];
      case Expect::kKey:
        if (c != '"' || !string()) return false;
        expect = Expect::kColon;
        return true;
      case Expect::kColon:
        if (c != ':') return false;
        ++at_;
        expect = Expect::kValue;
        return true;
      case Expect::kCommaOrClose:
        if (c == '}' || c == ']') return close(c == '}' ? '{' : '[', expect);
        if (c != ',') return false;
        ++at_;
        expect = open_.back() == '{' ? Expect::kKey : Expect::kValue;
        return true;
      case Expect::kValueOrClose:
        if (c == ']') return close('[', expect);
        [[fallthrough]];
      case Expect::kValue:
        return value(c, expect);
      case Expect::kEnd:
        return false;
    }
    return false;
  }

  bool value(char c, Expect& expect) {
    if (c == '{' || c == '[') {
      if (open_.size() == kMaxLevels) return false;
      open_.push_back(c);
      ++at_;
      expect = c == '{' ? Expect::kKeyOrClose : Expect::kValueOrClose;
      return true;
    }
    if (c == '"' ? !string() : !scalar()) return false;
    expect = open_.empty() ? Expect::kEnd : Expect::kCommaOrClose;
    return true;
  }

  bool close(char opener, Expect& expect) {
    if (open_.empty() || open_.back() != opener) return false;
    open_.pop_back();
    ++at_;
    expect = open_.empty() ? Expect::kEnd : Expect::kCommaOrClose;
    return true;
  }

  bool string() {
    for (std::size_t i = at_ + 1; i < text_.size(); ++i) {
      if (static_cast<unsigned char>(text_[i]) < 0x20) {
        at_ = i;
        return false;
      }
      if (text_[i] == '\\') {
        ++i;
      } else if (text_[i] == '"') {
        at_ = i + 1;
        return true;
      }
    }
    at_ = text_.size();
    return false;
  }

  bool scalar() {
    for (const std::string_view word : {"true", "false", "null", "NaN", "Infinity", "-Infinity"}) {
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return true;
    }
    const std::size_t end = std::min(text_.find_first_not_of("+-.0123456789eE", at_), text_.size());
    if (end == at_ || text_[at_] == '+' || text_[at_] == 'e' || text_[at_] == 'E' || text_[at_] == '.')
      return false;
    at_ = end;
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string open_;  // brackets that are open, outermost first
};

}  // namespace

TextPlace place_in(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const std::size_t newline = before.rfind('\n');
  return {offset, static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n')) + 1,
          newline == std::string_view::npos ? offset + 1 : offset - newline};
}

std::optional<TextPlace> json_fault(std::string_view text) {
  const std::size_t offset = Scanner(text).run();
  if (offset == std::string_view::npos) return std::nullopt;
  return place_in(text, offset);
}

}  // namespace plimsoll::artifact
