// SPDX-License-Identifier: Apache-2.0
// refused: cannot convert|no viable conversion
#include "base/units.h"

std::int64_t plain(plimsoll::Bytes bytes) {
  return bytes;
}
