// SPDX-License-Identifier: Apache-2.0
// refused: could not convert|no matching function
#include "base/units.h"
std::string shown(plimsoll::Bytes bytes) {
  return plimsoll::as_gib(bytes);
}

std::string call() {
  return shown(plimsoll::Tokens(1));
}
