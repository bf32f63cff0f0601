// SPDX-License-Identifier: Apache-2.0
// Content digests, to tell whether a file is the one that was meant. A Digest owns its state and may be
// moved; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace plimsoll {

/// SHA-256 as 64 lower-case hex digits.
std::string sha256_hex(std::span<const std::byte> data);

enum class DigestKind {
  kSha256,
  kSha1,  // git's names of blobs; says which file it is, and nothing about who made it
};

/// A digest of bytes that come in pieces.
class Digest {
 public:
  explicit Digest(DigestKind kind);
  Digest(Digest&&) noexcept;
  Digest& operator=(Digest&&) noexcept;
  ~Digest();

  void add(std::span<const std::byte> data);
  /// Lower-case hex digits; ends the digest.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The digest of a whole file, read in pieces.
/// Errors: kMalformed when it cannot be read.
Result<std::string> digest_of_file(const std::string& path, DigestKind kind);

/// The name git gives the file as a blob: SHA-1 over "blob SIZE", a zero byte, and the content.
/// Errors: as digest_of_file.
Result<std::string> git_digest_of_file(const std::string& path, std::int64_t size);

}  // namespace plimsoll
