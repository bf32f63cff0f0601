// SPDX-License-Identifier: Apache-2.0
#include "base/home_folder.h"

#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

namespace plimsoll {
namespace {

TEST(HomeFolder, WithoutHomeThePasswordDatabaseKnowsIt) {
  const char* before = std::getenv("HOME");
  const std::string kept = before ? before : "";
  const passwd* user = ::getpwuid(::getuid());
  const std::string expected = user ? user->pw_dir : "/";
  ::setenv("HOME", "/nowhere/me", 1);
  EXPECT_EQ(home_folder(), "/nowhere/me");
  ::setenv("HOME", "", 1);
  EXPECT_EQ(home_folder(), expected);
  ::unsetenv("HOME");
  EXPECT_EQ(home_folder(), expected);
  EXPECT_EQ(home_of_user(), expected);
  if (before) ::setenv("HOME", kept.c_str(), 1);
}

}  // namespace
}  // namespace plimsoll
