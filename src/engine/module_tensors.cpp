// SPDX-License-Identifier: Apache-2.0
#include "engine/module_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace plimsoll::engine {
namespace {

std::string shape_text(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::string type_text(std::initializer_list<DType> dtypes) {
  std::string text;
  for (const DType dtype : dtypes) text += (text.empty() ? "" : " or ") + std::string(name(dtype));
  return text;
}

}  // namespace

std::string_view ModuleTensors::first_of(std::initializer_list<std::string_view> endings) const {
  for (const std::string_view ending : endings)
    if (has(ending)) return ending;
  return {};
}

Result<ModuleTensor> ModuleTensors::get(std::string_view ending, DTypes dtypes) const {
  const artifact::Tensor* tensor = artifact_.find(name_of(ending));
  if (!tensor)
    return fail(
        ErrorCode::kMalformed,
        fmt::format("the quantized weight {} needs tensor {}, no file has it", module_, name_of(ending)),
        artifact_.root(), "get the complete model; `plimsoll inspect` lists what is missing");
  if (std::find(dtypes.begin(), dtypes.end(), tensor->dtype) == dtypes.end())
    return malformed(ending, std::string(name(tensor->dtype)), type_text(dtypes));
  PLIMSOLL_TRY(const auto bytes, artifact_.data(*tensor));
  const auto needed = stored_bytes(tensor->dtype, tensor->elements());
  if (!needed || static_cast<std::size_t>(needed->value) != bytes.size())
    return malformed(ending, fmt::format("{} bytes", bytes.size()), "as many as its shape needs");
  return ModuleTensor{tensor, bytes};
}

Result<ModuleTensor> ModuleTensors::get(std::string_view ending, DTypes dtypes, const Shape& shape) const {
  PLIMSOLL_TRY(const ModuleTensor found, get(ending, dtypes));
  if (!std::equal(found.tensor->shape.begin(), found.tensor->shape.end(), shape.begin(), shape.end()))
    return malformed(ending, shape_text({found.tensor->shape.begin(), found.tensor->shape.end()}),
                     shape_text(shape));
  return found;
}

Result<float> ModuleTensors::factor(std::string_view ending) const {
  PLIMSOLL_TRY(const ModuleTensor found, get(ending, kFloatTypes));
  if (found.tensor->elements() != 1)
    return malformed(ending, fmt::format("{} numbers", found.tensor->elements()), "one");
  const float value = found.numbers().at(0);
  if (!std::isfinite(value) || value == 0)
    return malformed(ending, fmt::format("{}", value), "a number that can be divided by");
  return value;
}

tl::unexpected<Error> ModuleTensors::malformed(std::string_view ending, const std::string& found,
                                               const std::string& expected) const {
  return fail(ErrorCode::kMalformed,
              fmt::format("tensor {} is {}, {} was expected", name_of(ending), found, expected),
              artifact_.root(), "config and weights belong to different models, or the file is damaged");
}

tl::unexpected<Error> ModuleTensors::unsupported(const std::string& what) const {
  return fail(ErrorCode::kUnsupported,
              fmt::format("{} has {}, which the engine does not read", module_, what), artifact_.root(),
              "serve it with another engine");
}

}  // namespace plimsoll::engine
