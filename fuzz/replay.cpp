// SPDX-License-Identifier: Apache-2.0
// Runs one fuzz target over the files of a corpus folder, plus a few cut and damaged versions of each, so
// that what the fuzzer once found stays found in every build, with every compiler. usage: <reader>_replay
// FOLDER
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

void feed(const std::string& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

void feed_with_damage(std::string bytes) {
  feed(bytes);
  feed(bytes.substr(0, bytes.size() / 2));
  if (bytes.empty()) return;
  feed(bytes.substr(0, bytes.size() - 1));
  const std::size_t step = bytes.size() / 16 + 1;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    const char kept = bytes[at];
    bytes[at] = static_cast<char>(kept ^ 0x80);
    feed(bytes);
    bytes[at] = kept;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || !std::filesystem::is_directory(argv[1])) {
    std::fprintf(stderr, "usage: %s FOLDER; every fuzz target has a folder of examples\n", argv[0]);
    return 2;
  }
  int num_files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[1])) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    feed_with_damage(std::string(std::istreambuf_iterator<char>(file), {}));
    ++num_files;
  }
  std::printf("%d files replayed\n", num_files);
  return num_files > 0 ? 0 : 1;
}
