// SPDX-License-Identifier: Apache-2.0
// Chat templates against real jinja2: our own templates always, the real ones with PLIMSOLL_GOLDEN.
#include <gtest/gtest.h>

#include <map>

#include "base/mapped_file.h"
#include "tests/testing/golden.h"
#include "tests/text/reference_rows.h"
#include "tests/text/template_rendering.h"
#include "text/text.h"

namespace plimsoll::text {
namespace {

TEST(ChatTemplate, OwnTemplatesRenderAsInJinja2) {
  std::map<std::string, Json> contexts;
  std::map<std::string, std::string> sources;
  int texts = 0, errors = 0;
  for (const Json& row : read_rows(testing::data_path("text/chat_templates.jsonl"))) {
    const std::string& kind = *row["kind"].as_string();
    if (kind == "context") contexts[*row["name"].as_string()] = row["context"];
    if (kind == "template") sources[*row["name"].as_string()] = *row["source"].as_string();
    if (kind != "render") continue;
    SCOPED_TRACE(*row["template"].as_string() + " with " + *row["context"].as_string());
    const auto got = render(sources[*row["template"].as_string()], contexts[*row["context"].as_string()]);
    if (row.contains("text")) {
      ++texts;
      EXPECT_TRUE(got) << (got ? "" : got.error().type + ": " + got.error().message);
      EXPECT_EQ(got.value_or(""), *row["text"].as_string());
    } else {
      ++errors;
      ASSERT_FALSE(got) << *got;
      EXPECT_EQ(got.error().type, *row["error"].as_string());
      EXPECT_EQ(got.error().message, *row["message"].as_string());
      EXPECT_EQ(got.error().line, row["line"].as_integer());
    }
  }
  EXPECT_GT(texts, 30);
  EXPECT_GT(errors, 20);
}

TEST(ChatTemplate, RealTemplatesRenderAsInJinja2) {
  const std::string folder = testing::golden_path("chat_templates");
  auto contexts = read_json_file(folder + "/contexts.json");
  if (!contexts) GTEST_SKIP() << "PLIMSOLL_GOLDEN names no full set";
  std::map<std::string, std::string> sources;
  int texts = 0, right_texts = 0, errors = 0, right_errors = 0;
  for (const char* part : {"0", "1", "2"})
    for (const Json& row : read_rows(folder + "/chat_renders." + part + ".jsonl")) {
      const std::string& name = *row["template"].as_string();
      if (!sources.contains(name)) sources[name] = *read_file(folder + "/" + name + ".jinja");
      Json context = (*contexts)[*row["case"].as_string()]["context"];
      context.set("bos_token", row["bos"]);
      context.set("eos_token", row["eos"]);
      const auto got = render(sources[name], context);
      if (const std::string* expected = row["expected"].as_string()) {
        ++texts;
        right_texts += got && *got == *expected;
      } else {
        ++errors;
        right_errors += !got && got.error().type == *row["error"].as_string() &&
                        got.error().message == *row["message"].as_string();
      }
    }
  EXPECT_EQ(texts, 1897);
  EXPECT_EQ(right_texts, 1897);
  EXPECT_EQ(errors, 473);
  EXPECT_EQ(right_errors, 473);
}

std::string limit_or_text(const std::string& source) {
  const auto got = render(source, Json::object());
  return got ? *got : got.error().type;
}

TEST(ChatTemplate, HostileTemplatesAreStopped) {
  const std::string deep_list =
      "{% set ns = namespace(x=[]) %}{% for i in range(100000) %}{% set ns.x = [ns.x] %}{% endfor %}";
  EXPECT_EQ(limit_or_text(deep_list), "LimitError");
  // Shared lists that unfold to 2^200 elements.
  EXPECT_EQ(
      limit_or_text("{% set ns = namespace(x=[1]) %}{% for i in range(200) %}{% set ns.x = [ns.x, ns.x] %}"
                    "{% endfor %}{{ ns.x }}"),
      "LimitError");
  EXPECT_EQ(
      limit_or_text("{% set ns = namespace(x='a') %}{% for i in range(200) %}{% set ns.x = ns.x + ns.x %}"
                    "{% endfor %}"),
      "LimitError");
  EXPECT_EQ(limit_or_text("{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}"),
            "LimitError");
  EXPECT_EQ(limit_or_text("{% for a in range(1000000000) %}{% endfor %}"), "OverflowError");
  EXPECT_EQ(limit_or_text("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"), "LimitError");
  EXPECT_EQ(limit_or_text("{{ 'x' * 10000000000 }}"), "LimitError");
  EXPECT_EQ(limit_or_text("{{ 9223372036854775807 + 1 }}"), "LimitError");
  EXPECT_EQ(limit_or_text("{{ " + std::string(100'000, '(') + "1" + std::string(100'000, ')') + " }}"),
            "LimitError");
  EXPECT_EQ(limit_or_text("{{ " + std::string(100'000, '-') + "1 }}"), "LimitError");
  std::string sum = "{{ 1";
  std::string difference = "{{ 1";
  for (int i = 0; i < 100'000; ++i) sum += "+1", difference += "-1";
  EXPECT_EQ(limit_or_text(sum + " }}"), "100001");
  EXPECT_EQ(limit_or_text(difference + " }}"), "LimitError");
  EXPECT_EQ(limit_or_text("{{ ''.__class__.__mro__ }}"), "SecurityError");
  EXPECT_EQ(limit_or_text("{{ 'x'.center(4611686018427387904, '한') }}"), "LimitError");
  EXPECT_EQ(limit_or_text("{{ [1] | batch(1152921504606846976, 0) | list }}"), "LimitError");
  EXPECT_EQ(limit_or_text("{{ 'abc' | truncate(9223372036854775807, leeway=9223372036854775807) }}"), "abc");
  EXPECT_EQ(limit_or_text("{{ 'aaaa'[::9223372036854775807] }}"), "a");
  // A namespace that holds itself must neither print forever nor leak.
  EXPECT_EQ(limit_or_text("{% set ns = namespace() %}{% set ns.me = ns %}{{ ns.me.me is defined }}"), "True");
}

TEST(ChatTemplate, KnowsWhetherItIteratesOverContentParts) {
  const auto takes = [](const char* source) { return (*ChatTemplate::parse(source))->takes_content_parts(); };
  EXPECT_FALSE(takes("{% for m in messages %}{{ m.content }}{% endfor %}"));
  EXPECT_TRUE(
      takes("{% for m in messages %}{% for p in m['content'] %}{{ p.text }}{% endfor %}{% endfor %}"));
  EXPECT_TRUE(
      takes("{% for m in messages %}{% set c = m.content %}{% for p in c %}{{ p }}{% endfor %}{% endfor %}"));
}

}  // namespace
}  // namespace plimsoll::text
