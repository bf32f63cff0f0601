// SPDX-License-Identifier: Apache-2.0
#include "base/finding.h"

#include <gtest/gtest.h>

namespace plimsoll {
namespace {

TEST(Findings, AreOneArrayInWhichAnAbsentFixIsNull) {
  const Findings findings = {
      {"A_FAULT", FindingLevel::kError, FindingKind::kMalformed, "config.json", "is cut off",
       "fetch it again"},
      {"A_NOTE", FindingLevel::kInfo, FindingKind::kCheckFailed, "", "holds no weights", ""}};
  EXPECT_EQ(dump(to_json(findings)),
            R"([{"id":"A_FAULT","level":"error","where":"config.json","message":"is cut off",)"
            R"("fix":"fetch it again"},)"
            R"({"id":"A_NOTE","level":"info","where":"","message":"holds no weights","fix":null}])");
  EXPECT_EQ(dump(to_json(Findings{})), "[]");
}

}  // namespace
}  // namespace plimsoll
