// SPDX-License-Identifier: Apache-2.0
#include "bench/metrics_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>

namespace plimsoll::bench {
namespace {

// More bounds than any engine has; what a hostile page adds beyond them is not kept.
constexpr std::size_t kMaxBuckets = 512;
constexpr std::size_t kMaxModelBytes = 256;

constexpr std::array<ServerFigureRow, kNumServerFigures> kFigures = {
    {{ServerFigure::kRunning, "running", "requests"},
     {ServerFigure::kWaiting, "waiting", "requests"},
     {ServerFigure::kKvUsage, "kv_usage", "ratio"},
     {ServerFigure::kPromptTokens, "prompt_tokens", "tokens"},
     {ServerFigure::kGeneratedTokens, "generated_tokens", "tokens"},
     {ServerFigure::kPreemptions, "preemptions", "requests"},
     {ServerFigure::kPrefixHits, "prefix_hits", "tokens"},
     {ServerFigure::kPrefixQueries, "prefix_queries", "tokens"}}};

struct SourceRow {
  std::string_view sample;
  ServerFigure figure;
};
// Of two names of one figure the one that stands first counts: servers write an old name beside the new one.
constexpr SourceRow kSources[] = {
    {"vllm:num_requests_running", ServerFigure::kRunning},
    {"vllm:num_requests_waiting", ServerFigure::kWaiting},
    {"vllm:kv_cache_usage_perc", ServerFigure::kKvUsage},
    {"vllm:gpu_cache_usage_perc", ServerFigure::kKvUsage},
    {"vllm:prompt_tokens_total", ServerFigure::kPromptTokens},
    {"vllm:generation_tokens_total", ServerFigure::kGeneratedTokens},
    {"vllm:num_preemptions_total", ServerFigure::kPreemptions},
    {"vllm:prefix_cache_hits_total", ServerFigure::kPrefixHits},
    {"vllm:gpu_prefix_cache_hits_total", ServerFigure::kPrefixHits},
    {"vllm:prefix_cache_queries_total", ServerFigure::kPrefixQueries},
    {"vllm:gpu_prefix_cache_queries_total", ServerFigure::kPrefixQueries},
    {"sglang:num_running_reqs", ServerFigure::kRunning},
    {"sglang:num_queue_reqs", ServerFigure::kWaiting},
    {"sglang:token_usage", ServerFigure::kKvUsage},
    {"sglang:prompt_tokens_total", ServerFigure::kPromptTokens},
    {"sglang:generation_tokens_total", ServerFigure::kGeneratedTokens},
    {"sglang:num_retracted_requests_total", ServerFigure::kPreemptions},
    {"sglang:cached_tokens_total", ServerFigure::kPrefixHits},
    {"sglang:prompt_tokens_total", ServerFigure::kPrefixQueries},
    {"llamacpp:requests_processing", ServerFigure::kRunning},
    {"llamacpp:requests_deferred", ServerFigure::kWaiting},
    {"llamacpp:kv_cache_usage_ratio", ServerFigure::kKvUsage},
    {"llamacpp:prompt_tokens_total", ServerFigure::kPromptTokens},
    {"llamacpp:tokens_predicted_total", ServerFigure::kGeneratedTokens},
    {"tgi_batch_current_size", ServerFigure::kRunning},
    {"tgi_queue_size", ServerFigure::kWaiting},
    {"tgi_request_input_length_sum", ServerFigure::kPromptTokens},
    {"tgi_request_generated_tokens_sum", ServerFigure::kGeneratedTokens},
};
constexpr std::string_view kTtftBuckets[] = {"vllm:time_to_first_token_seconds_bucket",
                                             "sglang:time_to_first_token_seconds_bucket"};
constexpr std::string_view kItlBuckets[] = {
    "vllm:inter_token_latency_seconds_bucket", "vllm:time_per_output_token_seconds_bucket",
    "sglang:inter_token_latency_seconds_bucket", "sglang:time_per_output_token_seconds_bucket"};

std::optional<double> number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || std::isnan(value)) return std::nullopt;
  return value;
}

/// The length of a label list with its closing brace; npos when it is not closed.
std::size_t end_of_labels(std::string_view text) {
  bool is_quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_quoted && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      is_quoted = !is_quoted;
    } else if (text[i] == '}' && !is_quoted) {
      return i + 1;
    }
  }
  return text.npos;
}

std::optional<MetricSample> sample_of(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r";
  line.remove_prefix(std::min(line.find_first_not_of(kBlank), line.size()));
  if (line.empty() || line.front() == '#') return std::nullopt;
  MetricSample sample;
  sample.name = line.substr(0, line.find_first_of("{ \t\r"));
  line.remove_prefix(sample.name.size());
  if (line.starts_with('{')) {
    const std::size_t length = end_of_labels(line);
    if (length == line.npos) return std::nullopt;
    sample.labels = line.substr(1, length - 2);
    line.remove_prefix(length);
  }
  line.remove_prefix(std::min(line.find_first_not_of(kBlank), line.size()));
  // A time or an example may follow.
  const auto value = number(line.substr(0, line.find_first_of(kBlank)));
  if (!value || sample.name.empty()) return std::nullopt;
  sample.value = *value;
  return sample;
}

EngineKind engine_of(std::string_view name) {
  constexpr std::pair<std::string_view, EngineKind> kPrefixes[] = {{"plimsoll:", EngineKind::kPlimsoll},
                                                                   {"vllm:", EngineKind::kVllm},
                                                                   {"sglang:", EngineKind::kSglang},
                                                                   {"llamacpp:", EngineKind::kLlamaCpp},
                                                                   {"tgi_", EngineKind::kTgi}};
  for (const auto& [prefix, kind] : kPrefixes)
    if (name.starts_with(prefix)) return kind;
  return EngineKind::kUnknown;
}

/// Sums bucket counts over label sets; of several names the first that is there counts.
template <std::size_t N>
class BucketSums {
 public:
  explicit BucketSums(const std::string_view (&names)[N]) : names_(names) {}
  void add(const MetricSample& sample) {
    const auto at = static_cast<std::size_t>(std::find(names_, names_ + N, sample.name) - names_);
    if (at > best_ || at == N || !(sample.value >= 0)) return;
    const auto text = label(sample.labels, "le");
    const auto upper = text ? number(*text) : std::nullopt;
    if (!upper) return;
    if (at < best_) counts_.clear();
    best_ = at;
    if (counts_.size() < kMaxBuckets || counts_.contains(*upper)) counts_[*upper] += sample.value;
  }
  Buckets buckets() const {
    Buckets out;
    for (const auto& [upper, count] : counts_) out.buckets.push_back({upper, count});
    return out;
  }

 private:
  const std::string_view* names_;
  std::size_t best_ = N;
  std::map<double, double> counts_;
};

class Reading {
 public:
  void add(const MetricSample& sample) {
    const EngineKind engine = engine_of(sample.name);
    if (engine == EngineKind::kUnknown) return;
    // Our own server writes vLLM's names beside a few of its own.
    if (state_.engine == EngineKind::kUnknown || engine == EngineKind::kPlimsoll) state_.engine = engine;
    if (state_.model.empty())
      state_.model = label(sample.labels, "model_name").value_or("").substr(0, kMaxModelBytes);
    add_figures(sample);
    ttft_.add(sample);
    itl_.add(sample);
  }
  ServerState state() {
    state_.ttft = ttft_.buckets();
    state_.itl = itl_.buckets();
    return std::move(state_);
  }

 private:
  void add_figures(const MetricSample& sample) {
    if (!(sample.value >= 0) || std::isinf(sample.value)) return;
    for (std::size_t row = 0; row < std::size(kSources); ++row) {
      if (kSources[row].sample != sample.name) continue;
      // SGLang splits some gauges by priority and writes the whole beside the parts.
      if (!label(sample.labels, "priority").value_or("").empty()) return;
      const auto at = static_cast<std::size_t>(kSources[row].figure);
      if (row > source_[at]) continue;
      std::optional<double>& value = state_.figures[at];
      if (row < source_[at]) value.reset();
      source_[at] = row;
      if (kSources[row].figure == ServerFigure::kKvUsage)
        value = std::max(value.value_or(0), sample.value);
      else
        value = value.value_or(0) + sample.value;
    }
  }

  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  ServerState state_;
  std::array<std::size_t, kNumServerFigures> source_ = {kNone, kNone, kNone, kNone,
                                                        kNone, kNone, kNone, kNone};
  BucketSums<std::size(kTtftBuckets)> ttft_{kTtftBuckets};
  BucketSums<std::size(kItlBuckets)> itl_{kItlBuckets};
};

double count_at(const Buckets& buckets, double upper) {
  for (const Buckets::Bucket& bucket : buckets.buckets)
    if (bucket.upper == upper) return bucket.count;
  return 0;
}

}  // namespace

std::string_view to_string(EngineKind kind) {
  constexpr std::string_view kNames[] = {"unknown", "plimsoll", "vllm", "sglang", "llama.cpp", "tgi"};
  return kNames[static_cast<std::size_t>(kind)];
}

const std::array<ServerFigureRow, kNumServerFigures>& server_figure_table() {
  return kFigures;
}

void for_each_sample(std::string_view text, const std::function<void(const MetricSample&)>& visit) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (const auto sample = sample_of(text.substr(0, end))) visit(*sample);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

std::optional<std::string> label(std::string_view labels, std::string_view name) {
  while (!labels.empty()) {
    labels.remove_prefix(std::min(labels.find_first_not_of(", \t"), labels.size()));
    const std::size_t equals = labels.find("=\"");
    if (equals == labels.npos) break;
    const std::string_view key = labels.substr(0, equals);
    labels.remove_prefix(equals + 2);
    std::string value;
    std::size_t i = 0;
    for (; i < labels.size() && labels[i] != '"'; ++i) {
      const bool is_escape = labels[i] == '\\' && i + 1 < labels.size();
      if (is_escape) ++i;
      value += is_escape && labels[i] == 'n' ? '\n' : labels[i];
    }
    if (key == name) return value;
    labels.remove_prefix(std::min(i + 1, labels.size()));
  }
  return std::nullopt;
}

ServerState read_metrics(std::string_view text) {
  Reading reading;
  for_each_sample(text, [&](const MetricSample& sample) { reading.add(sample); });
  return reading.state();
}

Json figure_json(double value) {
  const auto whole = Json(value).as_integer();
  return whole ? Json(*whole) : Json(value);
}

std::optional<Quantile> quantile_between(const Buckets& before, const Buckets& now, double p) {
  if (now.buckets.empty()) return std::nullopt;
  const auto came = [&](const Buckets::Bucket& bucket) {
    return bucket.count - count_at(before, bucket.upper);
  };
  const double total = came(now.buckets.back());
  if (!(total > 0)) return std::nullopt;
  const double rank = p / 100 * total;
  double lower = 0, below = 0;
  for (const Buckets::Bucket& bucket : now.buckets) {
    const double upto = came(bucket);
    if (upto < below) return std::nullopt;
    if (upto >= rank && upto > below) {
      if (std::isinf(bucket.upper)) return Quantile{lower, lower, bucket.upper};
      const double part = (rank - below) / (upto - below);
      return Quantile{lower + part * (bucket.upper - lower), lower, bucket.upper};
    }
    lower = bucket.upper;
    below = upto;
  }
  return std::nullopt;
}

}  // namespace plimsoll::bench
