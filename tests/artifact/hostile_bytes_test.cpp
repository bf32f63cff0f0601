// SPDX-License-Identifier: Apache-2.0
// No byte of a header may be able to crash a reader: every truncation, and every byte set to values that are
// known to hurt, over a small safetensors and a small GGUF file. What is read must stay inside the file.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "artifact/gguf.h"
#include "artifact/safetensors.h"
#include "base/mapped_file.h"
#include "tests/testing/golden.h"

namespace plimsoll::artifact {
namespace {

constexpr std::array<unsigned char, 6> kHurtful{0x00, 0x01, 0x7F, 0x80, 0xFE, 0xFF};

using Read = std::function<std::size_t(std::span<const std::byte>, Findings&)>;

std::vector<std::byte> bytes_of(const std::string& path) {
  const auto text = read_file(testing::golden_path(path));
  EXPECT_TRUE(text) << path;
  if (!text) return {};
  const auto* begin = reinterpret_cast<const std::byte*>(text->data());
  return {begin, begin + text->size()};
}

// A copy whose end is the end of its allocation, so that the address sanitizer sees a read beyond it.
std::size_t read_exactly(const Read& read, const std::byte* bytes, std::size_t size, Findings& findings) {
  const auto exact = std::make_unique<std::byte[]>(size);
  std::copy(bytes, bytes + size, exact.get());
  return read({exact.get(), size}, findings);
}

void hurt(const std::vector<std::byte>& file, std::size_t header, const Read& read) {
  ASSERT_GT(file.size(), header);
  Findings clean;
  ASSERT_GT(read_exactly(read, file.data(), file.size(), clean), 0U);
  ASSERT_TRUE(clean.empty());
  for (std::size_t size = 0; size < file.size(); size += size < header + 64 ? 1 : 97) {
    Findings findings;
    read_exactly(read, file.data(), size, findings);
    EXPECT_EQ(worst_level(findings), FindingLevel::kError) << "cut to " << size << " bytes";
  }
  std::vector<std::byte> changed = file;
  for (std::size_t at = 0; at < header; ++at) {
    for (const unsigned char value : kHurtful) {
      changed[at] = std::byte{value};
      Findings findings;
      read_exactly(read, changed.data(), changed.size(), findings);
    }
    for (int bit = 0; bit < 8; ++bit) {
      changed[at] = file[at] ^ std::byte{static_cast<unsigned char>(1 << bit)};
      Findings findings;
      read_exactly(read, changed.data(), changed.size(), findings);
    }
    changed[at] = file[at];
  }
}

TEST(HostileBytes, Safetensors) {
  const auto file = bytes_of("artifacts/st_ok/model.safetensors");
  hurt(file, 8 + 1168, [](std::span<const std::byte> bytes, Findings& findings) {
    return read_safetensors({bytes, "f", {}, nullptr}, findings).tensors.size();
  });
}

TEST(HostileBytes, Gguf) {
  const auto file = bytes_of("artifacts/gguf_ok_v3/model.gguf");
  hurt(file, 2080, [](std::span<const std::byte> bytes, Findings& findings) {
    return read_gguf({bytes, "f", {}, nullptr}, findings).tensors.size();
  });
}

}  // namespace
}  // namespace plimsoll::artifact
