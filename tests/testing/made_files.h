// SPDX-License-Identifier: Apache-2.0
// Small files of the formats that models come in, written byte by byte for tests, and a folder for them that
// goes with the test.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plimsoll::testing {

/// An empty folder; removed with this.
class MadeFolder {
 public:
  MadeFolder();
  ~MadeFolder();
  MadeFolder(const MadeFolder&) = delete;
  MadeFolder& operator=(const MadeFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void put(const std::string& name, std::string_view content) const;

 private:
  std::filesystem::path path_;
};

/// `value` as little-endian bytes.
std::string le32(std::uint32_t value);
std::string le64(std::uint64_t value);

/// A safetensors file of this header text and data.
std::string safetensors_file(std::string_view header, std::string_view data = "");

/// The parts of a GGUF file, to be put together in any wrong way.
std::string gguf_string(std::string_view text);
std::string gguf_start(std::uint64_t num_tensors, std::uint64_t num_keys, std::uint32_t version = 3);
std::string gguf_key(std::string_view name, std::uint32_t type, std::string_view value);
std::string gguf_tensor(std::string_view name, const std::vector<std::uint64_t>& dimensions,
                        std::uint32_t type, std::uint64_t offset);
/// `header` padded to a multiple of `alignment`, then `data`.
std::string gguf_file(std::string header, std::string_view data, std::size_t alignment = 32);

/// A zip archive of members that are not packed.
std::string zip_file(const std::vector<std::pair<std::string, std::string>>& members);

}  // namespace plimsoll::testing
