// SPDX-License-Identifier: Apache-2.0
// Which layouts of so many GPUs hold the model, and why do the others not?
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "facts/compute_capability.h"
#include "memory/kv_dtype.h"
#include "plan/layout.h"
#include "plan/rows.h"

namespace plimsoll::plan {
namespace {

constexpr int kOneServer = 8;  // GPUs, where nothing says how many

/// 1 to 8, then doubled.
std::vector<int> sizes_up_to(std::int64_t most) {
  std::vector<int> sizes;
  for (int size = 1; size <= most; size += size < kOneServer ? 1 : size) sizes.push_back(size);
  return sizes;
}

std::string label_of(const Model& model, const std::optional<memory::WeightFormat>& format) {
  if (format) return std::string(memory::to_string(*format));
  if (!model.spec.quantization.empty()) return model.spec.quantization;
  return model.spec.declared_dtype ? std::string(name(*model.spec.declared_dtype)) : "as stored";
}

/// Why the weights cannot be had in that format on that GPU.
std::optional<Finding> format_fault(const Model& model, const std::optional<memory::WeightFormat>& format,
                                    const facts::GpuFacts& gpu) {
  const auto capability = facts::parse_capability(gpu.compute_capability);
  if (!capability) return std::nullopt;  // the table is of NVIDIA's
  std::string method, kind = label_of(model, format);
  if (format == memory::WeightFormat::kFp8) {
    method = "fp8";
    kind.clear();
  } else if (!format && model.quantization) {
    method = model.quantization->method;
    const std::string* format_name = model.quantization->format.as_string();
    kind = format_name ? *format_name : "";
  }
  const auto* row = facts::find_format_capability(method, kind);
  if (!row || *capability >= row->least) return std::nullopt;
  return Finding{
      "FORMAT_UNSUPPORTED",
      FindingLevel::kError,
      FindingKind::kUnsupported,
      "--gpu",
      fmt::format("{} has compute capability {}; weights in {} need {}.{}", gpu.name, gpu.compute_capability,
                  label_of(model, format), row->least / 10, row->least % 10),
      "choose a newer GPU"};
}

class LayoutSearch {
 public:
  LayoutSearch(const Question& question, std::vector<Row>& rows, Search& search)
      : asked_(question), fixed_(question.settings), rows_(rows), search_(search) {
    most_gpus_ = !question.target ? 1 : question.target->is_count_given ? question.target->count : kOneServer;
  }

  Status run() {
    for (const auto& format : formats())
      for (const std::string& dtype : cache_types()) {
        asked_.settings.quantization = format;
        asked_.settings.kv_cache_dtype = dtype;
        fault_ = fault_of_gpu();
        PLIMSOLL_TRY_VOID(try_sizes());
      }
    return {};
  }

 private:
  // As the checkpoint has them; a plain one can be quantized while it is loaded.
  std::vector<std::optional<memory::WeightFormat>> formats() const {
    const Model& model = *asked_.model;
    if (fixed_.quantization) return {fixed_.quantization};
    const auto dtype = model.spec.declared_dtype;
    const bool is_plain = model.spec.quantization.empty() && !model.quantization &&
                          (dtype == DType::kBF16 || dtype == DType::kF16);
    if (!is_plain) return {std::nullopt};
    return {std::nullopt, memory::WeightFormat::kFp8};
  }

  std::vector<std::string> cache_types() const {
    if (fixed_.kv_cache_dtype != "auto") return {fixed_.kv_cache_dtype};
    return {"auto", "fp8"};
  }

  std::optional<Finding> fault_of_gpu() const {
    if (!asked_.target || !asked_.target->gpu) return std::nullopt;
    const facts::GpuFacts& gpu = *asked_.target->gpu;
    const model::ModelSpec& spec = asked_.model->spec;
    if (auto fault = format_fault(*asked_.model, asked_.settings.quantization, gpu)) return fault;
    const auto dtype = memory::kv_dtype(asked_.settings.kv_cache_dtype, spec);
    return kernel_fault(spec, gpu, dtype && stored_bytes(*dtype, 1) == Bytes(1));
  }

  static std::vector<int> sizes(const std::optional<int>& fixed, std::int64_t most) {
    if (!fixed) return sizes_up_to(most);
    return *fixed <= most ? std::vector{*fixed} : std::vector<int>{};
  }

  Status try_sizes() {
    Settings& settings = asked_.settings;
    for (const int tensor : sizes(fixed_.tensor_parallel, most_gpus_))
      for (const int pipeline : sizes(fixed_.pipeline_parallel, most_gpus_ / tensor))
        for (const int data : sizes(fixed_.data_parallel, most_gpus_ / tensor / pipeline)) {
          settings.tensor_parallel = tensor;
          settings.pipeline_parallel = pipeline;
          settings.data_parallel = data;
          if (asked_.target) asked_.target->count = std::int64_t{tensor} * pipeline * data;
          PLIMSOLL_TRY_VOID(try_shares());
        }
    return {};
  }

  // Experts whole or in slices; copies of keys shared out or kept.
  Status try_shares() {
    Settings& settings = asked_.settings;
    const int tensor = *settings.tensor_parallel;
    std::vector<int> contexts{1};
    for (int context = 2; context <= tensor; ++context)
      if (tensor % context == 0) contexts.push_back(context);
    if (fixed_.decode_context_parallel) contexts = {*fixed_.decode_context_parallel};
    const bool has_choice = has_experts() && tensor * *settings.data_parallel > 1;
    for (const bool is_expert_parallel : {false, true}) {
      if (fixed_.is_expert_parallel ? !is_expert_parallel : is_expert_parallel && !has_choice) continue;
      settings.is_expert_parallel = is_expert_parallel;
      for (const int context : contexts) {
        settings.decode_context_parallel = context;
        PLIMSOLL_TRY_VOID(try_layout());
      }
    }
    return {};
  }

  bool has_experts() const {
    const auto& layers = asked_.model->spec.layers;
    return std::any_of(layers.begin(), layers.end(),
                       [](const model::Layer& layer) { return layer.ffn.kind == model::FfnKind::kMoe; });
  }

  Status try_layout() {
    ++search_.num_layouts;
    if (fault_) return reject(fault_->id, fault_->message);
    auto row = make_vllm_row(asked_);
    if (!row && row.error().code == ErrorCode::kUnsupported)
      return reject("NOT_PLANNED", row.error().message);
    if (!row) return fail(std::move(row).error());
    if (!row->can_be) return reject(row->findings.front().id, row->findings.front().message);
    if (row->fits) {
      rows_.push_back(std::move(*row));
      return {};
    }
    if (row->missing.value == 0) return reject("DOES_NOT_FIT", row->engine_message);
    PLIMSOLL_TRY_VOID(
        reject("DOES_NOT_FIT", fmt::format("one request of {} tokens needs {} more on each GPU",
                                           with_commas(row->max_model_len.value), as_gib(row->missing))));
    search_.rejected.back().missing = row->missing;
    return {};
  }

  std::string cache_label() const {
    const auto dtype = memory::kv_dtype(asked_.settings.kv_cache_dtype, asked_.model->spec);
    return asked_.settings.kv_cache_dtype == "auto" && dtype ? std::string(name(*dtype))
                                                             : asked_.settings.kv_cache_dtype;
  }

  Status reject(std::string id, std::string reason) {
    const Settings& settings = asked_.settings;
    search_.rejected.push_back({asked_.model->source, asked_.target, *settings.tensor_parallel,
                                *settings.pipeline_parallel, *settings.data_parallel,
                                *settings.decode_context_parallel, settings.is_expert_parallel,
                                label_of(*asked_.model, settings.quantization), cache_label(), std::move(id),
                                std::move(reason), std::nullopt});
    return {};
  }

  Question asked_;
  const Settings fixed_;
  std::vector<Row>& rows_;
  Search& search_;
  std::int64_t most_gpus_ = 1;
  std::optional<Finding> fault_;  // of the GPU, whatever the layout
};

/// GiB as the GPU is sold, so that one driver's few MiB decide nothing.
double cost_of(const Row& row, bool has_prices) {
  if (!row.target) return 0;
  const auto gpus = static_cast<double>(row.target->count);
  if (has_prices) return *row.target->price * gpus;
  return std::round(static_cast<double>(row.target->memory.value) / static_cast<double>(kGiB)) * gpus;
}

}  // namespace

Status search_layouts(const Question& question, std::vector<Row>& rows, Search& search) {
  return LayoutSearch(question, rows, search).run();
}

void sort_by_cost(std::vector<Row>& rows, bool has_prices) {
  for (Row& row : rows) row.cost = cost_of(row, has_prices);
  const auto key = [](const Row& row) {
    const int changes = row.weights_dtype == "fp8" ? 2 : 0;
    const int rounding = changes + (row.kv_cache_dtype.starts_with("fp8") ? 1 : 0);
    return std::make_tuple(*row.cost, rounding, -row.max_concurrency * row.data_parallel,
                           row.target ? row.target->count : 0, row.target ? row.target->asked : std::string(),
                           row.tensor_parallel, row.data_parallel, row.decode_context_parallel,
                           row.is_expert_parallel);
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) { return key(a) < key(b); });
}

}  // namespace plimsoll::plan
