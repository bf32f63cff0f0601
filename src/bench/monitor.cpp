// SPDX-License-Identifier: Apache-2.0
#include "bench/monitor.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>

#include "base/machine.h"
#include "base/nvidia_smi.h"
#include "bench/metrics_text.h"

namespace plimsoll::bench {
namespace {

constexpr std::size_t kMostPoints = 4096;
// A server that is too busy for its own figures must not hold up the end of a run.
constexpr std::chrono::milliseconds kAnswerTimeout{1000};

struct Spread {
  double sum = 0;
  double peak = 0;
  std::int64_t count = 0;
  void add(double value) {
    sum += value;
    peak = std::max(peak, value);
    ++count;
  }
};

/// The keys in the run's headers are for the run's servers, not for whoever has their metrics.
bool is_among(const std::string& url, const std::vector<std::string>& bases) {
  const auto asked = http::parse_url(url);
  return asked && std::any_of(bases.begin(), bases.end(), [&](const std::string& base) {
           const auto known = http::parse_url(base);
           return known && known->host == asked->host && known->port == asked->port &&
                  known->is_tls == asked->is_tls;
         });
}

class ThreadedMonitor final : public Monitor {
 public:
  ThreadedMonitor(MonitorOptions options, TimePoint origin) : options_(std::move(options)), origin_(origin) {
    if (options_.metrics == "off") options_.endpoints.clear();
    if (options_.metrics != "off" && options_.metrics != "auto") {
      if (!is_among(options_.metrics, options_.endpoints)) options_.headers.clear();
      options_.endpoints = {options_.metrics};
    }
    thread_ = std::thread([this] { watch(); });
  }
  ~ThreadedMonitor() override { end(); }

  MonitorSeries stop() override {
    end();
    MonitorSeries out;
    for (const auto& [key, series] : series_) {
      const auto& [endpoint, name, unit] = key;
      out.series.push_back({name, unit, endpoint, series.points()});
    }
    const Spread& memory = options_.watches_gpu ? gpu_ : process_;
    if (memory.count > 0) {
      out.memory_mean_bytes = memory.sum / static_cast<double>(memory.count);
      out.memory_peak_bytes = memory.peak;
    }
    return out;
  }

 private:
  using Clock = std::chrono::steady_clock;

  void end() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  void watch() {
    auto next = Clock::now();
    std::unique_lock lock(mutex_);
    for (bool is_last = false; !is_last; is_last = is_over_) {
      lock.unlock();
      sample();
      lock.lock();
      // A late sample does not bring the next ones closer together.
      next = std::max(next + options_.interval, Clock::now());
      changed_.wait_until(lock, next, [this] { return is_over_; });
    }
    lock.unlock();
    sample();
  }

  void sample() {
    for (const std::string& endpoint : options_.endpoints)
      if (!without_metrics_.contains(endpoint)) sample_metrics(endpoint);
    if (options_.server_pid)
      if (const auto bytes = resident_bytes_with_children(*options_.server_pid))
        add_memory("resident_memory", *bytes, process_);
    if (options_.watches_gpu)
      if (const auto bytes = nvidia_smi_memory_used()) add_memory("gpu_memory_used", *bytes, gpu_);
  }

  void sample_metrics(const std::string& endpoint) {
    const auto answer =
        http::fetch("GET", metrics_url(endpoint), "", options_.headers, kAnswerTimeout, options_.verify_tls);
    if (!answer) return;  // perhaps only busy
    const ServerState state = read_metrics(answer->body);
    if (answer->status != 200 || state.engine == EngineKind::kUnknown) {
      without_metrics_.insert(endpoint);
      return;
    }
    for (const ServerFigureRow& row : server_figure_table())
      if (const auto value = state.of(row.figure)) add(endpoint, row.name, row.unit, *value);
  }

  void add_memory(std::string_view name, Bytes bytes, Spread& spread) {
    const auto value = static_cast<double>(bytes.value);
    add("", name, "bytes", value);
    spread.add(value);
  }

  void add(const std::string& endpoint, std::string_view name, std::string_view unit, double value) {
    const double at_s = std::chrono::duration<double>(Clock::now() - origin_).count();
    series_.try_emplace({endpoint, std::string(name), std::string(unit)}, kMostPoints)
        .first->second.add(at_s, value);
  }

  MonitorOptions options_;
  TimePoint origin_;
  // The thread's own until it has ended.
  std::map<std::tuple<std::string, std::string, std::string>, ThinnedSeries> series_;
  std::set<std::string> without_metrics_;
  Spread process_;
  Spread gpu_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace

void ThinnedSeries::add(double at_s, double value) {
  if (num_seen_++ % stride_ != 0) return;
  points_.emplace_back(at_s, value);
  if (points_.size() <= most_) return;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < points_.size(); i += 2) points_[kept++] = points_[i];
  points_.resize(kept);
  stride_ *= 2;
}

std::unique_ptr<Monitor> Monitor::start(MonitorOptions options, TimePoint origin) {
  if (options.is_idle()) return nullptr;
  return std::make_unique<ThreadedMonitor>(std::move(options), origin);
}

Json server_metrics_json(const MonitorSeries& series) {
  Json list = Json::array();
  for (const ServerSeries& one : series.series) {
    Json points = Json::array();
    for (const auto& [at_s, value] : one.points)
      points.push_back(Json(Json::Array{Json(at_s), figure_json(value)}));
    list.push_back(Json::object({{"name", one.name},
                                 {"unit", one.unit},
                                 {"endpoint", one.endpoint.empty() ? Json() : Json(one.endpoint)},
                                 {"points", std::move(points)}}));
  }
  return list;
}

Json memory_used_json(const MonitorSeries& series) {
  if (!series.memory_mean_bytes) return nullptr;
  return Json::object(
      {{"mean", *series.memory_mean_bytes}, {"peak", figure_json(*series.memory_peak_bytes)}});
}

std::string metrics_url(const std::string& base) {
  std::string url = base;
  while (url.ends_with('/')) url.pop_back();
  if (url.ends_with("/metrics")) return url;
  if (url.ends_with("/v1")) url.resize(url.size() - 3);
  return url + "/metrics";
}

}  // namespace plimsoll::bench
