// SPDX-License-Identifier: Apache-2.0
#include "tests/inspect/header_folder.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace plimsoll::inspect {
namespace {

namespace fs = std::filesystem;

std::int64_t bytes_per_element(const std::string& dtype) {
  if (dtype == "I64" || dtype == "F64") return 8;
  if (dtype == "I32" || dtype == "F32") return 4;
  return dtype == "BF16" || dtype == "F16" || dtype == "I16" ? 2 : 1;
}

}  // namespace

HeaderFolder::HeaderFolder(const Json& config, const std::vector<HeaderTensor>& tensors) {
  std::string made = (fs::temp_directory_path() / "plimsoll_headers_XXXXXX").string();
  if (::mkdtemp(made.data())) path_ = made;
  add_file("config.json", dump(config));
  Json header = Json::object();
  std::int64_t end = 0;
  std::string data;
  for (const HeaderTensor& tensor : tensors) {
    std::int64_t bytes = bytes_per_element(tensor.dtype);
    Json shape = Json::array();
    for (const std::int64_t dimension : tensor.shape) {
      bytes *= dimension;
      shape.push_back(dimension);
    }
    Json offsets = Json::array();
    offsets.push_back(end);
    offsets.push_back(end + bytes);
    header.set(tensor.name,
               Json::object({{"dtype", tensor.dtype}, {"shape", shape}, {"data_offsets", offsets}}));
    data += tensor.values.empty() ? std::string(static_cast<std::size_t>(bytes), '\0') : tensor.values;
    end += bytes;
  }
  std::string text = dump(header);
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string length(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(text.size() >> (8 * i) & 0xff);
  add_file("model.safetensors", length + text + data);
}

HeaderFolder::~HeaderFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void HeaderFolder::add_file(const std::string& name, const std::string& text) const {
  std::ofstream(fs::path(path_) / name, std::ios::binary) << text;
}

}  // namespace plimsoll::inspect
