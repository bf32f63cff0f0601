// SPDX-License-Identifier: Apache-2.0
#include "inspect/sizes.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

namespace plimsoll::inspect {
namespace {

bool has_any(std::string_view name, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

// What a tensor is part of, by the names that published models use.
std::string_view group_of(std::string_view name) {
  if (has_any(name, {"vision", "visual", "audio", "v.blk.", "multi_modal"})) return "encoder";
  if (has_any(name, {"embed_tokens", "token_embd", "wte.", "word_embeddings", "embed_in"}))
    return "embedding";
  if (name.starts_with("lm_head") || name == "output.weight" || has_any(name, {"embed_out"})) return "head";
  if (has_any(name, {"norm", "ln_"})) return "norm";
  if (has_any(name, {"experts", "_exps"})) return "experts";
  if (has_any(name, {"attn", "attention"})) return "attention";
  if (has_any(name, {"mlp", "ffn", "feed_forward"})) return "ffn";
  return "other";
}

// Stored, but no parameter of the model: tables that are computed anew, and scales of quantized weights.
bool is_buffer(std::string_view name) {
  return has_any(
      name, {"inv_freq", "rope_freqs", "rope_factors", "masked_bias", "rotary_emb.cos", "rotary_emb.sin"});
}
bool is_quantization_scale(std::string_view name) {
  return name.ends_with("scales") || name.ends_with("scale") || name.ends_with("scale_inv") ||
         name.ends_with("qzeros") || name.ends_with("zero_point") || name.ends_with("g_idx") ||
         name.ends_with("absmax") || name.ends_with("quant_map") ||
         has_any(name, {".quant_state.", "weight_shape"});
}

void add_to(std::vector<Group>& groups, std::string_view name, std::int64_t parameters) {
  const auto found =
      std::find_if(groups.begin(), groups.end(), [&](const Group& group) { return group.group == name; });
  if (found != groups.end())
    found->parameters += parameters;
  else
    groups.push_back({std::string(name), parameters});
}

void count_from_spec(const model::ModelSpec& spec, Parameters& parameters) {
  std::int64_t total = 0;
  for (const auto& weight : model::expected_weights(spec)) {
    if (!weight.is_parameter) continue;
    total += weight.elements();
    add_to(parameters.by_group, group_of(weight.hf_name), weight.elements());
  }
  parameters.total = total;
}

// Plain tensors are counted as they stand, but for a tied head's second copy and buffers.
void count_from_headers(const Subject& subject, const Report& report, Parameters& parameters) {
  const bool ties = report.spec ? report.spec->ties_embeddings
                                : subject.figures["tie_word_embeddings"].as_bool().value_or(false);
  std::int64_t total = 0, head = 0, buffers = 0;
  for (const auto& tensor : subject.artifact.tensors()) {
    const std::int64_t elements = tensor.elements();
    const std::string_view group = group_of(tensor.name);
    if (is_buffer(tensor.name)) {
      buffers += elements;
    } else if (ties && group == "head") {
      head += elements;
    } else {
      total += elements;
      add_to(parameters.by_group, group, elements);
    }
  }
  parameters.total = total;
  if (subject.is_gguf()) return;  // the hub's total is of safetensors
  parameters.hub_total = total + head + buffers;
  if (head != 0) parameters.differences.push_back({"tied_head_stored", head});
  if (buffers != 0) parameters.differences.push_back({"stored_buffers", buffers});
}

// Packed weights: the logical count comes from the config, the stored one from the headers.
void count_quantized(const Subject& subject, const Report& report, Parameters& parameters) {
  if (report.spec) count_from_spec(*report.spec, parameters);
  std::int64_t stored = 0, scales = 0, buffers = 0;
  for (const auto& tensor : subject.artifact.tensors()) {
    stored += tensor.elements();
    if (is_buffer(tensor.name))
      buffers += tensor.elements();
    else if (is_quantization_scale(tensor.name))
      scales += tensor.elements();
  }
  parameters.hub_total = stored;
  if (!parameters.total) return;
  const std::int64_t packed = stored - scales - buffers - *parameters.total;
  if (scales != 0) parameters.differences.push_back({"quantization_scales", scales});
  if (buffers != 0) parameters.differences.push_back({"stored_buffers", buffers});
  if (packed != 0) parameters.differences.push_back({"packed_4bit", packed});
}

void count_parameters(const Subject& subject, Report& report) {
  Parameters& parameters = report.parameters;
  const bool has_weights = !subject.artifact.tensors().empty();
  if (has_weights && !subject.is_gguf() && !report.weights.quantization.is_null())
    count_quantized(subject, report, parameters);
  else if (has_weights)
    count_from_headers(subject, report, parameters);
  else if (report.spec && report.spec->encoders.empty())
    count_from_spec(*report.spec, parameters);
  else if (report.spec)
    report.findings.push_back({"ENCODER_NOT_COUNTED", FindingLevel::kInfo, FindingKind::kUnsupported,
                               "config.json: /" + report.spec->encoders.front(),
                               "the encoder's parameters cannot be told from this config, so the total is "
                               "not known; layers and KV cache are those "
                               "of the language model",
                               "give the weight files: their headers hold the exact count"});
  if (report.spec) parameters.mtp = 0;  // the families read here have no multi-token prediction layers
  const bool is_dense =
      report.spec && std::all_of(report.spec->layers.begin(), report.spec->layers.end(),
                                 [](const auto& layer) { return layer.ffn.kind != model::FfnKind::kMoe; });
  if (!is_dense || !parameters.total) return;
  parameters.active = parameters.total;
  std::int64_t embedding = 0;
  for (const Group& group : parameters.by_group)
    if (group.group == "embedding") embedding = group.parameters;
  parameters.active_without_embedding = *parameters.total - embedding;
}

void measure_stored(const Subject& subject, Weights& weights) {
  std::map<DType, StoredAs> by_dtype;
  std::set<int> files;
  Bytes bytes;
  for (const auto& tensor : subject.artifact.tensors()) {
    StoredAs& row = by_dtype[tensor.dtype];
    row.dtype = tensor.dtype;
    row.parameters += tensor.elements();
    row.num_tensors += 1;
    row.bytes += Bytes(tensor.bytes);
    bytes += Bytes(tensor.bytes);
    files.insert(tensor.file);
  }
  weights.bytes = bytes;
  weights.is_exact = true;
  weights.num_tensors = static_cast<std::int64_t>(subject.artifact.tensors().size());
  weights.num_files = static_cast<std::int64_t>(files.size());
  Bytes file_bytes;
  for (const int file : files) file_bytes += subject.artifact.files()[static_cast<std::size_t>(file)].bytes;
  weights.file_bytes = file_bytes;
  for (const auto& [_, row] : by_dtype) weights.by_dtype.push_back(row);
  std::stable_sort(weights.by_dtype.begin(), weights.by_dtype.end(),
                   [](const StoredAs& a, const StoredAs& b) { return a.bytes > b.bytes; });
}

// What the whole model would take in another type, were every weight stored so.
void estimate_other_dtypes(const Report& report, Weights& weights) {
  if (!report.parameters.total) return;
  constexpr std::array<DType, 6> kShown{DType::kF32,  DType::kBF16,  DType::kF8E4M3,
                                        DType::kQ8_0, DType::kMXFP4, DType::kQ4_0};
  for (const DType dtype : kShown) {
    const std::int64_t block = info(dtype).block_elements;
    const auto bytes = stored_bytes(dtype, (*report.parameters.total + block - 1) / block * block);
    if (bytes) weights.if_stored_as.push_back({dtype, *report.parameters.total, 0, *bytes});
  }
}

}  // namespace

void measure_sizes(const Subject& subject, Report& report) {
  Weights& weights = report.weights;
  weights.quantization = quantization_of(subject);
  if (!subject.artifact.tensors().empty()) measure_stored(subject, weights);
  count_parameters(subject, report);
  weights.index_total_size_bytes = subject.artifact.index_total_size_bytes();
  estimate_other_dtypes(report, weights);
  if (weights.is_exact || !report.spec || !report.parameters.total || !weights.quantization.is_null()) return;
  const auto bytes =
      stored_bytes(report.spec->declared_dtype.value_or(DType::kBF16), *report.parameters.total);
  if (bytes) weights.bytes = *bytes;
}

}  // namespace plimsoll::inspect
