// SPDX-License-Identifier: Apache-2.0
// Lines that are read ahead while another thread writes.
#include "serve/line_reader.h"

#include <gtest/gtest.h>

#include <sstream>

namespace plimsoll::serve {
namespace {

TEST(LineReader, GivesEveryLineOnceAndThenTheEnd) {
  std::istringstream in("a\n\nb");
  LineReader reader(in, 1);
  for (const char* line : {"a", "", "b"}) {
    const auto next = reader.next(true);
    EXPECT_EQ(next.kind, LineReader::Kind::kLine);
    EXPECT_EQ(next.text, line);
  }
  EXPECT_EQ(reader.next(true).kind, LineReader::Kind::kEnd);
}

// std::cin is tied to std::cout: the reading thread flushed answers while they were written, and some came
// twice.
TEST(LineReader, FlushesNoStreamOfAnotherThread) {
  std::ostringstream out;
  std::istringstream in("a\n");
  in.tie(&out);
  const LineReader reader(in, 1);
  EXPECT_EQ(in.tie(), nullptr);
}

}  // namespace
}  // namespace plimsoll::serve
