// SPDX-License-Identifier: Apache-2.0
// refused: no match for .*operator\+|invalid operands
#include "base/units.h"

plimsoll::Bytes sum(plimsoll::Bytes a, plimsoll::Tokens b) {
  return a + b;
}
