// SPDX-License-Identifier: Apache-2.0
// Reported cases about chat templates (data/cases, and the public ones of the golden set), one test each.
#include <gtest/gtest.h>

#include "base/mapped_file.h"
#include "tests/testing/golden.h"
#include "tests/text/reference_rows.h"
#include "text/template_renderer.h"

namespace plimsoll::text {
namespace {

std::string case_path(const std::string& relative) {
  return testing::data_path("cases/" + relative);
}

// The text, or "class: message".
std::string rendered(const std::string& folder, const char* line, const std::string& name = "") {
  auto artifact = artifact::open(case_path(folder));
  if (!artifact) return artifact.error().describe();
  TemplateRenderer renderer({*artifact, std::nullopt, name});
  const LineAnswer answer = renderer.render(*parse_json(line, "line"));
  if (!answer) return answer.error().type + ": " + answer.error().message;
  return *(*answer)["text"].as_string();
}

constexpr const char* kHi = R"({"messages":[{"role":"user","content":"hi"}]})";

TEST(ChatCases, Case26TrimBlocks) {
  EXPECT_EQ(rendered("26-tok-template-trim-blocks",
                     R"({"messages":[{"role":"user","content":"one"},{"role":"assistant","content":"two"}],
                         "add_generation_prompt":true})"),
            "[U]one\n[A]two\n[A]\n");
}

TEST(ChatCases, Case27TojsonBytes) {
  Json line = *parse_json(kHi, "line");
  line.set("tools", *read_json_file(case_path("27-tok-tojson-bytes/tools.json")));
  EXPECT_EQ(rendered("27-tok-tojson-bytes", dump(line).c_str()),
            *read_file(case_path("27-tok-tojson-bytes/expected.txt")));
}

TEST(ChatCases, Case28NamedTemplates) {
  const std::string folder = "28-tok-named-templates";
  EXPECT_EQ(rendered(folder, kHi), "DEF:hi");
  EXPECT_EQ(rendered(folder, R"({"messages":[{"role":"user","content":"hi"}],"tools":[{}]})"), "TOOL:1:hi");
  EXPECT_EQ(rendered(folder, kHi, "rag"), "RAG:hi");
  EXPECT_EQ(rendered(folder + "/no_default", kHi), "ValueError: the model has no chat template");
}

TEST(ChatCases, Case35NoOtherTemplateInstead) {
  const std::string folder = "35-tok-template-must-not-fall-back";
  EXPECT_EQ(rendered(folder + "/date",
                     R"({"messages":[{"role":"user","content":"hi"}],"now":"2026-01-15T09:30:00"})"),
            "15 Jan 2026|hi");
  EXPECT_EQ(rendered(folder + "/date",
                     R"({"messages":[{"role":"user","content":"hi"}],"date_string":"01 Jan 2020"})"),
            "01 Jan 2020|hi");
  const std::string refused = rendered(
      folder + "/raises", R"({"messages":[{"role":"system","content":"s"},{"role":"user","content":"hi"}]})");
  EXPECT_EQ(refused, "TemplateError: Only user and assistant roles");
}

TEST(ChatCases, PublicReportsRenderAsInTheReference) {
  int found = 0;
  for (const Json& row : read_rows(testing::golden_path("tokens/public_cases.jsonl"))) {
    if (!row["kind"].as_string() || *row["kind"].as_string() != "template") continue;
    ++found;
    SCOPED_TRACE(*row["ref"].as_string());
    auto parsed = ChatTemplate::parse(*row["template"].as_string());
    auto got = parsed ? (*parsed)->render(row["context"]) : tl::unexpected(parsed.error());
    if (const std::string* expected = row["expected"].as_string()) {
      EXPECT_TRUE(got) << (got ? "" : got.error().message);
      EXPECT_EQ(got.value_or(""), *expected);
    } else {
      ASSERT_FALSE(got);
      EXPECT_EQ(got.error().type, *row["error"].as_string());
      EXPECT_EQ(got.error().message, *row["message"].as_string());
    }
  }
  EXPECT_GE(found, 6);  // one more in the full set: a model's own template
}

}  // namespace
}  // namespace plimsoll::text
