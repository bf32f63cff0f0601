// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/made_files.h"

#include <cstdlib>
#include <fstream>
#include <system_error>

namespace plimsoll::testing {
namespace {

namespace fs = std::filesystem;

std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i, value >>= 8) text.push_back(static_cast<char>(value & 0xFF));
  return text;
}

}  // namespace

MadeFolder::MadeFolder() {
  std::string name = (fs::temp_directory_path() / "plimsoll_made_XXXXXX").string();
  if (const char* made = ::mkdtemp(name.data())) path_ = made;
}

MadeFolder::~MadeFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void MadeFolder::put(const std::string& name, std::string_view content) const {
  fs::create_directories((path_ / name).parent_path());
  std::ofstream(path_ / name, std::ios::binary) << content;
}

std::string le32(std::uint32_t value) {
  return little_endian(value, 4);
}
std::string le64(std::uint64_t value) {
  return little_endian(value, 8);
}

std::string safetensors_file(std::string_view header, std::string_view data) {
  return le64(header.size()) + std::string(header) + std::string(data);
}

std::string gguf_string(std::string_view text) {
  return le64(text.size()) + std::string(text);
}
std::string gguf_start(std::uint64_t num_tensors, std::uint64_t num_keys, std::uint32_t version) {
  return "GGUF" + le32(version) + le64(num_tensors) + le64(num_keys);
}
std::string gguf_key(std::string_view name, std::uint32_t type, std::string_view value) {
  return gguf_string(name) + le32(type) + std::string(value);
}
std::string gguf_tensor(std::string_view name, const std::vector<std::uint64_t>& dimensions,
                        std::uint32_t type, std::uint64_t offset) {
  std::string text = gguf_string(name) + le32(static_cast<std::uint32_t>(dimensions.size()));
  for (const std::uint64_t dimension : dimensions) text += le64(dimension);
  return text + le32(type) + le64(offset);
}
std::string gguf_file(std::string header, std::string_view data, std::size_t alignment) {
  header.resize((header.size() + alignment - 1) / alignment * alignment, '\0');
  return header + std::string(data);
}

std::string zip_file(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string file, directory;
  for (const auto& [name, content] : members) {
    const std::string sizes = le32(0) + le32(static_cast<std::uint32_t>(content.size())) +
                              le32(static_cast<std::uint32_t>(content.size())) +
                              little_endian(name.size(), 2) + little_endian(0, 2);
    const std::string common = little_endian(10, 2) + little_endian(0, 8) + sizes;  // version, flags to date
    directory += std::string("PK\x01\x02", 4) + little_endian(10, 2) + common + little_endian(0, 10) +
                 le32(static_cast<std::uint32_t>(file.size())) + name;
    file += std::string("PK\x03\x04", 4) + common + name + content;
  }
  const std::string count = little_endian(members.size(), 2);
  return file + directory + std::string("PK\x05\x06", 4) + le32(0) + count + count +
         le32(static_cast<std::uint32_t>(directory.size())) + le32(static_cast<std::uint32_t>(file.size())) +
         little_endian(0, 2);
}

}  // namespace plimsoll::testing
