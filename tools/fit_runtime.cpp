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
#include <sstream>

#include "facts/facts.h"
#include "facts/gpus.h"
#include "facts/vllm_runtime.h"
#include "memory/memory.h"
#include "plan/plan.h"

namespace plimsoll {
namespace {

constexpr double kGiBytes = static_cast<double>(kGiB);

struct Record {
  std::string id, source, model, version, gpu;
  plan::Model planned;
  plan::Target target;
  plan::Settings settings;
  std::string release;
  double budget = 0, overhead = 0;  // GiB
  std::optional<double> kv;         // as logged, GiB
  std::optional<double> peak;       // of activations, as logged
  bool is_whole_weights = false;    // the plan knows the weights by itself
  bool is_set_apart = false;        // not fitted on
};

using Fits = std::vector<facts::VllmRuntime>;

struct Span {
  int major, minor;
};
constexpr Span kSpans[] = {{0, 6}, {0, 8}, {0, 17}, {0, 20}};  // releases that took memory alike

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> out;
  std::stringstream stream(line);
  for (std::string cell; std::getline(stream, cell, '\t');) out.push_back(cell);
  return out;
}

std::string source_of(const std::string& text) {
  if (text.starts_with("github:")) return text.substr(0, text.find(':', 7));
  if (text.starts_with("public-file:")) return text;
  const std::size_t end = text.find_first_of(":#");
  return text.find('#') != std::string::npos ? text : text.substr(0, end);
}

// "0.7.x(V0)" and "0.10.1.1": what the plan is asked for. Nothing for builds of unknown age.
std::optional<std::string> release_of(const std::string& version) {
  if (version.starts_with("0.1.dev") || facts::release_numbers(version).size() < 2) return std::nullopt;
  std::string text = version;
  if (const auto x = text.find(".x"); x != std::string::npos) text = text.substr(0, x) + ".9";
  if (const auto bracket = text.find('('); bracket != std::string::npos) text.resize(bracket);
  const auto choice = facts::parse_engine("vllm@" + text);
  return choice ? std::optional(choice->version) : std::nullopt;
}

class Reader {
 public:
  bool read_models(const std::string& path) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      const auto row = cells(line);
      if (line.starts_with('!')) set_apart_.insert(row.front().substr(1));
      if (line.starts_with('#') || row.size() != 3) continue;
      const auto* entry = facts::find_catalogue(row[1]);
      const auto values = parse_json(row[2], row[0]);
      if (!entry || !values) {
        std::cerr << "models: " << row[0] << ": no such entry, or no JSON\n";
        return false;
      }
      Json config = entry->config_json();
      for (const auto& [key, value] : values->members()) config.set(key, value);
      plan::Model model;
      model.source = row[0];
      auto spec = model::read_spec(config, row[0]);
      if (!spec) {
        std::cerr << "models: " << spec.error().describe() << "\n";
        return false;
      }
      model.spec = std::move(*spec);
      plan::read_declared(config, model::read_quantization(config, {}), model);
      models_[row[0]] = model;
    }
    return !models_.empty();
  }

  void read_records(const std::string& path) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      const auto row = parse_json(line, path);
      if (row && (*row)["engine"] == Json("vllm")) add_record(*row);
    }
  }

  // model vllm gpu tp util weights activation non_torch cuda_graph kv_pool ...
  void read_measured(const std::string& path) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      auto row = cells(line);
      row.resize(12);
      const auto* model = model_of(row[0]);
      if (!model || row[1] != "v0.19" || row[6].empty() || row[7].empty()) continue;
      Record record;
      record.id = row[0] + " tp" + row[3];
      record.source = "llm-d-incubation/llm-d-planner";
      record.version = "0.19.0";
      record.target = *plan::parse_target("H100");
      record.target.memory = Bytes(std::llround(79.19 * kGiBytes));
      record.settings.tensor_parallel = std::stoi(row[3]);
      record.settings.memory_utilization = std::stod(row[4]);
      record.overhead = std::stod(row[6]) + std::stod(row[7]);
      record.peak = std::stod(row[6]);
      if (!row[9].empty()) record.kv = std::stod(row[9]);
      finish(std::move(record), *model);
    }
  }

  std::vector<Record> take() { return std::move(records_); }

 private:
  const plan::Model* model_of(const std::string& name) const {
    const auto at = models_.find(name);
    return at == models_.end() ? nullptr : &at->second;
  }

  void add_record(const Json& row) {
    const std::string* name = row["model"].as_string();
    const std::string* version = row["version"].as_string();
    const plan::Model* model = name ? model_of(*name) : nullptr;
    const auto kv = row["available_kv_gib"].as_double(), weights = row["weights_gib"].as_double();
    const auto share = row["gpu_memory_utilization"].as_double();
    if (!model || !version || !kv || !weights || !share) return;
    if (*kv <= 0 && !row["activation_peak_gib"].as_double()) return;
    Record record;
    record.id = *row["id"].as_string();
    record.source = source_of(*row["source"].as_string());
    record.version = *version;
    if (const auto* gpu = row["gpu_name"].as_string()) record.gpu = *gpu;
    if (record.gpu.find("GB10") != std::string::npos) return;  // shares memory with others
    auto total = row["total_gpu_gib"].as_double();
    if (const auto budget = row["budget_gib"].as_double(); !total && budget) total = *budget / *share;
    if (!total) return;
    record.target.asked = record.gpu;
    if (const auto* known = facts::find_gpu(record.gpu).value_or(nullptr))
      record.target.name = std::string(known->name);
    else if (!record.gpu.empty())
      record.target.name = record.gpu;
    record.target.memory = Bytes(std::llround(*total * kGiBytes));
    plan::Settings& settings = record.settings;
    settings.tensor_parallel = static_cast<int>(row["tp"].as_integer().value_or(1));
    settings.memory_utilization = *share;
    settings.is_expert_parallel = row["ep"] == Json(true);
    settings.is_eager = row["enforce_eager"] == Json(true);
    settings.max_model_len = row["max_model_len"].as_integer();
    const auto count = [&](const char* key) -> std::optional<int> {
      const auto value = row[key].as_integer();
      return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
    };
    settings.max_num_seqs = count("max_num_seqs");
    settings.max_num_batched_tokens = count("max_num_batched_tokens");
    if (name->find("MTP") != std::string::npos) settings.num_speculative_tokens = 1;
    record.kv = kv;
    record.overhead = *total * *share - *weights - *kv;
    record.peak = row["activation_peak_gib"].as_double();
    finish(std::move(record), *model);
  }

  void finish(Record record, const plan::Model& model) {
    const auto release = release_of(record.version);
    if (!release) return;
    record.release = *release;
    record.model = model.source;
    record.planned = model;
    record.target.count = record.settings.tensor_parallel.value_or(1);
    record.budget =
        static_cast<double>(record.target.memory.value) / kGiBytes * *record.settings.memory_utilization;
    record.is_set_apart = set_apart_.contains(record.id);
    record.is_whole_weights = model.spec.name.empty() && !record.model.starts_with("GLM");
    records_.push_back(std::move(record));
  }

  std::map<std::string, plan::Model> models_;
  std::set<std::string> set_apart_;
  std::vector<Record> records_;
};

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

/// Spans share what did not change between them: the sampler's kernel came with 0.17, the second engine with
/// 0.8. A constant that no row hangs on keeps what it starts from.
Fits fit_all(const std::vector<Record>& records, const std::string& left_out) {
  constexpr std::size_t kFirstEngine = 0, kSecondEngine = 1, kNewSampler = 2, kGraphs = 3;
  Fits fits(std::size(kSpans), {0, 0, 9.7, 3.5, 3.0, 128, 512, 256, 512, 0, 0, ""});
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
    descend(own, fits, &Fit::hidden_vectors, kFirstEngine, kGraphs, 2, 6, 0.25);
    descend(own, fits, &Fit::one_gpu_mib, kFirstEngine, kFirstEngine, 0, 1024, 8);
    descend(own, fits, &Fit::one_gpu_mib, kSecondEngine, kGraphs, 0, 1024, 8);
    descend(own, fits, &Fit::many_gpus_mib, kFirstEngine, kFirstEngine, 0, 3072, 16);
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
  double error;  // GiB of overhead, without its own source
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

std::vector<std::pair<double, double>> votes(const std::vector<Judged>& judged, bool wide) {
  std::map<std::string, int> number;
  for (const Judged& one : judged)
    if (is_wide(*one.record) == wide) ++number[one.record->source];
  std::vector<std::pair<double, double>> out;
  for (const Judged& one : judged)
    if (is_wide(*one.record) == wide) out.emplace_back(std::abs(one.error), 1.0 / number[one.record->source]);
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

/// The cache from model, GPU and flags alone, by the constants that are in the program now.
std::optional<double> planned_cache(const Record& record) {
  plan::Request request;
  request.engine = *facts::parse_engine("vllm@" + record.release);
  request.models = {record.planned};
  request.targets = {record.target};
  request.settings = record.settings;
  const auto plan = plan::make_plan(request);
  if (!plan || plan->rows.empty()) {
    if (!plan) std::cerr << record.id << ": " << plan.error().describe() << "\n";
    return std::nullopt;
  }
  return static_cast<double>(plan->rows[0].kv_cache.value) / kGiBytes;
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.size() < 3) {
    std::cerr << "usage: fit_runtime RECORDS.jsonl MEASURED.tsv MODELS.tsv [--eligible] [--write FILE]\n";
    return 2;
  }
  Reader reader;
  if (!reader.read_models(arguments[2])) return 3;
  reader.read_records(arguments[0]);
  reader.read_measured(arguments[1]);
  const std::vector<Record> records = reader.take();
  const bool is_listing = std::find(arguments.begin(), arguments.end(), "--eligible") != arguments.end();

  Fits fits = fit_all(records, "");
  std::set<std::string> sources;
  for (const Record& record : records) sources.insert(record.source);
  std::vector<Judged> judged;
  for (const std::string& source : sources) {
    const Fits without = fit_all(records, source);
    for (const Record& record : records)
      if (record.source == source) judged.push_back({&record, error_of(record, without[span_of(record)])});
  }
  if (is_listing) {
    fmt::print("{:<34} {:<10} {:<30} {:>3} {:>8} {:>8} {:>8} {:>8} {:>8}\n", "row", "release", "model", "tp",
               "overhead", "error", "KV log", "KV plan", "of bud %");
    for (const Judged& one : judged) {
      const Record& record = *one.record;
      const auto planned = record.is_whole_weights ? planned_cache(record) : std::nullopt;
      fmt::print(
          "{:<34} {:<10} {:<30} {:>3} {:>8.2f} {:>+8.2f} {:>8} {:>8} {:>8}\n", record.id.substr(0, 34),
          record.release, record.model.substr(0, 30), record.settings.tensor_parallel.value_or(1),
          record.overhead, one.error, record.kv ? fmt::format("{:.2f}", *record.kv) : "-",
          planned ? fmt::format("{:.2f}", *planned) : "-",
          planned && record.kv ? fmt::format("{:+.1f}", (*planned - *record.kv) / record.budget * 100) : "-");
    }
  }
  for (const bool wide : {false, true}) {
    const auto errors = votes(judged, wide);
    const double median = weighted_quantile(errors, 0.5), high = weighted_quantile(errors, 0.9);
    fmt::print(
        "{}: {} rows; error of what is beside weights and cache, each source left out and one vote: "
        "median {:.2f} GiB, 90th percentile {:.2f} GiB\n",
        wide ? "several GPUs, experts or drafts" : "dense on one GPU", errors.size(), median, high);
    const auto band = static_cast<std::int64_t>(std::ceil(high * 1024 / 64) * 64);
    for (facts::VllmRuntime& fit : fits) (wide ? fit.wide_band_mib : fit.band_mib) = band;
  }
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
