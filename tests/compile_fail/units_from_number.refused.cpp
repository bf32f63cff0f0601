// SPDX-License-Identifier: Apache-2.0
// refused: could not convert|no viable conversion
#include "base/units.h"

plimsoll::Bytes make() {
  return 4096;
}
