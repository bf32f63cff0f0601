// SPDX-License-Identifier: Apache-2.0
// refused: could not convert|no viable conversion|cannot convert
#include "base/result.h"
plimsoll::Result<int> read_count();

bool run() {
  PLIMSOLL_TRY(const int count, read_count());
  return count > 0;
}
