// SPDX-License-Identifier: Apache-2.0
// Every folder of golden/artifacts, each with one fault and the finding it must give.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <set>

#include "base/json.h"
#include "inspect/inspect.h"
#include "tests/testing/golden.h"

namespace plimsoll::inspect {
namespace {

namespace fs = std::filesystem;

// Cases whose fault brings a graver one with it: four layers are stated, one is there.
const std::set<std::string> kGraverBesides = {"cfg_dup_keys"};

// A folder for one test, removed with it.
struct TemporaryFolder {
  fs::path path;
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "plimsoll_cases_XXXXXX").string();
    if (const char* made = ::mkdtemp(name.data())) path = made;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

// A writable copy of the case with the links it asks for.
fs::path lay_out(const Json& test, const fs::path& below) {
  const fs::path folder = below / *test["path"].as_string();
  fs::copy(testing::golden_path("artifacts/" + *test["path"].as_string()), folder,
           fs::copy_options::recursive);
  for (const auto& entry : fs::recursive_directory_iterator(below))
    fs::permissions(entry.path(), fs::perms::owner_all, fs::perm_options::add);
  for (const Json& link : test["setup_symlinks"].items()) {
    const fs::path at = folder / *link.items()[0].as_string();
    fs::create_directories(at.parent_path());
    fs::remove(at);
    fs::create_symlink(*link.items()[1].as_string(), at);
  }
  return folder;
}

std::string all_of(const Findings& findings) {
  std::string text;
  for (const auto& finding : findings)
    text += finding.id + " [" + finding.where + "] " + finding.message + "\n";
  return text;
}

void expect_facts(const Json& facts, const Report& report) {
  const Json document = to_json(report);
  const auto expect = [&](const char* fact, const char* pointer) {
    if (const auto value = facts[fact].as_integer()) {
      EXPECT_EQ(document.at_pointer(pointer).as_integer(), value) << fact;
    }
  };
  expect("params", "/parameters/total");
  expect("weight_bytes", "/weights/bytes");
  expect("tensors", "/weights/num_tensors");
  expect("kv_heads", "/layers/0/kv_heads");
  expect("head_dim", "/layers/0/head_dim");
  expect("layers", "/layers/0/count");
  if (report.spec) {
    expect("kv_bytes_per_token_bf16", "/kv_cache/bytes_per_token");
    expect("kv_bytes_per_token_f16", "/kv_cache/bytes_per_token");
  }
  if (const auto* revision = facts["revision"].as_string()) {
    EXPECT_EQ(report.commit, *revision);
  }
  if (const auto* source = facts["template_source"].as_string()) {
    bool is_used = false;
    for (const Json& row : report.tokenizer["chat_template"]["sources"].items())
      is_used |= row["file"] == Json(*source) && row["used"] == Json(true);
    EXPECT_TRUE(is_used) << *source;
  }
}

void expect_case(const Json& test, const Report& report) {
  const std::string &severity = *test["severity"].as_string(), &code = *test["code"].as_string();
  const Json document = to_json(report);
  const std::string verdict = severity == "info" ? "ok" : severity;
  if (!kGraverBesides.contains(*test["id"].as_string())) {
    EXPECT_EQ(*document["verdict"].as_string(), verdict) << all_of(report.findings);
  }
  EXPECT_EQ(verdict_code(report.findings).has_value(), *document["verdict"].as_string() == "error");
  if (code != "OK") {
    bool is_found = false;
    for (const auto& finding : report.findings)
      is_found |= finding.id == code && to_string(finding.level) == severity;
    EXPECT_TRUE(is_found) << "wanted " << severity << " " << code << ", found\n" << all_of(report.findings);
  } else {
    EXPECT_TRUE(report.findings.empty()) << all_of(report.findings);
  }
  for (const auto& finding : report.findings) {
    EXPECT_FALSE(finding.where.empty()) << finding.id;
    EXPECT_FALSE(finding.fix.empty()) << finding.id << " has no fix";
  }
  expect_facts(test["facts"], report);
}

TEST(ArtifactCases, EachGivesItsFinding) {
  const auto cases = read_json_file(testing::golden_path("artifacts/cases.json"));
  ASSERT_TRUE(cases) << cases.error().describe();
  Options options;
  options.is_deep = true;
  int passed = 0;
  for (const Json& test : (*cases)["cases"].items()) {
    const std::string& id = *test["id"].as_string();
    SCOPED_TRACE(id);
    const TemporaryFolder below;
    const fs::path folder = lay_out(test, below.path);
    const auto report = inspect(folder.string(), options);
    ASSERT_TRUE(report) << report.error().describe();
    const int failures_before =
        ::testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
    expect_case(test, *report);
    const int failures =
        ::testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
    passed += failures == failures_before;
    EXPECT_FALSE(fs::exists(folder / "UNPICKLED_MARKER"));
  }
  EXPECT_FALSE(fs::exists("UNPICKLED_MARKER"));  // a pickle that ran would have made it
  std::cout << passed << " of " << (*cases)["cases"].size()
            << " cases give their finding; none is left out\n";
  EXPECT_EQ(passed, static_cast<int>((*cases)["cases"].size()));
}

TEST(ArtifactCases, ExitClasses) {
  const auto code = [](const char* id) {
    const auto report = inspect(testing::golden_path(std::string("artifacts/") + id));
    EXPECT_TRUE(report) << id;
    return report ? verdict_code(report->findings) : std::nullopt;
  };
  EXPECT_EQ(code("st_ok"), std::nullopt);
  EXPECT_EQ(code("cfg_bom"), std::nullopt);
  EXPECT_EQ(code("st_truncated_data"), ErrorCode::kMalformed);
  EXPECT_EQ(code("lfs_pointer"), ErrorCode::kMalformed);
  EXPECT_EQ(code("cfg_json5"), ErrorCode::kMalformed);
  EXPECT_EQ(code("pickle_only"), ErrorCode::kUnsupported);
  EXPECT_EQ(code("gguf_v3_be"), ErrorCode::kUnsupported);
  EXPECT_EQ(code("cfg_unknown_arch"), ErrorCode::kUnsupported);
  EXPECT_EQ(code("cfg_shape_mismatch"), ErrorCode::kNo);
  EXPECT_EQ(code("idx_wrong_shard"), ErrorCode::kNo);
}

// Headers alone do not tell of damaged values, and the report says that it did not look.
TEST(ArtifactCases, HeadersAloneSaySo) {
  const std::string path = testing::golden_path("artifacts/st_nan_weights");
  const auto headers = inspect(path, {}), whole = inspect(path, {.is_deep = true});
  ASSERT_TRUE(headers && whole);
  EXPECT_EQ(headers->values_scanned, false);
  EXPECT_EQ(to_json(*headers)["values_scanned"], Json(false));
  EXPECT_NE(to_text(*headers).find("values of tensors were not scanned"), std::string::npos);
  EXPECT_EQ(whole->values_scanned, true);
  EXPECT_EQ(to_text(*whole).find("not scanned"), std::string::npos);
}

}  // namespace
}  // namespace plimsoll::inspect
