// SPDX-License-Identifier: Apache-2.0
#include "bench/clock.h"

#include <gtest/gtest.h>
#include <linux/net_tstamp.h>

#include "bench/lag.h"
#include "tests/bench/timetable_server.h"

namespace plimsoll::bench {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

std::vector<RequestRecord> records_of(std::size_t count) {
  std::vector<RequestRecord> records(count);
  for (std::size_t i = 0; i < count; ++i) records[i].index = static_cast<std::int64_t>(i);
  return records;
}

Load load_of(const std::vector<std::string>& urls, std::vector<Shot> shots) {
  Load load;
  for (const std::string& url : urls) load.targets.push_back(*http::parse_url(url + "/v1/completions"));
  load.shots = std::move(shots);
  load.timeout = std::chrono::seconds(20);
  load.body_of = [](std::size_t shot) { return R"({"shot":)" + std::to_string(shot) + "}"; };
  return load;
}

/// Asked of a pair of sockets, without any code of the client.
bool kernel_gives_stamps() {
  const int door = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  ::bind(door, any, length);
  ::listen(door, 1);
  ::getsockname(door, any, &length);
  const int near = ::socket(AF_INET, SOCK_STREAM, 0);
  const int stamps = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
  ::setsockopt(near, SOL_SOCKET, SO_TIMESTAMPING, &stamps, sizeof stamps);
  ::connect(near, any, length);
  const int far = ::accept(door, nullptr, nullptr);
  bool has_stamp = false;
  // The kernel switches its stamps on a little after they are first asked for.
  for (int i = 0; i < 50 && !has_stamp; ++i) {
    ::send(far, "x", 1, MSG_NOSIGNAL);
    char byte = 0;
    char control[256];
    iovec piece{&byte, 1};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (::recvmsg(near, &message, 0) != 1) break;
    has_stamp = CMSG_FIRSTHDR(&message) != nullptr;
  }
  for (const int socket : {door, near, far}) ::close(socket);
  return has_stamp;
}

Observed send(const Load& load, std::vector<RequestRecord>& records) {
  auto observed =
      send_all(load, records, [](std::chrono::steady_clock::time_point) {}, [](const Standing&) {});
  EXPECT_TRUE(observed);
  return std::move(*observed);
}

TEST(Clock, AFollowUpLeavesWhenItsTurnHasComeAndGoesToTheSameServer) {
  TimetableServer one([](int, const Json&) { return completion(2); });
  TimetableServer two([](int, const Json&) { return completion(2); });
  auto records = records_of(4);
  std::vector<std::string> answers;
  Load load = load_of({one.url(), two.url()}, {{.at_s = 0, .target = 0},
                                               {.at_s = 0, .target = 1},
                                               {.follows = 0, .delay_s = 0.03, .target = 0},
                                               {.follows = 1, .target = 1}});
  load.body_of = [&](std::size_t shot) {
    if (load.shots[shot].follows >= 0) answers.push_back(records[shot - 2].text);
    return R"({"shot":)" + std::to_string(shot) + "}";
  };
  send(load, records);
  EXPECT_EQ(answers, (std::vector<std::string>{" the the", " the the"}));
  for (const RequestRecord& record : records) EXPECT_TRUE(record.is_success()) << record.error_text;
  EXPECT_GE(records[2].sent_s, records[0].done_s + 0.03);
  EXPECT_DOUBLE_EQ(records[2].scheduled_s, records[0].done_s + 0.03);
  EXPECT_GE(records[3].sent_s, records[1].done_s);
  ASSERT_EQ(one.requests().size(), 2u);
  EXPECT_EQ(one.requests()[1]["shot"].as_integer(), 2);
  EXPECT_EQ(two.requests()[1]["shot"].as_integer(), 3);
}

TEST(Clock, SessionsShareTheSlots) {
  TimetableServer server([](int, const Json&) { return completion(3); });
  auto records = records_of(9);
  std::vector<Shot> shots;
  for (int i = 0; i < 9; ++i) shots.push_back({.at_s = 0, .follows = i < 3 ? -1 : i - 3});
  Load load = load_of({server.url()}, shots);
  load.max_concurrency = 2;
  send(load, records);
  EXPECT_LE(server.peak(), 2);
  for (const RequestRecord& record : records) {
    EXPECT_TRUE(record.is_success());
    EXPECT_GE(record.sent_s, record.eligible_s);
    EXPECT_GE(record.eligible_s, record.scheduled_s);
  }
}

TEST(Clock, AConnectionIsUsedAgainUnlessNoneIsToBeKept) {
  for (const bool keep_alive : {true, false}) {
    TimetableServer server([](int, const Json&) { return completion(1); });
    auto records = records_of(3);
    Load load = load_of({server.url()}, {{}, {.follows = 0}, {.follows = 1}});
    load.keep_alive = keep_alive;
    load.max_concurrency = 1;
    send(load, records);
    for (const RequestRecord& record : records) {
      EXPECT_TRUE(record.is_success()) << record.error_text;
      EXPECT_TRUE(record.connected_s);
    }
    const auto headers = server.headers();
    ASSERT_EQ(headers.size(), 3u);
    EXPECT_EQ(http::header(headers[1], "connection"), keep_alive ? "" : "close");
  }
}

TEST(Clock, AnInterruptedRunKeepsWhatIsOver) {
  TimetableServer server([](int, const Json& request) {
    Script script = completion(2);
    script.is_dead = request["shot"].as_integer() != 0;  // never answers
    return script;
  });
  auto records = records_of(4);
  Load load = load_of({server.url()}, {{}, {}, {}, {.follows = 2}});
  load.max_concurrency = 2;
  load.is_interrupted = [&] { return records[0].done_s > 0 && server.requests().size() == 3; };
  const Observed observed = send(load, records);
  EXPECT_TRUE(observed.was_interrupted);
  EXPECT_TRUE(records[0].is_success());
  EXPECT_FALSE(records[0].is_unfinished);
  for (const std::size_t i : {1u, 2u, 3u}) EXPECT_TRUE(records[i].is_unfinished) << i;
}

TEST(Clock, ReadsAreHeldAgainstTheKernelsStamps) {
  TimetableServer server([](int, const Json&) { return completion(20); });
  auto records = records_of(4);
  const Observed observed = send(load_of({server.url()}, std::vector<Shot>(4)), records);
  // Where the system gives stamps at all, nearly every read has one. Sockets that got none prove nothing: the
  // kernel may only just have switched them on.
  if (kernel_gives_stamps()) {
    EXPECT_GE(observed.client_lag_ms.count(), 4);
  }
  if (observed.client_lag_ms.count() > 0) {
    EXPECT_GE(*observed.client_lag_ms.at(0), 0);
  }
  for (const RequestRecord& record : records) {
    EXPECT_GE(*record.first_token_s, *record.connected_s);
    EXPECT_GE(record.done_s, *record.last_token_s);
  }
}

TEST(LagCounts, KeepTheirPrecisionOverSixDays) {
  for (const std::int64_t us :
       {0LL, 1LL, 255LL, 256LL, 257LL, 511LL, 512LL, 1'000LL, 123'456LL, 60'000'000LL, 500'000'000'000LL}) {
    LagCounts counts;
    counts.add(microseconds(us));
    const double ms = static_cast<double>(us) / 1e3;
    EXPECT_NEAR(*counts.to_samples_ms().at(50), ms, 0.0006 + ms / 200) << us;
  }
  LagCounts odd;
  odd.add(nanoseconds(-5));
  odd.add(std::chrono::hours(24 * 365));
  EXPECT_EQ(odd.to_samples_ms().count(), 2);
  EXPECT_LT(*odd.to_samples_ms().at(0), 0.001);
}

}  // namespace
}  // namespace plimsoll::bench
