// SPDX-License-Identifier: Apache-2.0
#include "bench/top.h"

#include "base/machine.h"
#include "bench/monitor.h"

namespace plimsoll::bench {
namespace {

/// What a counter grew by; nothing when one reading lacks it or the server began anew.
std::optional<double> growth(const ServerState& before, const ServerState& now, ServerFigure figure) {
  const auto first = before.of(figure), last = now.of(figure);
  if (!first || !last || *last < *first) return std::nullopt;
  return *last - *first;
}

void fill_changes(TopRow& row, const ServerState& before, double seconds) {
  const ServerState& now = row.state;
  const auto rate = [&](ServerFigure figure) -> std::optional<double> {
    const auto grown = growth(before, now, figure);
    return grown && seconds > 0 ? std::optional(*grown / seconds) : std::nullopt;
  };
  row.interval_s = seconds;
  row.prompt_rate = rate(ServerFigure::kPromptTokens);
  row.generated_rate = rate(ServerFigure::kGeneratedTokens);
  row.preemptions = growth(before, now, ServerFigure::kPreemptions);
  const auto hits = growth(before, now, ServerFigure::kPrefixHits);
  const auto queries = growth(before, now, ServerFigure::kPrefixQueries);
  if (hits && queries && *queries > 0) row.prefix_hit_ratio = *hits / *queries;
  row.ttft_p50 = quantile_between(before.ttft, now.ttft, 50);
  row.ttft_p99 = quantile_between(before.ttft, now.ttft, 99);
  row.itl_p50 = quantile_between(before.itl, now.itl, 50);
  row.itl_p99 = quantile_between(before.itl, now.itl, 99);
}

std::string base_of(const std::string& url) {
  const std::string page = metrics_url(url);
  return page.substr(0, page.size() - std::string_view("/metrics").size());
}

}  // namespace

Status check_top(TopOptions& options) {
  if (options.pids.size() > options.urls.size())
    return fail(ErrorCode::kUsage, "there are more processes than addresses", "--server-pid",
                "give one process for each address, in their order");
  for (std::string& url : options.urls) {
    if (url.find("://") == url.npos) url = "http://" + url;
    PLIMSOLL_TRY([[maybe_unused]] const http::Url parsed, http::parse_url(url));
  }
  return {};
}

Top::Top(TopOptions options) : options_(std::move(options)) {
  for (std::size_t i = 0; i < options_.urls.size(); ++i) {
    Endpoint endpoint;
    endpoint.url = options_.urls[i];
    if (i < options_.pids.size()) endpoint.pid = options_.pids[i];
    endpoints_.push_back(std::move(endpoint));
  }
}

std::vector<TopRow> Top::refresh() {
  std::vector<TopRow> rows;
  for (Endpoint& endpoint : endpoints_) rows.push_back(read(endpoint));
  return rows;
}

std::string Top::model_of(Endpoint& endpoint, const ServerState& state) {
  if (!state.model.empty()) return state.model;
  if (endpoint.is_model_asked) return endpoint.model;
  endpoint.is_model_asked = true;
  const std::string url = base_of(endpoint.url) + "/v1/models";
  const auto answer = http::fetch("GET", url, "", options_.headers, options_.timeout, options_.verify_tls);
  const auto models = answer && answer->status == 200 ? parse_json(answer->body, url) : Result<Json>(Json());
  const std::string* id = models ? models->at_pointer("/data/0/id").as_string() : nullptr;
  if (id) endpoint.model = *id;
  return endpoint.model;
}

TopRow Top::read(Endpoint& endpoint) {
  TopRow row;
  row.url = endpoint.url;
  if (endpoint.pid)
    if (const auto bytes = resident_bytes_with_children(*endpoint.pid))
      row.resident_bytes = static_cast<double>(bytes->value);
  const auto answer = http::fetch("GET", metrics_url(endpoint.url), "", options_.headers, options_.timeout,
                                  options_.verify_tls);
  const auto at = std::chrono::steady_clock::now();
  if (!answer) {
    row.problem = "unreachable";
    endpoint.last.reset();
    return row;
  }
  was_reached_ = true;
  row.state = read_metrics(answer->body);
  if (answer->status != 200 || row.state.engine == EngineKind::kUnknown) {
    row.problem = answer->status == 200 ? "no figures of a known engine at /metrics"
                                        : "no /metrics (status " + std::to_string(answer->status) + ")";
    endpoint.last.reset();
    row.model = model_of(endpoint, {});
    return row;
  }
  row.model = model_of(endpoint, row.state);
  if (endpoint.last)
    fill_changes(row, *endpoint.last, std::chrono::duration<double>(at - endpoint.last_at).count());
  endpoint.last = row.state;
  endpoint.last_at = at;
  return row;
}

}  // namespace plimsoll::bench
