// SPDX-License-Identifier: Apache-2.0
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/tokenizer/regex.h"

#include <pcre2.h>

#include <new>

namespace plimsoll::text {
namespace {

constexpr std::size_t kMaxPatternBytes = 64 * 1024;
constexpr std::uint32_t kMatchLimit = 10'000'000;  // steps of one match before it counts as no match
constexpr std::size_t kJitStackBytes = std::size_t{1} << 20;

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

struct Regex::Compiled {
  pcre2_code* code = nullptr;
  explicit Compiled(pcre2_code* owned) : code(owned) {}
  ~Compiled() { pcre2_code_free(code); }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
};

Result<Regex> Regex::compile(std::string_view pattern) {
  if (pattern.size() > kMaxPatternBytes)
    return fail(ErrorCode::kUnsupported, "a regular expression is longer than 64 KiB");
  const std::string text = translated(pattern);
  int error = 0;
  std::size_t offset = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                   PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr);
  if (!code) {
    unsigned char message[256] = {};
    pcre2_get_error_message(error, message, sizeof message);
    return fail(ErrorCode::kUnsupported,
                "regular expression cannot be used: " + std::string(reinterpret_cast<const char*>(message)) +
                    " in " + std::string(pattern));
  }
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // without it matching is slower, not different
  Regex regex;
  regex.compiled_ = std::make_shared<const Compiled>(code);
  return regex;
}

Regex Regex::literal(std::string_view text) {
  Regex regex;
  regex.literal_ = std::string(text);
  return regex;
}

Span Regex::find(std::string_view utf8, std::size_t from) const {
  const Span none{utf8.size(), utf8.size()};
  if (!compiled_) {
    const std::size_t at = literal_.empty() ? std::string_view::npos : utf8.find(literal_, from);
    return at == std::string_view::npos ? none : Span{at, at + literal_.size()};
  }
  thread_local Scratch scratch;
  const auto* text = reinterpret_cast<PCRE2_SPTR>(utf8.data());
  for (std::size_t at = from; at < utf8.size();) {
    int found = pcre2_match(compiled_->code, text, utf8.size(), at, PCRE2_NO_UTF_CHECK, scratch.data,
                            scratch.context);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT)  // the interpreter keeps its stack on the heap
      found = pcre2_match(compiled_->code, text, utf8.size(), at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                          scratch.data, scratch.context);
    if (found < 0) return none;
    const std::size_t* bounds = pcre2_get_ovector_pointer(scratch.data);
    if (bounds[1] > bounds[0]) return {bounds[0], bounds[1]};
    at = bounds[1] + 1;  // an empty match: go on behind the next character
    while (at < utf8.size() && (static_cast<unsigned char>(utf8[at]) & 0xC0u) == 0x80u) ++at;
  }
  return none;
}

std::vector<Span> Regex::find_all(std::string_view utf8) const {
  std::vector<Span> spans;
  for (std::size_t at = 0; at < utf8.size();) {
    const Span span = find(utf8, at);
    if (span.end > span.begin) spans.push_back(span);
    at = span.end;
  }
  return spans;
}

}  // namespace plimsoll::text
