// SPDX-License-Identifier: Apache-2.0
#include "http/timed_server.h"

#include "tests/http/wire.h"

namespace plimsoll::http {
namespace {

using std::chrono::milliseconds;

TEST(TimedServer, WritesEachPieceWhenItIsDueAndKnowsWhenItDid) {
  const auto table = std::make_shared<Timetable>(
      Timetable{{milliseconds(5), "one"}, {milliseconds(5), "two"}, {milliseconds(20), "three"}});
  std::string asked;
  auto server = TimedServer::start([&](const std::string& body) {
    asked = body;
    return table;
  });
  ASSERT_TRUE(server);
  Wire wire((*server)->port());
  ASSERT_TRUE(wire.is_open());
  // Two requests on one connection, the first in two pieces.
  wire.send("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\n");
  wire.send("abc");
  const std::string first = wire.read_until("0\r\n\r\n");
  EXPECT_NE(first.find("3\r\none\r\n3\r\ntwo\r\n5\r\nthree\r\n0\r\n\r\n"), first.npos);
  EXPECT_EQ(asked, "abc");
  wire.send("POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\nz");
  wire.read_until("0\r\n\r\n", 2);
  const auto exchanges = (*server)->stop();
  ASSERT_EQ(exchanges.size(), 2u);
  EXPECT_EQ(exchanges[0].request_body, "abc");
  EXPECT_EQ(exchanges[1].request_body, "z");
  for (const TimedExchange& exchange : exchanges) {
    ASSERT_EQ(exchange.written_at.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_GE(exchange.written_at[i], exchange.arrived_at + (*table)[i].after);  // never early
  }
}

TEST(TimedServer, OutlivesPeersThatLeaveAndRefusesNonsense) {
  const auto table = std::make_shared<Timetable>(Timetable{{milliseconds(1), "x"}, {milliseconds(50), "y"}});
  auto server = TimedServer::start([&](const std::string&) { return table; });
  ASSERT_TRUE(server);
  {
    Wire gone((*server)->port());
    gone.send("POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
    gone.read_until("x");
  }
  Wire nonsense((*server)->port());
  nonsense.send("no http\r\n\r\n");
  nonsense.read_until("never");  // closed by the server
  Wire wire((*server)->port());
  wire.send("POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
  EXPECT_NE(wire.read_until("0\r\n\r\n").find("y"), std::string::npos);
}

}  // namespace
}  // namespace plimsoll::http
