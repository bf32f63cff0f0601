// SPDX-License-Identifier: Apache-2.0
#include "http/event_stream.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace plimsoll::http {
namespace {

std::vector<std::string> read(std::string_view bytes, std::size_t step) {
  std::vector<std::string> events;
  EventStreamReader reader;
  const auto keep = [&](const StreamEvent& event) {
    events.push_back(std::string(event.name) + "|" + std::string(event.data));
  };
  for (std::size_t at = 0; at < bytes.size(); at += step)
    EXPECT_TRUE(reader.feed(bytes.substr(at, step), keep));
  reader.finish(keep);
  return events;
}

TEST(EventStream, ReadsTheSameHoweverTheBytesAreCut) {
  const std::string bytes =
      "\xef\xbb\xbf"
      "data: one\n\n: comment\r\n\r\ndata:two\rdata: and more\r\revent: error\r\ndata: {\"a\":1}\r\n\r\n"
      "event: nothing\n\ndata\n\ndata:  two blanks\nid: 7\nretry: 1\n\ndata: [DONE]\n";
  const std::vector<std::string> expected = {"|one", "|two\nand more", "error|{\"a\":1}",
                                             "|",    "| two blanks",   "|[DONE]"};
  for (std::size_t step = 1; step <= bytes.size(); ++step) ASSERT_EQ(read(bytes, step), expected) << step;
}

TEST(EventStream, AnEventDoesNotTakeItsNameAlong) {
  EXPECT_EQ(read("event: a\ndata: 1\n\ndata: 2\n\n", 3), (std::vector<std::string>{"a|1", "|2"}));
}

TEST(EventStream, IsBounded) {
  EventStreamReader reader(1000);
  int events = 0;
  const auto count = [&](const StreamEvent&) { ++events; };
  EXPECT_TRUE(reader.feed("data: fine\n\n", count));
  EXPECT_TRUE(reader.feed("data: " + std::string(900, 'x') + "\n", count));
  EXPECT_FALSE(reader.feed("data: " + std::string(200, 'x') + "\n", count));
  EXPECT_FALSE(reader.feed("\n\ndata: late\n\n", count));
  reader.finish(count);
  EXPECT_EQ(events, 1);
  EventStreamReader endless(1000);
  bool goes_on = true;
  for (int i = 0; i < 100 && goes_on; ++i) goes_on = endless.feed(std::string(100, 'x'), count);
  EXPECT_FALSE(goes_on);
}

}  // namespace
}  // namespace plimsoll::http
