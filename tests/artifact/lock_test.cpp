// SPDX-License-Identifier: Apache-2.0
// Lock records: written, read back, refused, and held against folders.
#include "artifact/lock.h"

#include <gtest/gtest.h>

#include "base/hash.h"
#include "base/mapped_file.h"
#include "tests/artifact/scripted_hub.h"
#include "tests/testing/made_files.h"

namespace plimsoll::artifact {
namespace {

using testing::ScratchFolder;

constexpr const char* kConfig = R"({"model_type":"llama","hidden_size":8})";

std::string sha256(std::string_view text) {
  return sha256_hex(std::as_bytes(std::span(text)));
}

LockRecord record() {
  LockRecord record;
  record.repo = "org/name";
  record.revision = "main";
  record.commit = std::string(40, 'a');
  record.files = {
      {"config.json", static_cast<std::int64_t>(std::string_view(kConfig).size()), sha256(kConfig)}};
  record.license = "mit";
  record.generation_config = Json::object({{"temperature", 0.6}});
  record.max_model_len = 4096;
  return record;
}

TEST(Lock, WhatIsWrittenReadsBack) {
  const Json document = to_json(record());
  EXPECT_EQ(document["schema"], Json("plimsoll.lock/1"));
  EXPECT_TRUE(document["engine"]["name"].is_null());
  EXPECT_TRUE(document["engine"]["image_digest"].is_null());
  const auto again = read_lock(document, "x.lock");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(to_json(*again), document);
}

TEST(Lock, WhatIsNoRecordIsRefusedWithItsPlace) {
  const std::vector<std::pair<const char*, Json>> faults = {
      {"schema", "plimsoll.lock/2"},
      {"schema", Json()},
      {"repo", "name"},
      {"repo", "org/name@main"},
      {"repo", "../../x/y"},
      {"commit", "main"},
      {"commit", std::string(40, 'A')},
      {"files", Json()},
      {"files", Json(Json::Array{Json::object({{"path", "../x"}, {"bytes", 1}})})},
      {"files", Json(Json::Array{Json::object({{"path", "/etc/x"}, {"bytes", 1}})})},
      {"files", Json(Json::Array{Json::object({{"path", "x"}, {"bytes", -1}})})},
      {"files", Json(Json::Array{Json::object({{"path", "x"}})})},
      {"files", Json(Json::Array{Json::object({{"path", "x"}, {"bytes", 1}, {"sha256", "12"}})})},
      {"files", Json(Json::Array{3})},
      {"max_model_len", "long"},
      {"max_model_len", 0},
  };
  for (const auto& [key, value] : faults) {
    Json document = to_json(record());
    document.set(key, value);
    const auto read = read_lock(document, "x.lock");
    ASSERT_FALSE(read) << key << " " << dump(value);
    EXPECT_EQ(read.error().code, ErrorCode::kMalformed);
    EXPECT_NE(read.error().where.find(key), std::string::npos) << read.error().where;
  }
  EXPECT_FALSE(read_lock(Json(3), "x"));
}

TEST(Lock, ARecordIsToldFromAConfigWhateverItsName) {
  const ScratchFolder folder;
  EXPECT_TRUE(is_lock_file(folder.write("model.lock", dump_pretty(to_json(record())))));
  EXPECT_TRUE(is_lock_file(folder.write("x.json", dump(to_json(record())))));
  EXPECT_FALSE(is_lock_file(folder.write("config.json", kConfig)));
  EXPECT_FALSE(is_lock_file(folder.write("note.txt", "see plimsoll.lock/1")));
  EXPECT_FALSE(is_lock_file(folder.path()));
  EXPECT_FALSE(is_lock_file(folder.path() + "/none"));
}

Findings held(const ScratchFolder& folder, const LockRecord& lock, bool reads_files) {
  const std::string path = folder.path() + ".lock";
  EXPECT_TRUE(write_file(path, dump_pretty(to_json(lock))));
  const auto artifact = open(folder.path(), {.lock = path, .checks_digests = reads_files});
  EXPECT_TRUE(artifact);
  std::remove(path.c_str());
  Findings found;
  if (!artifact) return found;
  for (const Finding& finding : (*artifact)->findings())
    if (finding.id == "LOCK_MISMATCH") found.push_back(finding);
  return found;
}

TEST(Lock, TheLockedFolderIsSound) {
  const ScratchFolder folder;
  folder.write("config.json", kConfig);
  folder.write("generation_config.json", R"({"temperature":0.6})");
  folder.write("more.txt", "files that are not locked do not count");
  EXPECT_TRUE(held(folder, record(), true).empty());
}

TEST(Lock, SizeAbsenceAndContentAreToldApart) {
  const ScratchFolder folder;
  folder.write("config.json", std::string(kConfig) + " ");
  LockRecord lock = record();
  lock.generation_config = Json();
  lock.files.push_back({"tokenizer.json", 5, {}});
  const Findings findings = held(folder, lock, false);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].where, "config.json");
  EXPECT_EQ(findings[0].level, FindingLevel::kError);
  EXPECT_NE(findings[0].message.find("38 bytes, the file has 39"), std::string::npos) << findings[0].message;
  EXPECT_NE(findings[1].message.find("absent"), std::string::npos);
}

TEST(Lock, AnotherContentOfTheSameSizeShowsWhenFilesAreRead) {
  const ScratchFolder folder;
  std::string other = kConfig;
  other[other.size() - 2] = '9';
  folder.write("config.json", other);
  for (const bool reads_files : {false, true}) {  // config.json is small: always read
    LockRecord lock = record();
    lock.generation_config = Json();
    const Findings findings = held(folder, lock, reads_files);
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_NE(findings[0].message.find(sha256(other)), std::string::npos);
  }
  LockRecord lock = record();
  lock.generation_config = Json();
  lock.files.push_back({"model.safetensors", 3, sha256("abc")});
  folder.write("config.json", kConfig);
  folder.write("model.safetensors", "abd");
  EXPECT_TRUE(held(folder, lock, false).empty());
  EXPECT_EQ(held(folder, lock, true).size(), 1u);
}

TEST(Lock, TheTemplatesDigestIsThatOfItsText) {
  const ScratchFolder folder;
  folder.write("config.json", kConfig);
  EXPECT_EQ(chat_template_digest(**open(folder.path())), "");
  folder.write("tokenizer_config.json", R"({"chat_template":"{{ a }}"})");
  EXPECT_EQ(chat_template_digest(**open(folder.path())), sha256("{{ a }}"));
  folder.write("tokenizer_config.json",
               R"({"chat_template":[{"name":"default","template":"d"},{"name":"rag","template":"r"}]})");
  EXPECT_EQ(chat_template_digest(**open(folder.path())), sha256("d"));
  folder.write("chat_template.jinja", "{{ file }}");
  EXPECT_EQ(chat_template_digest(**open(folder.path())), sha256("{{ file }}"));
}

TEST(Lock, TheTemplateOfAProcessorAndOfAGgufFileArePinnedToo) {
  const ScratchFolder folder;
  folder.write("config.json", kConfig);
  folder.write("chat_template.json", R"({"chat_template":"{{ p }}"})");
  EXPECT_EQ(chat_template_digest(**open(folder.path())), sha256("{{ p }}"));
  const ScratchFolder other;
  const std::string key = testing::gguf_key("tokenizer.chat_template", 8, testing::gguf_string("{{ g }}"));
  other.write("m.gguf", testing::gguf_file(testing::gguf_start(0, 1) + key, ""));
  EXPECT_EQ(chat_template_digest(**open(other.path())), sha256("{{ g }}"));
}

// What the record says of the meaning of files that it does not name is compared.
TEST(Lock, AnotherTemplateOrGenerationConfigIsTold) {
  const ScratchFolder folder;
  folder.write("config.json", kConfig);
  folder.write("generation_config.json", R"({"temperature":  0.6})");
  folder.write("tokenizer_config.json", R"({"chat_template":"{{ a }}"})");
  LockRecord lock = record();
  lock.files.push_back({"tokenizer_config.json", 27, {}});
  lock.chat_template_sha256 = sha256("{{ a }}");
  EXPECT_TRUE(held(folder, lock, false).empty());
  folder.write("chat_template.jinja", "{{ b }}");  // comes before the locked one
  Findings findings = held(folder, lock, false);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].where, "chat_template.jinja");
  EXPECT_NE(findings[0].message.find(sha256("{{ b }}")), std::string::npos) << findings[0].message;
  folder.write("generation_config.json", R"({"temperature":0.7})");
  findings = held(folder, lock, false);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[1].where, "generation_config.json");
  EXPECT_EQ(findings[1].level, FindingLevel::kError);
  // A file that is told as such is not told twice.
  lock.files.push_back({"generation_config.json", 3, {}});
  lock.files.push_back({"chat_template.jinja", 3, {}});
  EXPECT_EQ(held(folder, lock, false).size(), 2u);
}

TEST(Lock, WhatTheRecordDoesNotSayIsNotHeldAgainstAnything) {
  const ScratchFolder folder;
  folder.write("config.json", kConfig);
  folder.write("generation_config.json", R"({"temperature":0.7})");
  folder.write("chat_template.jinja", "{{ b }}");
  LockRecord lock = record();
  lock.generation_config = Json();
  lock.files.push_back({"generation_config.json", 19, {}});
  lock.files.push_back({"chat_template.jinja", 7, {}});
  EXPECT_TRUE(held(folder, lock, false).empty());
}

// Loaders find these by their names: one that came later is loaded although nobody locked it.
TEST(Lock, WhatLoadersReadAndNobodyLockedIsTold) {
  const ScratchFolder folder;
  folder.write("config.json", kConfig);
  LockRecord lock = record();
  lock.generation_config = Json();
  const std::string part = "model-00001-of-00001.safetensors", header =
                                                                   "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],"
                                                                   "\"data_offsets\":[0,1]}}";
  std::string weights(8, '\0');
  weights[0] = static_cast<char>(header.size());
  weights += header + "x";
  folder.write(part, weights);
  lock.files.push_back({part, static_cast<std::int64_t>(weights.size()), sha256(weights)});
  EXPECT_TRUE(held(folder, lock, false).empty());
  folder.write("model.safetensors", weights);  // is taken instead of the part
  for (const char* name : {"added_tokens.json", "special_tokens_map.json", "modeling_own.py"})
    folder.write(name, "{}");
  folder.write("LICENSE", "is no matter of loaders");
  const Findings findings = held(folder, lock, false);
  ASSERT_EQ(findings.size(), 4u);
  EXPECT_EQ(findings[0].where, "model.safetensors");
  EXPECT_EQ(findings[0].level, FindingLevel::kError);
  for (std::size_t i = 1; i < findings.size(); ++i)
    EXPECT_EQ(findings[i].level, FindingLevel::kWarning) << findings[i].where;
}

TEST(Lock, ManyFilesThatNobodyLockedAreToldByTheFirst) {
  const ScratchFolder folder;
  folder.write("config.json", kConfig);
  LockRecord lock = record();
  lock.generation_config = Json();
  for (int i = 0; i < 60; ++i) folder.write("own_" + std::to_string(i) + ".py", "pass");
  EXPECT_EQ(held(folder, lock, false).size(), 20u);
}

TEST(Lock, ARecordOfSizesAloneIsTold) {
  const ScratchFolder folder;
  folder.write("config.json", kConfig);
  LockRecord lock = record();
  lock.generation_config = Json();
  lock.files[0].sha256.clear();
  const std::string path = folder.path() + ".lock";
  ASSERT_TRUE(write_file(path, dump_pretty(to_json(lock))));
  const auto artifact = open(folder.path(), {.lock = path});
  std::remove(path.c_str());
  ASSERT_TRUE(artifact);
  const Findings& all = (*artifact)->findings();
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const Finding& finding) {
    return finding.id == "LOCK_NO_DIGEST" && finding.level == FindingLevel::kWarning;
  }));
}

// Whoever computes with the weights gets the locked ones or is told.
TEST(Lock, WeightsThatAreNeededAreRead) {
  const ScratchFolder folder;
  folder.write("config.json", kConfig);
  folder.write("model.safetensors", "abd");
  LockRecord lock = record();
  lock.generation_config = Json();
  lock.files.push_back({"model.safetensors", 3, sha256("abc")});
  const std::string path = folder.path() + ".lock";
  ASSERT_TRUE(write_file(path, dump_pretty(to_json(lock))));
  const auto artifact = open(folder.path(), {.need = Need::kTensors, .lock = path});
  std::remove(path.c_str());
  ASSERT_TRUE(artifact);
  const Findings& all = (*artifact)->findings();
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const Finding& finding) {
    return finding.id == "LOCK_MISMATCH" && finding.where == "model.safetensors";
  }));
}

}  // namespace
}  // namespace plimsoll::artifact
