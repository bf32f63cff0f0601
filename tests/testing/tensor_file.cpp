// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/tensor_file.h"

#include <cstring>

#include "base/json.h"
#include "base/mapped_file.h"

namespace plimsoll::testing {

std::map<std::string, FloatTensor> read_float_tensors(const std::string& path) {
  std::map<std::string, FloatTensor> tensors;
  const auto file = read_file(path);
  if (!file || file->size() < 8) return tensors;
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file->data(), 8);
  const auto header = parse_json(std::string_view(*file).substr(8, header_bytes), path);
  if (!header) return tensors;
  for (const auto& [name, entry] : header->members()) {
    if (!entry["dtype"].is_string() || *entry["dtype"].as_string() != "F32") continue;
    FloatTensor tensor;
    for (const auto& size : entry["shape"].items()) tensor.shape.push_back(*size.as_integer());
    const auto begin = static_cast<std::size_t>(*entry.at_pointer("/data_offsets/0").as_integer());
    const auto end = static_cast<std::size_t>(*entry.at_pointer("/data_offsets/1").as_integer());
    tensor.values.resize((end - begin) / 4);
    std::memcpy(tensor.values.data(), file->data() + 8 + header_bytes + begin, end - begin);
    tensors.emplace(name, std::move(tensor));
  }
  return tensors;
}

}  // namespace plimsoll::testing
