// SPDX-License-Identifier: Apache-2.0
#include "inspect/sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_set>

#include "inspect/gguf_active.h"
#include "inspect/hub_total.h"
#include "inspect/parameter_groups.h"
#include "inspect/quantization.h"
#include "model/declarations.h"
#include "model/stored_weights.h"

namespace plimsoll::inspect {
namespace {

using model::capped_product;
using model::capped_sum;
using model::WeightGroup;

void add_to(std::vector<Group>& groups, WeightGroup name, std::int64_t parameters) {
  const auto found =
      std::find_if(groups.begin(), groups.end(), [&](const Group& group) { return group.group == name; });
  if (found != groups.end())
    found->parameters = capped_sum(found->parameters, parameters);
  else
    groups.push_back({name, parameters});
}

void count_from_spec(const model::ModelSpec& spec, Parameters& parameters) {
  parameters.total = model::count_parameters(spec);
  if (!parameters.total) return;
  for (const auto& weight : spec.weights)
    if (weight.is_parameter && weight.group != WeightGroup::kMtp)
      add_to(parameters.by_group, weight.group, weight.elements());
}

// Decoder layers that the config counts, and whether layers that predict further tokens follow them.
constexpr std::int64_t kMostLayers = std::int64_t{1} << 32;  // far above any model; sums of them still fit
struct LayerCount {
  std::int64_t layers = 0;
  bool has_more = false;
};
LayerCount layers_of(const Subject& subject) {
  LayerCount count;
  if (subject.is_gguf()) {
    for (const auto& [key, value] : subject.figures.members()) {
      const std::int64_t layers = std::clamp<std::int64_t>(value.as_integer().value_or(0), 0, kMostLayers);
      if (key.ends_with(".block_count")) count.layers += layers;
      if (!key.ends_with(".nextn_predict_layers")) continue;
      count.layers -= layers;  // block_count has them too
      count.has_more = layers > 0;
    }
    return count;
  }
  count.layers = subject.figures["num_hidden_layers"].as_integer().value_or(0);
  for (const char* key : {"num_nextn_predict_layers", "num_mtp_modules", "mtp_num_hidden_layers",
                          "num_mtp_layers", "mtp_num_layers"})
    count.has_more |= subject.figures[key].as_integer().value_or(0) > 0;
  return count;
}

// What the tensors add up to, part by part.
struct Tally {
  std::int64_t logical = 0, mtp = 0, head = 0, buffers = 0;
  std::int64_t scales = 0;        // companions of quantized weights
  std::int64_t block_scales = 0;  // those of gpt-oss's blocks
  std::int64_t held = 0;          // weights that what is shown holds, but for companions
  std::int64_t carried = 0;       // what is shown of their carriers
  std::int64_t shown = 0;         // what the hub would show
  bool is_known = true;
};

class Counter {
 public:
  Counter(const Subject& subject, const Report& report, const model::StoredWeights& stored)
      : stored_(stored), layers_(layers_of(subject)), parts_(report.spec, stored.tensors.kinds) {
    for (const model::StoredKind& kind : stored.kinds)
      if (kind.part == model::Part::kBlocks) modules_of_blocks_.insert(kind.module);
    ties_ = report.spec ? report.spec->ties_embeddings
                        : subject.figures["tie_word_embeddings"].as_bool().value_or(false);
    vocab_size_ =
        report.spec ? report.spec->vocab_size : subject.figures["vocab_size"].as_integer().value_or(0);
  }

  Tally count(std::vector<Group>& groups) {
    for (std::size_t i = 0; i < stored_.kinds.size(); ++i) count_kind(i, groups);
    return tally_;
  }

 private:
  void count_kind(std::size_t index, std::vector<Group>& groups) {
    const model::TensorKind& tensors = stored_.tensors.kinds[index];
    const model::StoredKind& kind = stored_.kinds[index];
    const std::int64_t shown = shown_elements(tensors, kind);
    tally_.shown = capped_sum(tally_.shown, shown);
    if (kind.is_companion) {
      std::int64_t& scales = is_of_blocks(kind) ? tally_.block_scales : tally_.scales;
      scales = capped_sum(scales, shown);
      return;
    }
    if (!kind.elements) {
      tally_.is_known = false;
      return;
    }
    const WeightGroup group = parts_.group_of(tensors, kind.module);
    if (!kind.is_quantized && (parts_.is_buffer(tensors) || is_table(tensors.dtype))) {
      tally_.buffers = capped_sum(tally_.buffers, shown);
      return;
    }
    if (group == WeightGroup::kHead && is_copy_of_embedding(tensors)) {
      tally_.head = capped_sum(tally_.head, *kind.elements);
    } else {
      const std::int64_t mtp =
          group == WeightGroup::kMtp ? tensors.count : count_mtp(tensors, layers_.layers, layers_.has_more);
      const std::int64_t of_mtp =
          mtp == tensors.count ? *kind.elements : capped_product(*kind.elements / tensors.count, mtp);
      tally_.mtp = capped_sum(tally_.mtp, of_mtp);
      if (mtp != tensors.count) {
        tally_.logical = capped_sum(tally_.logical, *kind.elements - of_mtp);
        add_to(groups, group, *kind.elements - of_mtp);
      }
    }
    tally_.carried = capped_sum(tally_.carried, shown);
    tally_.held = capped_sum(tally_.held, *kind.elements);
  }

  // The hub counts elements as stored, but each byte of gpt-oss's blocks as the two weights it holds.
  static std::int64_t shown_elements(const model::TensorKind& tensors, const model::StoredKind& kind) {
    const std::int64_t elements = tensors.total_elements();
    return kind.is_quantized && kind.weight.layout == model::Layout::kMxfp4Blocks
               ? capped_product(elements, 2)
               : elements;
  }

  bool is_of_blocks(const model::StoredKind& scale) const {
    return modules_of_blocks_.contains(scale.module);
  }

  // A stored head that is tied. What stands beside the matrix (biases, a layer before it) is the head's own.
  bool is_copy_of_embedding(const model::TensorKind& head) const {
    const bool has_words = head.shape.size() == 2 && (vocab_size_ <= 0 || head.shape[0] >= vocab_size_);
    return ties_ && has_words && !parts_.lists(head);
  }

  static bool is_table(DType dtype) {
    return dtype == DType::kI64 || dtype == DType::kI32 || dtype == DType::kBool || dtype == DType::kU8;
  }

  const model::StoredWeights& stored_;
  std::unordered_set<std::string_view> modules_of_blocks_;  // gpt-oss's
  LayerCount layers_;
  Parts parts_;
  bool ties_ = false;
  std::int64_t vocab_size_ = 0;  // 0: not stated
  Tally tally_;
};

void differ(Parameters& parameters, Cause cause, std::int64_t count) {
  if (count != 0) parameters.differences.push_back({cause, count});
}

void count_from_headers(const Subject& subject, const Report& report, const model::StoredWeights& stored,
                        Parameters& parameters) {
  const Tally tally = Counter(subject, report, stored).count(parameters.by_group);
  if (!subject.is_gguf()) parameters.hub_total = tally.shown;  // the hub's total is of safetensors
  if (!tally.is_known) {
    parameters.by_group.clear();
    return;
  }
  parameters.total = tally.logical;
  parameters.mtp = tally.mtp;
  if (subject.is_gguf()) return;
  differ(parameters, Cause::kMtp, tally.mtp);
  differ(parameters, Cause::kTiedHeadStored, tally.head);
  differ(parameters, Cause::kQuantizationScales, tally.scales);
  differ(parameters, Cause::kMxfp4Blocks, tally.block_scales);
  differ(parameters, Cause::kPacked4Bit, tally.carried - tally.held);
  differ(parameters, Cause::kStoredBuffers, tally.buffers);
}

void count_parameters(const Subject& subject, Report& report, const model::StoredWeights& stored) {
  Parameters& parameters = report.parameters;
  if (!stored.kinds.empty())
    count_from_headers(subject, report, stored, parameters);
  else if (report.spec && report.spec->has_all_weights)
    count_from_spec(*report.spec, parameters);
  else if (report.spec)
    report.findings.push_back(
        {"ENCODER_NOT_COUNTED", FindingLevel::kInfo, FindingKind::kUnsupported,
         "config.json: /" + (report.spec->encoders.empty() ? std::string() : report.spec->encoders.front()),
         "the encoder's parameters cannot be told from this config, so the total is "
         "not known; layers and KV cache are those "
         "of the language model",
         "give the weight files: their headers hold the exact count"});
  if (!report.spec) return;
  const bool lists_mtp =
      std::any_of(report.spec->weights.begin(), report.spec->weights.end(),
                  [](const model::Weight& weight) { return weight.group == WeightGroup::kMtp; });
  if (!parameters.mtp && !lists_mtp && layers_of(subject).has_more) {
    report.findings.push_back({"MTP_NOT_COUNTED", FindingLevel::kInfo, FindingKind::kUnsupported,
                               subject.place("num_hidden_layers"),
                               "the config declares prediction layers whose weights are not known for this "
                               "architecture; they are in "
                               "none of the figures",
                               "give the weight files: their headers hold the exact count"});
  } else if (!parameters.mtp) {
    parameters.mtp = 0;
    for (const auto& weight : report.spec->weights)
      if (weight.group == WeightGroup::kMtp && weight.is_parameter)
        parameters.mtp = capped_sum(*parameters.mtp, weight.elements());
  }
  parameters.active = model::count_active_parameters(*report.spec, true);
  parameters.active_without_embedding = model::count_active_parameters(*report.spec, false);
}

void measure_stored(const Subject& subject, const model::StoredWeights& stored, Weights& weights) {
  Bytes bytes;
  for (const model::TensorKind& kind : stored.tensors.kinds) {
    auto row = std::find_if(weights.by_dtype.begin(), weights.by_dtype.end(),
                            [&](const StoredAs& known) { return known.dtype == kind.dtype; });
    if (row == weights.by_dtype.end())
      row = weights.by_dtype.insert(row, StoredAs{kind.dtype, 0, 0, Bytes(0)});
    row->parameters = capped_sum(row->parameters, kind.total_elements());
    row->num_tensors += kind.count;
    row->bytes = Bytes(capped_sum(row->bytes.value, kind.bytes));
    bytes = Bytes(capped_sum(bytes.value, kind.bytes));
  }
  weights.bytes = bytes;
  weights.is_exact = true;
  weights.num_tensors = static_cast<std::int64_t>(subject.artifact.tensors().size());
  // Also files without tensors: the first of a split GGUF often holds the metadata alone.
  Bytes file_bytes;
  for (const int file : subject.artifact.weights_files()) {
    ++weights.num_files;
    file_bytes += subject.artifact.files()[static_cast<std::size_t>(file)].bytes;
  }
  weights.file_bytes = file_bytes;
  // By name where bytes are equal, so that the order does not hang on the order of the file.
  std::sort(weights.by_dtype.begin(), weights.by_dtype.end(), [](const StoredAs& a, const StoredAs& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.dtype < b.dtype;
  });
}

// What the whole model would take in another type, were every weight stored so.
void estimate_other_dtypes(const Report& report, Weights& weights) {
  if (!report.parameters.total) return;
  constexpr std::array<DType, 6> kShown{DType::kF32,  DType::kBF16,  DType::kF8E4M3,
                                        DType::kQ8_0, DType::kMXFP4, DType::kQ4_0};
  for (const DType dtype : kShown) {
    const std::int64_t block = info(dtype).block_elements;
    const auto padded = checked_sum(*report.parameters.total, block - 1);
    const auto bytes = padded ? stored_bytes(dtype, *padded / block * block) : std::nullopt;
    if (bytes) weights.if_stored_as.push_back({dtype, *report.parameters.total, 0, *bytes});
  }
}

// What the hub itself shows: held against the headers, and taken where nothing else tells.
void take_hub_total(const Subject& subject, Report& report) {
  const artifact::HubFacts* hub = subject.artifact.hub();
  Parameters& parameters = report.parameters;
  if (!hub || subject.is_gguf() || hub->safetensors_total.value_or(0) <= 0) return;
  const std::int64_t shown = *hub->safetensors_total;
  if (parameters.hub_total == shown) return;
  if (parameters.hub_total && parameters.hub_total_source.empty()) {
    add_check(report.findings, "HUB_TOTAL_DIFFERS", FindingLevel::kInfo, hub->id,
              fmt::format("the hub shows {} parameters, the headers of the files add up to {}",
                          with_commas(shown), with_commas(*parameters.hub_total)),
              "trust the headers: the hub may have counted another upload");
    return;
  }
  parameters.hub_total = shown;
  parameters.hub_total_source = "shown by the hub for " + hub->id;
  parameters.differences.clear();
  if (parameters.total) differ(parameters, Cause::kUnexplained, shown - *parameters.total);
}

}  // namespace

void measure_sizes(const Subject& subject, Report& report) {
  Weights& weights = report.weights;
  const auto declared = model::declared_quantization(subject.artifact);
  model::StoredWeights stored;
  // Files that were read and hold nothing are no case for what the config would have.
  const bool is_empty = std::any_of(subject.artifact.findings().begin(), subject.artifact.findings().end(),
                                    [](const Finding& finding) { return finding.id == "WEIGHTS_EMPTY"; });
  if (is_empty) measure_stored(subject, stored, weights);
  if (!subject.artifact.tensors().empty()) {
    stored = model::read_stored_weights(subject.artifact, declared ? &*declared : nullptr);
    measure_stored(subject, stored, weights);
    check_quantization(subject, declared, stored, report.findings);
  }
  weights.quantization = quantization_json(subject, declared, stored);
  count_parameters(subject, report, stored);
  count_active_of_gguf(subject, report);
  weights.index_total_size_bytes = subject.artifact.index_total_size_bytes();
  estimate_other_dtypes(report, weights);
  if (stored.kinds.empty() && !is_empty) estimate_checkpoint(subject, declared, report);
  take_hub_total(subject, report);
}

}  // namespace plimsoll::inspect
