// SPDX-License-Identifier: Apache-2.0
// A function that asks for bytes gets bytes.
#include "base/units.h"
std::string shown(plimsoll::Bytes bytes) {
  return plimsoll::as_gib(bytes);
}

std::string call() {
  return shown(plimsoll::Bytes(1));
}
