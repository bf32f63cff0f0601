// SPDX-License-Identifier: Apache-2.0
// The page for people.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/printable.h"
#include "inspect/deployment_text.h"
#include "inspect/inspect.h"
#include "inspect/layers_text.h"
#include "inspect/tensor_view.h"

namespace plimsoll::inspect {
namespace {

std::string count_or_unknown(const std::optional<std::int64_t>& count) {
  return count ? with_commas(*count) : "not known";
}

constexpr std::int64_t kTiny = 50'000;  // below it MB shows hardly a digit

/// "16.06 GB, 14.96 GiB"; small sizes in MB or bytes, so that their digits show.
std::string rounded(Bytes bytes) {
  constexpr std::int64_t kSmall = 100'000'000, kMB = 1'000'000;
  if (bytes.value >= kSmall) return as_gb(bytes) + ", " + as_gib(bytes);
  if (bytes.value < kTiny) return with_commas(bytes.value) + " bytes";
  const auto amount = static_cast<double>(bytes.value);
  return fmt::format("{:.2f} MB, {:.2f} MiB", amount / kMB, amount / kMiB);
}

std::string size_of(Bytes bytes) {
  const std::string exact = with_commas(bytes.value) + " bytes";
  return bytes.value < kTiny ? exact : fmt::format("{} ({})", exact, rounded(bytes));
}

void line(std::string& page, std::string_view label, const std::string& value) {
  page += fmt::format("{:<22}{}\n", printable(label), printable(value));
}

std::string traffic(const Report& report) {
  const memory::Workload& workload = *report.workload;
  std::string text =
      fmt::format("{} tokens in, {} out, {} at once: {} live tokens", with_commas(workload.input.value),
                  with_commas(workload.output.value), with_commas(workload.concurrency),
                  with_commas(workload.live_tokens().value));
  const auto bytes =
      report.kv_cache ? checked_product(workload.live_tokens().value, report.kv_cache->bytes_per_token.value)
                      : std::nullopt;
  return bytes ? text + fmt::format(", up to {} of KV", as_gib(Bytes(*bytes))) : text;
}

void add_deciding_values(const Report& report, std::string& page) {
  const auto& weights = report.weights;
  line(page, "Weights",
       weights.bytes ? size_of(*weights.bytes) + (weights.is_exact           ? ""
                                                  : weights.is_dtype_assumed ? ", if stored in 16 bits"
                                                                             : ", computed from the config")
                     : "not known");
  std::string context =
      report.context.max_model_len ? count_or_unknown(report.context.max_model_len) + " tokens" : "not known";
  if (report.context.native_tokens && report.context.native_tokens != report.context.max_model_len)
    context += fmt::format(" ({} before scaling)", with_commas(*report.context.native_tokens));
  line(page, "Total context", context);
  line(page, "KV bytes per token",
       report.kv_cache ? fmt::format("{} ({})", with_commas(report.kv_cache->bytes_per_token.value),
                                     name(report.kv_cache->dtype))
                       : "not known");
  line(page, "Traffic", report.workload ? traffic(report) : "not known; give --workload");
}

std::string quantization(const Json& quantized) {
  const std::string* method = quantized["method"].as_string();
  const std::string* format = quantized["format"].as_string();
  std::string text = method ? *method : "method not known";
  if (format && text != *format) text += " " + *format;
  if (const auto bits = quantized["bits"].as_integer()) text += fmt::format(", {} bits", *bits);
  if (const auto group = quantized["group_size"].as_integer(); group && *group > 0)
    text += fmt::format(", groups of {}", *group);
  const std::size_t kept = quantized["unquantized_modules"].size();
  if (kept > 0) text += fmt::format(", {} module{} not quantized", kept, kept == 1 ? "" : "s");
  return text;
}

void add_sizes(const Report& report, std::string& page) {
  page += "\n";
  line(page, "Parameters", count_or_unknown(report.parameters.total));
  if (report.parameters.active && report.parameters.active != report.parameters.total)
    line(page, "  active", with_commas(*report.parameters.active));
  for (const Group& group : report.parameters.by_group)
    line(page, "  " + std::string(model::to_string(group.group)), with_commas(group.parameters));
  for (const StoredAs& row : report.weights.by_dtype)
    line(page, fmt::format("Stored as {}", name(row.dtype)),
         fmt::format("{} tensor{}, {}", with_commas(row.num_tensors), row.num_tensors == 1 ? "" : "s",
                     size_of(row.bytes)));
  if (!report.weights.quantization.is_null())
    line(page, "Quantization", quantization(report.weights.quantization));
  for (const StoredAs& row : report.weights.if_stored_as)
    line(page, fmt::format("If stored as {}", name(row.dtype)), rounded(row.bytes));
}

// Keys and values apart from what stands beside them: states and the keys of indexers.
void add_sequence(const KvCache& cache, std::string& page) {
  if (cache.sequence_tokens <= 0 || !cache.bytes_per_sequence) return;
  line(page, "One sequence",
       fmt::format("{} tokens take {}", with_commas(cache.sequence_tokens),
                   size_of(*cache.bytes_per_sequence)));
  const std::int64_t state = cache.state_bytes_per_sequence.value;
  const std::int64_t index = cache.indexer_bytes_per_token.value * cache.sequence_tokens;
  const std::int64_t kv = cache.bytes_per_sequence->value - state - index;
  if (state + index == 0 || kv <= 0) return;
  line(page, "  keys and values", size_of(Bytes(kv)));
  if (index > 0) line(page, "  keys of indexers", size_of(Bytes(index)));
  if (state > 0) line(page, "  states", size_of(Bytes(state)));
}

void add_structure(const Report& report, std::string& page) {
  if (!report.layers.empty()) page += "\n";
  for (const auto& [label, text] : layer_lines(report.layers)) line(page, label, text);
  if (!report.kv_cache) return;
  const std::int64_t shared = report.kv_cache->bytes_per_token.value;
  const std::int64_t alone = report.kv_cache->without_gqa_bytes_per_token.value;
  if (alone > shared && shared > 0)
    line(page, "Without shared heads",
         fmt::format("{} KV bytes per token: sharing them saves {:.1f}×", with_commas(alone),
                     static_cast<double>(alone) / static_cast<double>(shared)));
  add_sequence(*report.kv_cache, page);
}

void add_inputs(const Report& report, std::string& page) {
  bool is_first = true;
  for (const Json& example : report.multimodal["examples"].items()) {
    const auto tokens = example["tokens"].as_integer();
    if (!tokens) continue;
    if (std::exchange(is_first, false)) page += "\n";
    line(page,
         *example["kind"].as_string() == "image"   ? "Image"
         : *example["kind"].as_string() == "video" ? "Clip"
                                                   : "Sound",
         fmt::format("{} tokens for {}", with_commas(*tokens), *example["size"].as_string()));
  }
}

std::string token_text(const Json& token) {
  const auto id = token["id"].as_integer();
  const std::string text = id ? std::to_string(*id) : "?";
  return token["text"].is_null() ? text : text + " " + dump(token["text"]);
}

void add_tokens(const Report& report, std::string& page) {
  std::string stops;
  for (const Json& stop : report.tokenizer["stop_ids"].items())
    stops += (stops.empty() ? "" : ", ") + token_text(stop);
  const Json& templates = report.tokenizer["chat_template"]["sources"];
  if (!stops.empty() || templates.size() > 0) page += "\n";
  if (!stops.empty()) line(page, "Stops on", stops);
  for (const Json& source : templates.items())
    line(page, "Chat template",
         *source["file"].as_string() + (source["used"].as_bool().value_or(false) ? " (used)" : ""));
  const Json& tensor = report.tensor;
  if (tensor.is_object()) page += "\n" + tensor_text(tensor);
  if (report.tensors.size() > 0) page += "\n";
  for (const Json& row : report.tensors.items())
    page += fmt::format("{} {} {} at byte {} of {}, {} bytes\n", printable(*row["name"].as_string()),
                        *row["dtype"].as_string(), dump(row["shape"]),
                        with_commas(*row["offset_bytes"].as_integer()), printable(*row["file"].as_string()),
                        with_commas(*row["bytes"].as_integer()));
}

void add_findings(const Report& report, std::string& page) {
  page += "\n";
  for (const Finding& finding : report.findings) {
    page += fmt::format("{:<8}{} ({})\n        {}\n", to_string(finding.level), finding.id,
                        printable(finding.where), printable(finding.message));
    if (!finding.fix.empty()) page += "        -> " + printable(finding.fix) + "\n";
  }
  const FindingLevel worst = worst_level(report.findings);
  std::string verdict = worst == FindingLevel::kInfo ? "ok" : std::string(to_string(worst));
  if (report.values_scanned == false) verdict += "; values of tensors were not scanned (--deep)";
  line(page, "Verdict", verdict);
}

}  // namespace

std::string to_text(const Report& report) {
  std::string page =
      printable(report.source + (report.architecture ? " (" + *report.architecture + ")" : "")) + "\n\n";
  add_deciding_values(report, page);
  add_sizes(report, page);
  add_structure(report, page);
  add_inputs(report, page);
  add_tokens(report, page);
  page += deployment_text(report);
  add_findings(report, page);
  return printable_page(page);
}

}  // namespace plimsoll::inspect
