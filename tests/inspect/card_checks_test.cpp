// SPDX-License-Identifier: Apache-2.0
#include "inspect/card_checks.h"

#include <gtest/gtest.h>

#include "inspect/claims.h"
#include "tests/inspect/model_folder.h"

namespace plimsoll::inspect {
namespace {

using Kind = Claim::Kind;

std::string shown(const std::vector<Claim>& claims) {
  std::string text;
  for (const Claim& claim : claims) {
    constexpr const char* kNames[] = {"size", "total", "active", "context"};
    text += (text.empty() ? "" : " ") + std::string(kNames[static_cast<int>(claim.kind)]) + "=" +
            std::to_string(claim.value);
  }
  return text;
}

TEST(Claims, InProse) {
  const auto text = [](std::string_view prose) { return shown(claims_in_text(prose)); };
  EXPECT_EQ(text("It has 180B parameters, 6B active."), "total=180000000000 active=6000000000");
  EXPECT_EQ(text("a Mixture-of-Experts model with 671B total parameters with 37B activated for each token"),
            "total=671000000000 active=37000000000");
  EXPECT_EQ(
      text(
          "| **Total Parameters** | 1T |\n| **Activated Parameters** | 32B |\n| **Context Length** | 128K |"),
      "total=1000000000000 active=32000000000 context=131072");
  EXPECT_EQ(text("- Number of Parameters: 7.61B\n- Number of Paramaters (Non-Embedding): 6.53B"),
            "total=7610000000");
  EXPECT_EQ(text("Context Length: Full 131,072 tokens and generation 8192 tokens"), "context=131072");
  EXPECT_EQ(text("It has a 1M context window."), "context=1048576");
  EXPECT_EQ(text("a 7M parameter model with 2K context"), "total=7000000 context=2048");
  EXPECT_EQ(text("1.5 billion parameters"), "total=1500000000");
  EXPECT_EQ(text("a 135M-parameter model"), "total=135000000");
  // Data, names, versions and layers are no sizes.
  EXPECT_EQ(text("trained on 15T tokens"), "");
  EXPECT_EQ(text("better than Qwen2.5-7B and Llama-3.1-70B-Instruct"), "");
  EXPECT_EQ(text("It is distilled from the 671B parameter R1."), "");
  EXPECT_EQ(text("Fine-tuned with LoRA (20M trainable parameters). It has 7B parameters."),
            "total=7000000000");
  EXPECT_EQ(text("48 layers, 24 heads, version 2.5, 2026-11-29"), "");
  // Lists and tables: what the last of a list counts, and the heading of a column, hold for each.
  EXPECT_EQ(text("available in three size: 135M, 360M, and 1.7B parameters. They run on-device."),
            "total=135000000 total=360000000 total=1700000000");
  EXPECT_EQ(text("models of 7B or 13B parameters"), "total=7000000000 total=13000000000");
  EXPECT_EQ(text("It comes as 180B, 6B active."), "active=6000000000");
  EXPECT_EQ(text("| **Model** | **#Total Params** | **#Activated Params** | **Context Length** |\n"
                 "| :---: | :---: | :---: | :---: |\n| R1-Zero | 671B | 37B | 128K |\n\n| 671B | 37B |\n"),
            "total=671000000000 active=37000000000 context=131072");
  EXPECT_EQ(text("Name | Params | Tokens\n---|---|---\nText only | 8B | 15T+\nText only | 70B | 15T+\n"),
            "total=8000000000 total=70000000000");
  EXPECT_EQ(text("a model with 2B parameters was trained on 2 trillion tokens, the 9B model on 8 trillion"),
            "total=2000000000");
  EXPECT_EQ(text(std::string(200'000, '9')), "");
  EXPECT_LE(claims_in_text([] {
              std::string many;
              for (int i = 0; i < 5000; ++i) many += "7B parameters.\n";
              return many;
            }())
                .size(),
            64U);
}

TEST(Claims, InNames) {
  const auto text = [](std::string_view name) { return shown(claims_in_name(name)); };
  EXPECT_EQ(text("Qwen3-30B-A3B-Instruct-2507"), "size=30000000000 active=3000000000");
  EXPECT_EQ(text("SmolLM2-135M-Instruct"), "size=135000000");
  EXPECT_EQ(text("Qwen2.5-7B-Instruct-1M"), "size=7000000000");
  EXPECT_EQ(text("Mixtral-8x7B-v0.1"), "size=56000000000");
  EXPECT_EQ(text("Mixtral-8x22B-Instruct"), "size=176000000000");
  EXPECT_EQ(text("x7B-x"), "");
  EXPECT_EQ(text("gemma-3n-E4B-it"), "");
  EXPECT_EQ(text("Llama-4-Scout-17B-16E"), "size=17000000000");
  EXPECT_EQ(text("gpt-oss-120b"), "size=120000000000");
  EXPECT_EQ(text("model"), "");
}

TEST(Claims, AgreeWithinTheirRounding) {
  const Claim seven{Kind::kTotal, 7'000'000'000, 1'000'000'000, "7B"};
  EXPECT_TRUE(agrees(seven, 7'615'616'512));
  EXPECT_FALSE(agrees(seven, 8'030'261'248));
  const Claim exact{Kind::kTotal, 7'610'000'000, 10'000'000, "7.61B"};
  EXPECT_TRUE(agrees(exact, 7'615'616'512));
  EXPECT_FALSE(agrees(exact, 8'030'261'248));
  const Claim large{Kind::kTotal, 180'000'000'000, 1'000'000'000, "180B"};
  EXPECT_TRUE(agrees(large, 177'392'830'576));  // without its draft layer
  EXPECT_FALSE(agrees(large, 125'743'653'760));
}

// One digit says a factor of two at most: what half a unit or a cut makes of it.
TEST(Claims, OfOneDigit) {
  const Claim million{Kind::kContext, 1 << 20, 1 << 20, "1M"};
  EXPECT_FALSE(agrees(million, 4'096));
  EXPECT_FALSE(agrees(million, 262'144));
  EXPECT_TRUE(agrees(million, 1'010'000));
  const Claim billion{Kind::kTotal, 1'000'000'000, 1'000'000'000, "1B"};
  EXPECT_TRUE(agrees(billion, 1'235'814'400));
  EXPECT_FALSE(agrees(billion, 400'000'000));
  EXPECT_FALSE(agrees(billion, 1'720'574'976));
  const Claim two{Kind::kTotal, 2'000'000'000, 1'000'000'000, "2B"};
  EXPECT_TRUE(agrees(two, 2'614'341'888));
  const Claim seven{Kind::kTotal, 7'000'000'000, 1'000'000'000, "7B"};
  EXPECT_FALSE(agrees(seven, 6'400'000'000));
}

Report with_card(const std::string& text, const std::string& name = "model") {
  ModelFolder folder(name);
  folder.write("config.json", kSmallLlama).write("README.md", "---\nlicense: mit\n---\n" + text);
  return folder.inspected();
}

TEST(CardChecks, TheClaimThatAgreesSpeaks) {
  const Report plain = with_card("");
  ASSERT_TRUE(plain.parameters.total.has_value());
  const std::string own = std::to_string(*plain.parameters.total / 1000);
  const Report report =
      with_card("Distilled from a model of 671B parameters. It has 0." +
                std::string(6 - std::min<std::size_t>(own.size(), 6), '0') + own + " billion parameters.");
  EXPECT_EQ(finding_of(report, "CARD_TOTAL"), nullptr) << finding_of(report, "CARD_TOTAL")->message;
}

TEST(CardChecks, ADifferenceIsTold) {
  const Report report = with_card("This model has 13B parameters and a 128K context window.");
  EXPECT_EQ(report.card_claims["total"], Json(13'000'000'000));
  EXPECT_TRUE(report.card_claims["active"].is_null());
  EXPECT_EQ(report.card_claims["context_tokens"], Json(131'072));
  const auto* total = finding_of(report, "CARD_TOTAL");
  ASSERT_NE(total, nullptr);
  EXPECT_EQ(total->level, FindingLevel::kWarning);
  EXPECT_NE(total->message.find("13000000000"), std::string::npos);
  EXPECT_NE(total->message.find(std::to_string(*report.parameters.total)), std::string::npos);
  ASSERT_NE(finding_of(report, "CARD_CONTEXT"), nullptr);
  EXPECT_NE(finding_of(report, "CARD_CONTEXT")->message.find("2048"), std::string::npos);
}

// Cards of families: the sizes of the others are no fault of this one.
TEST(CardChecks, OtherModelsOfACard) {
  const auto level = [](const Report& report) {
    const auto* finding = finding_of(report, "CARD_TOTAL");
    return finding ? std::string(to_string(finding->level)) : std::string("none");
  };
  EXPECT_EQ(level(with_card("Available in three sizes: 135M, 360M, and 1.7B parameters.")), "info");
  EXPECT_EQ(level(with_card("It beats the best of 405B parameters. Others have 70B parameters.")), "info");
  EXPECT_EQ(level(with_card("This model has 405B parameters. Others have 70B parameters.")), "warning");
  EXPECT_EQ(level(with_card("Tiny-2 has 405B parameters. Others have 70B parameters.", "Tiny-2")), "warning");
  EXPECT_EQ(level(with_card("Tiny-2-Large has 405B parameters.", "Tiny-2")), "warning");  // the only one
  // Its name stands whole somewhere in the sentence, not necessarily where it first begins a word.
  const std::string others = " has 405B parameters. Others have 70B parameters.";
  EXPECT_EQ(level(with_card("Tiny-2-Zero came first, Tiny-2" + others, "Tiny-2")), "warning");
  for (const char* other : {"Tiny-2-Zero", "QTiny-2", "Not-Tiny-2", "Tiny-2.5"})
    EXPECT_EQ(level(with_card(other + others, "Tiny-2")), "info") << other;
  // The name says the size that the files have (a small llama of 225,856 parameters).
  EXPECT_EQ(level(with_card("A larger one has 405B parameters.", "Tiny-0.2M")), "none");
  EXPECT_EQ(level(with_card("This model has 405B parameters.", "Tiny-0.2M")), "warning");
}

TEST(CardChecks, LessContextThanTheFilesAllowIsNoFault) {
  const Report report = with_card("Use it with a 1K context window.");
  EXPECT_EQ(report.card_claims["context_tokens"], Json(1024));
  EXPECT_EQ(finding_of(report, "CARD_CONTEXT"), nullptr);
}

TEST(CardChecks, ExpertsTimesSizeIsHeldAgainstTheTotal) {
  const auto name_size = [](const char* name) {
    ModelFolder folder(name);
    folder.write("config.json", R"({"architectures":["MixtralForCausalLM"],"model_type":"mixtral",
      "hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":32,"num_attention_heads":32,
      "num_key_value_heads":8,"num_local_experts":8,"num_experts_per_tok":2,"vocab_size":32000})");
    return finding_of(folder.inspected(), "NAME_SIZE") != nullptr;
  };
  EXPECT_FALSE(name_size("Mixtral-8x7B-v0.1"));
  EXPECT_TRUE(name_size("Mixtral-8x22B-v0.1"));
}

TEST(CardChecks, TheFolderNameIsAClaimToo) {
  ModelFolder folder("Some-8B-Instruct");
  folder.write("config.json", kSmallLlama);
  const Report report = folder.inspected();
  const auto* finding = finding_of(report, "NAME_SIZE");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->level, FindingLevel::kInfo);
  EXPECT_NE(finding->message.find("Some-8B-Instruct"), std::string::npos);
  const auto catalogue = inspect("meta-llama/Llama-3.1-8B");
  ASSERT_TRUE(catalogue);
  EXPECT_EQ(finding_of(*catalogue, "NAME_SIZE"), nullptr);
}

// The card of a large model in the repository of a small one that was distilled from it.
TEST(CardChecks, RowsAndColumnsOfOtherModelsAreNoClaims) {
  const std::string rows =
      "| **Model** | **#Total Params** | **#Activated Params** | **Context Length** |\n"
      "| :---: | :---: | :---: | :---: |\n| Large-2 | 671B | 37B | 128K |\n";
  const std::string columns =
      "| Category | Benchmark | Large V3 |\n|---|---|---|\n| | # Activated Params | 37B |\n"
      "| | # Total Params | 671B |\n";
  for (const std::string& card : {rows, columns, rows + columns}) {
    const Report other = with_card(card, "Small-2-distilled");
    for (const char* id : {"CARD_TOTAL", "CARD_ACTIVE", "CARD_CONTEXT"})
      EXPECT_EQ(finding_of(other, id), nullptr) << id << " of\n" << card;
    EXPECT_TRUE(other.card_claims["active"].is_null());
  }
  const Report own = with_card(rows, "Large-2");
  ASSERT_NE(finding_of(own, "CARD_ACTIVE"), nullptr);
  EXPECT_EQ(finding_of(own, "CARD_ACTIVE")->level, FindingLevel::kWarning);
  EXPECT_NE(finding_of(with_card(rows), "CARD_TOTAL"), nullptr) << "a folder of no particular name";
}

TEST(CardChecks, CodeCommentsRangesAndTestsAreNoClaims) {
  for (const char* card :
       {"```\nserve x # 1M context length, 70B parameters\n```\n", "<!-- 70B parameters, 1M context -->",
        "a family ranging from 0.6B to 235B parameters", "sizes from 0.6 to 235 billion parameters",
        "7B\u201372B parameters", "A merge of A-70B and B-72B. 70B parameters each.",
        "We train on 235B parameter policy.", "evaluated at 1M token context length for a needle test"}) {
    const Report report = with_card(card);
    for (const char* id : {"CARD_TOTAL", "CARD_ACTIVE", "CARD_CONTEXT"})
      EXPECT_EQ(finding_of(report, id), nullptr) << card;
  }
  // What follows a block is read again, and a fence that never closes hides nothing.
  for (const char* card : {"```\nx\n```\nIt has 70B parameters.", "```\nIt has 70B parameters.",
                           "<!-- x --> It has 70B parameters.", "This reward model has 70B parameters."})
    EXPECT_NE(finding_of(with_card(card), "CARD_TOTAL"), nullptr) << card;
}

TEST(CardChecks, ALengthThatAScalingReachesIsNoWarning) {
  const char* card = "| Models | Context Length |\n|---|---|\n| Own-8B | 16K |\n";
  const auto level = [](const Report& report) {
    const auto* finding = finding_of(report, "CARD_CONTEXT");
    return finding ? std::string(to_string(finding->level)) : std::string("none");
  };
  EXPECT_EQ(level(with_card(card, "Own-8B")), "warning");
  EXPECT_EQ(level(with_card(card + std::string("\nUse YaRN for long texts."), "Own-8B")), "info");
}

TEST(Claims, MoreWaysToWriteASize) {
  const auto text = [](std::string_view prose) { return shown(claims_in_text(prose)); };
  EXPECT_EQ(text("8,190,735,360 parameters"), "total=8190735360");
  EXPECT_EQ(text("Params: 8.2 B"), "total=8200000000");
  EXPECT_EQ(text("an 8.2bn-parameter model"), "total=8200000000");
  EXPECT_EQ(text("total 671B, active 37B"), "total=671000000000 active=37000000000");
}

TEST(Claims, OfHtmlTables) {
  const auto text = [](std::string_view prose) { return shown(claims_in_text(prose)); };
  // Cells may be left open, and the first ones may reach down.
  EXPECT_EQ(
      text("<table>\n <tr>\n  <td>\n  </td>\n  <td><strong>Params</strong>\n  </td>\n  <td>Context length\n"
           "  </td>\n  <td>Token count\n </tr>\n <tr>\n  <td rowspan=\"2\" >Text only\n  </td>\n  <td>8B\n"
           "  </td>\n  <td>128k\n  </td>\n  <td rowspan=\"2\" >15T+\n </tr>\n <tr>\n  <td>70B\n  </td>\n"
           "  <td>64k\n  </td>\n </tr>\n</table>\n"),
      "total=8000000000 context=131072 total=70000000000 context=65536");
  EXPECT_EQ(text("<table><tr><td rowspan=99999999999>Params<td rowspan='x'>a</table>It has 8B parameters."),
            "total=8000000000");
}

TEST(Claims, NamesWithAPointAndWithData) {
  const auto text = [](std::string_view name) { return shown(claims_in_name(name)); };
  EXPECT_EQ(text("Qwen-1_8B-Chat"), "size=1800000000");
  EXPECT_EQ(text("org__Own-8B"), "size=8000000000");
  EXPECT_EQ(text("smol-0.6B-1000B-tokens"), "size=600000000");
}

}  // namespace
}  // namespace plimsoll::inspect
