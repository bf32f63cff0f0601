// SPDX-License-Identifier: Apache-2.0
// What do these servers do right now? One line per endpoint, from two readings of its /metrics page. Top owns
// the last readings; one thread at a time. Source: docs/formats/server_metrics.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "bench/metrics_text.h"
#include "http/http.h"

namespace plimsoll::bench {

struct TopOptions {
  std::vector<std::string> urls;
  http::Headers headers;           // never printed
  std::vector<std::int64_t> pids;  // of the urls, in their order; may be fewer
  std::chrono::milliseconds timeout{2000};
  bool verify_tls = true;
};

/// Errors: kUsage for an address that is none, or more processes than addresses.
Status check_top(TopOptions& options);

struct TopRow {
  std::string url;
  std::string problem;  // why there are no figures; empty when there are
  ServerState state;
  std::string model;
  // Since the reading before; absent at the first one.
  std::optional<double> interval_s;
  std::optional<double> prompt_rate;  // tokens per second
  std::optional<double> generated_rate;
  std::optional<double> prefix_hit_ratio;
  std::optional<double> preemptions;
  std::optional<Quantile> ttft_p50, ttft_p99, itl_p50, itl_p99;  // seconds
  std::optional<double> resident_bytes;
};

class Top {
 public:
  explicit Top(TopOptions options);
  /// Reads every endpoint once; one that does not answer is a row with its problem, and asked again next
  /// time.
  std::vector<TopRow> refresh();
  /// Some endpoint has answered, if only to say that it has no such page.
  bool was_reached() const { return was_reached_; }

 private:
  struct Endpoint {
    std::string url;
    std::optional<std::int64_t> pid;
    std::string model;
    bool is_model_asked = false;
    std::optional<ServerState> last;
    std::chrono::steady_clock::time_point last_at;
  };
  TopRow read(Endpoint& endpoint);
  std::string model_of(Endpoint& endpoint, const ServerState& state);

  TopOptions options_;
  std::vector<Endpoint> endpoints_;
  bool was_reached_ = false;
};

/// A table for a terminal, everything in it printable.
std::string to_text(const std::vector<TopRow>& rows);
/// plimsoll.top/1
Json to_json(const std::vector<TopRow>& rows);

}  // namespace plimsoll::bench
