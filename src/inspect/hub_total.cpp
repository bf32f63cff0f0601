// SPDX-License-Identifier: Apache-2.0
#include "inspect/hub_total.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "facts/catalogue.h"
#include "memory/quantized_weights.h"
#include "model/quantization.h"
#include "model/tensor_kinds.h"

namespace plimsoll::inspect {
namespace {

constexpr std::array<std::string_view, 7> kCauses{"mtp",          "tied_head_stored", "quantization_scales",
                                                  "mxfp4_blocks", "packed_4bit",      "stored_buffers",
                                                  "unexplained"};
static_assert(kCauses.size() == static_cast<std::size_t>(Cause::kUnexplained) + 1);

using facts::CatalogueEntry;
using model::ModelSpec;

// Whether a path names the model: "…/DeepSeek-V3/…", "deepseek-ai--DeepSeek-V3_config.json".
bool is_named_in(std::string_view path, std::string_view id) {
  const std::string_view name = id.substr(id.find('/') + 1);
  constexpr std::string_view kBefore = "/_-", kBehind = "/_@";
  for (std::size_t at = path.find(name); at != std::string_view::npos; at = path.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    const bool opens = at == 0 || kBefore.find(path[at - 1]) != std::string_view::npos;
    if (opens && (end == path.size() || kBehind.find(path[end]) != std::string_view::npos)) return true;
  }
  return false;
}

// Whether the entry's config says the same as the one at hand. Texts are compared first: specs take longer.
// Configs are published with and without the quantization that a file beside them states as well.
bool is_same_model(const CatalogueEntry& entry, const ModelSpec& spec, bool is_named) {
  const auto mentions = [&](const std::string& text) {
    return entry.config.find(text) != std::string_view::npos;
  };
  if (!mentions("\"" + spec.model_type + "\"") || !mentions(std::to_string(spec.hidden_size))) return false;
  auto known = model::read_spec(entry.config_json(), entry.id);
  if (!known) return false;
  known->name = spec.name;
  if (is_named && (known->quantization.empty() || spec.quantization.empty()))
    known->quantization = spec.quantization;
  return *known == spec;
}

// The published models that this config describes; the one that the source names alone, if it names one.
std::vector<const CatalogueEntry*> published_as(const Report& report) {
  const CatalogueEntry* asked = facts::find_catalogue(report.source);
  if (asked && is_same_model(*asked, *report.spec, true)) return {asked};
  bool names_one = false;
  std::vector<const CatalogueEntry*> same;
  for (const CatalogueEntry& entry : facts::catalogue()) {
    const bool is_named = is_named_in(report.source, entry.id);
    names_one |= is_named;
    if (is_same_model(entry, *report.spec, is_named)) same.push_back(&entry);
  }
  const auto named = std::find_if(same.begin(), same.end(), [&](const CatalogueEntry* entry) {
    return is_named_in(report.source, entry->id);
  });
  if (named != same.end()) return {*named};
  if (names_one) return {};  // what another repository shows says nothing of it
  std::erase_if(same, [](const CatalogueEntry* entry) { return entry->hub_parameters == 0; });
  return same;
}

std::int64_t sum_of(const ModelSpec& spec, bool (*is_meant)(const model::Weight&)) {
  std::int64_t sum = 0;
  for (const model::Weight& weight : spec.weights)
    if (is_meant(weight)) sum = model::capped_sum(sum, weight.elements());
  return sum;
}

// What a checkpoint of this config may hold beside the model's parameters, or lack of them.
std::vector<Difference> possible_causes(const ModelSpec& spec,
                                        const std::optional<memory::StoredCheckpoint>& checkpoint) {
  using model::WeightGroup;
  std::vector<Difference> causes;
  const auto add = [&](Cause cause, std::int64_t parameters) {
    if (parameters != 0) causes.push_back({cause, parameters});
  };
  add(Cause::kMtp,
      sum_of(spec, [](const auto& w) { return w.is_parameter && w.group == WeightGroup::kMtp; }));
  add(Cause::kStoredBuffers,
      sum_of(spec, [](const auto& w) { return !w.is_parameter && !w.hf_name.empty(); }));
  if (checkpoint) {
    add(Cause::kQuantizationScales, checkpoint->scales);
    add(Cause::kMxfp4Blocks, checkpoint->block_scales);
    add(Cause::kPacked4Bit, checkpoint->packed);
  }
  if (spec.ties_embeddings) add(Cause::kTiedHeadStored, spec.vocab_size * spec.hidden_size);
  // Buffers that only old checkpoints have: rotary frequencies of each layer, causal masks of each layer.
  const auto layers = static_cast<std::int64_t>(spec.layers.size());
  add(Cause::kStoredBuffers, layers * (spec.rope.rotary_dim / 2));
  const auto context = spec.native_context_tokens;
  const auto mask = model::capped_product(model::capped_product(context, context), layers);
  if (std::find(spec.traits.begin(), spec.traits.end(), model::Trait::kLearnedPositions) != spec.traits.end())
    add(Cause::kStoredBuffers, mask);
  return causes;
}

// Configs of checkpoints in fp8 are published without their quantization too: the scales of its blocks tell
// it.
std::vector<Difference> undeclared_scales(const ModelSpec& spec) {
  constexpr const char* kBlocks =
      R"({"quantization_config":{"quant_method":"fp8","weight_block_size":[128,128]}})";
  const auto config = parse_json(kBlocks, "fp8");
  const auto checkpoint = memory::stored_checkpoint(spec, model::read_quantization(*config, {}));
  if (!checkpoint || checkpoint->scales == 0) return {};
  return {{Cause::kQuantizationScales, checkpoint->scales}};
}

struct Explanation {
  std::vector<Difference> differences;
  std::int64_t rest = 0;  // that no cause makes up for
};

// The causes that come nearest to the remainder; of equal ones the fewest.
Explanation explain(std::int64_t remainder, const std::vector<Difference>& causes) {
  unsigned best = 0;
  std::int64_t best_rest = remainder;
  const auto far = [](std::int64_t rest) { return rest < 0 ? -rest : rest; };
  for (unsigned chosen = 1; chosen < 1U << causes.size(); ++chosen) {
    std::int64_t rest = remainder;
    bool fits = true;  // what is packed is negative: capped_sum would not do
    for (std::size_t i = 0; i < causes.size(); ++i)
      if (chosen >> i & 1U) fits &= !__builtin_sub_overflow(rest, causes[i].parameters, &rest);
    if (!fits || rest == INT64_MIN) continue;
    const bool is_nearer = far(rest) < far(best_rest);
    const bool is_shorter = rest == best_rest && std::popcount(chosen) < std::popcount(best);
    if (!is_nearer && !is_shorter) continue;
    best = chosen;
    best_rest = rest;
  }
  Explanation result{{}, best_rest};
  for (std::size_t i = 0; i < causes.size(); ++i)
    if (best >> i & 1U) result.differences.push_back(causes[i]);
  return result;
}

void add_info(const Subject& subject, Report& report, std::string id, std::string message) {
  add_check(report.findings, std::move(id), FindingLevel::kInfo, subject.config_file, std::move(message),
            "give the repository or its files: their headers hold the exact count");
}

// Where no sum fits: what every checkpoint of this config holds, if it leaves little. Causes that happen to
// be near explain nothing.
Explanation explain_in_part(std::int64_t remainder, const std::vector<Difference>& causes,
                            std::int64_t published) {
  constexpr std::int64_t kLittle = 1000;  // a thousandth of the model
  std::vector<Difference> sure;
  for (const Difference& cause : causes)
    if (cause.cause != Cause::kTiedHeadStored && cause.cause != Cause::kStoredBuffers) sure.push_back(cause);
  Explanation explained = explain(remainder, sure);
  const std::int64_t most = published / kLittle;
  const bool is_little = explained.rest <= most && explained.rest >= -most;
  return is_little ? explained : Explanation{{}, remainder};
}

void tell_rest(const Subject& subject, const CatalogueEntry& entry, const Explanation& explained,
               bool is_counted, Report& report) {
  std::string known;
  for (const Difference& difference : explained.differences)
    known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", to_string(difference.cause),
                         with_commas(difference.parameters));
  const std::int64_t rest = explained.rest;
  add_info(
      subject, report, "HUB_TOTAL_UNEXPLAINED",
      fmt::format("the hub shows {} parameters for {} ({}): {} {} than this config's weights{}{}, and {}",
                  with_commas(entry.hub_parameters), entry.id, facts::kHubParametersSource,
                  with_commas(rest < 0 ? -rest : rest), rest < 0 ? "fewer" : "more",
                  known.empty() ? "" : " with ", known,
                  is_counted
                      ? fmt::format("no known cause makes up for {}", known.empty() ? "it" : "that rest")
                      : std::string("how many elements its quantized weights are stored in is not counted "
                                    "here")));
}

// Takes the published total where it is known. False: nothing is published.
bool take_published(const Subject& subject, const std::optional<memory::StoredCheckpoint>& checkpoint,
                    Report& report) {
  const auto entries = published_as(report);
  if (entries.empty() || entries.front()->hub_parameters == 0) return false;
  const CatalogueEntry& entry = *entries.front();
  for (const CatalogueEntry* other : entries) {
    if (other->hub_parameters == entry.hub_parameters) continue;
    add_info(subject, report, "HUB_TOTAL_AMBIGUOUS",
             fmt::format(
                 "this config is published as {} and as {}, for which the hub shows {} and {} parameters",
                 entry.id, other->id, with_commas(entry.hub_parameters), with_commas(other->hub_parameters)));
    return true;
  }
  Parameters& parameters = report.parameters;
  const std::vector<Difference> causes = possible_causes(*report.spec, checkpoint);
  const std::int64_t remainder = entry.hub_parameters - *parameters.total;
  Explanation explained = explain(remainder, causes);
  bool is_whole = explained.rest == 0;
  if (!is_whole && report.spec->quantization.empty()) {
    std::vector<Difference> more = causes;
    for (Difference& scales : undeclared_scales(*report.spec)) more.push_back(scales);
    if (Explanation in_blocks = explain(remainder, more); in_blocks.rest == 0) {
      explained = std::move(in_blocks);
      is_whole = true;
    }
  }
  if (!is_whole) explained = explain_in_part(remainder, causes, entry.hub_parameters);
  // A part of an explanation is one only for the very model that is asked for, and when it leaves little.
  const bool is_asked = is_named_in(report.source, entry.id);
  if (is_whole || is_asked) {
    parameters.hub_total = entry.hub_parameters;
    parameters.hub_total_source = fmt::format("published for {}: {}", entry.id, facts::kHubParametersSource);
    parameters.differences = explained.differences;
    if (!is_whole) parameters.differences.push_back({Cause::kUnexplained, explained.rest});
  }
  if (!is_whole) tell_rest(subject, entry, explained, checkpoint.has_value(), report);
  return true;
}

// Of a config that names no type engines take 16 bits; what is stored may have 32.
void assume_dtype(const Subject& subject, const std::optional<model::Quantization>& declared,
                  Report& report) {
  Weights& weights = report.weights;
  weights.is_dtype_assumed = true;
  weights.most_bytes = memory::most_checkpoint_bytes(*report.spec, declared);
  add_check(report.findings, "DTYPE_ASSUMED", FindingLevel::kInfo, subject.place("torch_dtype"),
            fmt::format("the config names no dtype that is known here: {} bytes of weights count 16 bits, {} "
                        "would be 32",
                        with_commas(weights.bytes->value),
                        weights.most_bytes ? with_commas(weights.most_bytes->value) : "more"),
            "give the weight files: their headers hold the exact size");
}

}  // namespace

std::string_view to_string(Cause cause) {
  return kCauses[static_cast<std::size_t>(cause)];
}

void estimate_checkpoint(const Subject& subject, const std::optional<model::Quantization>& declared,
                         Report& report) {
  Parameters& parameters = report.parameters;
  if (!report.spec || !parameters.total || subject.is_gguf()) return;
  const auto checkpoint = memory::stored_checkpoint(*report.spec, declared);
  if (checkpoint) report.weights.bytes = checkpoint->bytes;
  if (checkpoint) report.weights.bytes_within = checkpoint->within;
  if (checkpoint && !report.spec->declared_dtype) assume_dtype(subject, declared, report);
  if (take_published(subject, checkpoint, report)) return;
  // Whether a tied head is stored besides, no config tells.
  if (!checkpoint || report.spec->ties_embeddings) return;
  parameters.hub_total = checkpoint->elements;
  parameters.hub_total_source = "what the config declares, as stored";
  const auto differ = [&](Cause cause, std::int64_t count) {
    if (count != 0) parameters.differences.push_back({cause, count});
  };
  differ(Cause::kMtp, checkpoint->mtp);
  differ(Cause::kQuantizationScales, checkpoint->scales);
  differ(Cause::kMxfp4Blocks, checkpoint->block_scales);
  differ(Cause::kPacked4Bit, checkpoint->packed);
  differ(Cause::kStoredBuffers, checkpoint->buffers);
}

}  // namespace plimsoll::inspect
