// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/golden_rows.h"

#include <cstring>
#include <fstream>
#include <iterator>

#include "kernels/kernels.h"
#include "tests/testing/golden.h"

namespace plimsoll::kernels {

std::vector<GoldenRows> golden_rows() {
  std::ifstream stream(testing::golden_path("gguf/golden_quants.safetensors"), std::ios::binary);
  const std::string file((std::istreambuf_iterator<char>(stream)), {});
  std::uint64_t header_bytes = 0;
  if (file.size() < sizeof header_bytes) return {};
  std::memcpy(&header_bytes, file.data(), sizeof header_bytes);
  const std::string header = file.substr(sizeof header_bytes, header_bytes);
  const char* const data = file.data() + sizeof header_bytes + header_bytes;

  std::vector<GoldenRows> rows;
  // The file was written by a tool we trust, so its header is searched, not parsed.
  const auto tensor = [&header](const std::string& name) {
    std::pair<std::size_t, std::size_t> range;
    const std::size_t entry = header.find('"' + name + '"');
    const std::size_t offsets = entry == std::string::npos ? entry : header.find("data_offsets", entry);
    if (offsets == std::string::npos) return range;
    const std::size_t numbers = header.find('[', offsets) + 1;
    range.first = std::stoul(header.substr(numbers));
    range.second = std::stoul(header.substr(header.find(',', numbers) + 1));
    return range;
  };
  for (int type = 0; type < 64; ++type) {
    const auto dtype = dtype_from_gguf(static_cast<std::uint32_t>(type));
    if (!dtype || !is_block_quantized(*dtype) || !can_read(*dtype)) continue;
    for (const char* kind : {"quantized", "edge", "random"}) {
      std::string name(info(*dtype).name);
      for (char& c : name) c = static_cast<char>(std::toupper(c));
      name = name + "." + kind;
      const auto raw = tensor(name + ".raw"), deq = tensor(name + ".deq");
      GoldenRows row{name, *dtype, {}, {}};
      row.stored.resize(raw.second - raw.first);
      row.values.resize((deq.second - deq.first) / sizeof(float));
      std::memcpy(row.stored.data(), data + raw.first, row.stored.size());
      std::memcpy(row.values.data(), data + deq.first, row.values.size() * sizeof(float));
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

std::vector<std::byte> random_blocks(DType dtype, std::int64_t elements, std::mt19937& random) {
  const auto block = static_cast<std::size_t>(info(dtype).block_bytes);
  std::vector<std::byte> blocks(static_cast<std::size_t>(stored_bytes(dtype, elements)->value));
  for (const GoldenRows& golden : golden_rows()) {
    if (golden.dtype != dtype || golden.name.find("quantized") == std::string::npos) continue;
    for (std::size_t at = 0; at < blocks.size(); at += block)
      std::memcpy(blocks.data() + at,
                  golden.stored.data() + random() % (golden.stored.size() / block) * block, block);
  }
  return blocks;
}

}  // namespace plimsoll::kernels
