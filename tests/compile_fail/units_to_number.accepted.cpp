// SPDX-License-Identifier: Apache-2.0
// A size becomes a plain number only through its value.
#include "base/units.h"

std::int64_t plain(plimsoll::Bytes bytes) {
  return bytes.value;
}
