// SPDX-License-Identifier: Apache-2.0
#include "inspect/weight_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "inspect/names_list.h"
#include "inspect/parameter_groups.h"
#include "model/tensor_kinds.h"

namespace plimsoll::inspect {
namespace {

constexpr std::size_t kHeadSampleBytes = 1 << 16;  // compared without --deep

std::string shape_text(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ","));
}

// Where a file keeps the language model: wrappers put their own words before its names
// ("language_model.model." or "model.language_model." for "model."), files of a model without its head put
// none. Seen once, at the embedding.
class Names {
 public:
  Names(const Subject& subject, const model::ModelSpec& spec) : subject_(subject) {
    const auto embedding = std::find_if(spec.weights.begin(), spec.weights.end(), [](const auto& weight) {
      return weight.group == model::WeightGroup::kEmbedding;
    });
    if (subject.is_gguf() || embedding == spec.weights.end()) return;
    embedding_ = embedding->hf_name;
    if (subject.artifact.find(embedding_)) return;
    base_ = embedding_.substr(0, embedding_.find('.') + 1);  // "model.", "transformer."
    const std::string ending = embedding_.substr(base_.size());
    if (ending.find('.') == std::string::npos) return;  // "shared.weight" stands at the top already
    for (const auto& tensor : subject.artifact.tensors()) {
      if (!tensor.name.ends_with(ending)) continue;
      std::string before(tensor.name.substr(0, tensor.name.size() - ending.size()));
      if (!before.empty() && !before.ends_with('.')) continue;
      prefix_ = std::move(before);
      return;
    }
  }

  const artifact::Tensor* find(const std::string& name) const {
    if (const auto* tensor = subject_.artifact.find(name)) return tensor;
    if (!prefix_) return nullptr;
    if (name.starts_with(base_)) return subject_.artifact.find(*prefix_ + name.substr(base_.size()));
    // A head stands beside the model, not in it: "language_model.lm_head.weight".
    const std::size_t inner = prefix_->rfind(base_);
    return subject_.artifact.find(prefix_->substr(0, inner == std::string::npos ? 0 : inner) + name);
  }

  const artifact::Tensor* embedding() const { return find(embedding_); }
  /// True for files that were written from the model without its head.
  bool is_headless() const { return prefix_ && prefix_->empty(); }

 private:
  const Subject& subject_;
  std::string embedding_, base_;
  std::optional<std::string> prefix_;  // instead of base_
};

// The name of one of several weights of a shape.
std::string copy_name(const std::string& pattern, int copy) {
  const std::size_t at = pattern.find("{}");
  if (at == std::string::npos) return pattern;
  return pattern.substr(0, at) + std::to_string(copy) + pattern.substr(at + 2);
}

std::string place_of(const Subject& subject, const artifact::Tensor& tensor) {
  constexpr std::size_t kMaxPlace = 512;  // names of hostile files may have megabytes
  return fmt::format("{}: {}", subject.artifact.files()[static_cast<std::size_t>(tensor.file)].path,
                     tensor.name.substr(0, kMaxPlace));
}

class Comparison {
 public:
  Comparison(const Subject& subject, const Names& names, Report& report)
      : subject_(subject), names_(names), report_(report) {}

  void run() {
    for (const auto& weight : report_.spec->weights) {
      compare(weight, 0);
      if (weight.copies > 1) compare(weight, weight.copies - 1);  // what lies between is as they are
    }
    if (layers_found_.empty() && !report_.spec->layers.empty() && !subject_.is_gguf())
      return tell_other_names();
    are_names_known_ = forget_other_names();
    tell_layers();
    tell_more_layers();
    tell_names();
  }

 private:
  const std::string& name_of(const model::Weight& weight) const {
    return subject_.is_gguf() ? weight.gguf_name : weight.hf_name;
  }

  // Prediction layers are left out of many files.
  bool may_be_absent(const model::Weight& weight) const {
    return weight.is_optional || !weight.is_parameter || weight.group == model::WeightGroup::kMtp ||
           (weight.group == model::WeightGroup::kHead && names_.is_headless());
  }

  // Kernels and stacks have more dimensions in files than as matrices, or experts stand below one another.
  bool has_shape(const artifact::Tensor& tensor, const model::Weight& weight) const {
    if (tensor.shape == weight.shape) return true;
    const bool is_stack = weight.copies > 1 && name_of(weight).find("{}") == std::string::npos;
    const std::int64_t elements = is_stack ? weight.elements() : weight.elements() / weight.copies;
    return (is_stack || tensor.shape.size() != weight.shape.size()) && tensor.elements() == elements;
  }

  void compare(const model::Weight& weight, int copy) {
    const std::string name = copy_name(name_of(weight), copy);
    if (name.empty()) return;
    const artifact::Tensor* tensor = names_.find(name);
    // Encoders have other names in some files, and the same names for other shapes.
    if (weight.group == model::WeightGroup::kEncoder) {
      if (tensor) known_.insert(tensor->name);
      has_unseen_encoder_ |= !tensor;
      return;
    }
    if (weight.layer >= 0 && tensor && weight.group != model::WeightGroup::kMtp)
      layers_found_.insert(weight.layer);
    if (!tensor) {
      if (!may_be_absent(weight)) absent_.push_back({name, weight.layer});
      return;
    }
    found_patterns_.insert(model::name_pattern(name));
    if (layer_words_.empty() && weight.layer == 0) note_layer_words(tensor->name);
    known_.insert(tensor->name);
    if (has_shape(*tensor, weight)) return;
    if (mismatched_ == 0) {
      first_mismatch_ = fmt::format("{} {} against {} by the config", tensor->name, shape_text(tensor->shape),
                                    shape_text(weight.shape));
      first_mismatch_place_ = place_of(subject_, *tensor);
    }
    ++mismatched_;
  }

  // "model.layers." of "model.layers.0.mlp.up_proj.weight".
  void note_layer_words(std::string_view name) {
    const std::size_t at = name.find(".0.");
    if (at != std::string_view::npos) layer_words_ = name.substr(0, at + 1);
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
                            num_layers, layers_found_.size(), names_list(empty)),
                "use the config of these weights");
    std::erase_if(absent_,
                  [&](const auto& name) { return name.second >= 0 && !layers_found_.contains(name.second); });
  }

  // Whole layers behind the config's last one, which nothing runs. Those that predict further tokens are no
  // layers of the decoder.
  void tell_more_layers() {
    const auto& spec = *report_.spec;
    const auto num_layers = static_cast<std::int64_t>(spec.layers.size());
    if (spec.layers.empty() || has_prediction_layers()) return;
    std::set<std::int64_t> more;
    const artifact::Tensor* first = nullptr;
    for (const auto& tensor : subject_.artifact.tensors()) {
      const auto layer = known_.contains(tensor.name) ? std::nullopt : decoder_layer(tensor.name);
      if (!layer || *layer < num_layers) continue;
      // The config may keep silent about layers that predict further tokens; their names do not.
      for (const char* word : {".enorm", ".hnorm", ".eh_proj", "mtp", "nextn"})
        if (tensor.name.find(word) != std::string_view::npos) return;
      if (!first) first = &tensor;
      more.insert(*layer);
    }
    if (!first) return;
    std::vector<std::string> names;
    for (const std::int64_t layer : more) names.push_back(std::to_string(layer));
    has_more_layers_ = true;
    add_check(report_.findings, "CFG_LAYERS_MISMATCH", FindingLevel::kError, place_of(subject_, *first),
              fmt::format("the config has {} layers, the weights also have tensors of layers {}: they would "
                          "be left out",
                          num_layers, names_list(names)),
              "use the config of these weights");
  }

  bool has_prediction_layers() const {
    const auto& spec = *report_.spec;
    if (!spec.mtp_layers.empty()) return true;
    for (const char* key : {"num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules",
                            "num_mtp_layers", "mtp_num_layers"})
      if (subject_.figures[key].as_integer().value_or(0) > 0) return true;
    return subject_.is_gguf();
  }

  // The number behind the words that the spec's own layers stand under; nothing for any other name.
  std::optional<std::int64_t> decoder_layer(std::string_view name) const {
    if (layer_words_.empty()) return std::nullopt;
    const std::string_view rest = name.starts_with(layer_words_) ? name.substr(layer_words_.size()) : "";
    std::int64_t layer = -1;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), layer);
    const bool is_number = error == std::errc{} && end != rest.data() + rest.size() && *end == '.';
    return is_number ? std::optional(layer) : std::nullopt;
  }

  // A file that lacks every layer has other names for them: how whole it is cannot be told by ours.
  void tell_other_names() {
    if (is_complete())
      add_check(report_.findings, "CFG_NAMES_UNKNOWN",
                subject_.figures_pointer.empty() ? FindingLevel::kWarning : FindingLevel::kInfo,
                place_of(subject_, subject_.artifact.tensors().front()),
                fmt::format("no layer of the weights has a name that files of {} use; what they lack and the "
                            "shapes they should have were not compared",
                            report_.spec->architecture),
                "see that config and weights are of one model");
  }

  // Names of plain decoders are certain. Elsewhere a weight that is found nowhere may have another name, and
  // only one that some layers have and others lack is missing. True when nothing was forgotten.
  bool forget_other_names() {
    const auto& weights = report_.spec->weights;
    const bool is_plain = subject_.figures_pointer.empty() &&
                          std::all_of(weights.begin(), weights.end(), [](const model::Weight& weight) {
                            return weight.role != model::Role::kNone;
                          });
    if (is_plain) return true;
    return std::erase_if(absent_, [&](const auto& name) {
             return name.second < 0 || !found_patterns_.contains(model::name_pattern(name.first));
           }) == 0;
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
          report_.findings, "CFG_MISSING_TENSOR", FindingLevel::kError,
          fmt::format("{}: {}", list_of_tensors(), names.front()),
          fmt::format("{} tensors that the config calls for are absent: {}", names.size(), names_list(names)),
          "download the weights again, or use their own config");
    }
    std::vector<std::string> extra;
    const artifact::Tensor* first = nullptr;
    for (const auto& tensor : subject_.artifact.tensors()) {
      if (known_.contains(tensor.name) || is_expected_extra(tensor.name, tensor.shape)) continue;
      if (!first) first = &tensor;
      extra.emplace_back(tensor.name);
    }
    if (first && subject_.figures_pointer.empty() && are_names_known_ && !has_unseen_encoder_ &&
        !has_more_layers_)
      add_check(report_.findings, "ST_UNEXPECTED_TENSOR", FindingLevel::kInfo, place_of(subject_, *first),
                fmt::format("{} tensors are not ones that {} has: {}", extra.size(),
                            report_.spec->architecture, names_list(extra)),
                "see that config and weights are of one model; loaders leave these tensors out");
  }

  // The file that should name a tensor: the index of several.
  std::string list_of_tensors() const {
    const auto& files = subject_.artifact.files();
    const auto index = std::find_if(files.begin(), files.end(), [](const artifact::File& file) {
      return file.role == artifact::FileRole::kIndex;
    });
    if (index != files.end()) return index->path;
    return files[static_cast<std::size_t>(subject_.artifact.tensors().front().file)].path;
  }

  // A file that is broken, or a part that is absent, is told already; what it lacks is no news.
  bool is_complete() const {
    return std::none_of(report_.findings.begin(), report_.findings.end(), [](const Finding& finding) {
      return finding.level == FindingLevel::kError && finding.kind == FindingKind::kMalformed;
    });
  }

  bool is_expected_extra(std::string_view name, std::span<const std::int64_t> shape) const {
    return is_buffer(name, shape) || (report_.spec->ties_embeddings && name == "lm_head.weight") ||
           name.find(".experts.") != std::string_view::npos;
  }

  const Subject& subject_;
  const Names& names_;
  Report& report_;
  std::unordered_set<std::string_view> known_;  // views into the artifact
  std::set<int> layers_found_;
  std::unordered_set<std::string> found_patterns_;  // names without their numbers
  std::string layer_words_;                         // before a layer's number, as the file has them
  bool has_more_layers_ = false;
  bool are_names_known_ = true;
  bool has_unseen_encoder_ = false;                  // its weights go by other names here
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

void check_tied_head(const Subject& subject, const Names& names, Report& report) {
  if (subject.is_gguf() || !report.spec->ties_embeddings) return;
  const auto* head = names.find("lm_head.weight");
  const auto* embedding = names.embedding();
  if (!head || !embedding) return;
  const auto a = subject.artifact.data(*head), b = subject.artifact.data(*embedding);
  if (!a || !b) return;
  const std::size_t size = std::min(a->size(), b->size());
  const std::size_t compared = subject.options.is_deep ? size : std::min(size, kHeadSampleBytes);
  const bool differs = a->size() != b->size() || std::memcmp(a->data(), b->data(), compared) != 0;
  if (differs)
    add_check(
        report.findings, "CFG_TIED_HEAD_DIFFERS", FindingLevel::kWarning, place_of(subject, *head),
        "tie_word_embeddings is true, but the stored lm_head.weight differs from the embedding; transformers "
        "ignores it",
        "set tie_word_embeddings to false if the stored head is meant");
}

}  // namespace

void check_weights(const Subject& subject, Report& report) {
  if (!report.spec || subject.artifact.tensors().empty()) return;
  if (!subject.is_gguf() && !report.weights.quantization.is_null()) return;
  const Names names(subject, *report.spec);
  if (report.spec->has_file_names) Comparison(subject, names, report).run();
  check_dtype(subject, report);
  check_tied_head(subject, names, report);
}

}  // namespace plimsoll::inspect
