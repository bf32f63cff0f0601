// SPDX-License-Identifier: Apache-2.0
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/tokenizer/regex_backtracking.h"

#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <vector>

namespace plimsoll::text {
namespace {

constexpr std::uint32_t kMatchLimit = 10'000'000;  // steps of one match before it counts as no match
constexpr std::size_t kJitStackBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxExpressionBytes = std::size_t{4} << 20;
constexpr std::size_t kMaxInlineRanges = 30;  // PCRE2 refuses more than 64 KiB of compiled classes

// Unicode's White_Space, which is what \s means to the reference; PCRE2's \s also takes U+180E.
constexpr std::string_view kSpaceRanges =
    "\\x{09}-\\x{0D}\\x{20}\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{"
    "3000}";

std::string translated(std::string_view pattern) {
  std::string out;
  int class_depth = 0;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char next = pattern[++i];
      if (next == 's' && class_depth > 0)
        out += kSpaceRanges;
      else if ((next == 's' || next == 'S') && class_depth == 0)
        out.append(next == 's' ? "[" : "[^").append(kSpaceRanges).append("]");
      else if (next == 'h')  // a hexadecimal digit to Oniguruma
        out += class_depth > 0 ? "0-9a-fA-F" : "[0-9a-fA-F]";
      else
        out.append(1, c).append(1, next);
      continue;
    }
    if (c == '[' && class_depth == 0)
      ++class_depth;
    else if (c == ']' && class_depth > 0)
      --class_depth;
    out += c;
  }
  return out;
}

// Writes a tree in PCRE2's syntax, every set as its code points: large sets once, as groups to call. The
// tree's depth is bounded by the parser.
class Writer {
 public:
  std::string expression() const { return definitions_ + text_; }
  bool is_too_long() const { return definitions_.size() + text_.size() > kMaxExpressionBytes; }

  void write(const RegexNode& node) {
    using Kind = RegexNode::Kind;
    if (is_too_long()) return;
    switch (node.kind) {
      case Kind::kEmpty:
        break;
      case Kind::kSet:
        write(node.set);
        break;
      case Kind::kConcat:
        for (const RegexNode& child : node.children) write(child);
        break;
      case Kind::kAlternate:
        write_group("(?:", node.children);
        break;
      case Kind::kRepeat:
        write_group("(?:", node.children);
        text_ += node.max == RegexNode::kUnlimited ? fmt::format("{{{},}}", node.min)
                                                   : fmt::format("{{{},{}}}", node.min, node.max);
        if (node.greed == RegexNode::Greed::kLazy) text_ += '?';
        break;
      case Kind::kAssert:
        write(node.behind, "\\A", "(?<=");
        write(node.ahead, "\\z", "(?=");
        break;
      case Kind::kLook:
        write_group(
            node.looks_behind ? (node.is_negative ? "(?<!" : "(?<=") : (node.is_negative ? "(?!" : "(?="),
            node.children);
        break;
      case Kind::kAtomic:
        write_group("(?>", node.children);
        break;
    }
  }

 private:
  void write_group(std::string_view opening, const std::vector<RegexNode>& ways) {
    text_ += opening;
    for (const RegexNode& way : ways) {
      if (&way != &ways.front()) text_ += '|';
      write(way);
    }
    text_ += ')';
  }

  void write(const CodePointSet& set) {
    if (set.empty()) {
      text_ += "(?!)";
    } else if (set.ranges().size() <= kMaxInlineRanges) {
      text_ += members(set);
    } else {
      const auto known = std::find(large_.begin(), large_.end(), set);
      const auto number = known - large_.begin();
      text_ += fmt::format("(?&s{})", number);
      if (known != large_.end()) return;
      large_.push_back(set);
      definitions_ += fmt::format("(?(DEFINE)(?<s{}>{}))", number, members(set));
    }
  }

  static std::string members(const CodePointSet& set) {
    std::string out = "[";
    for (auto [first, last] : set.ranges()) {
      if (first >= 0xD800 && first <= 0xDFFF) first = 0xE000;  // no surrogate may be written
      if (last >= 0xD800 && last <= 0xDFFF) last = 0xD7FF;
      if (first > last) continue;
      fmt::format_to(std::back_inserter(out), "\\x{{{:x}}}-\\x{{{:x}}}", static_cast<std::uint32_t>(first),
                     static_cast<std::uint32_t>(last));
    }
    return out + "]";
  }

  void write(const NeighbourCondition& condition, std::string_view edge, std::string_view look) {
    if (condition.is_free) return;
    text_ += "(?:";
    if (condition.takes_edge) text_.append(edge).append("|");
    text_ += look;
    write(condition.set);
    text_ += "))";
  }

  std::string definitions_;  // of the large sets
  std::string text_;
  std::vector<CodePointSet> large_;
};

// Per thread: matching needs scratch memory, which compiled patterns do not hold.
struct Scratch {
  pcre2_match_data* data = pcre2_match_data_create(8, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(32 * 1024, kJitStackBytes, nullptr);
  Scratch() {
    if (!data || !context || !stack) throw std::bad_alloc();
    pcre2_jit_stack_assign(context, nullptr, stack);
    pcre2_set_match_limit(context, kMatchLimit);
  }
  ~Scratch() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(data);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
};

}  // namespace

struct BacktrackingRegex::Code {
  pcre2_code* code = nullptr;
  explicit Code(pcre2_code* owned) : code(owned) {}
  ~Code() { pcre2_code_free(code); }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
};

Result<BacktrackingRegex> BacktrackingRegex::compile(const RegexNode& root) {
  Writer writer;
  writer.write(root);
  if (writer.is_too_long())
    return fail(ErrorCode::kUnsupported, "a regular expression is longer than 4 MiB when written out");
  return from_pcre2(writer.expression());
}

Result<BacktrackingRegex> BacktrackingRegex::compile(std::string_view pattern) {
  return from_pcre2(translated(pattern));
}

Result<BacktrackingRegex> BacktrackingRegex::from_pcre2(const std::string& expression) {
  int error = 0;
  std::size_t offset = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(),
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE, &error, &offset, nullptr);
  if (!code) {
    unsigned char message[256] = {};
    pcre2_get_error_message(error, message, sizeof message);
    return fail(ErrorCode::kUnsupported,
                "regular expression cannot be used: " + std::string(reinterpret_cast<const char*>(message)));
  }
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // without it matching is slower, not different
  BacktrackingRegex regex;
  regex.code_ = std::make_shared<const Code>(code);
  return regex;
}

std::optional<Span> BacktrackingRegex::find(std::string_view utf8, std::size_t from, bool keep_empty) const {
  thread_local Scratch scratch;
  const auto* text = reinterpret_cast<PCRE2_SPTR>(utf8.data());
  while (from < utf8.size() + (keep_empty ? 1 : 0)) {
    int found =
        pcre2_match(code_->code, text, utf8.size(), from, PCRE2_NO_UTF_CHECK, scratch.data, scratch.context);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT)  // the interpreter keeps its stack on the heap
      found = pcre2_match(code_->code, text, utf8.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                          scratch.data, scratch.context);
    if (found < 0) return std::nullopt;
    const std::size_t* bounds = pcre2_get_ovector_pointer(scratch.data);
    if (keep_empty || bounds[1] > bounds[0]) return Span{bounds[0], bounds[1]};
    from = bounds[1] + 1;  // an empty match: go on behind the next character
    while (from < utf8.size() && (static_cast<unsigned char>(utf8[from]) & 0xC0u) == 0x80u) ++from;
  }
  return std::nullopt;
}

}  // namespace plimsoll::text
