// SPDX-License-Identifier: Apache-2.0
// The wire: redirects, the token, ranges and refusals.
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "artifact/hub/client.h"
#include "tests/artifact/one_file_hub.h"
#include "tests/artifact/scripted_hub.h"

namespace plimsoll::artifact {
namespace {

using testing::AskedRequest;
using testing::head_of;
using testing::http_answer;
using testing::kCommit;
using testing::kContent;
using testing::kept_open;
using testing::large_file;
using testing::ranged;
using testing::ScratchFolder;
using testing::ScriptedHub;

TEST(HubClient, TheTokenStaysOnTheHub) {
  const HubFile file = large_file();
  ScriptedHub store([](const AskedRequest& request) { return ranged(request, kContent); });
  ScriptedHub hub([&](const AskedRequest&) {
    return http_answer(302,
                       {"X-Repo-Commit: " + kCommit, "X-Linked-Size: " + std::to_string(file.bytes),
                        "X-Linked-Etag: \"" + file.sha256 + "\"", "Location: " + store.url() + "/f?sig=1"},
                       "");
  });
  const ScratchFolder scratch;
  HubSettings settings = hub.settings(scratch.path());
  settings.token = "hf_secret";
  HubClient client(settings);
  const auto head = client.head({"org/name", kCommit, file.path});
  ASSERT_TRUE(head) << head.error().message;
  const auto text = client.range(*head, 4, 10, {"org/name", kCommit, file.path});
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(*text, kContent.substr(4, 7));
  EXPECT_EQ(hub.requests()[0].header("authorization"), "Bearer hf_secret");
  EXPECT_EQ(store.requests()[0].header("authorization"), "");
  EXPECT_EQ(store.requests()[0].path, "/f?sig=1");
}

TEST(HubClient, ATokenThatWasDroppedStaysDropped) {
  std::string hub_url;
  ScriptedHub store(
      [&](const AskedRequest&) { return http_answer(302, {"Location: " + hub_url + "/back"}, ""); });
  ScriptedHub hub([&](const AskedRequest& request) {
    if (request.path == "/back") return http_answer(200, {}, "x");
    return http_answer(302, {"Location: " + store.url() + "/f"}, "");
  });
  hub_url = hub.url();
  HubSettings settings = hub.settings("");
  settings.token = "hf_secret";
  HubClient client(settings);
  client.bytes(*parse_url(hub_url + "/start"), 0, -1, {},
               [](std::int64_t, std::string_view) { return true; });
  for (const AskedRequest& request : hub.requests())
    EXPECT_EQ(request.header("authorization"), request.path == "/back" ? "" : "Bearer hf_secret");
}

TEST(HubClient, RangesAreReadOverOneConnection) {
  const HubFile file = large_file();
  ScriptedHub hub([&](const AskedRequest& request) {
    return kept_open(request.method == "HEAD" ? head_of(file) : ranged(request, kContent));
  });
  HubClient client(hub.settings(""));
  const Asked asked{"org/name", kCommit, file.path};
  for (int i = 0; i < 3; ++i) {
    const auto head = client.head(asked);
    ASSERT_TRUE(head) << head.error().message;
    const auto text = client.range(*head, 4, 10 + i, asked);
    ASSERT_TRUE(text) << text.error().message;
    EXPECT_EQ(*text, kContent.substr(4, static_cast<std::size_t>(7 + i)));
  }
  EXPECT_EQ(hub.requests().size(), 6u);
  EXPECT_EQ(hub.num_connections(), 1);
}

TEST(HubClient, OfAServerThatIgnoresRangesNoMoreIsReadThanAsked) {
  const HubFile file = large_file();
  ScriptedHub hub([&](const AskedRequest& request) {
    return request.method == "HEAD" ? head_of(file) : http_answer(200, {}, kContent);
  });
  HubClient client(hub.settings(""));
  const Asked asked{"org/name", kCommit, file.path};
  const auto head = client.head(asked);
  ASSERT_TRUE(head);
  for (const std::int64_t last : {std::int64_t{10}, file.bytes - 1}) {
    const auto text = client.range(*head, 4, last, asked);
    ASSERT_TRUE(text) << text.error().message;
    EXPECT_EQ(*text, kContent.substr(4, static_cast<std::size_t>(last - 3)));
  }
}

TEST(HubClient, RedirectsAreBoundedAndStayOnHttp) {
  for (const char* location : {"/again", "file:///etc/passwd", "gopher://x/"}) {
    ScriptedHub hub(
        [&](const AskedRequest&) { return http_answer(307, {std::string("Location: ") + location}, ""); });
    HubClient client(hub.settings(""));
    const auto head = client.head({"org/name", "main", "config.json"});
    ASSERT_FALSE(head) << location;
    EXPECT_EQ(head.error().code, ErrorCode::kNetwork);
    EXPECT_LE(hub.requests().size(), 9u);
  }
}

struct RefusalCase {
  int status;
  std::vector<std::string> headers;
  Refusal kind;
  const char* advice;  // part of message or fix
};

TEST(HubClient, EachRefusalHasItsOwnAdvice) {
  const std::vector<RefusalCase> cases = {
      {404, {"X-Error-Code: RevisionNotFound"}, Refusal::kNoRevision, "has no revision \"main\""},
      {404, {"X-Error-Code: EntryNotFound"}, Refusal::kNoEntry, "has no file"},
      {403, {"X-Error-Code: GatedRepo"}, Refusal::kGated, "accept the terms at"},
      {401, {"X-Error-Code: GatedRepo"}, Refusal::kGated, "accept the terms at"},
      {404, {"X-Error-Code: RepoNotFound"}, Refusal::kNoRepo, "private"},
      {401, {}, Refusal::kNoRepo, "HF_TOKEN"},
      {401,
       {"X-Error-Message: Invalid credentials in Authorization header"},
       Refusal::kBadToken,
       "valid token"},
      {403, {"X-Error-Message: Access to this resource is disabled."}, Refusal::kDisabled, "disabled"},
      {403, {}, Refusal::kForbidden, "read access"},
      {429, {"RateLimit: \"api\";r=0;t=55"}, Refusal::kRateLimited, "wait 55 s"},
      {429, {"Retry-After: 7"}, Refusal::kRateLimited, "wait 7 s"},
      {503, {}, Refusal::kServer, "later"},
      {418, {}, Refusal::kOther, "418"},
  };
  for (const RefusalCase& one : cases) {
    ScriptedHub hub([&](const AskedRequest&) { return http_answer(one.status, one.headers, ""); });
    HubClient client(hub.settings(""));
    Refusal kind = Refusal::kOther;
    const auto answer = client.json("/api/models/org/name", {"org/name", "main", "x.json"}, &kind);
    ASSERT_FALSE(answer);
    EXPECT_EQ(kind, one.kind) << one.status;
    EXPECT_EQ(answer.error().code, ErrorCode::kNetwork);
    const std::string said = answer.error().message + " | " + answer.error().fix;
    EXPECT_NE(said.find(one.advice), std::string::npos) << said;
  }
}

TEST(HubClient, WhatAServerSaysIsMadeHarmless) {
  ScriptedHub hub([](const AskedRequest& request) {
    return http_answer(418, {}, "no\x1b[31m " + request.header("authorization"));
  });
  HubSettings settings = hub.settings("");
  settings.token = "hf_secret";
  HubClient client(settings);
  const auto answer = client.json("/api/models/org/name", {"org/name", "", ""});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message.find("hf_secret"), std::string::npos);
  EXPECT_EQ(answer.error().message.find('\x1b'), std::string::npos);
}

TEST(HubClient, ABusyHubIsAskedAgainWithinBounds) {
  int asked = 0;
  ScriptedHub hub([&](const AskedRequest&) {
    return ++asked < 3 ? http_answer(503, {"RateLimit: \"api\";r=499;t=299"}, "")
                       : http_answer(200, {}, "{\"a\":1}");
  });
  HubClient client(hub.settings(""));
  ASSERT_TRUE(client.json("/api/x", {"org/name", "", ""}));
  EXPECT_EQ(asked, 3);
  ScriptedHub limit([&](const AskedRequest&) { return http_answer(429, {"Retry-After: 3600"}, ""); });
  HubClient patient(limit.settings(""));
  EXPECT_FALSE(patient.json("/api/x", {"org/name", "", ""}));
  EXPECT_EQ(limit.requests().size(), 1u);  // an hour is more than anybody waits
}

TEST(HubClient, AMirrorThatDropsTheHubsHeadersIsNamed) {
  ScriptedHub hub([](const AskedRequest&) { return http_answer(200, {"ETag: \"x\""}, "<html>"); });
  HubClient client(hub.settings(""));
  Refusal kind = Refusal::kOther;
  const auto head = client.head({"org/name", "main", "config.json"}, &kind);
  ASSERT_FALSE(head);
  EXPECT_EQ(kind, Refusal::kNotAHub);
  EXPECT_NE(head.error().message.find("X-Repo-Commit"), std::string::npos);
  const auto json = client.json("/api/models/org/name", {"org/name", "", ""}, &kind);
  ASSERT_FALSE(json);
  EXPECT_EQ(kind, Refusal::kNotAHub);
}

TEST(HubClient, WeakAndQuotedEtagsAreTheSame) {
  const std::string sha1(40, 'b');
  ScriptedHub hub([&](const AskedRequest&) {
    return http_answer(200, {"X-Repo-Commit: " + kCommit, "ETag: W/\"" + sha1 + "\"", "Content-Length: 12"},
                       "");
  });
  HubClient client(hub.settings(""));
  const auto head = client.head({"org/name", "refs/pr/1", "a b.json"});
  ASSERT_TRUE(head) << head.error().message;
  EXPECT_EQ(head->etag, sha1);
  EXPECT_EQ(head->size, 12);
  EXPECT_EQ(hub.requests()[0].path, "/org/name/resolve/refs%2Fpr%2F1/a%20b.json");
}

TEST(HubClient, NobodyThereIsSaidSoon) {
  HubSettings settings;
  settings.endpoint = "http://127.0.0.1:1";
  settings.first_pause = std::chrono::milliseconds(1);
  HubClient client(settings);
  Refusal kind = Refusal::kOther;
  const auto answer = client.json("/api/x", {"org/name", "", ""}, &kind);
  ASSERT_FALSE(answer);
  EXPECT_EQ(kind, Refusal::kNetwork);
  settings.endpoint = "ftp://x";
  EXPECT_EQ(HubClient(settings).json("/api/x", {"org/name", "", ""}).error().code, ErrorCode::kUsage);
}

// A variable of the environment for as long as this lives.
class SetVariable {
 public:
  SetVariable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    ::setenv(name, value, 1);
  }
  ~SetVariable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }
  SetVariable(const SetVariable&) = delete;
  SetVariable& operator=(const SetVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(HubClient, ADeadProxyIsNamed) {
  HubSettings settings;
  settings.endpoint = "http://127.0.0.1:1";
  settings.first_pause = std::chrono::milliseconds(1);
  const auto said_with = [&](const char* proxy, const char* no_proxy) {
    const SetVariable one("http_proxy", proxy), two("no_proxy", no_proxy), three("NO_PROXY", "");
    const auto answer = HubClient(settings).json("/api/x", {"org/name", "", ""});
    return answer ? std::string() : answer.error().message + answer.error().fix;
  };
  for (const char* no_proxy : {"", "elsewhere, 27.0.0.1,0.0.1x"}) {
    const std::string said = said_with("http://me:secret@127.0.0.1:1", no_proxy);
    EXPECT_NE(said.find("http_proxy"), std::string::npos) << said;
    EXPECT_EQ(said.find("secret"), std::string::npos) << said;
  }
  for (const char* no_proxy : {"*", "elsewhere,127.0.0.1"}) {  // then it is not the proxy's fault
    const std::string said = said_with("http://127.0.0.1:1", no_proxy);
    EXPECT_EQ(said.find("http_proxy"), std::string::npos) << said;
    EXPECT_NE(said.find("check the network"), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace plimsoll::artifact
