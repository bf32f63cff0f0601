// SPDX-License-Identifier: Apache-2.0
// What may be asked for, where the token may go, and which names of a server become files.
#include <gtest/gtest.h>

#include <map>

#include "artifact/hub/choose_files.h"
#include "artifact/hub/header_reads.h"
#include "artifact/hub/listing.h"
#include "artifact/hub/settings.h"
#include "artifact/hub/url.h"
#include "artifact/safetensors.h"
#include "base/home_folder.h"
#include "tests/artifact/scripted_hub.h"

namespace plimsoll::artifact {
namespace {

HubSettings from(std::map<std::string, std::string> variables) {
  return HubSettings::from([variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(HubSettings, DefaultsAreThoseOfTheReference) {
  const HubSettings settings = from({{"HOME", "/nowhere/me"}});
  EXPECT_EQ(settings.endpoint, "https://huggingface.co");
  EXPECT_EQ(settings.cache, "/nowhere/me/.cache/huggingface/hub");
  EXPECT_FALSE(settings.is_offline);
  EXPECT_TRUE(settings.token.empty());
  EXPECT_EQ(settings.metadata_timeout, std::chrono::seconds(10));
}

TEST(HubSettings, WithoutHomeTheCacheIsWhereThePasswordDatabaseSaysAsInTheReference) {
  EXPECT_EQ(from({}).cache, home_of_user() + "/.cache/huggingface/hub");
  EXPECT_EQ(from({{"HF_HOME", "~/x"}}).cache, home_of_user() + "/x/hub");
  EXPECT_EQ(from({{"HOME", ""}}).cache, "/.cache/huggingface/hub");  // os.path.expanduser says so too
}

TEST(HubSettings, LaterVariablesWinOverOlderOnes) {
  EXPECT_EQ(from({{"HOME", "/h"}, {"XDG_CACHE_HOME", "/x"}}).cache, "/x/huggingface/hub");
  EXPECT_EQ(from({{"HOME", "/h"}, {"HF_HOME", "~/hf"}}).cache, "/h/hf/hub");
  EXPECT_EQ(from({{"HOME", "/h"}, {"HUGGINGFACE_HUB_CACHE", "/old"}}).cache, "/old");
  EXPECT_EQ(from({{"HOME", "/h"}, {"HUGGINGFACE_HUB_CACHE", "/old"}, {"HF_HUB_CACHE", "${HOME}/new"}}).cache,
            "/h/new");
  EXPECT_EQ(from({{"HF_ENDPOINT", "http://mirror:8080//"}}).endpoint, "http://mirror:8080");
  EXPECT_EQ(from({{"HF_TOKEN", " hf_a\n"}, {"HUGGING_FACE_HUB_TOKEN", "hf_b"}}).token, "hf_a");
  EXPECT_EQ(from({{"HUGGING_FACE_HUB_TOKEN", "hf_b"}}).token, "hf_b");
  EXPECT_EQ(from({{"HF_TOKEN", "hf_a"}, {"HF_HUB_DISABLE_IMPLICIT_TOKEN", "1"}}).token, "");
  EXPECT_TRUE(from({{"HF_HUB_OFFLINE", "yes"}}).is_offline);
  EXPECT_TRUE(from({{"TRANSFORMERS_OFFLINE", "1"}}).is_offline);
  EXPECT_FALSE(from({{"HF_HUB_OFFLINE", "0"}}).is_offline);
  EXPECT_EQ(from({{"HF_HUB_ETAG_TIMEOUT", "3"}}).metadata_timeout, std::chrono::seconds(3));
  EXPECT_EQ(from({{"HF_HUB_ETAG_TIMEOUT", "soon"}}).metadata_timeout, std::chrono::seconds(10));
}

TEST(HubSettings, TheTokenFileIsReadWhenNoVariableHoldsOne) {
  const testing::ScratchFolder folder;
  folder.write("token", "hf_from_file\n");
  EXPECT_EQ(from({{"HF_HOME", folder.path()}}).token, "hf_from_file");
  EXPECT_EQ(from({{"HF_TOKEN_PATH", folder.path() + "/token"}}).token, "hf_from_file");
  EXPECT_EQ(without_token("x hf_from_file y hf_from_file", from({{"HF_HOME", folder.path()}})),
            "x *** y ***");
}

TEST(HubUrl, OnlyTheEndpointAndTheHubsHostsOverHttpsAreTheHub) {
  const Url endpoint = *parse_url("http://127.0.0.1:8000");
  for (const char* hub :
       {"http://127.0.0.1:8000/a", "https://huggingface.co/a", "https://hf.co", "https://HF.co:443/x"})
    EXPECT_TRUE(is_hub(*parse_url(hub), endpoint)) << hub;
  for (const char* other : {"http://127.0.0.1:8001/a", "https://127.0.0.1:8000/a", "http://huggingface.co/a",
                            "https://huggingface.co:444/a", "https://huggingface.co.evil.org/a",
                            "https://evilhuggingface.co/", "https://cdn-lfs.hf.co/a"})
    EXPECT_FALSE(is_hub(*parse_url(other), endpoint)) << other;
}

TEST(HubUrl, AddressesThatHideAnotherHostAreNone) {
  for (const char* text : {"file:///etc/passwd", "ftp://x/y", "https://huggingface.co@evil.org/", "https://",
                           "http:/x", "https://a\nb/", "https://a b/", "//x/y", ""})
    EXPECT_FALSE(parse_url(text)) << text;
  EXPECT_FALSE(parse_url("https://x/" + std::string(9000, 'a')));
}

TEST(HubUrl, LocationsAreSeenFromWhereTheyStand) {
  const Url base = *parse_url("https://huggingface.co/a/b?c=1");
  EXPECT_EQ(resolve_url(base, "/x/y")->text(), "https://huggingface.co/x/y");
  EXPECT_EQ(resolve_url(base, "z")->text(), "https://huggingface.co/a/z");
  EXPECT_EQ(resolve_url(base, "//cdn.org/z")->text(), "https://cdn.org/z");
  EXPECT_EQ(resolve_url(base, "http://o.org")->text(), "http://o.org/");
  EXPECT_EQ(resolve_url(base, "?p=2")->text(), "https://huggingface.co/a/b?p=2");
  EXPECT_FALSE(resolve_url(base, "file:///etc/passwd"));
  EXPECT_FALSE(resolve_url(base, "javascript:x"));
  EXPECT_FALSE(resolve_url(base, ""));
  EXPECT_EQ(parse_url("https://cdn.org/f?Signature=secret")->shown(), "https://cdn.org/f");
}

TEST(HubUrl, RevisionsAreQuotedWhole) {
  EXPECT_EQ(quoted("refs/pr/1", false), "refs%2Fpr%2F1");
  EXPECT_EQ(quoted("a dir/f#1.json", true), "a%20dir/f%231.json");
}

TEST(HubListing, IdsAndWhatOnlyLooksLikeOne) {
  EXPECT_EQ(parse_hub_id("org/name")->repo, "org/name");
  EXPECT_EQ(parse_hub_id("org/name@refs/pr/1")->revision, "refs/pr/1");
  EXPECT_EQ(parse_hub_id("org/name@v1.0")->revision, "v1.0");
  for (const char* text :
       {"name", "a/b/c", "./model", "../model", "/abs/model", "org/", "/name", "org/na me", "org/name.gguf",
        "org/config.json", "org/..", "org/a--b", "-x/y", "org/name@", "org/name@../x", "org/name@/x", ""})
    EXPECT_FALSE(parse_hub_id(text)) << text;
}

TEST(HubListing, NamesThatLeaveTheFolderAreNotSafe) {
  for (const char* name :
       {"a", "a/b.json", "model-00001-of-00002.safetensors", "\xC3\xA9.txt", "..a", "a..b/c"})
    EXPECT_TRUE(is_safe_name(name)) << name;
  for (const std::string& name :
       {std::string("../x"), std::string("a/../../x"), std::string("/etc/passwd"), std::string("a//b"),
        std::string("a/"), std::string("."), std::string("a/./b"), std::string("a\\..\\b"),
        std::string("a\nb"), std::string("a\0b", 3), std::string(), std::string(256, 'x'),
        std::string("a\x7f")})
    EXPECT_FALSE(is_safe_name(name)) << name;
  std::string deep = "a";
  for (int i = 0; i < 20; ++i) deep += "/a";
  EXPECT_FALSE(is_safe_name(deep));
}

constexpr const char* kSha1 = "0123456789012345678901234567890123456789";
constexpr const char* kSha256 = "0123456789012345678901234567890123456789012345678901234567890123";

Json entry(const char* path) {
  return Json::object({{"type", "file"}, {"path", path}, {"size", 10}, {"oid", kSha1}});
}

TEST(HubListing, ATreePageGivesSizesAndDigests) {
  Json large = entry("m.safetensors");
  large.set("size", 130);
  large.set("lfs", Json::object({{"oid", kSha256}, {"size", 5'000'000'000}}));
  std::vector<HubFile> files;
  ASSERT_TRUE(read_tree_page(
      Json(Json::Array{entry("config.json"), Json::object({{"type", "directory"}, {"path", "d"}}), large}),
      files));
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].etag(), kSha1);
  EXPECT_EQ(files[1].etag(), kSha256);
  EXPECT_EQ(files[1].bytes, 5'000'000'000);
  const auto again = read_cached_tree(cached_tree(files));
  ASSERT_TRUE(again);
  EXPECT_EQ((*again)[1].bytes, files[1].bytes);
  EXPECT_EQ((*again)[1].etag(), files[1].etag());
}

TEST(HubListing, AHostileTreeIsRefusedWhole) {
  std::vector<Json> pages = {Json(3),
                             Json::object(),
                             Json(Json::Array{entry("../../x")}),
                             Json(Json::Array{entry("")}),
                             Json(Json::Array{entry("a"), entry("a/b")}),
                             Json(Json::Array{entry("a"), entry("a")})};
  Json no_size = entry("a"), negative = entry("a"), no_digest = entry("a"), bad_lfs = entry("a");
  no_size.set("size", Json());
  negative.set("size", -1);
  no_digest.set("oid", "xyz");
  bad_lfs.set("lfs", Json::object({{"oid", "zz"}, {"size", 1}}));
  for (const Json& bad : {no_size, negative, no_digest, bad_lfs}) pages.push_back(Json(Json::Array{bad}));
  for (const Json& page : pages) {
    std::vector<HubFile> files;
    Status status = read_tree_page(page, files);
    if (status) status = check_tree(files);
    ASSERT_FALSE(status) << dump(page);
    EXPECT_EQ(status.error().code, ErrorCode::kNetwork);
  }
}

TEST(HubListing, TheInfoNamesCommitAndTerms) {
  Json answer = Json::object({{"id", "org/new"}, {"sha", kSha1}, {"gated", "manual"}, {"private", false}});
  answer.set("tags", Json(Json::Array{"region:us", "license:mit"}));
  answer.set("safetensors", Json::object({{"total", 7}}));
  const auto info = read_info(answer);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->id, "org/new");
  EXPECT_EQ(info->license, "mit");
  EXPECT_TRUE(info->is_gated);
  EXPECT_FALSE(info->is_private);
  EXPECT_EQ(info->safetensors_total, 7);
  answer.set("sha", "main");
  EXPECT_FALSE(read_info(answer));
}

std::vector<HubFile> listing(std::initializer_list<const char*> names) {
  std::vector<HubFile> files;
  for (const char* name : names) files.push_back({name, 100, kSha1, {}, {}});
  return files;
}

// Hub and local reader ask the same function: tests/artifact/weight_set_test.cpp.
TEST(HubFiles, TheWeightsAreThoseThatTheIndexNames) {
  using Names = std::vector<std::string>;
  const Names index = {"model-00001-of-00002.safetensors", "other.safetensors", "absent.safetensors"};
  const auto files = listing({"other.safetensors", "model-00001-of-00002.safetensors",
                              "model-00002-of-00002.safetensors", "model.safetensors.index.json"});
  const WeightSet set = weight_set(files);
  EXPECT_EQ(weight_files(files, set, index),
            (Names{"other.safetensors", "model-00001-of-00002.safetensors"}));
  EXPECT_EQ(weight_files(files, set, Names{}), Names{});
  EXPECT_EQ(weight_files(files, set, std::nullopt), std::nullopt);  // not known is not none
  const auto single = listing({"model.safetensors.index.json", "model.safetensors"});
  EXPECT_EQ(weight_files(single, weight_set(single), index), Names{"model.safetensors"});
}

TEST(HubFiles, GlobsAreThoseOfTheReference) {
  EXPECT_TRUE(matches_glob("a/b/c.json", "*.json"));
  EXPECT_TRUE(matches_glob("model-00001.safetensors", "model-*.safetensors"));
  EXPECT_TRUE(matches_glob("onnx/model.onnx", "onnx/"));
  EXPECT_TRUE(matches_glob("f3.txt", "f[0-9].txt"));
  EXPECT_TRUE(matches_glob("fa.txt", "f[!0-9].txt"));
  EXPECT_TRUE(matches_glob("", "*"));
  EXPECT_FALSE(matches_glob("fa.txt", "f[0-9].txt"));
  EXPECT_FALSE(matches_glob("config.json", "*.jso"));
  EXPECT_FALSE(matches_glob("config.json", "onfig.json"));
  EXPECT_TRUE(matches_glob("a[b", "a[b"));
  EXPECT_FALSE(matches_glob(std::string(2000, 'a'), "*a*a*a*a*a*a*a*a*a*b"));
}

TEST(HubFiles, AHeaderWithoutItsLengthIsRebuiltFromTheFilesSize) {
  const Json header = Json::object({{"w", Json::object({{"dtype", "F32"},
                                                        {"shape", Json(Json::Array{2, 3})},
                                                        {"data_offsets", Json(Json::Array{0, 24})}})}});
  const std::string text = safetensors_head(header, 8 + 72 + 24);
  ASSERT_EQ(text.size(), 80u);
  std::string file = text + std::string(24, '\0');
  Findings findings;
  const auto read = read_safetensors(
      {.bytes = std::as_bytes(std::span(file)), .path = "f", .file_bytes = std::nullopt}, findings);
  EXPECT_TRUE(findings.empty());
  ASSERT_EQ(read.tensors.size(), 1u);
  EXPECT_EQ(read.tensors[0].offset_bytes, 80);
  EXPECT_TRUE(safetensors_head(header, 8 + 70 + 24).empty());  // no writer ends a header there
  const std::int64_t compact = static_cast<std::int64_t>(dump(header).size());
  EXPECT_FALSE(safetensors_head(header, 8 + compact + 24).empty());  // unpadded
  EXPECT_FALSE(
      safetensors_head(header, 8 + compact + 8 + 24).empty());          // a space behind each of 8 separators
  EXPECT_TRUE(safetensors_head(header, 8 + compact - 1 + 24).empty());  // too short for it
  EXPECT_TRUE(safetensors_head(header, 40).empty());
  EXPECT_TRUE(safetensors_head(Json(3), 1000).empty());
}

TEST(HubNames, AUserInAnAddressIsNotShown) {
  EXPECT_EQ(without_user("http://me:secret@host:1/x"), "http://host:1/x");
  EXPECT_EQ(without_user("me:secret@host"), "host");
  EXPECT_EQ(without_user("http://a@b:secret@host"), "http://host");
  EXPECT_EQ(without_user("https://host/a@b"), "https://host/a@b");
}

}  // namespace
}  // namespace plimsoll::artifact
