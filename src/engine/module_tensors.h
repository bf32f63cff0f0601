// SPDX-License-Identifier: Apache-2.0
// The tensors of one quantized module, by the ends of their names, each held against what it has to be.
// Views of an artifact, which has to outlive them.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/artifact.h"
#include "base/result.h"
#include "engine/stored_matrix.h"

namespace plimsoll::engine {

struct ModuleTensor {
  const artifact::Tensor* tensor = nullptr;
  std::span<const std::byte> bytes;

  Numbers numbers() const { return {tensor->dtype, bytes.data()}; }
  const std::byte* data() const { return bytes.data(); }
};

class ModuleTensors {
 public:
  using DTypes = std::initializer_list<DType>;
  using Shape = std::vector<std::int64_t>;

  ModuleTensors(const artifact::Artifact& artifact, std::string module, char joint = '.')
      : artifact_(artifact), module_(std::move(module)), joint_(joint) {}

  bool has(std::string_view ending) const { return artifact_.find(name_of(ending)) != nullptr; }
  /// The one of the module's tensors that has one of these endings: the first; "" when there is none.
  std::string_view first_of(std::initializer_list<std::string_view> endings) const;

  /// Errors: kMalformed when it is absent, of another type or of another shape.
  Result<ModuleTensor> get(std::string_view ending, DTypes dtypes, const Shape& shape) const;
  /// The same of any shape.
  Result<ModuleTensor> get(std::string_view ending, DTypes dtypes) const;
  /// One number that is no NaN, infinity or 0.
  Result<float> factor(std::string_view ending) const;

  /// What is wrong with one of the tensors.
  tl::unexpected<Error> malformed(std::string_view ending, const std::string& found,
                                  const std::string& expected) const;
  tl::unexpected<Error> unsupported(const std::string& what) const;

 private:
  std::string name_of(std::string_view ending) const { return module_ + joint_ + std::string(ending); }

  const artifact::Artifact& artifact_;
  std::string module_;
  char joint_;
};

/// Types that scales are stored in.
inline constexpr std::initializer_list<DType> kFloatTypes{DType::kF32, DType::kF16, DType::kBF16};

}  // namespace plimsoll::engine
