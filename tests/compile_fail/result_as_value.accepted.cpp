// SPDX-License-Identifier: Apache-2.0
// A value is taken out of a result explicitly.
#include "base/result.h"
plimsoll::Result<int> read_count();

int run() {
  auto count = read_count();
  return count ? *count : 0;
}
