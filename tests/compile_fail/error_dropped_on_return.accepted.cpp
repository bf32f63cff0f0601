// SPDX-License-Identifier: Apache-2.0
// An error travels up as an error.
#include "base/result.h"
plimsoll::Result<int> read_count();

plimsoll::Result<bool> run() {
  PLIMSOLL_TRY(const int count, read_count());
  return count > 0;
}
