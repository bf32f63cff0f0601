// SPDX-License-Identifier: Apache-2.0
// A value that can fail is looked at.
#include "base/result.h"
plimsoll::Result<int> read_count();

int run() {
  return read_count().value_or(0);
}
