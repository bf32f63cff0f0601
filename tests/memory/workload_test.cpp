// SPDX-License-Identifier: Apache-2.0
#include "memory/workload.h"

#include <gtest/gtest.h>

namespace plimsoll::memory {
namespace {

TEST(Workload, ReadsLengthsConcurrencyAndRateInAnyOrder) {
  const auto workload = parse_workload("concurrency=8,isl=4k,osl=512,rate=2.5");
  ASSERT_TRUE(workload);
  EXPECT_EQ(workload->input, Tokens(4000));
  EXPECT_EQ(workload->output, Tokens(512));
  EXPECT_EQ(workload->rate, 2.5);
  EXPECT_EQ(workload->live_tokens(), Tokens(8 * 4512));
  EXPECT_FALSE(parse_workload("isl=1,osl=1,concurrency=1")->rate);
}

TEST(Workload, RefusesWhatItCannotMean) {
  for (const char* text :
       {"", "isl=1", "isl=1,osl=1", "isl=0,osl=1,concurrency=1", "isl=1,isl=1,osl=1,concurrency=1",
        "isl=1,osl=1,concurrency=1,speed=3", "isl=x,osl=1,concurrency=1", "isl=1,osl=1,concurrency=1,rate=-1",
        "isl=1,osl=1,concurrency=1,rate=inf", "isl=9000000000000000000,osl=1,concurrency=9", "isl",
        "isl=1,,osl=1,concurrency=1"})
    EXPECT_EQ(parse_workload(text).error().code, ErrorCode::kUsage) << text;
}

}  // namespace
}  // namespace plimsoll::memory
