// SPDX-License-Identifier: Apache-2.0
#include "plan/llama_cpp_bill.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "facts/llama_cpp.h"

namespace plimsoll::plan {
namespace {

constexpr std::array<DType, 9> kCacheTypes{DType::kF32,   DType::kF16,  DType::kBF16,
                                           DType::kQ8_0,  DType::kQ4_0, DType::kQ4_1,
                                           DType::kIQ4NL, DType::kQ5_0, DType::kQ5_1};

Result<DType> cache_type(const std::string& own, const std::string& shared, const char* flag) {
  const std::string& text = own.empty() ? shared : own;
  if (text == "auto") return DType::kF16;
  const auto dtype = dtype_from_config(text);
  if (!dtype || std::find(kCacheTypes.begin(), kCacheTypes.end(), *dtype) == kCacheTypes.end())
    return fail(ErrorCode::kUsage,
                "\"" + text.substr(0, 40) + "\" is no type that llama.cpp keeps keys and values in", flag,
                "one of f32, f16, bf16, q8_0, q4_0, q4_1, iq4_nl, q5_0, q5_1");
  return *dtype;
}

bool has_windows(const model::ModelSpec& spec) {
  return std::any_of(spec.layers.begin(), spec.layers.end(), [](const model::Layer& layer) {
    const auto* attention = std::get_if<model::Attention>(&layer.mixer);
    return attention && (attention->window_tokens || attention->chunk_tokens);
  });
}

}  // namespace

const LlamaCppDeviceBill& LlamaCppBill::fullest() const {
  if (gpus.empty()) return host;
  return *std::max_element(gpus.begin(), gpus.end(),
                           [](const auto& a, const auto& b) { return a.total() < b.total(); });
}

bool LlamaCppBill::fits_in(Bytes budget) const {
  return fullest().total() <= budget;
}

Result<LlamaCppQuestion> LlamaCppQuestion::read(const Question& question) {
  LlamaCppQuestion asked(question);
  asked.context_ = question.settings.llama_cpp.context;
  asked.placement_ = question.settings.llama_cpp.placement;
  PLIMSOLL_TRY_VOID(asked.read_cache_types());
  PLIMSOLL_TRY_VOID(asked.read_placement());
  PLIMSOLL_TRY_VOID(asked.read_weights());
  return asked;
}

Status LlamaCppQuestion::read_cache_types() {
  const Settings& settings = question_.settings;
  PLIMSOLL_TRY(context_.key_dtype,
               cache_type(settings.llama_cpp.key_type, settings.kv_cache_dtype, "--cache-type-k"));
  PLIMSOLL_TRY(context_.value_dtype,
               cache_type(settings.llama_cpp.value_type, settings.kv_cache_dtype, "--cache-type-v"));
  if (settings.max_num_seqs && context_.num_seqs == 1) context_.num_seqs = *settings.max_num_seqs;
  const model::ModelSpec& spec = question_.model->spec;
  context_.absorbs_latents = facts::llama_cpp_absorbs_latents(spec.model_type);
  context_.uses_windows = facts::llama_cpp_uses_windows(spec.model_type);
  ignores_windows_ = !context_.uses_windows && has_windows(spec);
  return {};
}

Status LlamaCppQuestion::read_placement() {
  const auto& target = question_.target;
  placement_.num_gpus = target && !target->is_here ? static_cast<int>(target->count) : 0;
  if (static_cast<int>(placement_.split.size()) > placement_.num_gpus)
    return fail(ErrorCode::kUsage,
                fmt::format("a share for each of {} devices, but there are {} GPUs", placement_.split.size(),
                            placement_.num_gpus),
                "--tensor-split", "give one share a GPU");
  for (const memory::LlamaCppOverride& override : placement_.overrides)
    if (override.gpu >= placement_.num_gpus)
      return fail(ErrorCode::kUsage, fmt::format("there is no CUDA{} here", override.gpu),
                  "--override-tensor", "name CPU or a GPU that --gpu gives");
  return {};
}

Status LlamaCppQuestion::read_weights() {
  const Model& model = *question_.model;
  if (!model.gguf_weights.weights.empty() && !question_.settings.quantization) {
    model_ = model.gguf_weights;
  } else {
    Row row;
    PLIMSOLL_TRY(const Bytes total, weights_of(question_, row));
    const int bits =
        question_.settings.quantization ? memory::bits_per_weight(*question_.settings.quantization) : 16;
    model_ = memory::llama_cpp_weights(model.spec, bits, total);
  }
  PLIMSOLL_TRY(weights_, memory::llama_cpp_weight_buffers(model_, placement_));
  devices_ = memory::llama_cpp_layer_devices(model_.num_layers, placement_);
  return {};
}

Result<LlamaCppBill> LlamaCppQuestion::bill(std::int64_t context_tokens) const {
  memory::LlamaCppContext context = context_;
  context.context_tokens = context_tokens;
  LlamaCppBill bill;
  PLIMSOLL_TRY(bill.cache, memory::llama_cpp_cache(question_.model->spec, context));
  bill.compute = memory::llama_cpp_compute(question_.model->spec, context, bill.cache, context.num_seqs);
  bill.gpus.resize(static_cast<std::size_t>(placement_.num_gpus));
  for (std::size_t gpu = 0; gpu < bill.gpus.size(); ++gpu) bill.gpus[gpu].model = weights_.gpus[gpu];
  bill.host.model = weights_.host;
  bill.host.repacked = weights_.repacked;
  bill.host.output = memory::llama_cpp_output(question_.model->spec, context.num_seqs);
  for (std::size_t i = 0; i < bill.cache.layers.size(); ++i) {
    const int device = question_.settings.llama_cpp.offloads_cache ? devices_[i] : -1;
    LlamaCppDeviceBill& place = device < 0 ? bill.host : bill.gpus[static_cast<std::size_t>(device)];
    const memory::LlamaCppLayer& layer = bill.cache.layers[i];
    for (const Bytes part : {layer.keys, layer.values, layer.index_keys})
      place.cache += memory::llama_cpp_aligned(part, device >= 0);
    for (const Bytes part : {layer.convolution, layer.state})
      place.states += memory::llama_cpp_aligned(part, device >= 0);
  }
  for (LlamaCppDeviceBill& gpu : bill.gpus)
    if (gpu.model > Bytes(0)) gpu.compute = bill.compute.peak;
  const bool host_computes = std::find(devices_.begin(), devices_.end(), -1) != devices_.end();
  bill.host.compute = bill.compute.inputs;
  if (host_computes) bill.host.compute = std::max(bill.compute.peak, bill.compute.inputs);
  return bill;
}

std::vector<Buffer> llama_cpp_buffers(const LlamaCppQuestion& question, const LlamaCppBill& bill) {
  std::vector<Buffer> buffers;
  const auto add = [&](const std::string& device, const char* kind, Bytes bytes) {
    if (bytes > Bytes(0)) buffers.push_back({device, kind, bytes});
  };
  const auto name = [](std::size_t gpu) { return "CUDA" + std::to_string(gpu); };
  const bool has_gpus = !bill.gpus.empty();
  for (std::size_t gpu = 0; gpu < bill.gpus.size(); ++gpu) add(name(gpu), "model", bill.gpus[gpu].model);
  add(question.placement().is_mapped ? "CPU_Mapped"
      : has_gpus                     ? "CUDA_Host"
                                     : "CPU",
      "model", bill.host.model);
  add("CPU_REPACK", "model", bill.host.repacked);
  const char* const host = has_gpus ? "CUDA_Host" : "CPU";
  add(host, "output", bill.host.output);
  for (std::size_t gpu = 0; gpu < bill.gpus.size(); ++gpu) add(name(gpu), "kv", bill.gpus[gpu].cache);
  add("CPU", "kv", bill.host.cache);
  for (std::size_t gpu = 0; gpu < bill.gpus.size(); ++gpu) add(name(gpu), "rs", bill.gpus[gpu].states);
  add("CPU", "rs", bill.host.states);
  for (std::size_t gpu = 0; gpu < bill.gpus.size(); ++gpu) add(name(gpu), "compute", bill.gpus[gpu].compute);
  add(host, "compute", bill.host.compute);
  return buffers;
}

}  // namespace plimsoll::plan
