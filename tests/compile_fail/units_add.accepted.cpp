// SPDX-License-Identifier: Apache-2.0
// Bytes add to bytes.
#include "base/units.h"

plimsoll::Bytes sum(plimsoll::Bytes a, plimsoll::Bytes b) {
  return a + b;
}
