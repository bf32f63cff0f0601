// SPDX-License-Identifier: Apache-2.0
// A result that is looked at may be dropped afterwards.
#include "base/result.h"
plimsoll::Status step();

bool run() {
  return step().has_value();
}
