// SPDX-License-Identifier: Apache-2.0
#include "inspect/license_checks.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "tests/inspect/model_folder.h"
#include "tests/testing/golden.h"
#include "tests/testing/made_files.h"

namespace plimsoll::inspect {
namespace {

constexpr const char* kMit =
    "Permission is hereby granted, free of charge, to any person ... without restriction, including without";

Report with(const std::string& front_matter, const std::string& license_text = "") {
  ModelFolder folder;
  folder.write("config.json", kSmallLlama);
  folder.write("README.md", "---\n" + front_matter + "---\n# A model\n");
  if (!license_text.empty()) folder.write("LICENSE", license_text);
  return folder.inspected();
}

Json license_of(const Report& report) {
  return to_json(report)["model"]["license"];
}

TEST(LicenseChecks, TermsOfTheCard) {
  const Report report = with("language:\n- en\nlicense: apache-2.0  # ours\ntags: [a, b]\n");
  const Json license = license_of(report);
  EXPECT_EQ(license["id"], Json("apache-2.0"));
  EXPECT_EQ(license["commercial_use"], Json("yes"));
  EXPECT_EQ(license["redistribution"], Json("yes"));
  EXPECT_EQ(license["derivatives"], Json("yes"));
  EXPECT_TRUE(license["gated"].is_null());  // a card alone does not tell that it is open
  EXPECT_EQ(finding_of(report, "LICENSE_CONDITIONS"), nullptr);
}

TEST(LicenseChecks, NonCommercialAndConditional) {
  const Report nc = with("license: cc-by-nc-4.0\n");
  ASSERT_NE(finding_of(nc, "LICENSE_NONCOMMERCIAL"), nullptr);
  EXPECT_EQ(finding_of(nc, "LICENSE_NONCOMMERCIAL")->level, FindingLevel::kWarning);
  const Report llama = with("license: llama3.1\nextra_gated_prompt: >-\n  Read this\n  first\n");
  ASSERT_NE(finding_of(llama, "LICENSE_CONDITIONS"), nullptr);
  EXPECT_EQ(finding_of(llama, "LICENSE_CONDITIONS")->level, FindingLevel::kInfo);
  EXPECT_EQ(license_of(llama)["gated"], Json(true));
  EXPECT_NE(finding_of(llama, "LICENSE_CONDITIONS")->message.find("700 million"), std::string::npos);
}

TEST(LicenseChecks, TheNameBesideOther) {
  const Report research = with("license: other\nlicense_name: \"qwen-research\"\nlicense_link: LICENSE\n");
  EXPECT_EQ(license_of(research)["id"], Json("qwen-research"));
  EXPECT_EQ(license_of(research)["commercial_use"], Json("no"));
  const Report community = with("license: other\nlicense_name: qwen-community-1.0\n");
  EXPECT_EQ(license_of(community)["id"], Json("qwen-community-1.0"));
  EXPECT_TRUE(license_of(community)["commercial_use"].is_null());
  EXPECT_NE(finding_of(community, "LICENSE_UNKNOWN"), nullptr);
  const Report own = with("license: other\nlicense_name: house-rules-7\n");
  EXPECT_EQ(license_of(own)["id"], Json("house-rules-7"));
  ASSERT_NE(finding_of(own, "LICENSE_UNKNOWN"), nullptr);
  EXPECT_NE(finding_of(own, "LICENSE_UNKNOWN")->message.find("house-rules-7"), std::string::npos);
}

TEST(LicenseChecks, OfSeveralLicensesTheStrictestIsKeptTo) {
  const Report list = with("license:\n- mit\n- cc-by-nc-4.0\n");
  EXPECT_EQ(license_of(list)["id"], Json("cc-by-nc-4.0"));
  EXPECT_EQ(license_of(list)["commercial_use"], Json("no"));
  EXPECT_NE(finding_of(list, "LICENSE_SEVERAL"), nullptr);
  const Report twice = with("license: cc-by-nc-4.0\nlicense: mit\n");
  EXPECT_EQ(license_of(twice)["id"], Json("cc-by-nc-4.0"));
  EXPECT_EQ(finding_of(with("license: mit\n"), "LICENSE_SEVERAL"), nullptr);
}

TEST(LicenseChecks, ValuesOverSeveralLinesAndNullsAreYaml) {
  EXPECT_EQ(license_of(with("license: >-\n  apache-2.0\ntags: []\n"))["id"], Json("apache-2.0"));
  for (const char* none : {"license: null\n", "license: ~\n"})
    EXPECT_NE(finding_of(with(none), "LICENSE_MISSING"), nullptr) << none;
}

TEST(LicenseChecks, WhetherConsentIsAskedForIsNotTheLicencesMatter) {
  EXPECT_TRUE(license_of(with("license: llama3.1\n"))["gated"].is_null());
}

TEST(LicenseChecks, TheFileSpeaksWhereTheCardDoesNot) {
  const Report report = with("license: other\n", kMit);
  EXPECT_EQ(license_of(report)["id"], Json("mit"));
  ModelFolder bare;
  bare.write("config.json", kSmallLlama).write("LICENSE.txt", kMit);
  EXPECT_EQ(license_of(bare.inspected())["id"], Json("mit"));
}

TEST(LicenseChecks, CardAndFileDisagree) {
  const Report report = with("license: apache-2.0\n", kMit);
  const auto* finding = finding_of(report, "LICENSE_CONFLICT");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->where, "LICENSE");
  EXPECT_NE(finding->message.find("apache-2.0"), std::string::npos);
  EXPECT_NE(finding->message.find("mit"), std::string::npos);
  EXPECT_EQ(finding_of(with("license: mit\n", kMit), "LICENSE_CONFLICT"), nullptr);
  EXPECT_EQ(finding_of(with("license: gpl\n", "GNU GENERAL PUBLIC LICENSE\nVersion 3"), "LICENSE_CONFLICT"),
            nullptr);
}

TEST(LicenseChecks, AbsentIsToldOfACardOnly) {
  EXPECT_NE(finding_of(with("language: en\n"), "LICENSE_MISSING"), nullptr);
  ModelFolder bare;
  bare.write("config.json", kSmallLlama);
  const Report report = bare.inspected();
  EXPECT_EQ(finding_of(report, "LICENSE_MISSING"), nullptr);
  EXPECT_TRUE(license_of(report)["id"].is_null());
}

// A GGUF file that is silent leaves it to its card.
TEST(LicenseChecks, TheCardSpeaksForAGguf) {
  ModelFolder folder;
  std::ifstream file(testing::data_path("cases/file/alignment_16/a16.gguf"), std::ios::binary);
  folder.write("model.gguf", std::string(std::istreambuf_iterator<char>(file), {}));
  folder.write("README.md", "---\nlicense:\n- mit\n- cc-by-nc-4.0\n---\n");
  const Report report = folder.inspected();
  EXPECT_EQ(license_of(report)["id"], Json("cc-by-nc-4.0"));
  EXPECT_NE(finding_of(report, "LICENSE_SEVERAL"), nullptr);
}

TEST(LicenseChecks, AGgufAndItsCardMayDisagree) {
  const auto told = [](const char* card) {
    ModelFolder folder;
    std::string header = testing::gguf_start(1, 2);
    header += testing::gguf_key("general.architecture", 8, testing::gguf_string("llama"));
    header += testing::gguf_key("general.license", 8, testing::gguf_string("mit"));
    header += testing::gguf_tensor("token_embd.weight", {8, 32}, 0, 0);
    folder.write("model.gguf", testing::gguf_file(header, std::string(8 * 32 * 4, '\0')));
    folder.write("README.md", std::string("---\nlicense: ") + card + "\n---\n");
    const Report report = folder.inspected();
    EXPECT_EQ(license_of(report)["id"], Json("mit"));
    return finding_of(report, "LICENSE_CONFLICT") != nullptr;
  };
  EXPECT_TRUE(told("cc-by-nc-4.0"));
  EXPECT_FALSE(told("mit"));
}

TEST(LicenseChecks, TheCatalogueKnowsItsModels) {
  const auto report = inspect("meta-llama/Llama-3.1-8B");
  ASSERT_TRUE(report) << report.error().describe();
  EXPECT_EQ(license_of(*report)["id"], Json("llama3.1"));
  EXPECT_EQ(license_of(*report)["commercial_use"], Json("conditional"));
}

TEST(ModelCard, FrontMatterThatIsNone) {
  EXPECT_TRUE(parse_model_card("").fields.empty());
  EXPECT_TRUE(parse_model_card("# Title\n---\nlicense: mit\n---\n").fields.empty());
  const ModelCard open = parse_model_card("---\nlicense: mit\n");  // never closed: text, not fields
  EXPECT_TRUE(open.fields.empty());
  const ModelCard windows = parse_model_card("\xEF\xBB\xBF---\r\nlicense: 'mit'\r\n---\r\nText");
  EXPECT_EQ(windows.field("license"), "mit");
  EXPECT_EQ(windows.text, "Text");
  std::string many = "---\n";
  for (int i = 0; i < 20'000; ++i) many += "- x\nk: [a, b\n";
  EXPECT_LE(parse_model_card(many + "---\n").fields.size(), 4096U);
  EXPECT_TRUE(parse_model_card("---\nk: []\nempty:\n---\n").field("k") == std::nullopt);
}

}  // namespace
}  // namespace plimsoll::inspect
