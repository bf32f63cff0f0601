// SPDX-License-Identifier: Apache-2.0
// Weights under names and in forms that are unusual but sound, or that nobody would look for; and values that
// only blocks have. Folders that do not keep what their names promise: hostile_folders_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "artifact/artifact.h"
#include "tests/testing/made_files.h"

namespace plimsoll::artifact {
namespace {

namespace fs = std::filesystem;
using testing::gguf_file;
using testing::gguf_key;
using testing::gguf_start;
using testing::gguf_string;
using testing::gguf_tensor;
using testing::MadeFolder;
using testing::safetensors_file;

constexpr std::uint32_t kU16 = 2, kString = 8;

std::string ids(const Findings& findings) {
  std::string text;
  for (const Finding& finding : findings) text += finding.id + " ";
  return text;
}

std::string ids_of(const MadeFolder& folder) {
  const auto artifact = open(folder.path().string());
  EXPECT_TRUE(artifact) << artifact.error().describe();
  return artifact ? ids((*artifact)->findings()) : "";
}

std::string one_tensor() {
  return safetensors_file(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", "abcd");
}

std::string small_gguf(std::uint32_t type, std::uint64_t elements, const std::string& data) {
  return gguf_file(gguf_start(1, 1) + gguf_key("general.architecture", kString, gguf_string("llama")) +
                       gguf_tensor("t", {elements}, type, 0),
                   data);
}

TEST(OddWeights, APartWithoutTensorsIsPartOfTheSet) {
  const MadeFolder folder;
  const auto part = [](int number, std::uint64_t tensors) {
    return gguf_start(tensors, 2) + gguf_key("general.architecture", kString, gguf_string("llama")) +
           gguf_key("split.no", kU16, std::string(1, static_cast<char>(number)) + '\0') +
           (tensors ? gguf_tensor("t", {32}, 0, 0) : "");
  };
  folder.put("m-00001-of-00002.gguf", gguf_file(part(0, 0), ""));
  folder.put("m-00002-of-00002.gguf", gguf_file(part(1, 1), std::string(128, '\0')));
  const auto artifact = open(folder.path().string());
  ASSERT_TRUE(artifact);
  EXPECT_EQ(ids((*artifact)->findings()), "");
  EXPECT_EQ((*artifact)->weights_files(), (std::vector<int>{0, 1}));
}

TEST(OddWeights, FilesThatNoLoaderTakes) {
  const MadeFolder folder;
  folder.put("config.json", "{}");
  folder.put("model.safetensors", one_tensor());
  EXPECT_EQ(ids_of(folder).find("WEIGHTS_EXTRA"), std::string::npos);
  folder.put("extra.safetensors", one_tensor());
  folder.put("model-q4_0.gguf", small_gguf(0, 32, std::string(128, '\0')));
  const auto artifact = open(folder.path().string());
  ASSERT_TRUE(artifact);
  const auto& findings = (*artifact)->findings();
  const auto told = std::find_if(findings.begin(), findings.end(),
                                 [](const Finding& finding) { return finding.id == "WEIGHTS_EXTRA"; });
  ASSERT_NE(told, findings.end());
  EXPECT_NE(told->message.find("2 weights files"), std::string::npos) << told->message;
  EXPECT_NE(told->message.find("extra.safetensors, model-q4_0.gguf"), std::string::npos) << told->message;
}

TEST(OddWeights, EndingsInCapitals) {
  for (const char* name : {"MODEL.SAFETENSORS", "m.GGUF", "model.Safetensors"}) {
    const MadeFolder folder;
    folder.put("config.json", "{}");
    folder.put(name, one_tensor());
    EXPECT_NE(ids_of(folder).find("WEIGHTS_NAME"), std::string::npos) << name;
  }
}

// What a server answers instead of a file, and files under the ending of another kind.
TEST(OddWeights, OtherContentUnderAWeightsName) {
  for (const char* name : {"model.safetensors", "model.gguf"})
    for (const char* text :
         {R"({"error":"Entry not found"})", "\n { \"error\": 1 }", "Invalid username or password.",
          "<html><body>", "        ", "Access denied\n\xff"}) {
      const MadeFolder folder;
      folder.put(name, text);
      EXPECT_NE(ids_of(folder).find("NOT_WEIGHTS "), std::string::npos) << name << text;
    }
  const MadeFolder turned;
  turned.put("model.safetensors", small_gguf(0, 32, std::string(128, '\0')));
  EXPECT_NE(ids_of(turned).find("NOT_WEIGHTS "), std::string::npos);
  const MadeFolder returned;
  returned.put("model.gguf", one_tensor());
  EXPECT_NE(ids_of(returned).find("NOT_WEIGHTS "), std::string::npos);
  const MadeFolder sound;
  sound.put("model.safetensors", one_tensor());
  EXPECT_EQ(ids_of(sound).find("NOT_WEIGHTS "), std::string::npos);
}

TEST(OddWeights, AGgufIsKnownByItsContent) {
  const MadeFolder folder;
  for (const char* name : {"M.GGUF", "sha256-0123", "model.bin"}) {
    folder.put(name, small_gguf(0, 32, std::string(128, '\0')));
    const auto artifact = open((folder.path() / name).string());
    ASSERT_TRUE(artifact) << name;
    EXPECT_EQ((*artifact)->form(), Form::kGguf);
    EXPECT_EQ((*artifact)->tensors().size(), 1U);
    EXPECT_EQ(ids((*artifact)->findings()), "") << name;
  }
  folder.put("other.bin", "GGU");
  EXPECT_FALSE(open((folder.path() / "other.bin").string()));
}

TEST(OddWeights, ALinkToNothingIsNoNameOfAHub) {
  const MadeFolder folder;
  const fs::path link = folder.path() / "link", loop = folder.path() / "loop";
  fs::create_symlink("nowhere", link);
  fs::create_symlink("loop", loop);
  // Relative, as somebody types it: "org/name" is what a hub's ids look like too.
  const fs::path before = fs::current_path();
  fs::current_path(folder.path().parent_path());
  for (const fs::path& path : {link, loop}) {
    const auto artifact = open(path.lexically_relative(folder.path().parent_path()).string());
    ASSERT_FALSE(artifact);
    EXPECT_EQ(artifact.error().code, ErrorCode::kMalformed);
    EXPECT_NE(artifact.error().message.find("target is missing"), std::string::npos)
        << artifact.error().message;
  }
  fs::current_path(before);
}

// Its weights say nothing of the model that they are: the folder does.
TEST(OddWeights, ALoneSafetensorsFileIsNoModel) {
  const MadeFolder folder;
  folder.put("model.safetensors", one_tensor());
  const auto artifact = open((folder.path() / "model.safetensors").string());
  ASSERT_FALSE(artifact);
  EXPECT_EQ(artifact.error().code, ErrorCode::kMalformed);
  EXPECT_NE(artifact.error().fix.find("folder"), std::string::npos);
}

TEST(OddWeights, ALoneTokenizerIsItsOwnFile) {
  const MadeFolder folder;
  folder.put("tokenizer.json", R"({"model":{"type":"BPE","vocab":{"a":0}}})");
  folder.put("config.json", "{}");
  const auto artifact = open((folder.path() / "tokenizer.json").string());
  ASSERT_TRUE(artifact);
  EXPECT_EQ((*artifact)->json_file("tokenizer.json")["model"]["type"], Json("BPE"));
  EXPECT_TRUE((*artifact)->json_file("config.json").is_null());
}

TEST(OddWeights, ScalesOfBlocksThatAreNotFinite) {
  const auto found = [](std::uint32_t type, std::uint64_t elements, const std::string& data) {
    const MadeFolder folder;
    folder.put("m.gguf", small_gguf(type, elements, data));
    const auto artifact = open((folder.path() / "m.gguf").string());
    EXPECT_TRUE(artifact);
    const Findings findings = deep_findings(**artifact);
    return findings.empty() ? std::string() : findings.front().message;
  };
  constexpr std::uint32_t kMxfp4 = 39, kIq1M = 29;
  std::string block(17, '\x11');
  EXPECT_EQ(found(kMxfp4, 64, block + block), "");
  block[0] = '\xFF';
  EXPECT_EQ(found(kMxfp4, 64, std::string(17, '\x11') + block), "1 NaN and 0 Inf among 64 values");
  // IQ1_M: the words behind byte 48 hold the scale's nibbles from the lowest to the highest.
  const auto iq1_m = [](std::uint16_t scale) {
    std::string text(56, '\0');
    for (std::size_t word = 0; word < 4; ++word)
      text[49 + 2 * word] = static_cast<char>((scale >> (4 * word) & 15) << 4 | 5);
    return text;
  };
  EXPECT_EQ(found(kIq1M, 256, iq1_m(0x3C00)), "");
  EXPECT_EQ(found(kIq1M, 512, iq1_m(0x3C00) + iq1_m(0x7C00)), "0 NaN and 1 Inf among 512 values");
  EXPECT_EQ(found(kIq1M, 512, iq1_m(0xFE01) + iq1_m(0xFC00)), "1 NaN and 1 Inf among 512 values");
}

}  // namespace
}  // namespace plimsoll::artifact
