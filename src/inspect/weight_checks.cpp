// SPDX-License-Identifier: Apache-2.0
#include "inspect/weight_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <span>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace plimsoll::inspect {
namespace {

constexpr std::size_t kNamesShown = 5;
constexpr std::size_t kHeadSampleBytes = 1 << 16;  // compared without --deep

std::string shape_text(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ","));
}

std::string names_text(const std::vector<std::string>& names) {
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kNamesShown));
  std::string text = fmt::format("{}", fmt::join(names.begin(), end, ", "));
  if (names.size() > kNamesShown) text += fmt::format(" and {} more", names.size() - kNamesShown);
  return text;
}

bool is_buffer(std::string_view name) {
  return name.find("inv_freq") != std::string_view::npos || name == "rope_freqs.weight";
}

// Wrappers put their own words before the language model's names ("language_model.model.layers.0...").
const artifact::Tensor* find_by_ending(const Subject& subject, const std::string& name) {
  if (const auto* tensor = subject.artifact.find(name)) return tensor;
  if (subject.is_gguf() || subject.figures_pointer.empty()) return nullptr;
  for (const auto& tensor : subject.artifact.tensors())
    if (tensor.name.size() > name.size() && tensor.name.ends_with(name) &&
        tensor.name[tensor.name.size() - name.size() - 1] == '.')
      return &tensor;
  return nullptr;
}

class Comparison {
 public:
  Comparison(const Subject& subject, Report& report) : subject_(subject), report_(report) {}

  void run() {
    for (const auto& weight : report_.spec->weights) compare(weight);
    tell_layers();
    tell_names();
  }

 private:
  void compare(const model::Weight& weight) {
    const std::string& name = subject_.is_gguf() ? weight.gguf_name : weight.hf_name;
    if (name.empty()) return;
    const artifact::Tensor* tensor = find_by_ending(subject_, name);
    if (weight.layer >= 0 && tensor) layers_found_.insert(weight.layer);
    if (!tensor) {
      if (!weight.is_optional) absent_.emplace_back(name, weight.layer);
      return;
    }
    known_.insert(tensor->name);
    if (tensor->shape == weight.shape) return;
    if (mismatched_ == 0) {
      first_mismatch_ = fmt::format("{} {} against {} by the config", tensor->name, shape_text(tensor->shape),
                                    shape_text(weight.shape));
      first_mismatch_place_ = fmt::format(
          "{}: {}", subject_.artifact.files()[static_cast<std::size_t>(tensor->file)].path, tensor->name);
    }
    ++mismatched_;
  }

  // Layers of which no tensor is there are told as layers, not tensor by tensor.
  void tell_layers() {
    std::vector<std::string> empty;
    const auto num_layers = static_cast<int>(report_.spec->layers.size());
    for (int i = 0; i < num_layers; ++i)
      if (!layers_found_.contains(i)) empty.push_back(std::to_string(i));
    if (!empty.empty() && is_complete())
      add_check(report_.findings, "CFG_LAYERS_MISMATCH", FindingLevel::kError,
                subject_.place(subject_.is_gguf() ? "block_count" : "num_hidden_layers"),
                fmt::format("the config has {} layers, the weights have tensors of {}: layers {} have none",
                            num_layers, layers_found_.size(), names_text(empty)),
                "use the config of these weights");
    std::erase_if(absent_,
                  [&](const auto& name) { return name.second >= 0 && !layers_found_.contains(name.second); });
  }

  void tell_names() {
    if (mismatched_ > 0)
      add_check(report_.findings, "CFG_SHAPE_MISMATCH", FindingLevel::kError, first_mismatch_place_,
                fmt::format("{} tensors have another shape than the config gives them, the first {}",
                            mismatched_, first_mismatch_),
                "use the config of these weights");
    if (!absent_.empty() && is_complete()) {
      std::vector<std::string> names;
      for (const auto& [name, _] : absent_) names.push_back(name);
      add_check(
          report_.findings, "CFG_MISSING_TENSOR", FindingLevel::kError, names.front(),
          fmt::format("{} tensors that the config calls for are absent: {}", names.size(), names_text(names)),
          "download the weights again, or use their own config");
    }
    std::vector<std::string> extra;
    for (const auto& tensor : subject_.artifact.tensors())
      if (!known_.contains(tensor.name) && !is_expected_extra(tensor.name)) extra.emplace_back(tensor.name);
    if (!extra.empty() && subject_.figures_pointer.empty())
      add_check(report_.findings, "ST_UNEXPECTED_TENSOR", FindingLevel::kInfo, extra.front(),
                fmt::format("{} tensors are not ones that {} has: {}", extra.size(),
                            report_.spec->architecture, names_text(extra)));
  }

  // A file that is broken, or a part that is absent, is told already; what it lacks is no news.
  bool is_complete() const {
    return std::none_of(report_.findings.begin(), report_.findings.end(), [](const Finding& finding) {
      return finding.level == FindingLevel::kError && finding.kind == FindingKind::kMalformed;
    });
  }

  bool is_expected_extra(std::string_view name) const {
    return is_buffer(name) || (report_.spec->ties_embeddings && name == "lm_head.weight");
  }

  const Subject& subject_;
  Report& report_;
  std::unordered_set<std::string_view> known_;  // views into the artifact
  std::set<int> layers_found_;
  std::vector<std::pair<std::string, int>> absent_;  // name and layer
  std::string first_mismatch_, first_mismatch_place_;
  int mismatched_ = 0;
};

bool is_float(DType dtype) {
  return dtype == DType::kBF16 || dtype == DType::kF16 || dtype == DType::kF32 || dtype == DType::kF64;
}

void check_dtype(const Subject& subject, Report& report) {
  const auto& declared = report.spec->declared_dtype;
  if (subject.is_gguf() || !declared || report.weights.by_dtype.empty()) return;
  const DType stored = report.weights.by_dtype.front().dtype;
  if (!is_float(stored) || stored == *declared) return;
  add_check(
      report.findings, "CFG_DTYPE_MISMATCH", FindingLevel::kWarning,
      subject.config_file + (subject.artifact.config().contains("dtype") ? ": /dtype" : ": /torch_dtype"),
      fmt::format(
          "the config says {}, most weights are {}{}", name(*declared), name(stored),
          stored == DType::kBF16 && *declared == DType::kF16 ? "; served as f16 they may overflow" : ""),
      "state the stored type");
}

void check_tied_head(const Subject& subject, Report& report) {
  if (subject.is_gguf() || !report.spec->ties_embeddings) return;
  const auto* head = find_by_ending(subject, "lm_head.weight");
  const auto* embedding = find_by_ending(subject, "model.embed_tokens.weight");
  if (!head || !embedding) return;
  const auto a = subject.artifact.data(*head), b = subject.artifact.data(*embedding);
  if (!a || !b) return;
  const std::size_t size = std::min(a->size(), b->size());
  const std::size_t compared = subject.options.is_deep ? size : std::min(size, kHeadSampleBytes);
  const bool differs = a->size() != b->size() || std::memcmp(a->data(), b->data(), compared) != 0;
  if (differs)
    add_check(
        report.findings, "CFG_TIED_HEAD_DIFFERS", FindingLevel::kWarning, std::string(head->name),
        "tie_word_embeddings is true, but the stored lm_head.weight differs from the embedding; transformers "
        "ignores it",
        "set tie_word_embeddings to false if the stored head is meant");
}

}  // namespace

void check_weights(const Subject& subject, Report& report) {
  if (!report.spec || subject.artifact.tensors().empty()) return;
  if (!subject.is_gguf() && !report.weights.quantization.is_null()) return;
  Comparison(subject, report).run();
  check_dtype(subject, report);
  check_tied_head(subject, report);
}

}  // namespace plimsoll::inspect
