// SPDX-License-Identifier: Apache-2.0
// Around the template: choice, normalisation, open last message, stop ids of a model folder.
#include "text/chat.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/mapped_file.h"
#include "tests/testing/golden.h"

namespace plimsoll::text {
namespace {

namespace fs = std::filesystem;

std::shared_ptr<const ChatTemplate> parsed(const char* source) {
  auto chat_template = ChatTemplate::parse(source);
  EXPECT_TRUE(chat_template);
  return chat_template ? *chat_template : nullptr;
}

Json json(const char* text) {
  return *parse_json(text, "test");
}

constexpr const char* kStrings = "{% for m in messages %}<{{ m.role }}>{{ m.content + '' }}</>{% endfor %}";

TEST(Chat, JoinsPartsForTemplatesThatTakeStrings) {
  const Json context =
      json(R"({"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
                                            {"role":"assistant","content":null}]})");
  const auto chat_template = parsed(kStrings);
  const auto raw = render_chat(*chat_template, context);
  ASSERT_FALSE(raw);
  EXPECT_EQ(raw.error().type, "TypeError");
  ChatOptions options;
  options.normalize_content = true;
  EXPECT_EQ(render_chat(*chat_template, context, options), "<user>a\nb</><assistant></>");
  const auto image = render_chat(
      *chat_template,
      json(R"({"messages":[{"role":"user","content":[{"type":"image_url","image_url":{}}]}]})"), options);
  ASSERT_FALSE(image);
  EXPECT_NE(image.error().message.find("image_url"), std::string::npos);
}

TEST(Chat, PassesPartsToTemplatesThatIterate) {
  const auto chat_template =
      parsed("{% for m in messages %}{% for p in m.content %}[{{ p.text }}]{% endfor %}{% endfor %}");
  ChatOptions options;
  options.normalize_content = true;
  EXPECT_EQ(render_chat(*chat_template, json(R"({"messages":[{"content":[{"type":"text","text":"a"}]}]})"),
                        options),
            "[a]");
}

TEST(Chat, OpensTheArgumentsOfToolCalls) {
  const auto messages = normalized_messages(
      json(R"([{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{\"a\": 1}"}},
                                                 {"function":{"name":"g","arguments":""}}]}])"),
      false);
  ASSERT_TRUE(messages);
  EXPECT_EQ(messages->at_pointer("/0/tool_calls/0/function/arguments/a").as_integer(), 1);
  EXPECT_EQ(messages->at_pointer("/0/tool_calls/1/function/arguments"), Json::object());
}

TEST(Chat, MessagesKeepWhatTheApiKnows) {
  EXPECT_EQ(dump(*normalized_messages(
                json(R"([{"content":["a",{"type":"thinking","thinking":"b"},{"type":"refusal","refusal":"c"}],
                          "role":"assistant","reasoning":"r","own":1},
                         {"role":"user","content":"x","name":"n","tool_calls":[]}])"),
                false)),
            R"([{"role":"assistant","content":"a\nb\nc","reasoning":"r","reasoning_content":"r"},)"
            R"({"role":"user","content":"x","name":"n"}])");
}

TEST(Chat, RefusedMessagesNameThePlace) {
  const auto place = [](const char* messages) {
    const auto normalized = normalized_messages(json(messages), true);
    return normalized ? "none" : normalized.error().place;
  };
  EXPECT_EQ(place(R"({})"), "messages");
  EXPECT_EQ(place(R"([1])"), "messages[0]");
  EXPECT_EQ(place(R"([{"content":"x"},{"content":5}])"), "messages[1].content");
  EXPECT_EQ(place(R"([{"content":[{"text":"x"}]}])"), "messages[0].content[0]");
  EXPECT_EQ(place(R"([{"content":[{"type":"text"}]}])"), "messages[0].content[0].text");
  EXPECT_EQ(place(R"([{"content":["x",{"type":"audio"}]}])"), "messages[0].content[1].audio");
  EXPECT_EQ(place(R"([{"role":"assistant","tool_calls":{}}])"), "messages[0].tool_calls");
  EXPECT_EQ(place(R"([{"role":"assistant","tool_calls":[{}]}])"), "messages[0].tool_calls[0].function.name");
  EXPECT_EQ(place(R"([{"role":"assistant","tool_calls":[{"function":{"name":"g","arguments":"no"}}]}])"),
            "messages[0].tool_calls[0].function.arguments");
}

TEST(Chat, ErrorsOfTemplatesNameLineAndColumn) {
  EXPECT_EQ(place_in_template({"TypeError", "m", 3, 5}), "line 3, column 5");
  EXPECT_EQ(place_in_template({"TypeError", "m", 3, 0}), "line 3");
  EXPECT_EQ(place_in_template({"ValueError", "m"}), "");
  EXPECT_EQ(to_error({"TypeError", "m", 3, 5}).where, "chat template: line 3, column 5");
}

TEST(Chat, LeavesTheFinalMessageOpen) {
  ChatOptions options;
  options.continue_final_message = true;
  const Json context =
      json(R"({"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"Sure: "}]})");
  EXPECT_EQ(render_chat(*parsed(kStrings), context, options), "<user>q</><assistant>Sure: ");
  EXPECT_EQ(
      render_chat(*parsed("{% for m in messages %}<{{ m.content | trim }}>{% endfor %}"), context, options),
      "<q><Sure:");
  const auto lost = render_chat(*parsed("nothing"), context, options);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().type, "ValueError");
}

// A model folder that lasts as long as a test.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("plimsoll_text_" + std::to_string(::getpid()))) {
    fs::create_directories(path_ / "additional_chat_templates");
    fs::copy_file(testing::golden_path("tokenizers_tiny/bpe_llama3/tokenizer.json"), path_ / "tokenizer.json",
                  fs::copy_options::overwrite_existing);
  }
  ~Folder() { fs::remove_all(path_); }
  void write(const char* name, const char* text) const {
    ASSERT_TRUE(write_file((path_ / name).string(), text));
  }
  std::shared_ptr<const artifact::Artifact> open() const {
    auto artifact = artifact::open(path_.string());
    EXPECT_TRUE(artifact) << (artifact ? "" : artifact.error().describe());
    return artifact ? *artifact : nullptr;
  }

 private:
  fs::path path_;
};

TEST(Chat, CollectsStopIdsFromEveryFile) {
  const Folder folder;
  folder.write("config.json", R"({"model_type":"llama","eos_token_id":[2,7]})");
  folder.write("generation_config.json", R"({"eos_token_id":8})");
  folder.write("tokenizer_config.json", R"({"bos_token":"<s>","eos_token":{"content":"</s>"}})");
  auto tokenizer = load_tokenizer(*folder.open());
  ASSERT_TRUE(tokenizer) << tokenizer.error().describe();
  EXPECT_EQ((*tokenizer)->bos(), (*tokenizer)->id_of("<s>"));
  EXPECT_EQ((*tokenizer)->eos(), (*tokenizer)->id_of("</s>"));
  std::vector<TokenId> expected = {2, 7, 8};
  if (const auto end = (*tokenizer)->id_of("<|im_end|>")) expected.push_back(*end);
  std::vector<TokenId> found = (*tokenizer)->stop_ids();
  std::sort(found.begin(), found.end());
  std::sort(expected.begin(), expected.end());
  expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
  EXPECT_EQ(found, expected);
}

TEST(Chat, ChoosesAmongTemplatesAsTransformersDoes) {
  const Folder folder;
  folder.write("config.json", R"({"model_type":"llama"})");
  folder.write("tokenizer_config.json",
               R"({"chat_template":[{"name":"default","template":"D"},{"name":"tool_use","template":"T"}]})");
  EXPECT_EQ(choose_chat_template(*folder.open(), "", false), "D");
  EXPECT_EQ(choose_chat_template(*folder.open(), "", true), "T");
  EXPECT_EQ(choose_chat_template(*folder.open(), "rag", false), std::nullopt);
  folder.write("chat_template.jinja", "F");
  folder.write("additional_chat_templates/rag.jinja", "R");
  EXPECT_EQ(choose_chat_template(*folder.open(), "", false), "F");
  EXPECT_EQ(choose_chat_template(*folder.open(), "rag", false), "R");
}

TEST(Chat, SaysWhenThereIsNoTokenizer) {
  const Folder folder;
  folder.write("config.json", R"({"model_type":"llama"})");
  fs::remove(fs::path(folder.open()->root()) / "tokenizer.json");
  const auto tokenizer = load_tokenizer(*folder.open());
  ASSERT_FALSE(tokenizer);
  EXPECT_EQ(tokenizer.error().code, ErrorCode::kMalformed);
  EXPECT_NE(tokenizer.error().message.find("no tokenizer"), std::string::npos);
}

TEST(Chat, ReadsALoneTokenizerFile) {
  auto artifact = artifact::open(testing::golden_path("tokenizers_tiny/bpe_qwen2/tokenizer.json"));
  ASSERT_TRUE(artifact) << artifact.error().describe();
  EXPECT_TRUE(load_tokenizer(**artifact));
}

TEST(Chat, OnlyMessagesCanBeContinued) {
  const auto chat_template = ChatTemplate::parse("x");
  ASSERT_TRUE(chat_template);
  ChatOptions options;
  options.continue_final_message = true;
  for (const char* odd : {R"({"messages":{"a":1}})", R"({"messages":[]})", R"({"messages":5})", "{}"}) {
    const auto rendered = render_chat(**chat_template, *parse_json(odd, "c"), options);
    ASSERT_FALSE(rendered) << odd;
    EXPECT_EQ(rendered.error().type, "ValueError");
  }
}

}  // namespace
}  // namespace plimsoll::text
