// SPDX-License-Identifier: Apache-2.0
#include "http/client.h"

#include "http/response_reader.h"
#include "tests/http/wire.h"

namespace plimsoll::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Url, ReadsHostsPortsAndTargets) {
  const auto plain = parse_url("http://localhost:8000/v1/models?x=1#top");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->host, "localhost");
  EXPECT_EQ(plain->port, 8000);
  EXPECT_EQ(plain->target, "/v1/models?x=1");
  EXPECT_FALSE(plain->is_tls);
  EXPECT_EQ(parse_url("https://h")->port, 443);
  EXPECT_EQ(parse_url("https://h")->target, "/");
  EXPECT_EQ(parse_url("http://[::1]:81")->host, "::1");
  EXPECT_EQ(parse_url("http://h?a=b")->target, "/?a=b");
  for (const char* text :
       {"", "h:80", "ftp://h", "http://", "http://:80", "http://h:", "http://h:0", "http://h:65536",
        "http://h:8x", "http://u@h", "http://[::1", "http://h/a b", "http://h/\r\nX: 1"}) {
    const auto refused = parse_url(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
  }
}

struct Recorded final : ResponseReader::Sink {
  int status = 0;
  Headers headers;
  std::string text;
  void head(int code, const Headers& fields) override {
    status = code;
    headers = fields;
  }
  void body(std::string_view bytes) override { text += bytes; }
};

TEST(ResponseReader, ReadsTheSameHoweverTheBytesAreSplit) {
  const std::string bytes =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX: y\r\n\r\n"
      "5;ext=1\r\nhello\r\n1\r\n \r\nB\r\nwide world!\r\n0\r\nTrailer: t\r\n\r\nNEXT";
  for (std::size_t step = 1; step <= bytes.size(); ++step) {
    ResponseReader reader;
    Recorded seen;
    std::size_t total = 0;
    auto result = ResponseReader::Step::kNeedMore;
    for (std::size_t at = 0; at < bytes.size() && result == ResponseReader::Step::kNeedMore; at += step) {
      std::size_t used = 0;
      result = reader.feed(std::string_view(bytes).substr(at, step), seen, used);
      total += used;
    }
    ASSERT_EQ(result, ResponseReader::Step::kComplete) << step;
    EXPECT_EQ(total, bytes.size() - 4);
    EXPECT_EQ(seen.status, 200);
    EXPECT_EQ(seen.text, "hello wide world!");
    EXPECT_EQ(header(seen.headers, "x"), "y");
    EXPECT_TRUE(reader.keep_alive());
  }
}

TEST(ResponseReader, KnowsTheEndsOfBodies) {
  const auto read = [](std::string_view bytes, bool is_head = false) {
    ResponseReader reader(is_head);
    Recorded seen;
    std::size_t used = 0;
    auto step = reader.feed(bytes, seen, used);
    if (step == ResponseReader::Step::kNeedMore) step = reader.end_of_input();
    return std::pair(step, seen.text);
  };
  using Step = ResponseReader::Step;
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcd"),
            std::pair(Step::kComplete, std::string("abc")));
  EXPECT_EQ(read("HTTP/1.0 200 OK\r\n\r\nuntil the end"),
            std::pair(Step::kComplete, std::string("until the end")));
  EXPECT_EQ(read("HTTP/1.1 204 No Content\r\n\r\n"), std::pair(Step::kComplete, std::string()));
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", true),
            std::pair(Step::kComplete, std::string()));
  for (std::string_view bad :
       {"", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", "SSH-2.0-x\r\n",
        "HTTP/1.1 abc\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n"})
    EXPECT_EQ(read(bad).first, Step::kMalformed) << bad;
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\nX: " + std::string(70'000, 'x')).first, Step::kMalformed);
}

TEST(Fetch, BringsStatusHeadersAndBody) {
  RunningServer running([](Request request, std::shared_ptr<Responder> responder) {
    responder->send({request.path == "/no" ? 404 : 200,
                     {{"X", "1"}},
                     request.method + request.body + std::string(header(request.headers, "A"))});
  });
  const auto answer = fetch("POST", running.url("/yes"), "body", {{"A", "b"}}, seconds(20));
  ASSERT_TRUE(answer) << answer.error().describe();
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "POSTbodyb");
  EXPECT_EQ(header(answer->headers, "x"), "1");
  EXPECT_EQ(fetch("GET", running.url("/no"), "", {}, seconds(20))->status, 404);
}

TEST(Fetch, RefusesHeadersWithLineBreaksAndKeepsTheirValuesSecret) {
  bool is_asked = false;
  RunningServer running([&](Request, std::shared_ptr<Responder> responder) {
    is_asked = true;
    responder->send({200, {}, ""});
  });
  for (const Headers& headers : {Headers{{"Authorization", "Bearer secret\n"}},
                                 Headers{{"A", "b\r\nX: secret"}}, Headers{{"A: secret\r\nB", "c"}}}) {
    const auto refused = fetch("GET", running.url("/"), "", headers, seconds(20));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
    EXPECT_EQ(refused.error().describe().find("secret"), std::string::npos);
  }
  running.stop(milliseconds(0));
  EXPECT_FALSE(is_asked);
}

TEST(Fetch, SaysWhyThereIsNoAnswer) {
  int port = 0;
  {
    RunningServer gone([](Request, std::shared_ptr<Responder>) {});
    port = gone.port();
  }
  const auto refused = fetch("GET", "http://127.0.0.1:" + std::to_string(port) + "/", "", {}, seconds(20));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kNetwork);
  EXPECT_NE(refused.error().message.find("cannot connect"), std::string::npos);

  Awaited<std::shared_ptr<Responder>> asked;
  RunningServer silent(
      [&](Request, std::shared_ptr<Responder> responder) { asked.set(std::move(responder)); });
  const auto late = fetch("GET", silent.url("/"), "", {}, milliseconds(50));
  ASSERT_FALSE(late);
  EXPECT_NE(late.error().message.find("time limit"), std::string::npos);
  // TLS spoken to a server that has none.
  const auto tls =
      fetch("GET", "https://127.0.0.1:" + std::to_string(silent.port()) + "/", "", {}, seconds(20));
  ASSERT_FALSE(tls);
  EXPECT_EQ(tls.error().code, ErrorCode::kNetwork);
}

std::unique_ptr<Client> client_of(const std::string& url) {
  auto client = Client::create();
  EXPECT_TRUE(client);
  EXPECT_TRUE((*client)->add(*parse_url(url)));
  return std::move(*client);
}

struct Counter final : ReplySink {
  int status = 0;
  std::string text;
  std::vector<TimePoint> stamps;
  Outcome outcome;
  int ends = 0;
  std::function<void()> after;
  void on_head(int code, const Headers&, TimePoint at) override {
    status = code;
    stamps.push_back(at);
  }
  void on_body(std::string_view bytes, TimePoint at) override {
    text += bytes;
    stamps.push_back(at);
  }
  void on_end(const Outcome& result, TimePoint at) override {
    outcome = result;
    stamps.push_back(at);
    ++ends;
    if (after) after();
  }
};

TEST(Client, RunsManyCallsAtOnceAndUsesConnectionsAgain) {
  constexpr int kCalls = 200;
  std::mutex mutex;
  std::vector<std::shared_ptr<Responder>> held;
  Awaited<bool> all_here;
  RunningServer running([&](Request request, std::shared_ptr<Responder> responder) {
    if (request.path == "/again") return responder->send({200, {}, "again"});
    const std::lock_guard lock(mutex);
    held.push_back(std::move(responder));
    if (held.size() == kCalls) all_here.set(true);
  });
  std::thread engine([&] {
    ASSERT_TRUE(all_here.wait());
    for (const auto& responder : held) responder->begin_stream(200, {});
    for (int i = 0; i < 10; ++i)
      for (const auto& responder : held) responder->write("x");
    for (const auto& responder : held) responder->finish();
  });
  const auto client = client_of(running.url("/"));
  std::vector<Counter> counters(2 * kCalls);
  for (int i = 0; i < kCalls; ++i) {
    Counter& second = counters[static_cast<std::size_t>(kCalls + i)];
    Counter& first = counters[static_cast<std::size_t>(i)];
    first.after = [&] { EXPECT_TRUE(client->start({"GET", "/again", {}, "", seconds(20)}, second)); };
    ASSERT_TRUE(client->start({"POST", "/", {}, "body", seconds(20)}, first));
  }
  client->run();
  engine.join();
  for (int i = 0; i < 2 * kCalls; ++i) {
    const Counter& counter = counters[static_cast<std::size_t>(i)];
    EXPECT_EQ(counter.ends, 1);
    EXPECT_EQ(counter.outcome.kind, Outcome::Kind::kComplete) << counter.outcome.message;
    EXPECT_EQ(counter.text, i < kCalls ? "xxxxxxxxxx" : "again");
    EXPECT_TRUE(std::is_sorted(counter.stamps.begin(), counter.stamps.end()));
  }
}

TEST(Client, TellsAStreamThatIsCutFromOneThatEnds) {
  RunningServer running([](Request request, std::shared_ptr<Responder> responder) {
    responder->begin_stream(200, {});
    responder->write("part");
    if (request.path == "/whole") responder->finish();
  });
  const auto client = client_of(running.url("/"));
  Counter whole;
  Counter cut;
  ASSERT_TRUE(client->start({"GET", "/whole", {}, "", seconds(20)}, whole));
  ASSERT_TRUE(client->start({"GET", "/cut", {}, "", seconds(20)}, cut));
  client->run();
  EXPECT_EQ(whole.outcome.kind, Outcome::Kind::kComplete);
  EXPECT_EQ(cut.outcome.kind, Outcome::Kind::kEarlyClose);
  EXPECT_EQ(cut.text, "part");
}

TEST(Client, TimersRunInTheirOrder) {
  const auto client = client_of("http://127.0.0.1:1/");
  const auto now = std::chrono::steady_clock::now();
  std::string order;
  client->at(now + milliseconds(2), [&] { order += 'b'; });
  client->at(now - milliseconds(2), [&] { order += 'a'; });
  client->run();
  EXPECT_EQ(order, "ab");
}

TEST(Client, ARequestOnAKeptConnectionThatWasClosedIsSentAgain) {
  // Answers one request on each connection and closes it, without having said so.
  const int door = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(door, any, length), 0);
  ASSERT_EQ(::listen(door, 8), 0);
  ASSERT_EQ(::getsockname(door, any, &length), 0);
  std::thread server([door] {
    for (int i = 0; i < 4; ++i) {
      const int peer = ::accept(door, nullptr, nullptr);
      char bytes[4096];
      if (::recv(peer, bytes, sizeof bytes, 0) <= 0) break;
      const std::string_view answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
      ::send(peer, answer.data(), answer.size(), MSG_NOSIGNAL);
      // The next request comes before the end is seen, if it comes at once.
      ::recv(peer, bytes, sizeof bytes, 0);
      ::close(peer);
    }
  });
  struct Again final : ReplySink {
    int ends = 0, again = 0;
    std::string text;
    Outcome outcome;
    std::function<void()> after;
    void on_sent_again() override { ++again; }
    void on_head(int, const Headers&, TimePoint) override {}
    void on_body(std::string_view bytes, TimePoint) override { text += bytes; }
    void on_end(const Outcome& result, TimePoint) override {
      outcome = result;
      ++ends;
      if (after) after();
    }
  };
  auto client = client_of("http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/");
  std::vector<Again> calls(4);
  const auto start = [&](std::size_t i) {
    EXPECT_TRUE(client->start({"POST", "/", {}, "body", seconds(20)}, calls[i]));
  };
  for (std::size_t i = 0; i + 1 < calls.size(); ++i) calls[i].after = [&, i] { start(i + 1); };
  start(0);
  client->run();
  client.reset();
  server.join();
  ::close(door);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(calls[i].outcome.kind, Outcome::Kind::kComplete) << calls[i].outcome.message;
    EXPECT_EQ(calls[i].text, "ok");
    EXPECT_EQ(calls[i].ends, 1);
    EXPECT_EQ(calls[i].again, i == 0 ? 0 : 1);
  }
}

}  // namespace
}  // namespace plimsoll::http
