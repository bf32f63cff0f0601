// SPDX-License-Identifier: Apache-2.0
// `pull`: what is asked of the hub, what is checked of the cache, and what a record then says.
#include "artifact/hub/pull.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "artifact/hub_cache.h"
#include "base/hash.h"
#include "base/mapped_file.h"
#include "tests/artifact/small_hub.h"

namespace plimsoll::artifact {
namespace {

using testing::kCommit;
using testing::ScratchFolder;
using testing::small_weights;
using testing::SmallHub;

std::string sha256(const std::string& text) {
  return sha256_hex(std::as_bytes(std::span(text)));
}

class Pull : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("HF_ENDPOINT", hub.server.url().c_str(), 1);
    ::setenv("HF_HUB_CACHE", scratch.path().c_str(), 1);
    ::unsetenv("HF_HUB_OFFLINE");  // whatever the tests are run under
  }
  void TearDown() override {
    for (const char* name : {"HF_ENDPOINT", "HF_HUB_CACHE", "HF_HUB_OFFLINE"}) ::unsetenv(name);
  }
  static Result<Pulled> pull_it(const std::string& model = "org/small", bool checks_all = false,
                                std::vector<std::string> include = {}) {
    PullOptions options;
    options.model = model;
    options.include = std::move(include);
    options.checks_all = checks_all;
    return pull(options);
  }
  static void go_offline() { ::setenv("HF_HUB_OFFLINE", "1", 1); }
  std::size_t num_requests() const { return hub.server.requests().size(); }
  std::string cached(const std::string& path) const { return cache.file(kCommit, path); }

  SmallHub hub;
  ScratchFolder scratch;
  HubCache cache{scratch.path(), "org/small", true};
};

TEST_F(Pull, OfflineNothingIsAsked) {
  ASSERT_TRUE(pull_it());
  const std::size_t before = num_requests();
  go_offline();
  for (const bool checks_all : {false, true}) {
    const auto again = pull_it("org/small", checks_all);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->record.commit, kCommit);
    EXPECT_EQ(again->record.files.size(), 4u);
  }
  ASSERT_TRUE(write_file(cached("config.json"), R"({"model_type":"llamA"})"));
  const auto damaged = pull_it();
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().code, ErrorCode::kNetwork);
  EXPECT_NE(damaged.error().message.find("config.json"), std::string::npos);
  const auto unknown = pull_it("org/small@v2");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kNetwork);
  EXPECT_EQ(num_requests(), before);
}

TEST_F(Pull, ARecordStatesWhatWasReadAndDamageIsFetchedAgain) {
  ASSERT_TRUE(pull_it());
  std::string damaged = small_weights();
  damaged.back() = '\x02';
  ASSERT_TRUE(write_file(cached("model.safetensors"), damaged));
  ASSERT_TRUE(pull_it());  // believed by its size
  EXPECT_EQ(read_file(cached("model.safetensors")).value_or(""), damaged);
  const auto pulled = pull_it("org/small", true);
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(read_file(cached("model.safetensors")).value_or(""), small_weights());
  const auto& files = pulled->record.files;
  const auto found =
      std::find_if(files.begin(), files.end(), [](const auto& f) { return f.path == "model.safetensors"; });
  ASSERT_NE(found, files.end());
  EXPECT_EQ(found->sha256, sha256(small_weights()));
}

TEST_F(Pull, AKeptListingThatDisagreesWithTheHubIsAskedForAgain) {
  ASSERT_TRUE(pull_it());
  std::filesystem::remove_all(cache.folder() + "/snapshots");
  std::filesystem::remove_all(cache.folder() + "/blobs");
  hub.files["config.json"] = R"({"model_type":"another"})";
  const auto pulled = pull_it();
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(hub.server.count("GET", "/tree/"), 2);
  EXPECT_EQ(read_file(cached("config.json")).value_or(""), hub.files["config.json"]);
}

// What the network does says nothing about a listing: it stays, and the hub is asked once.
TEST_F(Pull, ACutConnectionCostsNoListing) {
  ASSERT_TRUE(pull_it());
  std::filesystem::remove_all(cache.folder() + "/snapshots");
  std::filesystem::remove_all(cache.folder() + "/blobs");
  ::setenv("PLIMSOLL_HUB_MAX_WAIT_S", "0", 1);
  for (const int status : {200, 401, 500}) {
    hub.cuts_files = status == 200;
    hub.file_status = status;
    const auto pulled = pull_it();
    ASSERT_FALSE(pulled) << status;
    EXPECT_TRUE(cache.tree(kCommit)) << status;
    EXPECT_EQ(hub.server.count("GET", "/tree/"), 1) << status;
  }
  ::unsetenv("PLIMSOLL_HUB_MAX_WAIT_S");
  go_offline();
  const auto offline = pull_it();
  ASSERT_FALSE(offline);
  EXPECT_NE(offline.error().message.find("does not hold"), std::string::npos) << offline.error().message;
}

// The kept listing goes only when another one has come.
TEST_F(Pull, AListingThatIsWrongStaysUntilAnotherCame) {
  ASSERT_TRUE(pull_it());
  std::filesystem::remove_all(cache.folder() + "/snapshots");
  std::filesystem::remove_all(cache.folder() + "/blobs");
  const auto kept = cache.tree(kCommit);
  hub.files["config.json"] = R"({"model_type":"another"})";
  hub.stated_bytes["config.json"] = -1;  // the new listing cannot be taken
  const auto refused = pull_it();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("bytes"), std::string::npos) << refused.error().message;
  EXPECT_EQ(cache.tree(kCommit), kept);
  hub.stated_bytes.clear();
  hub.files.erase("README.md");  // named by the kept listing, and gone
  const auto pulled = pull_it();
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(pulled->record.files.size(), 3u);
}

TEST_F(Pull, OfflineACommitWithoutItsListingIsNoUnknownRevision) {
  ASSERT_TRUE(pull_it());
  std::filesystem::remove_all(cache.folder() + "/trees");
  go_offline();
  const auto pulled = pull_it();
  ASSERT_FALSE(pulled);
  EXPECT_NE(pulled.error().message.find("which files commit"), std::string::npos) << pulled.error().message;
}

TEST_F(Pull, AHubThatGoesOnDisagreeingIsRefusedOnce) {
  hub.stated_bytes["config.json"] = 5;
  const auto pulled = pull_it();
  ASSERT_FALSE(pulled);
  EXPECT_EQ(pulled.error().code, ErrorCode::kNetwork);
  EXPECT_EQ(hub.server.count("GET", "/tree/"), 1);
}

TEST_F(Pull, AbsurdSizesAreTheHubsFault) {
  for (const std::int64_t bytes : {std::int64_t{1} << 62, std::int64_t{1} << 46, std::int64_t{-1}})
    for (const char* path : {"model.safetensors", "README.md", "sub/model.safetensors"}) {
      hub.stated_bytes = {{path, bytes}};
      const auto pulled = pull_it();
      ASSERT_FALSE(pulled) << path << " " << bytes;
      EXPECT_EQ(pulled.error().code, ErrorCode::kNetwork) << pulled.error().message;
    }
}

TEST_F(Pull, ARecordPinsTheTemplateThatIsUsed) {
  hub.files["chat_template.json"] = R"({"chat_template":"{{ p }}"})";
  const auto pulled = pull_it();
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(pulled->record.chat_template_sha256, sha256("{{ p }}"));
}

TEST_F(Pull, ARecordWhoseFilesAreGoneTellsWhich) {
  auto pulled = pull_it();
  ASSERT_TRUE(pulled);
  const std::string lock = scratch.path() + "/x.lock";
  const auto of_files = [&](std::vector<LockedFile> files) {
    pulled->record.files = std::move(files);
    EXPECT_TRUE(write_file(lock, dump_pretty(to_json(pulled->record))));
    const auto again = pull_it(lock);
    EXPECT_TRUE(again) << again.error().message;
    return again ? again->findings : Findings{};
  };
  EXPECT_TRUE(of_files({}).empty());
  const Findings findings = of_files({{"gone.json", 3, {}}});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].id, "LOCK_MISMATCH");
  EXPECT_EQ(findings[0].where, "gone.json");
}

TEST_F(Pull, PatternsThatNameNothingAndRepositoriesThatHoldNothing) {
  EXPECT_EQ(pull_it("org/small", false, {"*.gguf"}).error().code, ErrorCode::kUsage);
  hub.files.clear();
  std::filesystem::remove_all(scratch.path() + "/models--org--small");
  const auto empty = pull_it();
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().code, ErrorCode::kMalformed);
  EXPECT_EQ(empty.error().where, "org/small@" + kCommit);
}

TEST_F(Pull, ALockedFileThatIsNotAskedForIsNoMismatch) {
  const auto pulled = pull_it();
  ASSERT_TRUE(pulled);
  const std::string lock = scratch.path() + "/x.lock";
  ASSERT_TRUE(write_file(lock, dump_pretty(to_json(pulled->record))));
  const auto part = pull_it(lock, false, {"config.json"});
  ASSERT_TRUE(part) << part.error().message;
  EXPECT_TRUE(part->findings.empty());
}

}  // namespace
}  // namespace plimsoll::artifact
