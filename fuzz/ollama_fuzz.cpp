// SPDX-License-Identifier: Apache-2.0
// A store of Ollama's whose manifest is any text, up to the first NUL, and whose blob is what follows: no
// crash, no file from outside the store; and any text as the name of a model.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "artifact/folder.h"
#include "artifact/ollama.h"
#include "fuzz/made_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plimsoll::artifact;
  static const plimsoll::fuzz::MadeFolder store;
  static const bool is_set = setenv("OLLAMA_MODELS", store.path().c_str(), 1) == 0;
  if (!is_set) std::abort();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string_view manifest = text.substr(0, text.find('\0'));
  if (const auto path = ollama_manifest_path(manifest); path && !is_inside(*path)) std::abort();
  store.put("manifests/registry.ollama.ai/library/made/latest", manifest);
  store.put("blobs/sha256-" + std::string(64, '0'), text.substr(std::min(size, manifest.size() + 1)));
  const auto artifact = open_ollama("ollama:made", "made");
  if (!artifact) std::abort();  // whatever is wrong in a store that is there becomes findings
  for (const File& file : (*artifact)->files())
    if (!is_inside(file.path) || file.bytes.value < 0) std::abort();
  for (const Tensor& tensor : (*artifact)->tensors())
    if (const auto bytes = (*artifact)->data(tensor);
        bytes && bytes->size() != static_cast<std::size_t>(tensor.bytes))
      std::abort();
  return 0;
}
