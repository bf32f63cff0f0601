// SPDX-License-Identifier: Apache-2.0
#include "inspect/hub_total.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"
#include "facts/catalogue.h"
#include "facts/unstated_parts.h"
#include "inspect/hub_causes.h"
#include "memory/quantized_weights.h"
#include "model/quantization.h"

namespace plimsoll::inspect {
namespace {

constexpr std::array<std::string_view, 11> kCauses{"mtp",
                                                   "tied_head_stored",
                                                   "quantization_scales",
                                                   "mxfp4_blocks",
                                                   "packed_4bit",
                                                   "stored_buffers",
                                                   "shared_kv_stored",
                                                   "vocabulary_rows",
                                                   "unstated_config",
                                                   "rounding",
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

// One way to read what the checkpoint holds: what it certainly has then, and what it may have.
struct Reading {
  std::optional<Difference> certain;
  std::vector<Difference> causes;
};

constexpr std::pair<memory::Recipe, std::string_view> kRecipes[] = {
    {memory::Recipe::kExperts, "of the experts alone"},
    {memory::Recipe::kFeedForward, "of all feed-forward layers"},
    {memory::Recipe::kFeedForwardAndOutput, "of all feed-forward layers and attention's outputs"},
    {memory::Recipe::kAllLinear, "of all linear layers"},
};

// NVFP4 by one of modelopt's recipes: its declaration stands in a file of its own that a config alone does
// not show, for mixed precision it may name the algorithm of no module, and its list of what stays is not
// always whole.
std::vector<Reading> by_recipes(const ModelSpec& spec, const std::optional<model::Quantization>& declared) {
  if (declared && !declared->method.starts_with("modelopt")) return {};
  model::QuantizationScheme scheme;
  scheme.layout = model::Layout::kNvfp4;
  scheme.bits = 4;
  scheme.group_size = 16;
  scheme.has_input_scale = true;
  const model::QuantizationScheme* main = declared ? declared->main_scheme() : nullptr;
  if (main && main->layout == scheme.layout) scheme = *main;
  std::vector<Reading> readings;
  for (const auto& [recipe, what] : kRecipes) {
    const auto checkpoint = memory::checkpoint_by_recipe(spec, recipe, scheme);
    if (!checkpoint || checkpoint->packed == 0) continue;
    readings.push_back({{}, possible_causes(spec, checkpoint)});
    for (Difference& cause : readings.back().causes)
      if (cause.cause == Cause::kPacked4Bit) cause.detail = what;
  }
  return readings;
}

// A checkpoint that was made with values which this config leaves out.
std::optional<Reading> with_unstated(const Subject& subject, std::int64_t total,
                                     const facts::UnstatedPart& part) {
  const Json config = facts::filled(subject.artifact.config(), part);
  if (config.is_null()) return std::nullopt;
  const auto spec = model::read_spec(config, subject.config_file);
  const auto parameters = spec ? model::count_parameters(*spec) : std::nullopt;
  if (!parameters) return std::nullopt;
  const auto checkpoint = memory::stored_checkpoint(*spec, model::read_quantization(config, {}));
  Reading reading{{}, possible_causes(*spec, checkpoint)};
  if (*parameters != total)
    reading.certain = Difference{Cause::kUnstatedConfig, *parameters - total, std::string(part.what)};
  else
    for (Difference& cause : reading.causes)
      if (cause.cause == Cause::kMtp) cause.detail = part.what;
  return reading;
}

std::vector<Reading> readings_of(const Subject& subject, const Report& report,
                                 const std::optional<model::Quantization>& declared,
                                 const std::vector<Difference>& causes, bool is_less) {
  std::vector<Reading> readings{{{}, causes}};
  if (report.spec->quantization.empty()) {
    readings.push_back(readings.front());
    for (Difference& scales : undeclared_scales(*report.spec))
      readings.back().causes.push_back(std::move(scales));
  }
  if (is_less)
    for (Reading& reading : by_recipes(*report.spec, declared)) readings.push_back(std::move(reading));
  for (const facts::UnstatedPart& part : facts::unstated_parts())
    if (auto reading = with_unstated(subject, *report.parameters.total, part))
      readings.push_back(std::move(*reading));
  return readings;
}

// The first account that leaves nothing.
std::optional<Explanation> explain_whole(const Subject& subject, const Report& report,
                                         const std::optional<model::Quantization>& declared,
                                         const std::vector<Difference>& causes, std::int64_t published) {
  const std::int64_t total = *report.parameters.total;
  for (const Reading& reading : readings_of(subject, report, declared, causes, published < total)) {
    const std::int64_t certain = reading.certain ? reading.certain->parameters : 0;
    Explanation explained = explain(published - total - certain, reading.causes);
    if (explained.rest != 0) continue;
    if (reading.certain) explained.differences.insert(explained.differences.begin(), *reading.certain);
    return explained;
  }
  if (const auto rows = vocabulary_rows(published - total, *report.spec)) return Explanation{{*rows}, 0};
  // A round number was written down, not counted in files: it is the unquantized model's.
  return explain_rounded(published, total, possible_causes(*report.spec, std::nullopt));
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
    if (cause.cause < Cause::kStoredBuffers && cause.cause != Cause::kTiedHeadStored) sure.push_back(cause);
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
bool take_published(const Subject& subject, const std::optional<model::Quantization>& declared,
                    const std::optional<memory::StoredCheckpoint>& checkpoint, Report& report) {
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
  const auto whole = explain_whole(subject, report, declared, causes, entry.hub_parameters);
  const bool is_whole = whole.has_value();
  const Explanation explained = is_whole ? *whole : explain_in_part(remainder, causes, entry.hub_parameters);
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

// Published checkpoints hold a part that this config may have lost: then what it declares is not their total.
bool tell_unstated(const Subject& subject, Report& report) {
  for (const facts::UnstatedPart& part : facts::unstated_parts()) {
    if (facts::filled(subject.artifact.config(), part).is_null()) continue;
    add_info(subject, report, "HUB_TOTAL_UNKNOWN",
             fmt::format("published models of type {} differ from what this config says in a part that it "
                         "leaves out: {} ({})",
                         part.model_type, part.what, part.source));
    return true;
  }
  return false;
}

// Scales that the hub leaves out of a checkpoint of modelopt's: all where config.json declares them, else
// those without a shape. Source: huggingface.js 2.17.5, parse-safetensors-metadata.ts.
std::int64_t scales_not_shown(const std::optional<model::Quantization>& declared,
                              const memory::StoredCheckpoint& checkpoint) {
  if (!declared || !declared->method.starts_with("modelopt")) return 0;
  return declared->pointer.empty() ? checkpoint.single_scales : checkpoint.scales;
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
  if (take_published(subject, declared, checkpoint, report)) return;
  // Whether a tied head is stored besides, no config tells.
  if (!checkpoint || report.spec->ties_embeddings || tell_unstated(subject, report)) return;
  const std::int64_t not_shown = scales_not_shown(declared, *checkpoint);
  parameters.hub_total = checkpoint->elements - not_shown;
  parameters.hub_total_source = "what the config declares, as stored";
  const auto differ = [&](Cause cause, std::int64_t count) {
    if (count != 0) parameters.differences.push_back({cause, count});
  };
  differ(Cause::kMtp, checkpoint->mtp);
  differ(Cause::kQuantizationScales, checkpoint->scales - not_shown);
  differ(Cause::kMxfp4Blocks, checkpoint->block_scales);
  differ(Cause::kPacked4Bit, checkpoint->packed);
  differ(Cause::kStoredBuffers, checkpoint->buffers);
}

}  // namespace plimsoll::inspect
