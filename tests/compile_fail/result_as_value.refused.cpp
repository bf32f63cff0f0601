// SPDX-License-Identifier: Apache-2.0
// refused: cannot convert|no viable conversion
#include "base/result.h"
plimsoll::Result<int> read_count();

int run() {
  auto count = read_count();
  return count;
}
