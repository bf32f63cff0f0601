// SPDX-License-Identifier: Apache-2.0
// Files that arrive from a hub whole or not at all.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "artifact/hub/download.h"
#include "artifact/hub_cache.h"
#include "base/mapped_file.h"
#include "tests/artifact/one_file_hub.h"
#include "tests/artifact/scripted_hub.h"

namespace plimsoll::artifact {
namespace {

using testing::AskedRequest;
using testing::head_of;
using testing::http_answer;
using testing::kCommit;
using testing::kContent;
using testing::large_file;
using testing::ranged;
using testing::ScratchFolder;
using testing::ScriptedHub;

class Download : public ::testing::Test {
 protected:
  // HEAD is answered for `file`; GET by `get`.
  Status fetch(const HubFile& file, const ScriptedHub::Script& get) {
    ScriptedHub hub(
        [&](const AskedRequest& request) { return request.method == "HEAD" ? head_of(file) : get(request); });
    settings = hub.settings(scratch.path());
    const HubCache cache = this->cache();
    Disagreement disagrees = false;
    Status done = fetch_files(settings, cache, {"org/name", kCommit, {file}, {}}, disagrees);
    requests = hub.requests();
    return done;
  }
  HubCache cache() const { return {scratch.path(), "org/name", true}; }
  std::string arrived(const HubFile& file) const {
    const std::string path = cache().file(kCommit, file.path);
    return path.empty() ? "absent" : read_file(path).value_or("unreadable");
  }

  ScratchFolder scratch;
  HubSettings settings;
  std::vector<AskedRequest> requests;
};

TEST_F(Download, AFileArrivesAsBlobAndLink) {
  const HubFile file = large_file();
  const Status done = fetch(file, [](const AskedRequest& request) { return ranged(request, kContent); });
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(arrived(file), kContent);
  const std::string folder = scratch.path() + "/models--org--name";
  EXPECT_EQ(std::filesystem::read_symlink(folder + "/snapshots/" + kCommit + "/m.safetensors"),
            "../../blobs/" + file.sha256);
  EXPECT_TRUE(std::filesystem::exists(scratch.path() + "/CACHEDIR.TAG"));
  EXPECT_EQ(requests[0].header("accept-encoding"), "identity");
  ASSERT_TRUE(fetch(file, [](const AskedRequest&) { return http_answer(500, {}, ""); }));
  EXPECT_TRUE(requests.empty());  // it is here already
}

TEST_F(Download, ACutAnswerIsResumed) {
  const HubFile file = large_file();
  int gets = 0;
  const Status done = fetch(file, [&](const AskedRequest& request) {
    if (++gets == 1)
      return http_answer(200, {"Content-Length: " + std::to_string(kContent.size())}, kContent.substr(0, 20));
    return ranged(request, kContent);
  });
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(arrived(file), kContent);
  EXPECT_EQ(requests.back().header("range"), "bytes=20-");
}

TEST_F(Download, APartOfAnEarlierRunIsResumed) {
  const HubFile file = large_file();
  scratch.write("models--org--name/blobs/" + file.sha256 + ".12345678.incomplete", kContent.substr(0, 7));
  ASSERT_TRUE(fetch(file, [](const AskedRequest& request) { return ranged(request, kContent); }));
  EXPECT_EQ(requests.back().header("range"), "bytes=7-");
  EXPECT_EQ(arrived(file), kContent);
}

TEST_F(Download, ADamagedPartOfAnEarlierRunIsFetchedOnceMore) {
  const HubFile file = large_file();
  scratch.write("models--org--name/blobs/" + file.sha256 + ".12345678.incomplete", "garbage");
  ASSERT_TRUE(fetch(file, [](const AskedRequest& request) { return ranged(request, kContent); }));
  EXPECT_EQ(arrived(file), kContent);
}

TEST_F(Download, AServerThatIgnoresTheRangeIsTakenFromItsStart) {
  const HubFile file = large_file();
  scratch.write("models--org--name/blobs/" + file.sha256 + ".12345678.incomplete", kContent.substr(0, 7));
  ASSERT_TRUE(fetch(file, [](const AskedRequest&) { return http_answer(200, {}, kContent); }));
  EXPECT_EQ(arrived(file), kContent);
}

TEST_F(Download, ARefusedRangeBeginsAgain) {
  const HubFile file = large_file();
  scratch.write("models--org--name/blobs/" + file.sha256 + ".12345678.incomplete", kContent.substr(0, 7));
  ASSERT_TRUE(fetch(file, [](const AskedRequest& request) {
    return request.header("range").empty() ? http_answer(200, {}, kContent) : http_answer(416, {}, "");
  }));
  EXPECT_EQ(arrived(file), kContent);
}

TEST_F(Download, WrongBytesNeverBecomeVisible) {
  const HubFile file = large_file();
  std::string other = kContent;
  other[3] = 'X';
  for (const std::string& content : {other, kContent.substr(1), kContent + "more"}) {
    const Status done = fetch(file, [&](const AskedRequest&) { return http_answer(200, {}, content); });
    ASSERT_FALSE(done) << content;
    EXPECT_EQ(done.error().code, ErrorCode::kNetwork);
    EXPECT_EQ(arrived(file), "absent");
    EXPECT_FALSE(std::filesystem::exists(cache().blob(file.sha256)));
  }
}

TEST_F(Download, AnotherRangeThanTheAskedOneIsRefused) {
  const HubFile file = large_file();
  scratch.write("models--org--name/blobs/" + file.sha256 + ".12345678.incomplete", kContent.substr(0, 7));
  const Status done = fetch(file, [](const AskedRequest&) {
    return http_answer(206, {"Content-Range: bytes 3-49/50"}, kContent.substr(3));
  });
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("another range"), std::string::npos) << done.error().message;
}

TEST_F(Download, SmallFilesAreCheckedByGitsDigest) {
  // `printf hello | git hash-object --stdin`
  HubFile file{"a/b.txt", 5, "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0", {}, {}};
  ASSERT_TRUE(fetch(file, [](const AskedRequest&) { return http_answer(200, {}, "hello"); }));
  EXPECT_EQ(arrived(file), "hello");
  file.path = "c.txt";
  file.git_oid[0] = 'c';
  EXPECT_FALSE(fetch(file, [](const AskedRequest&) { return http_answer(200, {}, "hello"); }));
}

TEST_F(Download, WithoutLinksTheSnapshotHoldsTheFile) {
  const HubFile file = large_file();
  ScriptedHub hub([&](const AskedRequest& request) {
    return request.method == "HEAD" ? head_of(file) : ranged(request, kContent);
  });
  const HubCache plain(scratch.path(), "org/name", false);
  Disagreement disagrees = false;
  ASSERT_TRUE(fetch_files(hub.settings(scratch.path()), plain, {"org/name", kCommit, {file}, {}}, disagrees));
  EXPECT_FALSE(std::filesystem::is_symlink(plain.file(kCommit, file.path)));
  EXPECT_EQ(arrived(file), kContent);
}

TEST_F(Download, ADamagedSmallFileThatIsHereIsFetchedAgain) {
  const HubFile small{"config.json", 5, "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0", {}, {}};
  const auto get = [](const AskedRequest&) { return http_answer(200, {}, "hello"); };
  ASSERT_TRUE(fetch(small, get));
  ASSERT_TRUE(write_file(cache().file(kCommit, small.path), "wrong"));
  ASSERT_TRUE(fetch(small, get));
  EXPECT_EQ(arrived(small), "hello");
}

TEST_F(Download, ALinkInPlaceOfAPartIsNotWrittenThrough) {
  const HubFile file = large_file();
  const std::string victim = scratch.write("victim", "precious");
  const std::string blob = cache().blob(file.etag());
  std::filesystem::create_directories(std::filesystem::path(blob).parent_path());
  std::filesystem::create_symlink(victim, blob + ".aaaaaaaa.incomplete");
  ASSERT_TRUE(fetch(file, [](const AskedRequest& request) { return ranged(request, kContent); }));
  EXPECT_EQ(read_file(victim).value_or(""), "precious");
  EXPECT_EQ(arrived(file), kContent);
}

TEST_F(Download, ARefThatIsAPipeIsLeftAlone) {
  const std::string refs = cache().folder() + "/refs";
  std::filesystem::create_directories(refs);
  ASSERT_EQ(::mkfifo((refs + "/main").c_str(), 0600), 0);
  cache().set_ref("main", kCommit);  // once waited for a reader for ever
  EXPECT_EQ(cache().commit_of("main"), "");
}

}  // namespace
}  // namespace plimsoll::artifact
