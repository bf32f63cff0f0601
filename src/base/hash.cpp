// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <openssl/evp.h>

#include <array>
#include <fstream>
#include <vector>

namespace plimsoll {
namespace {

std::string hex_of(std::span<const unsigned char> bytes) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string hex;
  for (const unsigned char byte : bytes) {
    hex += kHex[byte >> 4];
    hex += kHex[byte & 15];
  }
  return hex;
}

// The digest with a file's content added, read in pieces.
Result<std::string> finished(Digest digest, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> buffer(std::size_t{1} << 20);
  while (file.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || file.gcount() > 0)
    digest.add(std::as_bytes(std::span(buffer.data(), static_cast<std::size_t>(file.gcount()))));
  if (!file.eof()) return fail(ErrorCode::kMalformed, "the file cannot be read for its digest", path);
  return digest.finish();
}

}  // namespace

struct Digest::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { EVP_MD_CTX_free(context); }
};

Digest::Digest(DigestKind kind) : state_(std::make_unique<State>()) {
  const EVP_MD* method = kind == DigestKind::kSha256 ? EVP_sha256() : EVP_sha1();
  PLIMSOLL_CHECK(state_->context && EVP_DigestInit_ex(state_->context, method, nullptr) == 1,
                 "the library has SHA-1 and SHA-256");
}

Digest::Digest(Digest&&) noexcept = default;
Digest& Digest::operator=(Digest&&) noexcept = default;
Digest::~Digest() = default;

void Digest::add(std::span<const std::byte> data) {
  PLIMSOLL_CHECK(EVP_DigestUpdate(state_->context, data.data(), data.size()) == 1,
                 "a digest takes any bytes");
}

std::string Digest::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  PLIMSOLL_CHECK(EVP_DigestFinal_ex(state_->context, digest.data(), &length) == 1, "a digest ends once");
  return hex_of(std::span(digest).first(length));
}

std::string sha256_hex(std::span<const std::byte> data) {
  Digest digest(DigestKind::kSha256);
  digest.add(data);
  return digest.finish();
}

Result<std::string> digest_of_file(const std::string& path, DigestKind kind) {
  return finished(Digest(kind), path);
}

Result<std::string> git_digest_of_file(const std::string& path, std::int64_t size) {
  Digest digest(DigestKind::kSha1);
  const std::string head = "blob " + std::to_string(size);
  digest.add(std::as_bytes(std::span(head.c_str(), head.size() + 1)));  // the zero byte belongs to it
  return finished(std::move(digest), path);
}

}  // namespace plimsoll
