// SPDX-License-Identifier: Apache-2.0
// How does the server feel during a run? Reads its /metrics, its process's memory and the GPUs' once a second
// on a thread of its own, never on the clock's. One owner starts and stops it.
// Source: docs/formats/server_metrics.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "http/http.h"

namespace plimsoll::bench {

struct MonitorOptions {
  std::vector<std::string> endpoints;  // base URLs; /metrics is added
  http::Headers headers;               // never printed
  bool verify_tls = true;
  /// auto: the endpoints' own, and none where there is none; off; or one URL for all
  std::string metrics = "auto";
  std::optional<std::int64_t> server_pid;  // its memory with its children's
  bool watches_gpu = false;                // memory in use on all GPUs of this machine
  std::chrono::milliseconds interval{1000};

  bool is_idle() const { return metrics == "off" && !server_pid && !watches_gpu; }
};

struct ServerSeries {
  std::string name;
  std::string unit;
  std::string endpoint;                           // empty: this machine
  std::vector<std::pair<double, double>> points;  // seconds from the origin, value
};

struct MonitorSeries {
  std::vector<ServerSeries> series;
  /// Of the GPUs where they are watched, else of the process; over all samples.
  std::optional<double> memory_mean_bytes;
  std::optional<double> memory_peak_bytes;
};

/// Points of a run of any length: when there are more than `most`, every second one goes and the next come
/// half as often.
class ThinnedSeries {
 public:
  explicit ThinnedSeries(std::size_t most) : most_(most) {}
  void add(double at_s, double value);
  const std::vector<std::pair<double, double>>& points() const { return points_; }

 private:
  std::size_t most_;
  std::size_t stride_ = 1;
  std::size_t num_seen_ = 0;
  std::vector<std::pair<double, double>> points_;
};

class Monitor {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  /// Null when there is nothing to watch. The first samples are taken at once.
  static std::unique_ptr<Monitor> start(MonitorOptions options, TimePoint origin);
  virtual ~Monitor() = default;
  /// Takes a last sample and ends the thread. Call once.
  virtual MonitorSeries stop() = 0;
};

/// The members `server_metrics` and `memory_used_bytes` of a result.
Json server_metrics_json(const MonitorSeries& series);
Json memory_used_json(const MonitorSeries& series);

/// `base` with /metrics behind it, unless it ends so already.
std::string metrics_url(const std::string& base);

}  // namespace plimsoll::bench
