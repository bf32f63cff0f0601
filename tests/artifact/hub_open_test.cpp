// SPDX-License-Identifier: Apache-2.0
// MODEL as org/name: from a hub by headers alone, from the cache, from the catalogue, or not at all.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "artifact/hub/download.h"
#include "artifact/hub/open_hub.h"
#include "artifact/hub/repository.h"
#include "artifact/hub_cache.h"
#include "base/hash.h"
#include "base/mapped_file.h"
#include "tests/artifact/small_hub.h"
#include "tests/testing/made_files.h"

namespace plimsoll::artifact {
namespace {

using testing::kCommit;
using testing::ScratchFolder;
using testing::small_weights;
using testing::SmallHub;

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
  SmallHub hub;
  hub.files["model.safetensors"] = small_weights(150'000);  // longer than the first read
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
  SmallHub hub;
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
  SmallHub hub;
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
  SmallHub hub;
  hub.files["tokenizer.json"] = R"({"model":{"vocab":{}}})";
  const ScratchFolder scratch;
  const auto opened = open_hub({"org/small", ""}, {.need = Need::kText}, hub.server.settings(scratch.path()));
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_TRUE((*opened)->text_file("tokenizer.json"));
  EXPECT_EQ(hub.server.count("HEAD", "safetensors"), 0);
}

// Damage behind the digest that the hub's listing names shows when files are read whole, also under a view.
TEST(HubOpen, TheDeepCheckHoldsTheCachesFilesAgainstTheirDigests) {
  SmallHub hub;
  const ScratchFolder scratch;
  const HubSettings settings = hub.server.settings(scratch.path());
  ASSERT_TRUE(open_hub({"org/small", kCommit}, {.need = Need::kTensors}, settings));
  const HubCache cache(scratch.path(), "org/small", true);
  std::string damaged = small_weights();
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
  SmallHub hub;
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

  SmallHub hub;
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
  SmallHub hub;
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

TEST(HubOpen, AKeptListingThatDisagreesWithTheHubIsAskedForAgain) {
  SmallHub hub;
  const ScratchFolder scratch;
  const HubSettings settings = hub.server.settings(scratch.path());
  ASSERT_TRUE(open_hub({"org/small", ""}, {}, settings));
  const HubCache cache(scratch.path(), "org/small", true);
  std::filesystem::remove_all(cache.folder() + "/snapshots");
  std::filesystem::remove_all(cache.folder() + "/blobs");
  hub.files["config.json"] = R"({"model_type":"another"})";
  const auto opened = open_hub({"org/small", ""}, {}, settings);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ((*opened)->config()["model_type"], Json("another"));
  EXPECT_EQ(hub.server.count("GET", "/tree/"), 2);
}

TEST(HubOpen, ACutConnectionCostsNoListing) {
  SmallHub hub;
  const ScratchFolder scratch;
  HubSettings settings = hub.server.settings(scratch.path());
  ASSERT_TRUE(open_hub({"org/small", ""}, {}, settings));
  settings.max_wait = std::chrono::milliseconds(0);
  hub.cuts_files = true;
  EXPECT_FALSE(open_hub({"org/small", ""}, {}, settings));  // the weights' header
  EXPECT_FALSE(open_hub({"org/small", ""}, {.need = Need::kTensors}, settings));
  EXPECT_EQ(hub.server.count("GET", "/tree/"), 1);
  EXPECT_TRUE(HubCache(scratch.path(), "org/small", true).tree(kCommit));
}

// Which weights there are is then not known, and so not that they are all here.
TEST(HubOpen, AnIndexThatCannotBeReadMakesNoSnapshotComplete) {
  SmallHub hub;
  hub.files.erase("model.safetensors");
  hub.files["model-00001-of-00001.safetensors"] = small_weights();
  hub.files["model.safetensors.index.json"] = "{broken";
  const ScratchFolder scratch;
  const HubSettings settings = hub.server.settings(scratch.path());
  for (const Need need : {Need::kHeaders, Need::kTensors}) {
    const auto opened = open_hub({"org/small", ""}, {.need = need}, settings);
    ASSERT_TRUE(opened) << opened.error().message;
    const Finding* told = find(**opened, "IDX_JSON");
    ASSERT_TRUE(told);  // of the index itself, not of a stand-in
    EXPECT_NE(told->message.find("line 1"), std::string::npos) << told->message;
  }
  const std::size_t before = hub.server.requests().size();
  ASSERT_TRUE(open_hub({"org/small", kCommit}, {.need = Need::kTensors}, settings));
  EXPECT_GT(hub.server.requests().size(), before);
}

TEST(HubOpen, AbsurdSizesAreTheHubsFault) {
  SmallHub hub;
  hub.files["x.bin"] = "x";
  const ScratchFolder scratch;
  for (const std::int64_t bytes : {std::int64_t{1} << 62, std::int64_t{1} << 46, std::int64_t{-1}})
    for (const char* path : {"model.safetensors", "x.bin", "config.json"}) {
      hub.stated_bytes = {{path, bytes}};
      const auto opened = open_hub({"org/small", ""}, {}, hub.server.settings(scratch.path()));
      ASSERT_FALSE(opened) << path << " " << bytes;
      EXPECT_EQ(opened.error().code, ErrorCode::kNetwork) << opened.error().message;
    }
}

// A GGUF header does not say how long it is; a fault that more bytes cannot cure ends the reading of it.
TEST(HubOpen, AGgufHeaderIsReadNoFurtherThanItMakesSense) {
  using namespace testing;
  const std::string body(3'000'000, '\0');
  const auto num_reads = [&](const std::string& header) {
    SmallHub hub;
    hub.files = {{"m.gguf", header + body}};
    const ScratchFolder scratch;
    const auto opened = open_hub({"org/small", ""}, {}, hub.server.settings(scratch.path()));
    EXPECT_TRUE(opened);
    return hub.server.count("GET", "m.gguf");
  };
  EXPECT_EQ(num_reads(gguf_start(0, 1, 99) + gguf_key("k", 4, le32(1))), 1);  // an unknown version
  EXPECT_EQ(num_reads(gguf_start(0, 1) + gguf_key("k", 77, "")), 1);          // an unknown type
  EXPECT_EQ(num_reads("GGUF"), 1);                                            // version 0
  EXPECT_EQ(num_reads("GGML"), 1);
  EXPECT_EQ(num_reads(gguf_start(std::uint64_t{1} << 40, 0)), 1);  // more tensors than the file can hold
  EXPECT_EQ(num_reads(gguf_start(0, 1) + gguf_key("k", 4, le32(1))), 1);
  EXPECT_EQ(num_reads(gguf_start(0, 1) + gguf_key("k", 8, gguf_string(std::string(300'000, 't')))), 2);
}

// Of what no reader looks for not all has a place in the folder of stand-ins.
TEST(HubOpen, EveryFileOfARepositoryIsListed) {
  SmallHub hub;
  for (int i = 0; i < 2100; ++i) hub.files["notes/" + std::to_string(i) + ".txt"] = "";
  const ScratchFolder scratch;
  const auto opened = open_hub({"org/small", ""}, {}, hub.server.settings(scratch.path()));
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ((*opened)->files().size(), hub.files.size());
  EXPECT_EQ((*opened)->tensors().size(), 1u);
  EXPECT_FALSE(find(**opened, "FOLDER_TOO_LARGE"));
}

TEST(HubOpen, ANewNameIsTold) {
  SmallHub hub;
  hub.id = "new/name";
  const ScratchFolder scratch;
  const auto opened = open_hub({"org/small", kCommit}, {}, hub.server.settings(scratch.path()));
  ASSERT_TRUE(opened) << opened.error().message;
  const Finding* renamed = find(**opened, "REPO_RENAMED");
  ASSERT_TRUE(renamed);
  EXPECT_NE(renamed->message.find("new/name"), std::string::npos);
}

TEST(HubOpen, ARepositoryWithoutAModelIsNamedAndNotThePlaceOfItsFiles) {
  SmallHub hub;
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
  SmallHub hub;
  const ScratchFolder scratch;
  // A file where the folder would be: unwritable for root too.
  const auto opened =
      open_hub({"org/small", ""}, {}, hub.server.settings(scratch.write("file", "") + "/cache"));
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ((*opened)->tensors().size(), 1u);
}

// Names on their way are nobody else's: a link that waits under one that could be foreseen is not written
// through, and the snapshot holds its files alone.
TEST(HubCache, CopiesOnTheirWayAreNoFilesOfTheModel) {
  const ScratchFolder scratch;
  const std::string victim = scratch.write("victim", "precious"), etag(40, 'a');
  scratch.write("models--org--small/blobs/" + etag, "content");
  for (const bool uses_links : {false, true}) {
    const HubCache cache(scratch.path(), "org/small", uses_links);
    const std::string path = uses_links ? "linked.json" : "copied.json";
    ASSERT_TRUE(cache.prepare(kCommit, path));
    const std::string place = cache.snapshot(kCommit) + "/" + path;
    for (const char* ending : {".copy.aaaaaaaa", ".link.aaaaaaaa"})
      std::filesystem::create_symlink(victim, place + ending);
    ASSERT_TRUE(cache.show(kCommit, path, etag, false));
    EXPECT_EQ(read_file(place).value_or(""), "content");
    EXPECT_EQ(std::filesystem::is_symlink(place), uses_links);
    for (const char* ending : {".copy.aaaaaaaa", ".link.aaaaaaaa"}) std::filesystem::remove(place + ending);
  }
  EXPECT_EQ(read_file(victim).value_or(""), "precious");
  const auto num_in = [&](const std::string& folder) {
    return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
  };
  EXPECT_EQ(num_in(scratch.path() + "/models--org--small/snapshots/" + kCommit), 2);
  EXPECT_EQ(num_in(scratch.path() + "/models--org--small/blobs"), 1);  // nothing is left on its way
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
