// SPDX-License-Identifier: Apache-2.0
#include "inspect/context_checks.h"

#include <gtest/gtest.h>

#include "tests/inspect/model_folder.h"
#include "tests/testing/golden.h"

namespace plimsoll::inspect {
namespace {

// The small llama with more keys; keys that stand twice count by their last.
std::string config(const std::string& more) {
  std::string text(kSmallLlama);
  text.pop_back();
  return text + (more.empty() ? "" : "," + more) + "}";
}

Context context_of(const std::string& more) {
  ModelFolder folder;
  folder.write("config.json", config(more));
  return folder.inspected().context;
}

struct Lengths {
  std::int64_t native, extended, max_model_len;
  bool operator==(const Lengths&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Lengths& lengths) {
  return out << lengths.native << " " << lengths.extended << " " << lengths.max_model_len;
}
Lengths lengths_of(const std::string& more) {
  const Context context = context_of(more);
  return {context.native_tokens.value_or(-1), context.extended_tokens.value_or(-1),
          context.max_model_len.value_or(-1)};
}

// What vLLM 0.33.0 derives for each, by the rule in docs/formulas/context.md.
TEST(ContextChecks, LengthsByScaling) {
  EXPECT_EQ(lengths_of(""), (Lengths{2048, 2048, 2048}));
  EXPECT_EQ(lengths_of(R"("rope_scaling":{"type":"linear","factor":4.0})"), (Lengths{2048, 8192, 8192}));
  EXPECT_EQ(lengths_of(R"("rope_scaling":{"rope_type":"dynamic","factor":2.0})"),
            (Lengths{2048, 4096, 4096}));
  EXPECT_EQ(lengths_of(R"("max_position_embeddings":131072,"rope_scaling":{"rope_type":"llama3","factor":8.0,
      "low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":8192})"),
            (Lengths{8192, 131'072, 131'072}));
  // yarn: the stated length counts, whether it was raised or not.
  EXPECT_EQ(lengths_of(R"("max_position_embeddings":8192,"rope_scaling":{"rope_type":"yarn","factor":4.0,
      "original_max_position_embeddings":2048})"),
            (Lengths{2048, 8192, 8192}));
  EXPECT_EQ(lengths_of(R"("rope_scaling":{"rope_type":"yarn","factor":4.0,
      "original_max_position_embeddings":2048})"),
            (Lengths{2048, 8192, 2048}));
  EXPECT_EQ(lengths_of(R"("rope_parameters":{"rope_type":"yarn","factor":4.0,"rope_theta":10000.0,
      "original_max_position_embeddings":2048},"max_position_embeddings":8192)"),
            (Lengths{2048, 8192, 8192}));
  // longrope starts at the original length that stands beside it.
  EXPECT_EQ(lengths_of(R"("max_position_embeddings":8192,"original_max_position_embeddings":2048,
      "rope_scaling":{"type":"longrope","short_factor":[1,1,1,1],"long_factor":[1,1,1,1]})"),
            (Lengths{2048, 8192, 2048}));
  EXPECT_EQ(lengths_of(R"("rope_scaling":{"type":"mrope","mrope_section":[1,1,2]})"),
            (Lengths{2048, 2048, 2048}));
  // The smallest key counts; model_max_length of the config goes before all.
  EXPECT_EQ(lengths_of(R"("seq_length":1024)").max_model_len, 1024);
  EXPECT_EQ(lengths_of(R"("model_max_length":4096)").max_model_len, 4096);
}

// Published copies leave the length out and state a factor: what the class has counts it already.
TEST(ContextChecks, AFamilyThatStatesTheExtendedLength) {
  ModelFolder folder;
  for (const char* length : {"", R"("max_position_embeddings":131072,)"}) {
    folder.write("config.json",
                 std::string(R"({"architectures":["Gemma3ForCausalLM"],"model_type":"gemma3_text",)") +
                     length + R"("hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,
      "num_key_value_heads":2,"head_dim":16,"intermediate_size":128,"vocab_size":320,
      "rope_scaling":{"rope_type":"linear","factor":8.0}})");
    EXPECT_EQ(folder.inspected().context.max_model_len, 131'072) << length;
  }
}

TEST(ContextChecks, WhatIsAskedForBeyondTheContext) {
  ModelFolder folder;
  folder.write("config.json", kSmallLlama);
  Options options;
  options.sequence_tokens = 2049;
  EXPECT_NE(finding_of(folder.inspected(options), "CTX_ASKED"), nullptr);
  options.sequence_tokens = 2048;
  EXPECT_EQ(finding_of(folder.inspected(options), "CTX_ASKED"), nullptr);
  options.workload = *memory::parse_workload("isl=2000,osl=49,concurrency=2");
  const Report report = folder.inspected(options);
  const auto* finding = finding_of(report, "CTX_WORKLOAD");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->message.find("2048"), std::string::npos) << finding->message;
  options.workload = *memory::parse_workload("isl=2000,osl=48,concurrency=2");
  EXPECT_EQ(finding_of(folder.inspected(options), "CTX_WORKLOAD"), nullptr);
  // longrope starts at its original length and may be asked to go on.
  folder.write("config.json",
               config(R"("max_position_embeddings":8192,"original_max_position_embeddings":2048,
      "rope_scaling":{"type":"longrope","short_factor":[1,1,1,1],"long_factor":[1,1,1,1]})"));
  options.sequence_tokens = 8192;
  EXPECT_EQ(finding_of(folder.inspected(options), "CTX_ASKED"), nullptr);
}

TEST(ContextChecks, LengthsOfAnArchitectureThatNobodyKnows) {
  ModelFolder folder;
  folder.write("config.json",
               R"({"architectures":["NobodyForCausalLM"],"model_type":"nobody","hidden_size":64,
      "max_position_embeddings":32768,"rope_scaling":{"rope_type":"yarn","factor":4.0,
      "original_max_position_embeddings":32768}})");
  const Report report = folder.inspected();
  EXPECT_EQ(report.context.native_tokens, 32'768);
  EXPECT_EQ(report.context.extended_tokens, 131'072);
  EXPECT_EQ(report.context.max_model_len, 32'768);
  const auto* finding = finding_of(report, "CFG_ROPE_CTX");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->message.find("131072"), std::string::npos);
  EXPECT_NE(finding->message.find("32768"), std::string::npos);
}

TEST(ContextChecks, EveryPlaceIsListed) {
  const Context context = context_of(R"("rope_scaling":{"rope_type":"yarn","factor":2.0,
      "original_max_position_embeddings":1024})");
  ASSERT_EQ(context.sources.size(), 2U);
  EXPECT_EQ(context.sources[0].pointer, "/max_position_embeddings");
  EXPECT_EQ(context.sources[1].pointer, "/rope_scaling/original_max_position_embeddings");
}

TEST(ContextChecks, NestedFigures) {
  ModelFolder folder;
  folder.write("config.json", R"({"architectures":["NobodyForConditionalGeneration"],"model_type":"nobody",
      "text_config":{"hidden_size":64,"max_position_embeddings":4096}})");
  const Report report = folder.inspected();
  EXPECT_EQ(report.context.max_model_len, 4096);
  ASSERT_EQ(report.context.sources.size(), 1U);
  EXPECT_EQ(report.context.sources[0].pointer, "/text_config/max_position_embeddings");
}

TEST(ContextChecks, Case14UnlimitedTokenizer) {
  const auto report = inspect(testing::data_path("cases/config/14-cfg-model-max-length-1e30"));
  ASSERT_TRUE(report) << report.error().describe();
  EXPECT_EQ(report->context.max_model_len, 2048);
  ASSERT_EQ(report->context.sources.size(), 1U);
  ASSERT_NE(finding_of(*report, "CONTEXT_UNBOUNDED"), nullptr);
  EXPECT_EQ(finding_of(*report, "CONTEXT_UNBOUNDED")->level, FindingLevel::kInfo);
  const std::string text = dump(to_json(*report)["context"]);
  EXPECT_EQ(text.find("9223372036854775807"), std::string::npos);
  EXPECT_EQ(text.find('-'), std::string::npos) << "no negative length: " << text;
}

TEST(ContextChecks, AbsurdLengthsAreSkipped) {
  for (const char* value : {"0", "-5", "1e30", "99999999999999999999", "1.5"}) {
    const Context context = context_of(std::string(R"("seq_length":)") + value);
    EXPECT_EQ(context.max_model_len, 2048) << value;
    EXPECT_EQ(context.sources.size(), 1U) << value;
  }
}

TEST(ContextChecks, AShorterTokenizerIsTold) {
  ModelFolder folder;
  folder.write("config.json", kSmallLlama).write("tokenizer_config.json", R"({"model_max_length":512})");
  const Report report = folder.inspected();
  EXPECT_EQ(report.context.max_model_len, 2048);
  ASSERT_NE(finding_of(report, "CTX_TOKENIZER"), nullptr);
  EXPECT_NE(finding_of(report, "CTX_TOKENIZER")->message.find("512"), std::string::npos);
}

TEST(ContextChecks, AWindowThatIsNotInEffect) {
  const auto window = [](const std::string& more) {
    ModelFolder folder;
    std::string text = config(more);
    text.replace(text.find("LlamaForCausalLM"), 16, "Qwen2ForCausalLM");
    text.replace(text.find("\"llama\""), 7, "\"qwen2\"");
    folder.write("config.json", text);
    return folder.inspected().context.window;
  };
  EXPECT_FALSE(window("").has_value());
  const auto off = window(R"("sliding_window":1024,"use_sliding_window":false,"max_window_layers":2)");
  ASSERT_TRUE(off.has_value());
  EXPECT_EQ(off->tokens, 1024);
  EXPECT_EQ(off->in_effect, false);
  EXPECT_EQ(off->reason, "use_sliding_window is false");
  const auto none = window(R"("sliding_window":1024,"use_sliding_window":true,"max_window_layers":4)");
  ASSERT_TRUE(none.has_value());
  EXPECT_EQ(none->in_effect, false);
  const auto on = window(R"("sliding_window":1024,"use_sliding_window":true,"max_window_layers":1)");
  ASSERT_TRUE(on.has_value());
  EXPECT_EQ(on->in_effect, true);
  EXPECT_EQ(on->layers, 3);
  const auto wide = window(R"("sliding_window":4096,"use_sliding_window":true,"max_window_layers":1)");
  ASSERT_TRUE(wide.has_value());
  EXPECT_EQ(wide->in_effect, false);
}

TEST(ContextChecks, MaximumInput) {
  ModelFolder folder;
  folder.write("config.json", kSmallLlama);
  folder.write("tokenizer.json",
               R"({"model":{"type":"WordLevel","unk_token":"?","vocab":{"?":0,"Hello":1,"<u>":2,
      "<a>":3}},"added_tokens":[{"id":2,"content":"<u>","special":true},{"id":3,"content":"<a>","special":true}]})");
  folder.write("tokenizer_config.json",
               R"({"chat_template":"{% for m in messages %}<u>{{ m.content }}{% endfor %}<a>"})");
  const Report free = folder.inspected();
  ASSERT_TRUE(free.context.maximum_input.has_value());
  EXPECT_EQ(free.context.maximum_input->template_overhead_tokens, 2);
  EXPECT_EQ(free.context.maximum_input->tokens, 2048 - 1 - 2);
  folder.write("generation_config.json", R"({"max_new_tokens":500})");
  EXPECT_EQ(folder.inspected().context.maximum_input->tokens, 2048 - 500 - 2);
  Options options;
  options.workload = *memory::parse_workload("isl=100,osl=48,concurrency=2");
  EXPECT_EQ(folder.inspected(options).context.maximum_input->tokens, 2048 - 48 - 2);
  ModelFolder without;
  without.write("config.json", kSmallLlama);
  EXPECT_EQ(without.inspected().context.maximum_input->tokens, std::nullopt);
}

}  // namespace
}  // namespace plimsoll::inspect
