// SPDX-License-Identifier: Apache-2.0
#include "memory/load_quantization.h"

#include <algorithm>
#include <string>

#include "model/stored_weights.h"

namespace plimsoll::memory {
namespace {

constexpr std::int64_t kBlock = 32;  // of both types

std::int64_t columns_of(const model::Weight& weight) {
  return weight.is_turned ? weight.shape[weight.shape.size() - 2] : weight.shape.back();
}

tl::unexpected<Error> quantized_already(const std::string& how) {
  return fail(ErrorCode::kUsage,
              "the model is stored quantized (" + how + "), and quantizing it once more would only lose",
              "--quantization", "leave the flag out, or give the model in 16 or 32 bits");
}

tl::unexpected<Error> too_large() {
  return fail(ErrorCode::kMalformed, "the bytes of the weights do not fit 63 bits", "config.json",
              "check the sizes in the config");
}

bool is_plain(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

/// Of one weight with its copies.
Result<Bytes> loaded_bytes(const artifact::Artifact* artifact, const model::ModelSpec& spec,
                           const model::Weight& weight, DType block) {
  Bytes stored;
  if (artifact) {
    const auto tensors = model::tensors_of(*artifact, weight);
    for (const artifact::Tensor* tensor : tensors) {
      if (becomes_blocks(weight) && !is_plain(tensor->dtype))
        return quantized_already(std::string(tensor->name) + " as " + std::string(name(tensor->dtype)));
      stored += Bytes(tensor->bytes);
    }
    if (tensors.empty()) return Bytes(0);
  }
  const DType plain =
      weight.dtype.value_or(weight.is_parameter ? spec.declared_dtype.value_or(DType::kBF16) : DType::kF32);
  if (!becomes_blocks(weight) && artifact) return stored;
  const auto bytes = stored_bytes(becomes_blocks(weight) ? block : plain, weight.elements());
  if (!bytes) return too_large();
  return *bytes;
}

}  // namespace

Result<DType> block_at_load(WeightFormat format) {
  if (format == WeightFormat::kInt8) return DType::kQ8_0;
  if (format == WeightFormat::kInt4) return DType::kQ4_1;
  return fail(ErrorCode::kUsage,
              "the embedded engine quantizes weights to int8 or int4 when it loads them, not to " +
                  std::string(to_string(format)),
              "--quantization", "give int8 or int4");
}

bool becomes_blocks(const model::Weight& weight) {
  return weight.is_linear && weight.role != model::Role::kRouter &&
         weight.role != model::Role::kSharedExpertGate && weight.role != model::Role::kOutputHead &&
         weight.shape.size() >= 2 && columns_of(weight) % kBlock == 0;
}

Result<Bytes> loaded_weights_bytes(const artifact::Artifact* artifact, const model::ModelSpec& spec,
                                   WeightFormat format) {
  PLIMSOLL_TRY(const DType block, block_at_load(format));
  if (!spec.quantization.empty()) return quantized_already(spec.quantization);
  if (artifact && artifact->tensors().empty()) artifact = nullptr;
  if (!artifact && !spec.has_all_weights)
    return fail(ErrorCode::kUnsupported, "the weights of this model are not known one by one from its config",
                "config.json", "give the folder with its weight files");
  Bytes total;
  for (const model::Weight& weight : spec.weights) {
    if (!is_computed(weight) || (!artifact && weight.is_optional)) continue;
    PLIMSOLL_TRY(const Bytes bytes, loaded_bytes(artifact, spec, weight, block));
    const auto sum = checked_sum(total.value, bytes.value);
    if (!sum) return too_large();
    total = Bytes(*sum);
  }
  return total;
}

}  // namespace plimsoll::memory
