// SPDX-License-Identifier: Apache-2.0
// refused: no match for .*operator<|invalid operands
#include "base/units.h"

bool less(plimsoll::Tokens a, plimsoll::Blocks b) {
  return a < b;
}
