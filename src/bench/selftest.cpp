// SPDX-License-Identifier: Apache-2.0
#include "bench/selftest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/clock.h"
#include "bench/reply.h"
#include "bench/summary.h"
#include "http/timed_server.h"

namespace plimsoll::bench {
namespace {

using TimePoint = std::chrono::steady_clock::time_point;

/// One event per token, then, at the last token's time, the usage and the end.
std::shared_ptr<const http::Timetable> timetable_of(const SelftestCase& given) {
  auto table = std::make_shared<http::Timetable>();
  const std::string head =
      R"(data: {"id":"cmpl-1","object":"text_completion","created":1,"model":"exact","choices":)";
  for (std::int64_t i = 0; i < given.tokens; ++i)
    table->push_back(
        {given.ttft + i * given.itl,
         head + R"([{"index":0,"text":" the","logprobs":null,"finish_reason":null}]})" + "\n\n"});
  table->push_back(
      {table->back().after,
       head + fmt::format(R"([],"usage":{{"prompt_tokens":4,"completion_tokens":{}}}}})", given.tokens) +
           "\n\ndata: [DONE]\n\n"});
  return table;
}

double ms_between(TimePoint from, TimePoint to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

struct Errors {
  std::vector<double> ttft;  // with sign
  std::vector<double> gaps;
  std::vector<double> server_late;
};

void compare(const SelftestCase& given, const RequestRecord& record, const http::TimedExchange& truth,
             Errors& errors) {
  const auto tokens = static_cast<std::size_t>(given.tokens);
  if (record.chunks.size() != tokens || truth.written_at.size() < tokens) return;
  errors.ttft.push_back((record.chunks[0].at_s - record.sent_s) * 1e3 -
                        ms_between(truth.arrived_at, truth.written_at[0]));
  for (std::size_t i = 0; i < tokens; ++i) {
    const auto due = truth.arrived_at + given.ttft + static_cast<std::int64_t>(i) * given.itl;
    errors.server_late.push_back(ms_between(due, truth.written_at[i]));
    if (i == 0) continue;
    const double seen = (record.chunks[i].at_s - record.chunks[i - 1].at_s) * 1e3;
    errors.gaps.push_back(seen - ms_between(truth.written_at[i - 1], truth.written_at[i]));
  }
}

Samples without_sign(std::vector<double> values) {
  for (double& value : values) value = std::abs(value);
  return Samples(values);
}

Load load_for(const SelftestCase& given, int port) {
  Load load;
  http::Url url;
  url.host = "127.0.0.1";
  url.port = port;
  url.target = "/v1/completions";
  load.targets = {url};
  load.headers = {{"Content-Type", "application/json"}};
  load.shots.resize(static_cast<std::size_t>(given.requests));
  // The server keeps the body: by it an exchange finds its request.
  load.body_of = [](std::size_t shot) { return std::to_string(shot); };
  load.max_concurrency = given.streams;
  load.timeout = std::chrono::minutes(10);
  return load;
}

Json spread(const Samples& samples) {
  return Json::object({{"mean", samples.mean()},
                       {"p50", samples.at(50)},
                       {"p99", samples.at(99)},
                       {"max", samples.max()},
                       {"count", samples.count()}});
}

}  // namespace

SelftestCase selftest_case(std::int64_t streams) {
  SelftestCase given;
  given.streams = streams;
  if (streams > 256) given.itl = std::chrono::milliseconds(100);
  // A few rounds of each stream, so that starting together is not all there is; a minute at most.
  given.requests = streams * (streams > 256 ? 1 : streams < 16 ? 5 : 2);
  return given;
}

std::vector<SelftestCase> selftest_cases() {
  return {selftest_case(1), selftest_case(64), selftest_case(256), selftest_case(1000)};
}

Result<SelftestRow> run_selftest(const SelftestCase& given) {
  const auto table = timetable_of(given);
  PLIMSOLL_TRY(const auto server, http::TimedServer::start([table](const std::string&) { return table; }));
  std::vector<RequestRecord> records(static_cast<std::size_t>(given.requests));
  for (std::size_t i = 0; i < records.size(); ++i) records[i].index = static_cast<std::int64_t>(i);
  const Load load = load_for(given, server->port());
  PLIMSOLL_TRY(const Observed observed, send_all(load, records, [](TimePoint) {}, [](const Standing&) {}));

  Errors errors;
  for (const http::TimedExchange& truth : server->stop())
    compare(given, records[static_cast<std::size_t>(std::stoll(truth.request_body))], truth, errors);
  for (RequestRecord& record : records) count_tokens(record, nullptr);
  RunFacts facts;
  facts.duration_s = observed.duration_s;
  facts.cpu_s = observed.cpu_s;
  facts.loop_lag_ms = observed.loop_lag_ms;
  facts.client_lag_ms = observed.client_lag_ms;
  facts.late_chunks = observed.late_chunks;
  const Summary summary = summarize(records, facts);

  SelftestRow row;
  row.given = given;
  row.completed = summary.completed;
  row.tokens = summary.output_tokens;
  row.ttft_bias_ms = Samples(errors.ttft).mean().value_or(0);
  row.ttft_error_ms = without_sign(std::move(errors.ttft));
  row.itl_error_ms = without_sign(std::move(errors.gaps));
  row.client_lag_ms = observed.client_lag_ms;
  row.send_lag_ms = summary.send_lag_ms;
  row.server_late_ms = Samples(errors.server_late);
  row.late_chunks = observed.late_chunks;
  if (row.tokens > 0) row.cpu_us_per_token = observed.cpu_s * 1e6 / static_cast<double>(row.tokens);
  row.client_cpu_share = summary.client_cpu_share;
  row.client_limited = summary.client_limited;
  row.client_starved = summary.client_starved;
  return row;
}

Json selftest_json(const std::vector<SelftestRow>& rows) {
  Json out = Json::array();
  for (const SelftestRow& row : rows) {
    out.push_back(Json::object({{"streams", row.given.streams},
                                {"ttft_ms", static_cast<std::int64_t>(row.given.ttft.count())},
                                {"itl_ms", static_cast<std::int64_t>(row.given.itl.count())},
                                {"requests", row.given.requests},
                                {"completed", row.completed},
                                {"tokens", row.tokens},
                                {"ttft_error_ms", spread(row.ttft_error_ms)},
                                {"ttft_bias_ms", row.ttft_bias_ms},
                                {"itl_error_ms", spread(row.itl_error_ms)},
                                {"client_lag_ms", spread(row.client_lag_ms)},
                                {"send_lag_ms", spread(row.send_lag_ms)},
                                {"server_late_ms", spread(row.server_late_ms)},
                                {"late_chunks", row.late_chunks},
                                {"cpu_us_per_token", row.cpu_us_per_token},
                                {"client_cpu_share", row.client_cpu_share},
                                {"client_limited", row.client_limited},
                                {"client_starved", row.client_starved}}));
  }
  return Json::object({{"schema", "plimsoll.bench_selftest/1"}, {"rows", std::move(out)}});
}

std::string selftest_text(const std::vector<SelftestRow>& rows) {
  std::string out =
      "What this client measures, less what an exact server did (ms), and what it costs:\n"
      "streams    ITL   TTFT error     ITL error    client lag   server late   us per   share of\n"
      "            ms   mean    p99   mean    p99   p50    p99           p99    token     a core\n";
  for (const SelftestRow& row : rows) {
    const auto at = [](const Samples& samples, double p) { return samples.at(p).value_or(0); };
    out += fmt::format(
        "{:>7} {:>6} {:>6.2f} {:>6.2f} {:>6.2f} {:>6.2f} {:>5.2f} {:>6.2f} {:>13.2f} {:>8.1f} {:>8.0f} %{}\n",
        row.given.streams, row.given.itl.count(), row.ttft_error_ms.mean().value_or(0),
        at(row.ttft_error_ms, 99), row.itl_error_ms.mean().value_or(0), at(row.itl_error_ms, 99),
        at(row.client_lag_ms, 50), at(row.client_lag_ms, 99), at(row.server_late_ms, 99),
        row.cpu_us_per_token, 100 * row.client_cpu_share,
        row.failed() > 0     ? fmt::format("  {} of {} requests failed", row.failed(), row.given.requests)
        : row.client_limited ? "  the client was the limit"
        : row.client_starved ? "  late: others held the processor"
                             : "");
  }
  return out;
}

}  // namespace plimsoll::bench
