// SPDX-License-Identifier: Apache-2.0
// MODEL as org/name: from a hub by headers alone, from the cache, from the catalogue, or not at all.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "artifact/hub/download.h"
#include "artifact/hub/open_hub.h"
#include "artifact/hub/repository.h"
#include "artifact/hub_cache.h"
#include "base/hash.h"
#include "base/mapped_file.h"
#include "tests/artifact/scripted_hub.h"

namespace plimsoll::artifact {
namespace {

using testing::AskedRequest;
using testing::http_answer;
using testing::ScratchFolder;
using testing::ScriptedHub;

const std::string kCommit(40, 'c');

std::string git_digest(const std::string& content) {
  const ScratchFolder folder;
  return git_digest_of_file(folder.write("x", content), static_cast<std::int64_t>(content.size()))
      .value_or("");
}

// A safetensors file of one tensor "w" [2,3] F32, and `padding` bytes of spaces in its header.
std::string weights(std::size_t padding = 0) {
  std::string header = R"({"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})";
  header.append(padding, ' ');
  while (header.size() % 8 != 0) header += ' ';
  std::string text;
  for (int i = 0; i < 8; ++i) text += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return text + header + std::string(24, '\x01');
}

// org/small with a config, weights and a card, as a hub gives them.
class Hub {
 public:
  std::map<std::string, std::string> files = {{"config.json", R"({"model_type":"llama"})"},
                                              {"README.md", "# card"},
                                              {"sub/model.safetensors", "not looked at"},
                                              {"model.safetensors", weights()}};
  std::string id = "org/small";
  std::string gated = "false";
  int file_status = 200;
  std::vector<std::string> file_headers;
  ScriptedHub server{[this](const AskedRequest& request) { return answer(request); }};

 private:
  std::string answer(const AskedRequest& request) const {
    if (request.path.starts_with("/api/models/" + id + "/tree/")) return http_answer(200, {}, tree());
    if (request.path == "/api/models/org/small/revision/gone")
      return http_answer(404, {"X-Error-Code: RevisionNotFound"}, "");
    if (request.path.starts_with("/api/models/org/small/revision/"))
      return http_answer(200, {},
                         R"({"id":")" + id + R"(","sha":")" + kCommit + R"(","gated":)" + gated + "}");
    const std::string resolve = "/" + id + "/resolve/" + kCommit + "/";
    if (!request.path.starts_with(resolve)) return http_answer(404, {"X-Error-Code: RepoNotFound"}, "");
    const auto file = files.find(request.path.substr(resolve.size()));
    if (file == files.end()) return http_answer(404, {"X-Error-Code: EntryNotFound"}, "");
    if (file_status != 200) return http_answer(file_status, file_headers, "");
    return content(request, file->first, file->second);
  }

  static bool is_large(const std::string& path) { return path.ends_with(".safetensors"); }

  std::string tree() const {
    Json list = Json::array();
    for (const auto& [path, text] : files) {
      Json entry =
          Json::object({{"type", "file"}, {"path", path}, {"size", text.size()}, {"oid", git_digest(text)}});
      if (is_large(path))
        entry.set("lfs",
                  Json::object({{"oid", sha256_hex(std::as_bytes(std::span(text)))}, {"size", text.size()}}));
      list.push_back(std::move(entry));
    }
    return dump(list);
  }

  static std::string content(const AskedRequest& request, const std::string& path, const std::string& text) {
    const std::string etag = is_large(path) ? sha256_hex(std::as_bytes(std::span(text))) : git_digest(text);
    std::vector<std::string> headers = {"X-Repo-Commit: " + kCommit, "ETag: \"" + etag + "\""};
    const std::string range = request.header("range");
    if (range.empty()) return http_answer(200, headers, text);
    const std::size_t first = std::stoul(range.substr(6));
    const std::size_t last = std::min(std::stoul(range.substr(range.find('-') + 1)), text.size() - 1);
    headers.push_back("Content-Range: bytes " + std::to_string(first) + "-" + std::to_string(last) + "/" +
                      std::to_string(text.size()));
    return http_answer(206, headers, text.substr(first, last - first + 1));
  }
};

const Finding* find(const Artifact& artifact, std::string_view id) {
  for (const Finding& finding : artifact.findings())
    if (finding.id == id) return &finding;
  return nullptr;
}

std::optional<Json> catalogue(std::string_view id) {
  if (id != "org/small") return std::nullopt;
  return Json::object({{"model_type", "known"}});
}

TEST(HubOpen, HeadersAreEnoughToSeeEveryTensor) {
  Hub hub;
  hub.files["model.safetensors"] = weights(150'000);  // longer than the first read
  const ScratchFolder scratch;
  const auto opened = open_hub({"org/small", ""}, {}, hub.server.settings(scratch.path()));
  ASSERT_TRUE(opened) << opened.error().message;
  const Artifact& artifact = **opened;
  EXPECT_EQ(artifact.form(), Form::kSafetensors);
  ASSERT_EQ(artifact.tensors().size(), 1u);
  EXPECT_EQ(artifact.tensors()[0].bytes, 24);
  EXPECT_EQ(artifact.config()["model_type"], Json("llama"));
  EXPECT_EQ(artifact.commit(), kCommit);
  ASSERT_EQ(artifact.files().size(), 4u);
  EXPECT_EQ(artifact.files()[2].bytes.value,
            static_cast<std::int64_t>(hub.files["model.safetensors"].size()));
  EXPECT_EQ(artifact.files()[2].sha256.size(), 64u);
  EXPECT_FALSE(artifact.has_tensor_bytes());
  EXPECT_EQ(artifact.data(artifact.tensors()[0]).error().code, ErrorCode::kUnsupported);
  const Finding* moving = find(artifact, "REVISION_NOT_PINNED");
  ASSERT_TRUE(moving);
  EXPECT_NE(moving->message.find(kCommit), std::string::npos);
  EXPECT_EQ(hub.server.count("GET", "sub/model"), 0);
  const HubCache cache(scratch.path(), "org/small", true);
  EXPECT_FALSE(cache.file(kCommit, "config.json").empty());
  EXPECT_TRUE(cache.file(kCommit, "model.safetensors").empty());
  EXPECT_EQ(cache.commit_of("main"), kCommit);
}

TEST(HubOpen, ThePlaceOfTheHeadersIsRemoved) {
  Hub hub;
  const ScratchFolder scratch;
  std::string root;
  {
    const auto opened = open_hub({"org/small", kCommit}, {}, hub.server.settings(scratch.path()));
    ASSERT_TRUE(opened) << opened.error().message;
    root = (*opened)->root();
    EXPECT_TRUE(std::filesystem::exists(root));
    EXPECT_FALSE(find(**opened, "REVISION_NOT_PINNED"));
  }
  EXPECT_FALSE(std::filesystem::exists(root));
}

TEST(HubOpen, ForTensorsTheWeightsComeAndStay) {
  Hub hub;
  const ScratchFolder scratch;
  const HubSettings settings = hub.server.settings(scratch.path());
  const auto opened = open_hub({"org/small", "main"}, {.need = Need::kTensors}, settings);
  ASSERT_TRUE(opened) << opened.error().message;
  const auto data = (*opened)->data((*opened)->tensors()[0]);
  ASSERT_TRUE(data);
  EXPECT_EQ((*data)[0], std::byte{1});
  const std::size_t before = hub.server.requests().size();
  const auto again = open_hub({"org/small", kCommit}, {.need = Need::kTensors}, settings);
  ASSERT_TRUE(again);
  EXPECT_TRUE((*again)->has_tensor_bytes());
  EXPECT_EQ(hub.server.requests().size(), before);  // a pinned commit that is here asks nobody
}

TEST(HubOpen, TextNeedsNoWeights) {
  Hub hub;
  hub.files["tokenizer.json"] = R"({"model":{"vocab":{}}})";
  const ScratchFolder scratch;
  const auto opened = open_hub({"org/small", ""}, {.need = Need::kText}, hub.server.settings(scratch.path()));
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_TRUE((*opened)->text_file("tokenizer.json"));
  EXPECT_EQ(hub.server.count("HEAD", "safetensors"), 0);
}

// Damage behind the digest that the hub's listing names shows when files are read whole, also under a view.
TEST(HubOpen, TheDeepCheckHoldsTheCachesFilesAgainstTheirDigests) {
  Hub hub;
  const ScratchFolder scratch;
  const HubSettings settings = hub.server.settings(scratch.path());
  ASSERT_TRUE(open_hub({"org/small", kCommit}, {.need = Need::kTensors}, settings));
  const HubCache cache(scratch.path(), "org/small", true);
  std::string damaged = weights();
  damaged.back() = '\x02';
  const std::string path = cache.file(kCommit, "model.safetensors");
  ASSERT_TRUE(write_file(path, damaged));
  const auto opened = open_hub({"org/small", kCommit}, {.need = Need::kTensors}, settings);
  ASSERT_TRUE(opened);
  EXPECT_FALSE(find(**opened, "SHA256_MISMATCH"));
  const Findings deep = deep_findings(**opened);
  ASSERT_EQ(deep.size(), 1u);
  EXPECT_EQ(deep[0].id, "SHA256_MISMATCH");
  EXPECT_EQ(deep[0].where, "model.safetensors");
}

TEST(HubOpen, WhereOnlyTextIsNeededTheWeightsAreListedAllTheSame) {
  Hub hub;
  hub.files["tokenizer.json"] = R"({"model":{"vocab":{}}})";
  const ScratchFolder scratch;
  const auto opened = open_hub({"org/small", ""}, {.need = Need::kText}, hub.server.settings(scratch.path()));
  ASSERT_TRUE(opened) << opened.error().message;
  const auto& files = (*opened)->files();
  const auto found = std::find_if(files.begin(), files.end(),
                                  [](const File& file) { return file.path == "model.safetensors"; });
  ASSERT_NE(found, files.end());
  EXPECT_EQ(found->bytes.value, static_cast<std::int64_t>(hub.files["model.safetensors"].size()));
  EXPECT_EQ(found->role, FileRole::kWeights);
  EXPECT_EQ((*opened)->path_of(*found), "");
}

TEST(HubOpen, WithoutAHubTheCacheIsTakenAndThenTheCatalogue) {
  const ScratchFolder scratch;
  HubSettings settings;
  settings.cache = scratch.path();
  settings.is_offline = true;
  const auto known = open_hub({"org/small", ""}, {.catalogue = catalogue}, settings);
  ASSERT_TRUE(known) << known.error().message;
  EXPECT_EQ((*known)->config()["model_type"], Json("known"));
  const Finding* used = find(**known, "CATALOGUE_USED");
  ASSERT_TRUE(used);
  EXPECT_EQ(used->level, FindingLevel::kInfo);
  EXPECT_NE(used->message.find("HF_HUB_OFFLINE"), std::string::npos);
  const auto unknown = open_hub({"org/other", ""}, {.catalogue = catalogue}, settings);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kNetwork);

  Hub hub;
  ASSERT_TRUE(open_hub({"org/small", ""}, {.need = Need::kTensors}, hub.server.settings(scratch.path())));
  const auto cached = open_hub({"org/small", "main"}, {.catalogue = catalogue}, settings);
  ASSERT_TRUE(cached);
  EXPECT_EQ((*cached)->commit(), kCommit);
  EXPECT_TRUE(find(**cached, "REVISION_NOT_PINNED"));

  settings.is_offline = false;
  settings.endpoint = "http://127.0.0.1:1";
  settings.first_pause = std::chrono::milliseconds(1);
  const auto unreached = open_hub({"org/small", ""}, {.catalogue = catalogue}, settings);
  ASSERT_TRUE(unreached);
  EXPECT_TRUE(find(**unreached, "CACHE_USED"));
}

TEST(HubOpen, AGatedModelFallsBackAndAMissingOneDoesNot) {
  Hub hub;
  hub.gated = "\"manual\"";
  hub.file_status = 403;
  hub.file_headers = {"X-Error-Code: GatedRepo"};
  const ScratchFolder scratch;
  const HubSettings settings = hub.server.settings(scratch.path());
  const auto gated = open_hub({"org/small", ""}, {.catalogue = catalogue}, settings);
  ASSERT_TRUE(gated) << gated.error().message;
  EXPECT_NE(find(**gated, "CATALOGUE_USED")->message.find("gated"), std::string::npos);
  EXPECT_NE(open_hub({"org/small", ""}, {}, settings).error().fix.find("accept the terms"),
            std::string::npos);
  EXPECT_FALSE(open_hub({"org/small", "gone"}, {.catalogue = catalogue}, settings));
  EXPECT_FALSE(open_hub({"org/absent", ""},
                        {.catalogue = [](std::string_view) { return catalogue("org/small"); }}, settings));
}

TEST(HubOpen, ANewNameIsTold) {
  Hub hub;
  hub.id = "new/name";
  const ScratchFolder scratch;
  const auto opened = open_hub({"org/small", kCommit}, {}, hub.server.settings(scratch.path()));
  ASSERT_TRUE(opened) << opened.error().message;
  const Finding* renamed = find(**opened, "REPO_RENAMED");
  ASSERT_TRUE(renamed);
  EXPECT_NE(renamed->message.find("new/name"), std::string::npos);
}

TEST(HubOpen, ARepositoryWithoutAModelIsNamedAndNotThePlaceOfItsFiles) {
  Hub hub;
  hub.files = {{"README.md", "# nothing"}};
  const ScratchFolder scratch;
  for (const Need need : {Need::kHeaders, Need::kTensors}) {
    const auto opened = open_hub({"org/small", ""}, {.need = need}, hub.server.settings(scratch.path()));
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::kMalformed);
    EXPECT_EQ(opened.error().where, "org/small@" + kCommit);
  }
}

TEST(HubOpen, ACacheThatCannotBeWrittenIsNoHindrance) {
  Hub hub;
  const ScratchFolder scratch;
  // A file where the folder would be: unwritable for root too.
  const auto opened =
      open_hub({"org/small", ""}, {}, hub.server.settings(scratch.write("file", "") + "/cache"));
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ((*opened)->tensors().size(), 1u);
}

TEST(HubCache, DoubleLinksRefsAndAbsencesAreRead) {
  const ScratchFolder scratch;
  const HubCache cache(scratch.path(), "org/small", true);
  const std::string base = "models--org--small/";
  scratch.write("blobs/ab/content", "hello");
  scratch.write(base + "refs/refs/pr/1", kCommit);
  scratch.write(base + ".no_exist/" + kCommit + "/absent.json", "");
  std::filesystem::create_directories(scratch.path() + "/" + base + "blobs");
  std::filesystem::create_directories(scratch.path() + "/" + base + "snapshots/" + kCommit + "/d");
  std::filesystem::create_symlink("../../blobs/ab/content", cache.blob("e1"));
  ASSERT_TRUE(cache.show(kCommit, "d/f.txt", "e1", true));
  EXPECT_EQ(std::filesystem::read_symlink(cache.snapshot(kCommit) + "/d/f.txt"), "../../../blobs/e1");
  EXPECT_FALSE(cache.file(kCommit, "d/f.txt").empty());
  EXPECT_TRUE(cache.file(kCommit, "../../x").empty());
  EXPECT_EQ(cache.commit_of("refs/pr/1"), kCommit);
  EXPECT_EQ(cache.commit_of("../x"), "");
  EXPECT_EQ(cache.commit_of("main"), "");
  EXPECT_TRUE(cache.is_known_absent(kCommit, "absent.json"));
  EXPECT_FALSE(cache.is_known_absent(kCommit, "d/f.txt"));
}

}  // namespace
}  // namespace plimsoll::artifact
