// SPDX-License-Identifier: Apache-2.0
// Fits the constants of memory/vllm_runtime.h on recorded start-ups and says how far off they are.
// usage: fit_runtime RECORDS.jsonl MEASURED.tsv MODELS.tsv [--eligible] [--write src/facts/vllm_runtime.cpp]
// Each source has one vote. What is printed as an error was predicted by constants that were fitted without
// the row's own source.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <map>
#include <set>

#include "facts/facts.h"
#include "facts/vllm_runtime.h"
#include "memory/memory.h"
#include "plan/plan.h"
#include "tools/fit_records.h"

namespace plimsoll {
namespace {

constexpr double kGiBytes = static_cast<double>(kGiB);

using starts::Record;
using Fits = std::vector<facts::VllmRuntime>;

struct Span {
  int major, minor;
};
constexpr Span kSpans[] = {{0, 6}, {0, 7}, {0, 8}, {0, 17}, {0, 20}};  // releases that took memory alike

std::size_t span_of(const Record& record) {
  const auto numbers = facts::release_numbers(record.release);
  std::size_t span = 0;
  for (std::size_t i = 0; i < std::size(kSpans); ++i)
    if (std::vector{kSpans[i].major, kSpans[i].minor} <= numbers) span = i;
  return span;
}

memory::VllmRuntime runtime_of(const Record& record, const facts::VllmRuntime& fit) {
  const memory::VllmRules& rules = memory::vllm_rules(record.release);
  memory::VllmDevice device{record.target.memory, {}};
  if (record.target.name) device.name = *record.target.name;
  memory::VllmRuntimeSettings settings;
  const std::int64_t length = record.settings.max_model_len.value_or(record.planned.default_length);
  settings.batch = memory::vllm_batch(rules, device, length, record.settings.max_num_batched_tokens,
                                      record.settings.max_num_seqs);
  settings.tensor_parallel = record.settings.tensor_parallel.value_or(1);
  settings.is_expert_parallel = record.settings.is_expert_parallel;
  settings.is_eager = record.settings.is_eager;
  settings.has_drafts = record.settings.num_speculative_tokens > 0;
  return memory::vllm_runtime(record.planned.spec, settings, rules, fit);
}

double error_of(const Record& record, const facts::VllmRuntime& fit) {
  return static_cast<double>(runtime_of(record, fit).total().value) / kGiBytes - record.overhead;
}

/// Where a log tells the peak of activations, parts are held against it and the rest apart, so that one does
/// not make up for the other.
double distance_of(const Record& record, const facts::VllmRuntime& fit) {
  if (!record.peak) return std::abs(error_of(record, fit));
  const memory::VllmRuntime runtime = runtime_of(record, fit);
  const double peak =
      static_cast<double>((std::max(runtime.forward, runtime.sampler) + runtime.drafts).value) / kGiBytes;
  const double all = static_cast<double>(runtime.total().value) / kGiBytes;
  return std::abs(peak - *record.peak) + std::abs(all - peak - (record.overhead - *record.peak));
}

/// Mean over sources of the mean distance of their rows.
double loss(const std::vector<const Record*>& records, const Fits& fits) {
  std::map<std::string, std::pair<double, int>> sums;
  for (const Record* record : records) {
    auto& [sum, number] = sums[record->source];
    sum += distance_of(*record, fits[span_of(*record)]);
    ++number;
  }
  double total = 0;
  for (const auto& [source, sum] : sums) total += sum.first / sum.second;
  return sums.empty() ? 0 : total / static_cast<double>(sums.size());
}

/// Tries values of one constant in the spans from `first` to `last`, which share it.
template <class Field>
void descend(const std::vector<const Record*>& records, Fits& fits, Field field, std::size_t first,
             std::size_t last, double from, double to, double step) {
  using Value = std::remove_reference_t<decltype(fits[0].*field)>;
  const auto set = [&](Value value) {
    for (std::size_t span = first; span <= last; ++span) fits[span].*field = value;
  };
  Value best = fits[first].*field;
  double least = loss(records, fits);
  for (double value = from; value <= to + step / 2; value += step) {
    set(static_cast<Value>(value));
    if (const double now = loss(records, fits); now < least - 1e-9)
      least = now, best = static_cast<Value>(value);
  }
  set(best);
}

constexpr int kRounds = 4;
// Of a token in a layer, not fitted: its hidden state, residual and norm; gate, up and their product.
constexpr double kLayerVectors = 3.0;

/// Spans share what did not change between them: until 0.6.4 the context of the device counts as taken by the run,
/// the second engine came with 0.8, the sampler's kernel with 0.17. A constant that no row hangs on keeps what it
/// starts from.
Fits fit_all(const std::vector<Record>& records, const std::string& left_out) {
  constexpr std::size_t kFirstEngine = 0, kBaseline = 1, kSecondEngine = 2, kNewSampler = 3, kGraphs = 4;
  Fits fits(std::size(kSpans), {0, 0, 9.7, kLayerVectors, kLayerVectors, 128, 512, 256, 512, 0, 0, ""});
  for (std::size_t span = 0; span < fits.size(); ++span) {
    fits[span].major = kSpans[span].major, fits[span].minor = kSpans[span].minor;
    if (span >= kNewSampler) fits[span].sampler_copies = 3.8;
  }
  std::vector<const Record*> own;
  for (const Record& record : records)
    if (record.source != left_out && !record.is_set_apart) own.push_back(&record);
  using Fit = facts::VllmRuntime;
  for (int round = 0; round < kRounds; ++round) {
    descend(own, fits, &Fit::sampler_copies, kFirstEngine, kSecondEngine, 8, 12, 0.05);
    descend(own, fits, &Fit::sampler_copies, kNewSampler, kGraphs, 2, 6, 0.05);
    descend(own, fits, &Fit::one_gpu_mib, kFirstEngine, kFirstEngine, 0, 1024, 8);
    descend(own, fits, &Fit::one_gpu_mib, kBaseline, kBaseline, 0, 1024, 8);
    descend(own, fits, &Fit::one_gpu_mib, kSecondEngine, kGraphs, 0, 1024, 8);
    descend(own, fits, &Fit::many_gpus_mib, kFirstEngine, kBaseline, 0, 3072, 16);
    descend(own, fits, &Fit::many_gpus_mib, kSecondEngine, kGraphs, 0, 3072, 16);
    descend(own, fits, &Fit::graphs_mib, kGraphs, kGraphs, 0, 2048, 32);
    descend(own, fits, &Fit::drafts_mib, kFirstEngine, kGraphs, 0, 4096, 64);
  }
  return fits;
}

bool is_wide(const Record& record) {
  const auto& layers = record.planned.spec.layers;
  return record.settings.tensor_parallel.value_or(1) > 1 || record.settings.num_speculative_tokens > 0 ||
         std::any_of(layers.begin(), layers.end(),
                     [](const model::Layer& layer) { return layer.ffn.kind == model::FfnKind::kMoe; });
}

struct Judged {
  const Record* record;
  double error;                 // GiB of overhead, without its own source
  std::optional<double> cache;  // GiB planned from model, GPU and flags, without its own source
  bool is_in_band = false;      // the logged cache lies in the band around it
};

/// The value below which `share` of the sources' weight lies.
double weighted_quantile(std::vector<std::pair<double, double>> values, double share) {
  std::sort(values.begin(), values.end());
  double all = 0, sum = 0;
  for (const auto& value : values) all += value.second;
  for (const auto& value : values)
    if ((sum += value.second) >= share * all - 1e-9) return value.first;
  return 0;
}

/// What `value_of` tells of each row, with the row's share of its source's one vote; rows without a value have
/// none.
template <class ValueOf>
std::vector<std::pair<double, double>> votes(const std::vector<Judged>& judged, ValueOf value_of) {
  std::map<std::string, int> number;
  for (const Judged& one : judged)
    if (value_of(one)) ++number[one.record->source];
  std::vector<std::pair<double, double>> out;
  for (const Judged& one : judged)
    if (const std::optional<double> value = value_of(one))
      out.emplace_back(std::abs(*value), 1.0 / number[one.record->source]);
  return out;
}

std::string table_of(const Fits& fits, const std::vector<Record>& records) {
  std::string text;
  for (auto fit = fits.rbegin(); fit != fits.rend(); ++fit) {
    int rows = 0;
    std::set<std::string> sources;
    for (const Record& record : records) {
      const Span& span = kSpans[span_of(record)];
      if (span.major != fit->major || span.minor != fit->minor) continue;
      ++rows;
      sources.insert(record.source);
    }
    text += fmt::format(
        "    {{{}, {}, {:.2f}, {:.2f}, {:.1f}, {}, {}, {}, {}, {}, {}, \"{} starts of {} sources\"}},\n",
        fit->major, fit->minor, fit->sampler_copies, fit->hidden_vectors, fit->inner_vectors,
        fit->one_gpu_mib, fit->many_gpus_mib, fit->graphs_mib, fit->drafts_mib, fit->band_mib,
        fit->wide_band_mib, rows, sources.size());
  }
  return text;
}

int write_table(const std::string& path, const std::string& table) {
  std::ifstream in(path);
  std::string text(std::istreambuf_iterator<char>(in), {});
  const std::string begin = "constexpr VllmRuntime kRuntimes[] = {\n";
  const auto at = text.find(begin);
  const auto end = text.find("};\n", at);
  if (at == std::string::npos || end == std::string::npos) {
    std::cerr << path << " has no table\n";
    return 3;
  }
  text.replace(at + begin.size(), end - at - begin.size(), table);
  std::ofstream(path) << text;
  return 0;
}

/// The cache from model, GPU and flags alone: planned with the constants in the program, then moved by what
/// `fit` says otherwise of the run.
void plan_cache(const facts::VllmRuntime& fit, Judged& judged) {
  const Record& record = *judged.record;
  if (!record.is_whole_weights) return;
  plan::Request request;
  request.engine = *facts::parse_engine("vllm@" + record.release);
  request.models = {record.planned};
  request.targets = {record.target};
  request.settings = record.settings;
  const auto plan = plan::make_plan(request);
  if (!plan || plan->rows.empty()) {
    if (!plan) std::cerr << record.id << ": " << plan.error().describe() << "\n";
    return;
  }
  const auto own = runtime_of(record, facts::vllm_runtime(record.release)).total();
  const Bytes moved = plan->rows[0].kv_cache + own - runtime_of(record, fit).total();
  judged.cache = static_cast<double>(moved.value) / kGiBytes;
  if (!record.kv) return;
  const double bar = static_cast<double>(plan->rows[0].error_bar.value) / kGiBytes;
  judged.is_in_band = std::abs(*judged.cache - std::max(0.0, *record.kv)) <= bar;
}

void print_row(const Judged& one) {
  const Record& record = *one.record;
  const auto text = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.2f}", *value) : std::string("-");
  };
  const bool has_both = one.cache && record.kv;
  const auto percent = [&](double whole) {
    return has_both ? fmt::format("{:+.1f}", (*one.cache - *record.kv) / whole * 100) : std::string("-");
  };
  fmt::print("{:<26} {:<9} {:<28} {:>3} {:>8.2f} {:>+8.2f} {:>8} {:>8} {:>8} {:>8}\n",
             record.id.substr(0, 26), record.release, record.planned.source.substr(0, 28),
             record.settings.tensor_parallel.value_or(1), record.overhead, one.error, text(record.kv),
             text(one.cache), percent(record.budget), percent(record.kv.value_or(1)));
}

/// Of rows whose start left something for the cache.
void print_cache(const std::vector<Judged>& judged) {
  const auto has_cache = [](const Judged& one) { return one.cache && one.record->kv && *one.record->kv > 0; };
  const auto shares = votes(judged, [&](const Judged& one) {
    return has_cache(one) ? std::optional((*one.cache - *one.record->kv) / *one.record->kv * 100)
                          : std::nullopt;
  });
  const auto inside = votes(judged, [&](const Judged& one) {
    return has_cache(one) ? std::optional(one.is_in_band ? 1.0 : 0.0) : std::nullopt;
  });
  double all = 0, in = 0;
  for (const auto& [value, weight] : inside) all += weight, in += value * weight;
  fmt::print("cache from model, GPU and flags: {} rows; error in % of it: median {:.1f}, 90th percentile "
             "{:.1f}; in the band: {:.0f} % of the votes\n",
             shares.size(), weighted_quantile(shares, 0.5), weighted_quantile(shares, 0.9),
             all > 0 ? in / all * 100 : 0);
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.size() < 3) {
    std::cerr << "usage: fit_runtime RECORDS.jsonl MEASURED.tsv MODELS.tsv [--eligible] [--write FILE]\n";
    return 2;
  }
  auto book = starts::read_book(arguments[2]);
  if (!book) {
    std::cerr << book.error().describe() << "\n";
    return 3;
  }
  const std::vector<Record> records = starts::read_records(*book, arguments[0], arguments[1]);
  const bool is_listing = std::find(arguments.begin(), arguments.end(), "--eligible") != arguments.end();

  Fits fits = fit_all(records, "");
  std::set<std::string> sources;
  for (const Record& record : records) sources.insert(record.source);
  std::vector<Judged> judged;
  for (const std::string& source : sources) {
    const Fits without = fit_all(records, source);
    for (const Record& record : records) {
      if (record.source != source) continue;
      const facts::VllmRuntime& fit = without[span_of(record)];
      judged.push_back({&record, error_of(record, fit), {}});
      plan_cache(fit, judged.back());
    }
  }
  if (is_listing) {
    fmt::print("{:<26} {:<9} {:<28} {:>3} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}\n", "row", "release", "model",
               "tp", "overhead", "error", "KV log", "KV plan", "of bud %", "of KV %");
    for (const Judged& one : judged) print_row(one);
  }
  for (const bool wide : {false, true}) {
    const auto errors = votes(judged, [&](const Judged& one) {
      return is_wide(*one.record) == wide ? std::optional(one.error) : std::nullopt;
    });
    const double median = weighted_quantile(errors, 0.5), high = weighted_quantile(errors, 0.9);
    fmt::print(
        "{}: {} rows; error of what is beside weights and cache, each source left out and one vote: "
        "median {:.2f} GiB, 90th percentile {:.2f} GiB\n",
        wide ? "several GPUs, experts or drafts" : "dense on one GPU", errors.size(), median, high);
    const auto band = static_cast<std::int64_t>(std::ceil(high * 1024 / 64) * 64);
    for (facts::VllmRuntime& fit : fits) (wide ? fit.wide_band_mib : fit.band_mib) = band;
  }
  print_cache(judged);
  const std::string table = table_of(fits, records);
  fmt::print("{}", table);
  for (std::size_t i = 3; i + 1 < arguments.size(); ++i)
    if (arguments[i] == "--write") return write_table(arguments[i + 1], table);
  return 0;
}

}  // namespace
}  // namespace plimsoll

int main(int count, char** words) {
  return plimsoll::run({words + 1, words + count});
}
