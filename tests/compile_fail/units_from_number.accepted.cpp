// SPDX-License-Identifier: Apache-2.0
// A number becomes a size only where that is written out.
#include "base/units.h"

plimsoll::Bytes make() {
  return plimsoll::Bytes(4096);
}
