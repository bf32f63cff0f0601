// SPDX-License-Identifier: Apache-2.0
// Tokens compare with tokens.
#include "base/units.h"

bool less(plimsoll::Tokens a, plimsoll::Tokens b) {
  return a < b;
}
