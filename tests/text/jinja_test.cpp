// SPDX-License-Identifier: Apache-2.0
// The template language row by row against jinja2 in transformers' environment (data/text/jinja.jsonl):
// filters, tests, methods, operators, statements, syntax errors. Errors agree in class; where the row has
// one, in message.
#include <gtest/gtest.h>

#include "tests/testing/golden.h"
#include "tests/text/reference_rows.h"
#include "tests/text/template_rendering.h"
#include "text/text.h"

namespace plimsoll::text {
namespace {

TEST(Jinja, RowsAreAsInJinja2) {
  const std::vector<Json> rows = read_rows(testing::data_path("text/jinja.jsonl"));
  ASSERT_GT(rows.size(), 300u);
  const Json& context = rows[0]["context"];
  for (std::size_t i = 1; i < rows.size(); ++i) {
    SCOPED_TRACE(*rows[i]["t"].as_string());
    const Rendered got = render(*rows[i]["t"].as_string(), context);
    if (const std::string* text = rows[i]["text"].as_string()) {
      EXPECT_TRUE(got) << (got ? "" : got.error().type + ": " + got.error().message);
      EXPECT_EQ(got.value_or(""), *text);
      continue;
    }
    ASSERT_FALSE(got) << *got;
    EXPECT_EQ(got.error().type, *rows[i]["error"].as_string()) << got.error().message;
    if (const std::string* message = rows[i]["message"].as_string()) {
      EXPECT_EQ(got.error().message, *message);
    }
  }
}

TEST(Jinja, WhatCannotRunIsNamedWithItsPlace) {
  for (const auto& [source, named] :
       {std::pair("a\n{% include 'x' %}", "include"), std::pair("a\n{% extends 'x' %}", "extends"),
        std::pair("a\n{% import 'x' as y %}", "import"), std::pair("a\n{% from 'x' import y %}", "from"),
        std::pair("a\n{% autoescape true %}{% endautoescape %}", "autoescape"),
        std::pair("a\n{% trans %}{% endtrans %}", "trans"), std::pair("a\n{{ 1 | urlize }}", "urlize"),
        std::pair("a\n{{ 1 is huge }}", "huge")}) {
    const auto parsed = ChatTemplate::parse(source);
    ASSERT_FALSE(parsed) << source;
    EXPECT_NE(parsed.error().message.find(named), std::string::npos) << parsed.error().message;
    EXPECT_EQ(parsed.error().line, 2);
    EXPECT_GT(parsed.error().column, 1);
  }
}

TEST(Jinja, WhatOnlyTheReferenceHasIsNamedWhenItRuns) {
  for (const auto& [source, named] :
       {std::pair("{{ cycler }}", "cycler"), std::pair("{{ lipsum }}", "lipsum"),
        std::pair("{% set j = joiner(',') %}", "joiner"), std::pair("{{ self }}", "self"),
        std::pair("{{ 5 .real }}", "real"), std::pair("{{ 2.5 .imag }}", "imag"),
        std::pair("{{ 'x'.encode }}", "encode"), std::pair("{{ {}['fromkeys'] }}", "fromkeys"),
        std::pair("{{ range(3).stop }}", "stop"),
        std::pair("{% macro m(a) %}{% endmacro %}{{ m.arguments }}", "arguments")}) {
    const Rendered got = render(source, Json::object());
    ASSERT_FALSE(got) << source << ": " << *got;
    EXPECT_NE(got.error().message.find(named), std::string::npos) << got.error().message;
  }
  // A caller's variable of such a name is like any other.
  EXPECT_EQ(render("{{ self }}", Json::object({{"self", "me"}})), "me");
}

TEST(Jinja, RoundingBeyond64BitsIsRefused) {
  const Rendered got = render("{{ 9223372036854775807 | round(-1) }}", Json::object());
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().type, "LimitError");
}

TEST(Jinja, ErrorsSayWhere) {
  const Rendered at_parse = render("ok\n  {{ 1 + }}", Json::object());
  ASSERT_FALSE(at_parse);
  EXPECT_EQ(at_parse.error().line, 2);
  EXPECT_EQ(at_parse.error().column, 10);
  const Rendered at_run = render("ok\n  {{ 'a' + x.y }}", Json::object());
  ASSERT_FALSE(at_run);
  EXPECT_EQ(at_run.error().line, 2);
  EXPECT_EQ(at_run.error().column, 12);
}

TEST(Jinja, ConversationsNestedTooDeeplyAreRefused) {
  Json deep = Json::array();
  for (int i = 0; i < 1000; ++i) {
    Json outer = Json::array();
    outer.push_back(std::move(deep));
    deep = std::move(outer);
  }
  const Rendered got = render("{{ messages }}", Json::object({{"messages", std::move(deep)}}));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().type, "LimitError");
}

TEST(Jinja, WorkIsBounded) {
  const std::string long_text = "{% set a = 'x' * 10000000 %}{% for i in range(99999) %}";
  const std::string sources[] = {
      long_text + "{% if 'y' in a %}{% endif %}{% endfor %}",
      long_text + "{% set b = a | length %}{% endfor %}",
      long_text + "{% set b = a.count('y') %}{% endfor %}",
      long_text + "{% if a == a + '' %}{% endif %}{% endfor %}",
      "{{ (['x' * 1000000] * 100000) | tojson | length }}",
      "{{ ('x' * 1000000).join(['y'] * 100000) | length }}",
      "{{ ('%10000d' * 100000) % ((1,) * 100000) }}",
      "{{ ('{0:10000}' * 100000).format(1) | length }}",
      "{{ dict(range(100000) | batch(2)) | length }}",
      "{{ ('a' * 1000000) | replace('a', 'b' * 1000000) | length }}",
      "{% set ns = namespace(f=1) %}{% for i in range(100000) %}{% set ns.f = [ns.f] %}{% endfor %}",
      "{{ a" +
          [] {
            std::string text;
            for (int i = 0; i < 100'000; ++i) text += "[0]";
            return text;
          }() +
          " }}"};
  for (const std::string& source : sources) {
    SCOPED_TRACE(source.substr(0, 100));
    const Rendered got = render(source, Json::object());
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().type, "LimitError") << got.error().message;
  }
  // Linear in both, however long the part is.
  EXPECT_EQ(render("{{ ('a' * 2000000).find('a' * 1000000 + 'b') }}", Json::object()), "-1");
}

}  // namespace
}  // namespace plimsoll::text
