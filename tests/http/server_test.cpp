// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <stdexcept>

#include "tests/http/wire.h"

namespace plimsoll::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const Headers kText = {{"Content-Type", "text/plain"}};

void echo(Request request, std::shared_ptr<Responder> responder) {
  responder->send(
      {200, kText, request.method + " " + request.path + "?" + request.query + " " + request.body});
}

TEST(Server, AnswersWithLengthAndKeepsTheConnection) {
  RunningServer running(echo);
  Wire wire(running.port());
  wire.send("POST /v1/x?a=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi");
  EXPECT_EQ(wire.read_until("hi"),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 17\r\n\r\nPOST /v1/x?a=1 hi");
  wire.send("GET /y HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  const std::string all = wire.read_to_end();
  EXPECT_NE(all.find("Connection: close\r\n"), all.npos);
  EXPECT_TRUE(all.ends_with("GET /y? ")) << all;
  EXPECT_TRUE(wire.at_end());
}

TEST(Server, AnswersPipelinedRequestsInOrderEvenWhenTheFirstIsSlow) {
  Awaited<std::shared_ptr<Responder>> first;
  RunningServer running([&](Request request, std::shared_ptr<Responder> responder) {
    if (request.path == "/slow")
      first.set(std::move(responder));
    else
      responder->send({200, {}, "after"});
  });
  Wire wire(running.port());
  wire.send("GET /slow HTTP/1.1\r\nHost: h\r\n\r\nGET /fast HTTP/1.1\r\nHost: h\r\n\r\n");
  first.get()->send({200, {}, "before"});
  const std::string all = wire.read_until("after");
  EXPECT_LT(all.find("before"), all.find("after"));
}

TEST(Server, StreamsChunksAndGathersSmallWrites) {
  RunningServer running([](Request, std::shared_ptr<Responder> responder) {
    responder->begin_stream(200, {{"Content-Type", "text/event-stream"}});
    responder->write("data: 1\n\n");
    responder->write("");
    responder->write("data: [DONE]\n\n");
    responder->finish();
  });
  Wire wire(running.port());
  wire.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(wire.read_until("\r\n0\r\n\r\n"),
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
            "9\r\ndata: 1\n\n\r\ne\r\ndata: [DONE]\n\n\r\n0\r\n\r\n");
}

TEST(Server, OldPeersGetStreamsThatEndWithTheConnection) {
  RunningServer running([](Request, std::shared_ptr<Responder> responder) {
    responder->begin_stream(200, {});
    responder->write("a");
    responder->finish();
  });
  Wire wire(running.port());
  wire.send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_EQ(wire.read_to_end(), "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\na");
}

TEST(Server, HeadHasLengthButNoBody) {
  RunningServer running(echo);
  Wire wire(running.port());
  wire.send("HEAD / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  const std::string all = wire.read_to_end();
  EXPECT_NE(all.find("Content-Length: 8\r\n"), all.npos);
  EXPECT_TRUE(all.ends_with("\r\n\r\n"));
}

TEST(Server, RefusesWhatIsNoRequestWithoutAskingTheHandler) {
  std::atomic<int> calls = 0;
  RunningServer running([&](Request, std::shared_ptr<Responder> responder) {
    ++calls;
    responder->send({});
  });
  for (const char* bytes :
       {"GARBAGE\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET / HTTP/1.1\r\nbad header\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        "POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\r\n"}) {
    Wire wire(running.port());
    wire.send(bytes);
    const std::string all = wire.read_to_end();
    EXPECT_TRUE(all.starts_with("HTTP/1.1 400 Bad Request\r\n")) << bytes << " -> " << all;
    EXPECT_TRUE(wire.at_end());
  }
  EXPECT_EQ(calls, 0);
}

TEST(Server, BodiesAndHeadsOverTheirLimitsGet413And431) {
  ServerOptions options;
  options.max_body_bytes = 1000;
  options.max_header_bytes = 2000;
  options.refusal = [](int status, std::string_view reason) {
    return Response{
        status, {{"Content-Type", "application/json"}}, "{\"r\":\"" + std::string(reason) + "\"}"};
  };
  RunningServer running(echo, options);
  Wire announced(running.port());
  announced.send("POST / HTTP/1.1\r\nContent-Length: 2000000\r\n\r\n");
  announced.send(std::string(2'000'000, 'x'));  // the answer must survive the rest of the body
  const std::string refused = announced.read_to_end();
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 413 Payload Too Large\r\n")) << refused;
  EXPECT_NE(refused.find("{\"r\":\"the request body is larger than 1000 bytes\"}"), refused.npos);

  Wire chunked(running.port());
  chunked.send("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n" + std::string(2000, 'x'));
  EXPECT_TRUE(chunked.read_to_end().starts_with("HTTP/1.1 413 "));

  Wire head(running.port());
  head.send("GET / HTTP/1.1\r\nX: " + std::string(5000, 'x'));
  EXPECT_TRUE(head.read_to_end().starts_with("HTTP/1.1 431 "));

  Wire exact(running.port());
  exact.send("POST / HTTP/1.1\r\nConnection: close\r\nContent-Length: 1000\r\n\r\n" + std::string(1000, 'x'));
  EXPECT_TRUE(exact.read_to_end().starts_with("HTTP/1.1 200 "));
}

TEST(Server, InvitesABodyThatWaitsForContinue) {
  RunningServer running(echo);
  Wire wire(running.port());
  wire.send("POST / HTTP/1.1\r\nExpect: 100-continue\r\nConnection: close\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(wire.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  wire.send("ok");
  EXPECT_TRUE(wire.read_to_end().ends_with("POST /? ok"));
}

TEST(Server, ACallbackThatThrowsDoesNotEndTheDeadlinesOfOthers) {
  ServerOptions options;
  options.header_timeout = seconds(1);
  options.refusal = [](int, std::string_view) -> Response { throw std::runtime_error("no page for this"); };
  RunningServer running(echo, options);
  Wire first(running.port());
  first.send("GET / HTTP/1.1\r\nHost:");
  Wire second(running.port());
  second.send("GET / HTTP/1.1\r\nHost:");
  first.read_to_end();
  EXPECT_TRUE(first.at_end());
  second.read_to_end();
  EXPECT_TRUE(second.at_end());
}

TEST(Server, SlowHeadsAreCutOff) {
  ServerOptions options;
  options.header_timeout = seconds(1);
  RunningServer running(echo, options);
  Wire slow(running.port());
  slow.send("GET / HTTP/1.1\r\nHost:");
  EXPECT_TRUE(slow.read_to_end().starts_with("HTTP/1.1 408 "));
  Wire silent(running.port());
  EXPECT_EQ(silent.read_to_end(), "");
  EXPECT_TRUE(silent.at_end());
}

TEST(Server, NoticesAPeerThatLeavesWhileTheAnswerIsComputed) {
  Awaited<std::shared_ptr<Responder>> asked;
  Awaited<bool> gone;
  RunningServer running([&](Request, std::shared_ptr<Responder> responder) {
    responder->on_disconnect([&] { gone.set(true); });
    asked.set(std::move(responder));
  });
  Wire wire(running.port());
  wire.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  const auto responder = asked.get();
  EXPECT_FALSE(responder->is_disconnected());
  wire.close();
  EXPECT_TRUE(gone.get());
  EXPECT_TRUE(responder->is_disconnected());
  responder->send({200, {}, "to nobody"});
  Awaited<bool> late;
  responder->on_disconnect([&] { late.set(true); });
  EXPECT_TRUE(late.get());
}

TEST(Server, NoticesAPeerThatLeavesInTheMiddleOfAStream) {
  Awaited<bool> gone;
  std::shared_ptr<Responder> kept;
  RunningServer running([&](Request, std::shared_ptr<Responder> responder) {
    kept = responder;
    responder->on_disconnect([&] { gone.set(true); });
    responder->begin_stream(200, {});
    responder->write("data: 1\n\n");
  });
  Wire wire(running.port());
  wire.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  wire.read_until("data: 1");
  wire.close();
  EXPECT_TRUE(gone.get());
  kept->write("data: 2\n\n");
  kept->finish();
  running.stop(milliseconds(0));
  kept->write("after the server");
  kept.reset();
}

TEST(Server, APeerThatReadsNothingIsDroppedAtTheBound) {
  ServerOptions options;
  options.max_unsent_bytes = 1 << 20;
  Awaited<bool> gone;
  Awaited<std::shared_ptr<Responder>> asked;
  RunningServer running(
      [&](Request, std::shared_ptr<Responder> responder) {
        responder->on_disconnect([&] { gone.set(true); });
        responder->begin_stream(200, {});
        asked.set(std::move(responder));
      },
      options);
  Wire wire(running.port());
  wire.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  const auto responder = asked.get();
  // More than the bound and all socket buffers can hold.
  for (int i = 0; i < 4096 && !responder->is_disconnected(); ++i)
    responder->write(std::string(64 * 1024, 'x'));
  EXPECT_TRUE(gone.get());
}

TEST(Server, ADroppedResponderSays500AndADroppedStreamIsCut) {
  RunningServer running([](Request request, std::shared_ptr<Responder> responder) {
    if (request.path == "/throw") throw std::runtime_error("handler");
    if (request.path == "/cut") responder->begin_stream(200, {});
    if (request.path == "/cut") responder->write("part");
  });
  for (const char* path : {"/none", "/throw"}) {
    Wire wire(running.port());
    wire.send("GET " + std::string(path) + " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(wire.read_to_end().starts_with("HTTP/1.1 500 "));
  }
  Wire cut(running.port());
  cut.send("GET /cut HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(cut.read_to_end().find("0\r\n\r\n"), std::string::npos);
}

TEST(Server, APortInUseIsANetworkErrorThatSaysWhatToDo) {
  RunningServer running(echo);
  ServerOptions options;
  options.port = running.port();
  const auto second = Server::bind(options, echo);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kNetwork);
  EXPECT_NE(second.error().message.find("127.0.0.1:" + std::to_string(running.port())), std::string::npos);
  EXPECT_NE(second.error().message.find("in use"), std::string::npos);
  EXPECT_NE(second.error().fix.find("--port"), std::string::npos);
  options.host = "203.0.113.7";  // TEST-NET-3: no address of any machine
  options.port = 0;
  EXPECT_EQ(Server::bind(options, echo).error().code, ErrorCode::kNetwork);
  options.host = "127.0.0.1";
  options.port = 65536;
  EXPECT_EQ(Server::bind(options, echo).error().code, ErrorCode::kUsage);
}

TEST(Server, StopLetsAnswersUnderWayEndAndTakesNoNewOnes) {
  Awaited<std::shared_ptr<Responder>> asked;
  RunningServer running([&](Request, std::shared_ptr<Responder> responder) {
    responder->begin_stream(200, {});
    responder->write("one ");
    asked.set(std::move(responder));
  });
  Wire busy(running.port());
  Wire idle(running.port());
  busy.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  busy.read_until("one ");
  running.server().stop(seconds(20));
  idle.read_to_end();  // closed by the stop: the listener is closed by then, too
  Wire late(running.port());
  EXPECT_FALSE(late.is_open());
  auto responder = asked.get();
  responder->write("two");
  responder->finish();
  EXPECT_NE(busy.read_to_end().find("two\r\n0\r\n\r\n"), std::string::npos);
  running.join();
}

TEST(Server, StopCutsWhatOutlastsTheDrain) {
  Awaited<bool> gone;
  Awaited<std::shared_ptr<Responder>> asked;
  RunningServer running([&](Request, std::shared_ptr<Responder> responder) {
    responder->on_disconnect([&] { gone.set(true); });
    asked.set(std::move(responder));
  });
  Wire wire(running.port());
  wire.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  asked.get();
  running.stop(milliseconds(1));
  EXPECT_TRUE(gone.get());
}

TEST(Server, HeaderValuesCannotStartHeaders) {
  RunningServer running([](Request, std::shared_ptr<Responder> responder) {
    responder->send({200, {{"X", "a\r\nEvil: 1"}}, ""});
  });
  Wire wire(running.port());
  wire.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_NE(wire.read_to_end().find("X: aEvil: 1\r\n"), std::string::npos);
}

TEST(Server, HoldsTwoHundredStreamsAtOnce) {
  constexpr int kStreams = 200;
  constexpr int kEvents = 20;
  std::mutex mutex;
  std::vector<std::shared_ptr<Responder>> responders;
  Awaited<bool> all_here;
  RunningServer running([&](Request, std::shared_ptr<Responder> responder) {
    responder->begin_stream(200, {{"Content-Type", "text/event-stream"}});
    const std::lock_guard lock(mutex);
    responders.push_back(std::move(responder));
    if (responders.size() == kStreams) all_here.set(true);
  });
  std::vector<std::unique_ptr<Wire>> wires;
  for (int i = 0; i < kStreams; ++i) {
    wires.push_back(std::make_unique<Wire>(running.port()));
    wires.back()->send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  }
  ASSERT_TRUE(all_here.wait());
  // One engine step for all streams at a time, from a thread that is not the server's.
  for (int event = 0; event < kEvents; ++event)
    for (const auto& responder : responders) responder->write("data: " + std::to_string(event) + "\n\n");
  for (const auto& responder : responders) responder->finish();
  for (const auto& wire : wires) {
    const std::string all = wire->read_until("\r\n0\r\n\r\n");
    std::size_t at = 0;
    for (int event = 0; event < kEvents; ++event) {
      at = all.find("data: " + std::to_string(event) + "\n\n", at);
      ASSERT_NE(at, all.npos) << event;
    }
  }
}

}  // namespace
}  // namespace plimsoll::http
