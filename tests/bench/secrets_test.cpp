// SPDX-License-Identifier: Apache-2.0
#include "bench/secrets.h"

#include <gtest/gtest.h>

namespace plimsoll::bench {
namespace {

TEST(Secrets, WhatAServerEchoesIsHidden) {
  std::vector<RequestRecord> records(1);
  records[0].text = "you sent Bearer sk-secret-1 and sk-secret-1; X: abcdefgh";
  records[0].error_text = "bad key sk-secret-1";
  hide_secrets({{"Authorization", "Bearer sk-secret-1"}, {"X", "abcdefgh"}, {"Y", "you"}}, records);
  EXPECT_EQ(records[0].text, "you sent *** and ***; X: ***");
  EXPECT_EQ(records[0].error_text, "bad key ***");
  EXPECT_EQ(without_query("/v1?key=1"), "/v1?***");
  EXPECT_EQ(without_query("/v1"), "/v1");
}

}  // namespace
}  // namespace plimsoll::bench
