// SPDX-License-Identifier: Apache-2.0
#include "artifact/artifact.h"

#include <algorithm>

#include "base/units.h"

namespace plimsoll::artifact {

std::string_view to_string(FileRole role) {
  switch (role) {
    case FileRole::kWeights:
      return "weights";
    case FileRole::kIndex:
      return "index";
    case FileRole::kConfig:
      return "config";
    case FileRole::kGenerationConfig:
      return "generation_config";
    case FileRole::kTokenizer:
      return "tokenizer";
    case FileRole::kTemplate:
      return "template";
    case FileRole::kProcessor:
      return "processor";
    case FileRole::kLicense:
      return "license";
    case FileRole::kReadme:
      return "readme";
    case FileRole::kCode:
      return "code";
    case FileRole::kOther:
      return "other";
  }
  return "other";
}

std::int64_t Tensor::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t dimension : shape)
    if (__builtin_mul_overflow(product, dimension, &product)) product = 0;
  return product;
}

const Tensor* Artifact::find(std::string_view name) const {
  const auto& all = tensors();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Tensor& tensor) { return tensor.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace plimsoll::artifact
