// SPDX-License-Identifier: Apache-2.0
// refused: no match for .*operator/|invalid operands|no viable
#include "base/units.h"

std::int64_t pages(plimsoll::Bytes all, plimsoll::Tokens page) {
  return all / page;
}
