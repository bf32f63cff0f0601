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

Result<LlamaCppQuestion> LlamaCppQuestion::read(const Question& question) {
  LlamaCppQuestion asked(question);
  asked.context_ = question.settings.llama_cpp.context;
  PLIMSOLL_TRY_VOID(asked.read_cache_types());
  asked.read_gpus();
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

void LlamaCppQuestion::read_gpus() {
  const auto& target = question_.target;
  const Settings& settings = question_.settings;
  if (!target) return;
  const auto budget = [&](const Target& kind) {
    return std::max(Bytes(0), kind.available.value_or(kind.memory) - question_.rules.reserve_per_gpu);
  };
  if (target->is_here) {
    if (!settings.kv_cache_bytes) host_budget_ = budget(*target);
    return;
  }
  host_budget_ = settings.llama_cpp.host_memory;
  const auto add = [&](const Target& kind) {
    const LlamaCppGpu gpu{kind.name, kind.available.value_or(kind.memory), budget(kind)};
    gpus_.insert(gpus_.end(), static_cast<std::size_t>(kind.count), gpu);
  };
  add(*target);
  for (const Target& kind : target->beside) add(kind);
}

Status LlamaCppQuestion::read_placement() {
  memory::LlamaCppPlacement& placement = layout_.placement;
  placement = question_.settings.llama_cpp.placement;
  placement.num_gpus = static_cast<int>(gpus_.size());
  if (placement.split.size() > gpus_.size())
    return fail(ErrorCode::kUsage,
                fmt::format("a share for each of {} devices, but there are {} GPUs", placement.split.size(),
                            placement.num_gpus),
                "--tensor-split", "give one share a GPU");
  for (const memory::LlamaCppOverride& override : placement.overrides)
    if (override.gpu >= placement.num_gpus)
      return fail(ErrorCode::kUsage, fmt::format("there is no CUDA{} here", override.gpu),
                  "--override-tensor", "name CPU or a GPU that --gpu gives");
  if (placement.split.empty())
    for (const LlamaCppGpu& gpu : gpus_) placement.split.push_back(static_cast<double>(gpu.free.value));
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
  layer_bytes_ = memory::llama_cpp_layer_bytes(model_);
  PLIMSOLL_TRY(layout_, layout_for(layout_.placement));
  return {};
}

Result<LlamaCppQuestion::Layout> LlamaCppQuestion::layout_for(memory::LlamaCppPlacement placement) const {
  Layout layout;
  layout.placement = std::move(placement);
  PLIMSOLL_TRY(layout.weights, memory::llama_cpp_weight_buffers(model_, layout.placement));
  layout.devices = memory::llama_cpp_layer_devices(model_.num_layers, layout.placement);
  return layout;
}

Result<LlamaCppBill> LlamaCppQuestion::bill(std::int64_t context_tokens) const {
  memory::LlamaCppContext context = context_;
  context.context_tokens = context_tokens;
  PLIMSOLL_TRY(memory::LlamaCppCache cache, memory::llama_cpp_cache(question_.model->spec, context));
  const memory::LlamaCppCompute compute = memory::llama_cpp_compute(
      question_.model->spec, context, cache, context.num_seqs, is_pipelined() ? memory::kLlamaCppCopies : 1);
  LlamaCppBill by_memory = bill_of(layout_, std::move(cache), compute);
  if (fits(by_memory) || !may_move_layers()) return by_memory;
  memory::LlamaCppPlacement placement = layout_.placement;
  placement.split = layers_that_fit(by_memory);
  if (placement.split.empty()) return by_memory;
  PLIMSOLL_TRY(const Layout layout, layout_for(std::move(placement)));
  LlamaCppBill moved = bill_of(layout, by_memory.cache, compute);
  moved.is_moved = true;
  return fits(moved) ? moved : by_memory;
}

LlamaCppBill LlamaCppQuestion::bill_of(const Layout& layout, memory::LlamaCppCache cache,
                                       const memory::LlamaCppCompute& compute) const {
  LlamaCppBill bill;
  bill.cache = std::move(cache);
  bill.compute = compute;
  bill.devices = layout.devices;
  bill.gpus.resize(gpus_.size());
  for (std::size_t gpu = 0; gpu < bill.gpus.size(); ++gpu) bill.gpus[gpu].model = layout.weights.gpus[gpu];
  bill.host.model = layout.weights.host;
  bill.host.repacked = layout.weights.repacked;
  bill.host.output = memory::llama_cpp_output(question_.model->spec, context_.num_seqs);
  for (std::size_t i = 0; i < bill.cache.layers.size(); ++i) {
    const int device = question_.settings.llama_cpp.offloads_cache ? bill.devices[i] : -1;
    LlamaCppDeviceBill& place = device < 0 ? bill.host : bill.gpus[static_cast<std::size_t>(device)];
    const memory::LlamaCppLayer& layer = bill.cache.layers[i];
    for (const Bytes part : {layer.keys, layer.values, layer.index_keys})
      place.cache += memory::llama_cpp_aligned(part, device >= 0);
    for (const Bytes part : {layer.convolution, layer.state})
      place.states += memory::llama_cpp_aligned(part, device >= 0);
  }
  add_compute(bill);
  return bill;
}

void LlamaCppQuestion::add_compute(LlamaCppBill& bill) const {
  const auto has_layer = [&](int device) {
    return std::find(bill.devices.begin(), bill.devices.end() - 1, device) != bill.devices.end() - 1;
  };
  bool is_first = true;
  for (std::size_t gpu = 0; gpu < bill.gpus.size(); ++gpu) {
    if (has_layer(static_cast<int>(gpu))) {
      bill.gpus[gpu].compute = bill.compute.gpu(is_first);
      is_first = false;
    } else if (bill.devices.back() == static_cast<int>(gpu)) {
      bill.gpus[gpu].compute = bill.compute.logits;
    }
  }
  bill.host.compute = bill.compute.host(has_layer(-1) || bill.devices.back() == -1);
}

// GPUs that hold all work at the same time, on steps that follow each other.
bool LlamaCppQuestion::is_pipelined() const {
  const memory::LlamaCppPlacement& asked = layout_.placement;
  return gpus_.size() > 1 && (asked.gpu_layers < 0 || asked.gpu_layers > model_.num_layers) &&
         question_.settings.llama_cpp.offloads_cache && asked.cpu_expert_layers == 0 &&
         asked.overrides.empty();
}

bool LlamaCppQuestion::fits(const LlamaCppBill& bill) const {
  if (question_.settings.kv_cache_bytes) return bill.cache.total() <= *question_.settings.kv_cache_bytes;
  for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu)
    if (bill.gpus[gpu].total() > gpus_[gpu].budget) return false;
  return !host_budget_ || bill.host.total() <= *host_budget_;
}

// As --fit: only what has its default is changed.
bool LlamaCppQuestion::may_move_layers() const {
  const memory::LlamaCppPlacement& asked = question_.settings.llama_cpp.placement;
  return gpus_.size() > 1 && !question_.settings.kv_cache_bytes && asked.split.empty() &&
         asked.gpu_layers < 0 && asked.cpu_expert_layers == 0 && asked.overrides.empty();
}

// Layers of each GPU: of dense models from the last GPU backwards, of mixtures from the first on. Nothing
// where some find no place.
std::vector<double> LlamaCppQuestion::layers_that_fit(const LlamaCppBill& bill) const {
  const auto& layers = question_.model->spec.layers;
  const bool has_experts = std::any_of(layers.begin(), layers.end(), [](const model::Layer& layer) {
    return layer.ffn.kind == model::FfnKind::kMoe;
  });
  const bool offloads_cache = question_.settings.llama_cpp.offloads_cache;
  const auto bytes_of = [&](std::size_t i) {
    Bytes bytes = layer_bytes_.layers[i];
    if (!offloads_cache || i >= bill.cache.layers.size()) return bytes;
    const memory::LlamaCppLayer& layer = bill.cache.layers[i];
    for (const Bytes part : {layer.keys, layer.values, layer.index_keys, layer.convolution, layer.state})
      bytes += memory::llama_cpp_aligned(part, true);
    return bytes;
  };
  std::vector<double> counts(gpus_.size());
  const std::size_t all = layer_bytes_.layers.size();
  std::size_t placed = 0;
  for (std::size_t turn = 0; turn < gpus_.size(); ++turn) {
    const std::size_t gpu = has_experts ? turn : gpus_.size() - 1 - turn;
    Bytes used = layer_bytes_.shared + bill.compute.gpu(gpu == 0);
    for (; placed < all; ++placed) {
      used += bytes_of(has_experts ? placed : all - 1 - placed);
      if (used > gpus_[gpu].budget) break;
      counts[gpu] += 1;
    }
  }
  return placed == all ? counts : std::vector<double>();
}

std::size_t LlamaCppQuestion::tightest_gpu(const LlamaCppBill& bill) const {
  const auto room = [&](std::size_t gpu) { return gpus_[gpu].budget - bill.gpus[gpu].total(); };
  std::size_t tightest = 0;
  for (std::size_t gpu = 1; gpu < gpus_.size(); ++gpu)
    if (room(gpu) < room(tightest)) tightest = gpu;
  return tightest;
}

const LlamaCppDeviceBill& LlamaCppQuestion::tightest(const LlamaCppBill& bill) const {
  return gpus_.empty() ? bill.host : bill.gpus[tightest_gpu(bill)];
}

std::optional<Bytes> LlamaCppQuestion::budget(const LlamaCppBill& bill) const {
  if (question_.settings.kv_cache_bytes) return std::nullopt;
  return gpus_.empty() ? host_budget_ : gpus_[tightest_gpu(bill)].budget;
}

std::vector<DeviceUse> LlamaCppQuestion::uses(const LlamaCppBill& bill) const {
  std::vector<DeviceUse> uses;
  if (gpus_.empty()) return uses;
  const auto layers_on = [&](int device) {
    return static_cast<std::int64_t>(std::count(bill.devices.begin(), bill.devices.end(), device));
  };
  const bool has_budget = !question_.settings.kv_cache_bytes;
  for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu)
    uses.push_back({"CUDA" + std::to_string(gpu), gpus_[gpu].name, layers_on(static_cast<int>(gpu)),
                    bill.gpus[gpu].total(), has_budget ? std::optional(gpus_[gpu].budget) : std::nullopt});
  uses.push_back(
      {"CPU", std::nullopt, layers_on(-1), bill.host.total(), has_budget ? host_budget_ : std::nullopt});
  return uses;
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
