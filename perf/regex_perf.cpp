// SPDX-License-Identifier: Apache-2.0
// How fast are texts cut by the expressions of well-known tokenizers? As an automaton and by PCRE2, on one
// thread, over 1 MiB of generated text of each kind: MB/s. Run with --benchmark_repetitions=5 for the spread.
#include <benchmark/benchmark.h>

#include <random>
#include <string>
#include <string_view>

#include "base/utf8.h"
#include "text/tokenizer/regex.h"

namespace plimsoll::text {
namespace {

struct Expression {
  const char* name;
  const char* pattern;
};
constexpr Expression kExpressions[] = {
    {"gpt2", R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
    {"qwen2",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {"llama3",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {"o200k",
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {"digits", R"(\p{N}{1,3})"},
};

constexpr std::size_t kTextBytes = std::size_t{1} << 20;

// Words of one to ten letters, a comma, a number or a new line now and then.
std::string english() {
  std::mt19937 random(1);
  std::string text;
  while (text.size() < kTextBytes) {
    if (!text.empty() && text.back() != '\n') text += ' ';
    const auto kind = random() % 40;
    const auto length = 1 + (random() % 5) + (random() % 6);
    for (unsigned i = 0; i < length; ++i)
      text += static_cast<char>((kind == 0 ? '0' : 'a') + random() % (kind == 0 ? 10 : 26));
    if (kind == 1) text += "'s";
    if (kind < 6) text += kind % 2 ? "," : ".";
    if (kind == 7) text += "\n\n";
  }
  return text;
}

// Indented lines of names, operators and brackets.
std::string code() {
  constexpr std::string_view kSigns[] = {" = ", "(",  ")",  " + ",  "[i]", ".",
                                         "->",  "::", ", ", " == ", "; //"};
  std::mt19937 random(2);
  std::string text;
  while (text.size() < kTextBytes) {
    text.append(4 * (random() % 4), ' ');
    for (auto parts = 1 + random() % 6; parts > 0; --parts) {
      for (auto letters = 1 + random() % 8; letters > 0; --letters)
        text += static_cast<char>('a' + random() % 26);
      text += kSigns[random() % std::size(kSigns)];
    }
    text += ";\n";
  }
  return text;
}

std::string ideographs() {
  std::mt19937 random(3);
  std::string text;
  while (text.size() < kTextBytes) {
    for (auto length = 5 + random() % 20; length > 0; --length)
      append_utf8(text, 0x4E00 + static_cast<char32_t>(random() % 0x5000));
    append_utf8(text, random() % 2 ? 0x3002 : 0xFF0C);
  }
  return text;
}

std::string mixed_scripts() {
  constexpr char32_t kStarts[] = {U'a', 0x430, 0x3B1, 0x905, 0xAC00, 0x3041, 0x5D0, U'A', 0x4E00};
  std::mt19937 random(4);
  std::string text;
  while (text.size() < kTextBytes) {
    const char32_t start = kStarts[random() % std::size(kStarts)];
    for (auto length = 1 + random() % 9; length > 0; --length)
      append_utf8(text, start + static_cast<char32_t>(random() % 24));
    text += random() % 12 == 0 ? "! " : " ";
  }
  return text;
}

void cut(benchmark::State& state, const char* pattern, Regex::Engine engine, const std::string& text) {
  const auto regex = Regex::compile(pattern, engine);
  Span some[256];
  std::size_t num_pieces = 0;
  for (auto _ : state)
    for (Regex::Cursor cursor; cursor.at < text.size();) {
      num_pieces += regex->find_some(text, cursor, some);
      benchmark::DoNotOptimize(some);
    }
  state.counters["MB/s"] = benchmark::Counter(static_cast<double>(text.size()) / 1e6,
                                              benchmark::Counter::kIsIterationInvariantRate);
  state.counters["pieces/s"] =
      benchmark::Counter(static_cast<double>(num_pieces), benchmark::Counter::kIsRate);
}

void compile(benchmark::State& state, const char* pattern) {
  for (auto _ : state) benchmark::DoNotOptimize(Regex::compile(pattern));
}

void register_all() {
  static const std::pair<const char*, std::string> texts[] = {
      {"english", english()}, {"code", code()}, {"ideographs", ideographs()}, {"mixed", mixed_scripts()}};
  for (const Expression& expression : kExpressions) {
    const std::string name = expression.name;
    benchmark::RegisterBenchmark(("compile/" + name).c_str(), compile, expression.pattern);
    for (const auto& [kind, text] : texts)
      for (const auto engine : {Regex::Engine::kFastest, Regex::Engine::kBacktracking})
        benchmark::RegisterBenchmark(
            (name + "/" + kind + (engine == Regex::Engine::kFastest ? "/automaton" : "/pcre2")).c_str(), cut,
            expression.pattern, engine, text);
  }
}

}  // namespace
}  // namespace plimsoll::text

int main(int argc, char** argv) {
  plimsoll::text::register_all();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
