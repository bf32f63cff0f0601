// SPDX-License-Identifier: Apache-2.0
// What does a server's /metrics page say, whatever engine wrote it? Reads Prometheus text into the few
// figures that all engines have under names of their own. Pure, bounded; safe from any thread. Source:
// docs/formats/server_metrics.md.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace plimsoll::bench {

enum class EngineKind { kUnknown, kPlimsoll, kVllm, kSglang, kLlamaCpp, kTgi };
/// unknown plimsoll vllm sglang llama.cpp tgi
std::string_view to_string(EngineKind kind);

enum class ServerFigure {
  kRunning,
  kWaiting,
  kKvUsage,
  kPromptTokens,
  kGeneratedTokens,
  kPreemptions,
  kPrefixHits,
  kPrefixQueries
};
constexpr std::size_t kNumServerFigures = 8;

struct ServerFigureRow {
  ServerFigure figure;
  std::string_view name;  // kv_usage
  std::string_view unit;  // ratio
};
const std::array<ServerFigureRow, kNumServerFigures>& server_figure_table();

/// A histogram as it is written: for each upper bound, how many samples so far were at most that.
struct Buckets {
  struct Bucket {
    double upper = 0;  // seconds; the last may be infinite
    double count = 0;
  };
  std::vector<Bucket> buckets;  // ascending
};

struct ServerState {
  EngineKind engine = EngineKind::kUnknown;
  std::string model;  // as labelled; may be empty
  std::array<std::optional<double>, kNumServerFigures> figures;
  Buckets ttft;
  Buckets itl;

  std::optional<double> of(ServerFigure figure) const { return figures[static_cast<std::size_t>(figure)]; }
};

/// One sample line; `labels` is what stands between the braces.
struct MetricSample {
  std::string_view name;
  std::string_view labels;
  double value = 0;
};
/// Calls `visit` for each sample with a number; comments and lines that are no samples are passed over.
void for_each_sample(std::string_view text, const std::function<void(const MetricSample&)>& visit);
/// The value of a label, its escapes undone; nothing when it is not there.
std::optional<std::string> label(std::string_view labels, std::string_view name);

/// Sums over label sets (engines, ranks); the use of KV memory is the largest one.
ServerState read_metrics(std::string_view text);

/// A figure as JSON: a whole number without a point, as counts are.
Json figure_json(double value);

struct Quantile {
  double value = 0;
  double low = 0;  // bounds of the bucket that holds it
  double high = 0;
};
/// The p-th percentile of the samples that came between two readings: an estimate, linear inside the bucket.
/// Of the bucket without an upper bound, its lower one. Nothing when none came, or the counts went back.
std::optional<Quantile> quantile_between(const Buckets& before, const Buckets& now, double p);

}  // namespace plimsoll::bench
