// SPDX-License-Identifier: Apache-2.0
#include "base/home_folder.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

namespace plimsoll {

std::string home_of_user() {
  const long hint = ::sysconf(_SC_GETPW_R_SIZE_MAX);
  std::vector<char> buffer(hint > 0 ? static_cast<std::size_t>(hint) : 16'384);
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(::getuid(), &entry, buffer.data(), buffer.size(), &found) != 0 || !found ||
      !found->pw_dir || *found->pw_dir == '\0')
    return "/";
  return found->pw_dir;
}

std::string home_folder() {
  const char* home = std::getenv("HOME");
  return home && *home ? home : home_of_user();
}

}  // namespace plimsoll
