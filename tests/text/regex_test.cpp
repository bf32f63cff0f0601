// SPDX-License-Identifier: Apache-2.0
// Expressions match what the reference's regular expressions match: against spans that it computed, the two
// engines against each other on random expressions, and on texts and expressions made to be slow.
#include "text/tokenizer/regex.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "tests/testing/golden.h"
#include "tests/text/reference_rows.h"

namespace plimsoll::text {
namespace {

using Engine = Regex::Engine;

constexpr const char* kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

std::vector<Span> to_spans(const Json& json) {
  std::vector<Span> spans;
  for (std::size_t i = 0; i + 1 < json.size(); i += 2)
    spans.push_back({static_cast<std::size_t>(*json.items()[i].as_integer()),
                     static_cast<std::size_t>(*json.items()[i + 1].as_integer())});
  return spans;
}

std::string shown(const std::vector<Span>& spans) {
  std::string out;
  for (const Span& span : spans) out += std::to_string(span.begin) + "-" + std::to_string(span.end) + " ";
  return out;
}

Regex compiled(const std::string& pattern, Engine engine = Engine::kFastest) {
  auto regex = Regex::compile(pattern, engine);
  EXPECT_TRUE(regex) << pattern << ": " << (regex ? "" : regex.error().message);
  return regex ? std::move(*regex) : Regex::literal("");
}

std::vector<std::string> pieces(const std::string& pattern, const std::string& text) {
  std::vector<std::string> out;
  for (const Span& span : compiled(pattern).find_all(text))
    out.push_back(text.substr(span.begin, span.end - span.begin));
  return out;
}

using Pieces = std::vector<std::string>;

TEST(Regex, MatchesWhatTheReferenceMatches) {
  int num_cases = 0;
  for (const Json& row : read_rows(testing::data_path("text/regex_spans.jsonl"))) {
    const std::string& pattern = *row["pattern"].as_string();
    const Regex fastest = compiled(pattern);
    const Regex backtracking = compiled(pattern, Engine::kBacktracking);
    for (const Json& one : row["cases"].items()) {
      const std::string& text = *one.items()[0].as_string();
      const std::string expected = shown(to_spans(one.items()[1]));
      EXPECT_EQ(shown(fastest.find_all(text)), expected) << pattern << " on " << text;
      EXPECT_EQ(shown(backtracking.find_all(text)), expected) << "PCRE2: " << pattern << " on " << text;
      ++num_cases;
    }
  }
  EXPECT_GT(num_cases, 1'000);
}

TEST(Regex, KnownExpressionsAreAutomata) {
  int num_backtracking = 0;
  for (const Json& row : read_rows(testing::data_path("text/regex_spans.jsonl")))
    if (!compiled(*row["pattern"].as_string()).is_automaton()) ++num_backtracking;
  EXPECT_EQ(num_backtracking, 3) << "two look ahead further than one character, one group is atomic";
}

TEST(Regex, DoubtfulSyntaxIsReadAsTheReferenceDoes) {
  EXPECT_EQ(pieces("a{2}+", "aaaaaaa"), Pieces{"aaaaaa"});  // an interval is repeated, not possessive
  EXPECT_EQ(pieces("a{2}?b", "aab b"), (Pieces{"aab", "b"}));
  EXPECT_EQ(pieces("a{,2}", "aaaaa"), (Pieces{"aa", "aa", "a"}));
  EXPECT_EQ(pieces("a{,}", "aa{,}"), Pieces{"a{,}"});
  EXPECT_EQ(pieces("a(?i)b|c", "aBCac"), (Pieces{"aB", "ac"}));  // the option takes the alternative in
  EXPECT_EQ(pieces("a$", "a\na\nab a"), (Pieces{"a", "a", "a"}));
  EXPECT_EQ(pieces("^a", "a\na\nba"), (Pieces{"a", "a"}));
  EXPECT_EQ(pieces("\\n^", "a\n"), Pieces{});
  EXPECT_EQ(pieces("(?m:.+)", "a\nb"), Pieces{"a\nb"});
  EXPECT_EQ(pieces("[a-z&&[^aeiou]]+", "hello"), (Pieces{"h", "ll"}));
  EXPECT_EQ(pieces("[]a]+", "b]a"), Pieces{"]a"});
  EXPECT_EQ(pieces("(?i:[^a-z])+", "a\u212Ab\u017Fc.d"), Pieces{"."});  // Kelvin's sign, the long s
  EXPECT_EQ(pieces("(?i:'s)", "a'\u017F"), Pieces{"'\u017F"});
  EXPECT_EQ(pieces("\\w+", "a\u00BD"), Pieces{"a\u00BD"});
  EXPECT_EQ(pieces("[\\w]+", "a\u00BD"), Pieces{"a"});
  EXPECT_EQ(pieces("\\h+", "fag"), Pieces{"fa"});
  EXPECT_EQ(pieces("\\x{e9}\\u00e9\\x41", "\u00E9\u00E9A"), Pieces{"\u00E9\u00E9A"});
  EXPECT_EQ(pieces("a++a|b", "aaab"), Pieces{"b"});
  EXPECT_EQ(pieces("(?<w>a)b", "ab"), Pieces{"ab"});
}

TEST(Regex, LeftmostThenFirstAlternative) {
  EXPECT_EQ(pieces("a|ab", "abab"), (Pieces{"a", "a"}));
  EXPECT_EQ(pieces("ab|a", "aba"), (Pieces{"ab", "a"}));
  EXPECT_EQ(pieces("a+?", "aa"), (Pieces{"a", "a"}));
  EXPECT_EQ(pieces("\\s+(?!\\S)|\\s+", "   x"), (Pieces{"  ", " "}));
  EXPECT_EQ(pieces("x*", "axxb"), Pieces{"xx"}) << "empty matches are passed over";
  EXPECT_EQ(pieces("abcd|a|b", "abcabcd"), (Pieces{"a", "b", "abcd"}));
}

TEST(Regex, UnusableExpressionsAreRefusedWithTheirPlace) {
  for (const char* pattern :
       {"(", "[a", "a)", "*a", "\\p{Nonsense}", "[b-a]", "(?y:a)", "\\x{110000}", "a\\"}) {
    const auto regex = Regex::compile(pattern);
    ASSERT_FALSE(regex) << pattern;
    EXPECT_EQ(regex.error().code, ErrorCode::kUnsupported) << pattern;
    EXPECT_NE(regex.error().message.find(pattern), std::string::npos) << regex.error().message;
  }
  EXPECT_FALSE(Regex::compile(std::string(70'000, 'a')));
  EXPECT_FALSE(Regex::compile("\xFF"));
}

TEST(Regex, HostileExpressionsEnd) {
  for (const std::string& pattern :
       {std::string(30'000, '(') + "a" + std::string(30'000, ')'), std::string(60'000, '['),
        "a" + std::string(60'000, '*'), std::string("((((a{999}){999}){999}){999})"),
        std::string("(?:(?:a?){100000})*"), std::string("(?:){100000}a"), std::string("(a*)*b"),
        std::string("(?:a|b)*a(?:a|b){18}")}) {
    const auto regex = Regex::compile(pattern);
    if (!regex) continue;
    EXPECT_LE(regex->find_all("abababababababababab").size(), 20u);
  }
  // Its automaton would have 2^19 states.
  EXPECT_FALSE(compiled("(?:a|b)*a(?:a|b){18}").is_automaton());
  EXPECT_EQ(compiled("(?:a|b)*a(?:a|b){18}").find_all("aabababababababababab").size(), 1u);
}

TEST(Regex, LongRunsTakeLinearTime) {
  for (const char* pattern : {kGpt2, kLlama3})
    for (const char* unit : {"Z", " ", "\n", ".", "1", "\u00A0", "\u4E2D", " \n", "a1"}) {
      std::string text;
      for (int i = 0; i < 131'072; ++i) text += unit;
      std::size_t covered = 0;
      for (const Span& span : compiled(pattern).find_all(text)) {
        ASSERT_EQ(span.begin, covered);
        covered = span.end;
      }
      EXPECT_EQ(covered, text.size());
    }
}

TEST(Regex, HopelessSearchesEnd) {
  const std::string text(300'000, 'a');
  EXPECT_TRUE(compiled("a*b").find_all(text).empty());
  EXPECT_FALSE(compiled("a*b").find(text, 0));
  EXPECT_FALSE(compiled("a*b|a").find_all(text).empty());
}

TEST(Regex, AnyBytesAreSafe) {
  const Regex regex = compiled(kLlama3);
  std::mt19937 random(5);
  for (int round = 0; round < 2'000; ++round) {
    std::string text;
    for (auto length = random() % 40; length > 0; --length)
      text += static_cast<char>(random() % 3 ? 0x80 + random() % 0x80 : 0x20 + random() % 0x60);
    for (const Span& span : regex.find_all(text)) EXPECT_LE(span.end, text.size());
  }
}

std::string random_text(std::mt19937& random) {
  constexpr char32_t kCharacters[] = {U'a', U'a',  U'b', U'A',   U'1',  U' ',    U' ', U'\n',
                                      U'.', 0x301, 0xE9, 0x4E2D, 0x17F, 0x1F600, 0xA0, U'b'};
  std::string text;
  for (auto length = random() % 24; length > 0; --length)
    append_utf8(text, kCharacters[random() % std::size(kCharacters)]);
  return text;
}

// An expression of the flavour that both engines run: no atomic groups, no look-around beyond one character,
// nothing that could match the empty text in a loop (the engines leave such loops differently).
std::string random_expression(std::mt19937& random, int depth) {
  constexpr const char* kSets[] = {
      "a",      "b",      "\\p{L}",   "\\s", "\\S", "[^a\\s]",         ".",       "[ab]",
      "(?i:a)", "\\p{N}", "[\\r\\n]", " ",   "\\w", "[^\\p{L}\\p{M}]", "\\p{Lu}", "[[:punct:]1]"};
  constexpr const char* kLooks[] = {"(?!\\S)", "(?=a)", "(?<=\\s)", "(?<!a)", "\\b",
                                    "\\B",     "^",     "$",        "(?!b|$)"};
  constexpr const char* kQuantifiers[] = {"?",  "*",  "+",     "{1,3}", "{2}", "??",
                                          "*?", "+?", "{2,}?", "++",    "?+",  "*+"};
  std::string out;
  for (auto parts = 1 + random() % 3; parts > 0; --parts) {
    const auto kind = random() % 12;
    if (kind < 3 && depth > 0)
      out += "(?:" + random_expression(random, depth - 1) + "|" + random_expression(random, depth - 1) + ")";
    else if (kind == 3)
      out += kLooks[random() % std::size(kLooks)];
    else {
      out += kSets[random() % std::size(kSets)];
      if (random() % 2) out += kQuantifiers[random() % std::size(kQuantifiers)];
    }
  }
  return random() % 3 == 0 && depth > 0 ? out + "|" + random_expression(random, depth - 1) : out;
}

TEST(Regex, AutomatonAndBacktrackingAgree) {
  std::mt19937 random(20'26);
  int num_automata = 0, num_matches = 0;
  for (int round = 0; round < 600; ++round) {
    const std::string pattern = random_expression(random, 3);
    const Regex fastest = compiled(pattern);
    const Regex backtracking = compiled(pattern, Engine::kBacktracking);
    num_automata += fastest.is_automaton() ? 1 : 0;
    for (int i = 0; i < 20; ++i) {
      const std::string text = random_text(random);
      const auto expected = backtracking.find_all(text);
      num_matches += static_cast<int>(expected.size());
      ASSERT_EQ(shown(fastest.find_all(text)), shown(expected)) << pattern << " on '" << text << "'";
    }
  }
  EXPECT_EQ(num_automata, 600);
  EXPECT_GT(num_matches, 10'000);
}

TEST(Regex, EveryWayOfFindingFindsTheSame) {
  std::mt19937 random(3);
  std::string text;
  for (int i = 0; i < 40; ++i) text += random_text(random);
  for (const char* pattern : {kGpt2, kLlama3, "\\p{N}", "a.", "(?<=a)b", " {2,}|b"})
    for (const Engine engine : {Engine::kFastest, Engine::kBacktracking}) {
      const Regex regex = compiled(pattern, engine);
      const std::string expected = shown(regex.find_all(text));
      std::vector<Span> one_by_one;
      for (auto found = regex.find(text, 0); found; found = regex.find(text, found->end))
        one_by_one.push_back(*found);
      EXPECT_EQ(shown(one_by_one), expected) << pattern;
      for (const std::size_t room : {3, 4, 5, 17, 1000}) {
        std::vector<Span> some(room), all;
        for (Regex::Cursor cursor; cursor.at < text.size();) {
          const std::size_t num_found = regex.find_some(text, cursor, some);
          all.insert(all.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(num_found));
        }
        EXPECT_EQ(shown(all), expected) << pattern << ", " << room << " at a time";
      }
    }
}

TEST(Regex, EmptyMatchesAreFoundWhereTheReferenceCuts) {
  for (const Engine engine : {Engine::kFastest, Engine::kBacktracking}) {
    const auto found = [&](const char* pattern, const char* text) {
      EXPECT_TRUE(compiled(pattern, engine).can_match_empty());
      return shown(compiled(pattern, engine).find_all_with_empty(text));
    };
    EXPECT_EQ(found("x*", "abxxc"), "0-0 1-1 2-4 5-5 ");
    EXPECT_EQ(found("(?<=\\d)(?=\\d)", "123a"), "1-1 2-2 ");
    EXPECT_EQ(found("", "\u00E9"), "0-0 2-2 ");
    EXPECT_EQ(found("a$|$", "ba\n"), "1-2 3-3 ");
  }
  EXPECT_EQ(shown(compiled("(?=(\\d{3})+(?!\\d))").find_all_with_empty("a1234567")), "2-2 5-5 ");
  EXPECT_FALSE(compiled(kLlama3).can_match_empty());
  EXPECT_EQ(shown(compiled(kGpt2).find_all_with_empty("a bc")), "0-1 1-4 ");
}

TEST(Regex, TiktokensFlavour) {
  const auto found = [](const char* pattern, const char* text) {
    const auto regex = Regex::compile(pattern, Engine::kFastest, RegexFlavour::kRust);
    EXPECT_TRUE(regex && regex->is_automaton()) << pattern;
    return regex ? shown(regex->find_all(text)) : "";
  };
  EXPECT_EQ(found("\\p{N}{1,3}+", "12345"), "0-3 3-5 ");
  EXPECT_EQ(found("a{1,2}+a", "aa aaa"), "3-6 ");
  EXPECT_EQ(found("a{2}?", "aaaa"), "0-2 2-4 ");
  EXPECT_EQ(found("a$", "a\na"), "2-3 ");
  EXPECT_EQ(found("^a", "a\na"), "0-1 ");
  EXPECT_EQ(found("(?s:a.)", "a\n"), "0-2 ");
  EXPECT_EQ(found("a(?i)b|c", "aBC"), "0-2 2-3 ");
  EXPECT_EQ(found("(?:(?i)b)c", "BcBC"), "0-2 ");
  EXPECT_EQ(found("\\w+", "a\u00BD"), "0-1 ");
  // cl100k as tiktoken 0.14 writes it.
  EXPECT_EQ(found("'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}+|"
                  " ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|\\s++$|\\s*[\\r\\n]|\\s+(?!\\S)|\\s",
                  "I'll pay 1234  now!\n  "),
            "0-1 1-4 4-8 8-9 9-12 12-13 13-14 14-18 18-20 20-22 ");
}

// Large sets are written out once each, outside the expression proper.
TEST(Regex, ManyLargeSetsAreTooMuch) {
  const auto with_sets = [](int count) {
    std::string pattern;
    for (int i = 0; i < count; ++i) pattern += "[\\p{L}\\x{F" + std::to_string(1000 + 2 * i) + "}]";
    return Regex::compile(pattern, Engine::kBacktracking);
  };
  EXPECT_TRUE(with_sets(3));
  const auto refused = with_sets(600);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(refused.error().message.find("4 MiB"), std::string::npos)
      << refused.error().message.substr(0, 200);
}

TEST(Regex, LiteralsAreTakenAsTheyAre) {
  EXPECT_EQ(shown(Regex::literal("a.").find_all("aba.a.")), "2-4 4-6 ");
  EXPECT_TRUE(Regex::literal("").find_all("ab").empty());
}

}  // namespace
}  // namespace plimsoll::text
