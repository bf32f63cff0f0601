// SPDX-License-Identifier: Apache-2.0
#include "model/stored_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <unordered_map>
#include <utility>

namespace plimsoll::model {
namespace {

constexpr std::size_t kMaxFaults = 8;            // told one by one; the rest as a count
constexpr std::size_t kMaxStateBytes = 1 << 16;  // of a quant state's JSON; real ones have 200

using KindList = std::vector<std::size_t>;

// The kinds that share a module's name, each with the part it is.
struct ModuleKinds {
  std::vector<std::pair<Part, std::size_t>> kinds;

  bool has(Part part) const { return first_of(part).has_value(); }
  std::optional<std::size_t> first_of(Part part) const {
    for (const auto& [own, index] : kinds)
      if (own == part) return index;
    return std::nullopt;
  }
};

// Counts by layer, whatever order the file has them in.
std::map<std::int64_t, std::int64_t> counts_by_number(const TensorKind& kind) {
  std::map<std::int64_t, std::int64_t> counts;
  for (const NumberRun& run : kind.runs) counts[run.number] += run.count;
  return counts;
}

bool is_eight_bit_float(DType dtype) {
  return dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2;
}

template <class Value>
Value load(const std::byte* bytes) {
  Value value;
  std::memcpy(&value, bytes, sizeof(Value));
  return value;
}

class Reader {
 public:
  Reader(const artifact::Artifact& artifact, const Quantization* declared)
      : artifact_(artifact), declared_(declared), num_tries_(declared ? declared->num_tries() : 0) {}

  StoredWeights read() {
    result_.tensors = tensor_kinds(artifact_);
    name_kinds();
    const bool is_gguf = artifact_.form() == artifact::Form::kGguf;
    if (!is_gguf)
      for (const ModuleKinds& module : modules_) read_module(module);
    read_one_by_one();
    finish(is_gguf);
    return std::move(result_);
  }

 private:
  const TensorKind& kind(std::size_t index) const { return result_.tensors.kinds[index]; }

  void name_kinds() {
    const auto& kinds = result_.tensors.kinds;
    result_.kinds.resize(kinds.size());
    std::unordered_map<std::string_view, std::size_t> module_of;  // into modules_
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      const StoredName name = split_name(kinds[i].pattern);
      result_.kinds[i].module = name.module;
      result_.kinds[i].part = name.part;
      result_.kinds[i].has_ending = name.has_suffix;
      const auto [at, is_new] = module_of.try_emplace(result_.kinds[i].module, modules_.size());
      if (is_new) modules_.emplace_back();
      modules_[at->second].kinds.emplace_back(name.part, i);
    }
    is_one_by_one_.assign(kinds.size(), false);
  }

  StoredPart part_of(std::size_t index) const { return {kind(index).dtype, kind(index).shape}; }

  // Companions by the first kind of each part: enough to see whether a carrier holds codes.
  StoredGroup outline(const ModuleKinds& module) const {
    StoredGroup group;
    for (auto at = module.kinds.rbegin(); at != module.kinds.rend(); ++at)
      group.parts[static_cast<std::size_t>(at->first)] = part_of(at->second);
    return group;
  }

  // Integers under a name of their own are tables that come with the model, unless scales stand beside them.
  bool is_codes(std::size_t index, const StoredGroup& group) const {
    const StoredKind& stored = result_.kinds[index];
    if (!holds_codes(stored.part, part_of(index), group)) return false;
    return stored.part != Part::kWeight || group[Part::kScale] || group[Part::kAbsmax] ||
           group[Part::kRowScale] || (stored.has_ending && declared_ != nullptr) ||
           is_eight_bit_float(kind(index).dtype);
  }

  void read_module(const ModuleKinds& module) {
    const StoredGroup group = outline(module);
    KindList carriers;
    for (const auto& [part, index] : module.kinds)
      if (is_carrier(part) && is_codes(index, group)) carriers.push_back(index);
    if (carriers.empty()) return;
    for (const auto& [part, index] : module.kinds)
      if (!is_carrier(part)) result_.kinds[index].is_companion = true;
    for (const std::size_t index : carriers) {
      result_.kinds[index].is_quantized = true;
      result_.kinds[index].elements = 0;
    }
    if (pairs_up(module, carriers)) {
      for (const std::size_t index : carriers) read_alike(module, index);
      return;
    }
    for (const auto& [part, index] : module.kinds)
      is_one_by_one_[index] = result_.kinds[index].is_companion || result_.kinds[index].is_quantized;
  }

  // True when the carrier's companions can be told from counts alone: for each part one kind that has as many
  // tensors in the same layers.
  bool pairs_up(const ModuleKinds& module, const KindList& carriers) const {
    if (module.has(Part::kQuantState) || module.has(Part::kShape)) return false;
    std::array<int, kNumParts> num_kinds{};
    for (const auto& [part, index] : module.kinds) {
      // Scales of activations have no say in the weight's shape.
      if (is_carrier(part) || part == Part::kActivation) continue;
      if (++num_kinds[static_cast<std::size_t>(part)] > 1 || carriers.size() != 1) return false;
      const TensorKind &a = kind(index), &b = kind(carriers.front());
      if (a.count != b.count) return false;
      if (a.count != 1 && counts_by_number(a) != counts_by_number(b)) return false;
    }
    return true;
  }

  SchemeHint hint_for(std::string_view tensor) {
    if (!declared_) return {};
    tries_ += num_tries_;
    const bool is_asked = tries_ <= Quantization::kMaxTries;
    result_.has_unasked |= !is_asked;
    const QuantizationScheme* scheme = is_asked ? declared_->scheme_of(split_name(tensor).module) : nullptr;
    if (!scheme) scheme = declared_->main_scheme();
    return scheme ? scheme->hint() : SchemeHint{};
  }

  void read_alike(const ModuleKinds& module, std::size_t carrier) {
    StoredGroup group = outline(module);
    StoredKind& stored = result_.kinds[carrier];
    group.parts[static_cast<std::size_t>(stored.part)] = part_of(carrier);
    const std::string_view example = artifact_.tensors()[kind(carrier).first].name;
    stored.weight = decode_stored(stored.part, group, hint_for(example));
    add_elements(stored, stored.weight.elements, kind(carrier).count);
    if (!stored.weight.fault.empty()) tell(example, stored.weight.fault, kind(carrier).count);
  }

  static void add_elements(StoredKind& stored, std::optional<std::int64_t> elements, std::int64_t count) {
    if (!elements || !stored.elements)
      stored.elements.reset();
    else
      stored.elements = capped_sum(*stored.elements, capped_product(*elements, count));
  }

  // The slow way, for all modules that need it in one pass: their tensors by their names.
  void read_one_by_one() {
    if (std::find(is_one_by_one_.begin(), is_one_by_one_.end(), true) == is_one_by_one_.end()) return;
    std::unordered_map<std::string_view, std::vector<std::size_t>> groups;
    std::vector<std::string_view> order;
    const auto& tensors = artifact_.tensors();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (!is_one_by_one_[result_.tensors.kind_of[i]]) continue;
      const std::string_view name = split_name(tensors[i].name).module;
      auto& members = groups[name];
      if (members.empty()) order.push_back(name);
      members.push_back(i);
    }
    for (const std::string_view name : order) read_group(groups[name]);
  }

  void read_group(const std::vector<std::size_t>& members) {
    StoredGroup group;
    std::optional<std::size_t> carrier;
    for (const std::size_t i : members) {
      const auto& tensor = artifact_.tensors()[i];
      const StoredKind& stored = result_.kinds[result_.tensors.kind_of[i]];
      group.parts[static_cast<std::size_t>(stored.part)] = part_of(result_.tensors.kind_of[i]);
      if (stored.is_quantized) carrier = i;
      if (stored.part == Part::kShape) group.stored_shape = read_shape(tensor);
      if (stored.part == Part::kQuantState) group.stored_shape = read_quant_state(tensor);
    }
    const std::string_view first = artifact_.tensors()[members.front()].name;
    if (!carrier) {
      // Scales beside a weight that is plain in this layer are no fault of their own when nothing needs them.
      tell(first, "there is no quantized weight that this belongs to", 1);
      return;
    }
    StoredKind& stored = result_.kinds[result_.tensors.kind_of[*carrier]];
    const std::string_view name = artifact_.tensors()[*carrier].name;
    DecodedWeight weight = decode_stored(stored.part, group, hint_for(name));
    add_elements(stored, weight.elements, 1);
    if (!weight.fault.empty()) tell(name, weight.fault, 1);
    if (stored.weight.bits == 0) stored.weight = std::move(weight);
  }

  // Values [out, in], little-endian as the format wants; empty when they cannot be read or cannot be meant.
  std::vector<std::int64_t> read_shape(const artifact::Tensor& tensor) const {
    const auto bytes = artifact_.data(tensor);
    const std::size_t size = tensor.dtype == DType::kI64 ? 8 : tensor.dtype == DType::kI32 ? 4 : 0;
    if (!bytes || size == 0 || bytes->size() % size != 0 || bytes->size() / size > 8) return {};
    std::vector<std::int64_t> shape;
    for (std::size_t at = 0; at < bytes->size(); at += size) {
      const std::int64_t value =
          size == 8 ? load<std::int64_t>(bytes->data() + at) : load<std::int32_t>(bytes->data() + at);
      if (value <= 0) return {};
      shape.push_back(value);
    }
    return shape;
  }

  std::vector<std::int64_t> read_quant_state(const artifact::Tensor& tensor) const {
    const auto bytes = artifact_.data(tensor);
    if (!bytes || bytes->size() > kMaxStateBytes) return {};
    const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    const auto state = parse_json(text, tensor.name, {.max_depth = 8});
    if (!state) return {};
    std::vector<std::int64_t> shape;
    for (const Json& item : (*state)["shape"].items()) {
      const auto dimension = item.as_integer();
      if (!dimension || *dimension <= 0) return {};
      shape.push_back(*dimension);
    }
    return shape;
  }

  void tell(std::string_view tensor, const std::string& message, std::int64_t count) {
    num_faults_ += count;
    if (result_.faults.size() < kMaxFaults) result_.faults.push_back({std::string(tensor), message});
  }

  void finish(bool is_gguf) {
    for (std::size_t i = 0; i < result_.kinds.size(); ++i) {
      StoredKind& stored = result_.kinds[i];
      if (!is_gguf && stored.part == Part::kActivation && result_.has_quantized()) stored.is_companion = true;
      if (stored.is_companion)
        stored.elements = 0;
      else if (!stored.is_quantized)
        stored.elements = kind(i).total_elements();
      if (is_gguf) stored.is_quantized = is_block_quantized(kind(i).dtype);
    }
    if (num_faults_ > static_cast<std::int64_t>(result_.faults.size()) && !result_.faults.empty())
      result_.faults.back().message += fmt::format("; {} modules in all do not fit", num_faults_);
  }

  const artifact::Artifact& artifact_;
  const Quantization* declared_;
  std::int64_t num_tries_, tries_ = 0;  // of patterns: for one hint, for all so far
  StoredWeights result_;
  std::vector<ModuleKinds> modules_;  // in the order of their first tensor
  std::vector<bool> is_one_by_one_;   // [kinds]: their tensors are told by their names
  std::int64_t num_faults_ = 0;
};

}  // namespace

bool StoredWeights::has_quantized() const {
  return std::any_of(kinds.begin(), kinds.end(), [](const StoredKind& kind) { return kind.is_quantized; });
}

StoredWeights read_stored_weights(const artifact::Artifact& artifact, const Quantization* declared) {
  return Reader(artifact, declared).read();
}

}  // namespace plimsoll::model
