// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <openssl/evp.h>

#include <array>

#include "base/result.h"

namespace plimsoll {

std::string sha256_hex(std::span<const std::byte> data) {
  constexpr char kHex[] = "0123456789abcdef";
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  const int done = EVP_Digest(data.data(), data.size(), digest.data(), &length, EVP_sha256(), nullptr);
  PLIMSOLL_CHECK(done == 1 && length == 32, "SHA-256 is always available");
  std::string hex;
  for (unsigned int i = 0; i < length; ++i) {
    hex += kHex[digest[i] >> 4];
    hex += kHex[digest[i] & 15];
  }
  return hex;
}

}  // namespace plimsoll
