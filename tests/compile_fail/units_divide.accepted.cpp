// SPDX-License-Identifier: Apache-2.0
// Bytes by bytes is a count.
#include "base/units.h"

std::int64_t pages(plimsoll::Bytes all, plimsoll::Bytes page) {
  return all / page;
}
