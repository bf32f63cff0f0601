// SPDX-License-Identifier: Apache-2.0
// Stop ids as a union, special tokens that the vocabulary does not know, and what templates do when tried.
#include "inspect/token_checks.h"

#include <gtest/gtest.h>

#include "tests/inspect/model_folder.h"

namespace plimsoll::inspect {
namespace {

constexpr const char* kTokenizer =
    R"({"model":{"type":"WordLevel","unk_token":"?","vocab":{"?":0,"a":1,"b":2,"c":3}},
    "added_tokens":[{"id":4,"content":"<s>","special":true},{"id":5,"content":"</s>","special":true},
                    {"id":6,"content":"<|im_end|>","special":true},{"id":7,"content":"<|im","special":true}]})";

std::string config_with(const std::string& more) {
  std::string text(kSmallLlama);
  text.pop_back();
  return text + (more.empty() ? "" : "," + more) + "}";
}

// "4:config.json+chat_template 5:..." in the order of the ids.
std::string stops(const Report& report) {
  std::string text;
  for (const Json& stop : report.tokenizer["stop_ids"].items()) {
    text += (text.empty() ? "" : " ") + std::to_string(*stop["id"].as_integer()) + ":";
    std::string sources;
    for (const Json& source : stop["sources"].items())
      sources += (sources.empty() ? "" : "+") + *source.as_string();
    text += sources;
  }
  return text;
}

TEST(TokenChecks, Case16StopIdsAreAUnion) {
  ModelFolder folder;
  folder.write("config.json", config_with(R"("eos_token_id":5)")).write("tokenizer.json", kTokenizer);
  folder.write("tokenizer_config.json", R"({"eos_token":"</s>"})");
  folder.write("generation_config.json", R"({"eos_token_id":[0,3]})");
  const Report report = folder.inspected();
  EXPECT_EQ(stops(report),
            "0:generation_config.json 3:generation_config.json 5:config.json+tokenizer_config.json");
  const auto* conflict = finding_of(report, "EOS_CONFLICT");
  ASSERT_NE(conflict, nullptr);
  EXPECT_EQ(conflict->level, FindingLevel::kWarning);
  EXPECT_NE(conflict->message.find("0, 3"), std::string::npos);
  EXPECT_NE(conflict->message.find("5"), std::string::npos);
}

TEST(TokenChecks, AListThatHoldsAllIsNoWarning) {
  ModelFolder folder;
  folder.write("config.json", config_with(R"("eos_token_id":5)")).write("tokenizer.json", kTokenizer);
  folder.write("tokenizer_config.json", R"({"eos_token":{"content":"</s>"}})");
  folder.write("generation_config.json", R"({"eos_token_id":[5,6]})");
  const Report report = folder.inspected();
  ASSERT_NE(finding_of(report, "EOS_CONFLICT"), nullptr);
  EXPECT_EQ(finding_of(report, "EOS_CONFLICT")->level, FindingLevel::kInfo);
}

TEST(TokenChecks, TheTemplatesOwnEndOfTurn) {
  ModelFolder folder;
  folder.write("config.json", config_with(R"("eos_token_id":5)")).write("tokenizer.json", kTokenizer);
  folder.write(
      "tokenizer_config.json",
      R"({"eos_token":"</s>","chat_template":"{% for m in messages %}<s>{{ m.content }}<|im_end|>\n{% endfor %}"})");
  const Report report = folder.inspected();
  EXPECT_EQ(stops(report), "5:config.json+tokenizer_config.json 6:chat_template");
  const auto* finding = finding_of(report, "STOP_TEMPLATE");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->message.find("<|im_end|>"), std::string::npos);  // the longest token, not <|im
  folder.write("generation_config.json", R"({"eos_token_id":[5,6]})");
  const Report named = folder.inspected();
  EXPECT_EQ(finding_of(named, "STOP_TEMPLATE"), nullptr);
  EXPECT_EQ(
      stops(named),
      "5:config.json+generation_config.json+tokenizer_config.json 6:generation_config.json+chat_template");
}

TEST(TokenChecks, SpecialTokensThatNobodyKnows) {
  ModelFolder folder;
  folder.write("config.json", kSmallLlama).write("tokenizer.json", kTokenizer);
  folder.write("tokenizer_config.json", R"({"bos_token":"<begin>","eos_token":"</s>","pad_token":"<pad>"})");
  const Report report = folder.inspected();
  ASSERT_NE(finding_of(report, "TOK_SPECIAL_UNKNOWN"), nullptr);
  EXPECT_NE(finding_of(report, "TOK_SPECIAL_UNKNOWN")->message.find("<begin>"), std::string::npos);
  EXPECT_EQ(report.tokenizer["special"]["eos"]["id"], Json(5));
  EXPECT_TRUE(report.tokenizer["special"]["bos"]["id"].is_null());
}

TEST(TokenChecks, SpecialTokensMapStandsIn) {
  ModelFolder folder;
  folder.write("config.json", kSmallLlama).write("tokenizer.json", kTokenizer);
  folder.write("special_tokens_map.json", R"({"eos_token":{"content":"</s>"}})");
  EXPECT_EQ(stops(folder.inspected()), "5:special_tokens_map.json");
}

Json treatment(const std::string& source, Report& report) {
  ModelFolder folder;
  folder.write("config.json", kSmallLlama).write("tokenizer.json", kTokenizer);
  folder.write("tokenizer_config.json", "{}").write("chat_template.jinja", source);
  report = folder.inspected();
  return report.tokenizer["chat_template"];
}

TEST(TemplateTrial, SystemAndTools) {
  Report report;
  const Json plain = treatment("{% for m in messages %}{{ m.role }}:{{ m.content }}{% endfor %}", report);
  EXPECT_EQ(plain["system"], Json("taken"));
  EXPECT_EQ(plain["tools"], Json("ignored"));
  const Json full = treatment(
      "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}{{ m.content }}{% endfor %}",
      report);
  EXPECT_EQ(full["tools"], Json("taken"));
  const Json refusing = treatment(
      "{% if tools %}{{ raise_exception('no tools here') }}{% endif %}{% for m in messages %}"
      "{% if m.role == 'system' %}{{ raise_exception('no system here') }}{% endif %}{{ m.content }}{% endfor "
      "%}",
      report);
  EXPECT_EQ(refusing["system"], Json("refused"));
  EXPECT_EQ(refusing["tools"], Json("refused"));
  ASSERT_NE(finding_of(report, "TMPL_NO_TOOLS"), nullptr);
  EXPECT_NE(finding_of(report, "TMPL_NO_TOOLS")->message.find("no tools here"), std::string::npos);
  ASSERT_NE(finding_of(report, "TMPL_NO_SYSTEM"), nullptr);
  const Json broken = treatment("{% for m in messages %}", report);
  EXPECT_TRUE(broken["system"].is_null());
  EXPECT_TRUE(broken["tools"].is_null());
}

TEST(TokenChecks, NoEndAtAll) {
  ModelFolder folder;
  folder.write("config.json", config_with(R"("eos_token_id":null)")).write("tokenizer.json", kTokenizer);
  EXPECT_NE(finding_of(folder.inspected(), "STOP_NONE"), nullptr);
  folder.write("tokenizer_config.json",
               R"({"chat_template":"{% for m in messages %}{{ m.content }}<|im_end|>{% endfor %}"})");
  const Report report = folder.inspected();
  ASSERT_NE(finding_of(report, "STOP_TEMPLATE"), nullptr);
  EXPECT_NE(finding_of(report, "STOP_TEMPLATE")->message.find("nothing"), std::string::npos);
}

TEST(TokenChecks, AnEndThatTheTokenizersConfigAdds) {
  ModelFolder folder;
  folder.write("config.json", kSmallLlama).write("tokenizer.json", kTokenizer);
  folder.write("tokenizer_config.json", R"({"eos_token":"<end>"})");
  EXPECT_NE(finding_of(folder.inspected(), "TOK_EOS_UNKNOWN"), nullptr);
  folder.write("tokenizer_config.json",
               R"({"eos_token":"<end>","added_tokens_decoder":{"8":{"content":"<end>","special":true}}})");
  EXPECT_EQ(finding_of(folder.inspected(), "TOK_EOS_UNKNOWN"), nullptr);
}

TEST(TokenChecks, MergesAreCountedAsTheyStand) {
  ModelFolder folder;
  folder.write("config.json", kSmallLlama);
  folder.write("tokenizer.json",
               R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b","none","a x"]}})");
  const Report report = folder.inspected();
  ASSERT_NE(finding_of(report, "TOK_MERGE"), nullptr);
  EXPECT_TRUE(finding_of(report, "TOK_MERGE")->where.ends_with("/model/merges/2"))
      << finding_of(report, "TOK_MERGE")->where;
  folder.write("tokenizer.json", R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":[7]}})");
  const Report odd = folder.inspected();
  ASSERT_NE(finding_of(odd, "TOK_MERGE"), nullptr);
  EXPECT_NE(finding_of(odd, "TOK_MERGE")->message.find("neither"), std::string::npos);
}

// Files that the reference library refuses, too.
TEST(TokenChecks, TokenizersThatNoLibraryReads) {
  ModelFolder folder;
  folder.write("config.json", kSmallLlama);
  const auto told = [&](const char* id, std::string_view text) {
    return finding_of(folder.write("tokenizer.json", text).inspected(), id) != nullptr;
  };
  constexpr const char* kWhole = R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}})";
  EXPECT_FALSE(told("TOK_MERGE", kWhole));
  EXPECT_TRUE(told("TOK_MERGE", R"({"model":{"type":"BPE","vocab":{"a":0,"b":1},"merges":["a b"]}})"));
  constexpr const char* kPrefixed =
      R"({"model":{"type":"BPE","continuing_subword_prefix":"##","vocab":{"a":0,"##b":1,"ab":2},
      "merges":["a ##b"]}})";
  EXPECT_FALSE(told("TOK_MERGE", kPrefixed));
  for (const char* id : {"-4", "1.5", "\"1\"", "null"})
    EXPECT_TRUE(
        told("TOK_ID", R"({"model":{"type":"WordLevel","vocab":{"a":0,"b":)" + std::string(id) + "}}}"))
        << id;
  EXPECT_TRUE(told("TOK_KIND", R"({"model":{"type":"Foo","vocab":{"a":0}}})"));
  EXPECT_TRUE(told("TOK_JSON", R"({"added_tokens":[{"id":0,"content":"a"}]})"));
  // What only loading shows.
  folder.write("tokenizer.json",
               R"({"normalizer":{"type":"Foo"},"model":{"type":"WordLevel","vocab":{"a":0}}})");
  EXPECT_EQ(finding_of(folder.inspected(), "TOK_LOAD"), nullptr);
  EXPECT_NE(finding_of(folder.inspected({.is_deep = true}), "TOK_LOAD"), nullptr);
}

TEST(TokenChecks, TemplatesThatServeNoPlainConversation) {
  ModelFolder folder;
  folder.write("config.json", kSmallLlama);
  for (const char* config :
       {R"({"chat_template":[{"name":"tool_use","template":"{{ messages[0].content }}"}]})",
        R"({"chat_template":""})"}) {
    folder.write("tokenizer_config.json", config);
    EXPECT_NE(finding_of(folder.inspected(), "TMPL_NO_DEFAULT"), nullptr) << config;
  }
  folder.write("tokenizer_config.json", R"({"chat_template":"{{ raise_exception('no') }}"})");
  const Report report = folder.inspected();
  ASSERT_NE(finding_of(report, "TMPL_RENDER"), nullptr);
  EXPECT_EQ(finding_of(report, "TMPL_RENDER")->level, FindingLevel::kWarning);
}

}  // namespace
}  // namespace plimsoll::inspect
