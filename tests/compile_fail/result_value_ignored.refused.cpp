// SPDX-License-Identifier: Apache-2.0
// refused: unused-result|unused-value|nodiscard
#include "base/result.h"
plimsoll::Result<int> read_count();

void run() {
  read_count();
}
