// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iostream>

#include "artifact/artifact.h"
#include "base/mapped_file.h"
#include "base/printable.h"
#include "bench/backend.h"
#include "bench/bench.h"
#include "bench/flags.h"
#include "bench/limits.h"
#include "bench/selftest.h"
#include "cli/bench_request_flags.h"
#include "cli/bench_workload_flags.h"
#include "cli/model_argument.h"
#include "cli/verbs.h"
#include "report/report.h"

namespace plimsoll::cli {
namespace {

struct BenchFlags {
  CommonFlags common;
  bench::TextFlags text;
  BenchRequestFlags request;
  BenchWorkloadFlags workload;
  bench::Options options;
  double request_timeout_s = 6 * 3600;
  std::string tokenizer;
  bool save_result = false;
  bool save_detailed = false;
  std::string result_dir;
  std::string result_filename;
  std::string request_log;
  bool selftest = false;
  std::vector<std::string> fail_if;
  std::vector<bench::Limit> limits;  // of fail_if
};

void add_load_flags(CLI::App& verb, BenchFlags& f) {
  verb.add_option("--num-prompts", f.options.num_prompts,
                  "requests to send; a trace is sent whole when left out")
      ->capture_default_str();
  verb.add_option("--max-concurrency", f.options.max_concurrency, "requests under way at most");
  verb.add_option("--request-rate", f.text.request_rate, "requests per second, or inf: all at once")
      ->capture_default_str();
  verb.add_option("--burstiness", f.text.burstiness,
                  "shape of the gaps: 1 Poisson, below 1 burstier, inf constant")
      ->capture_default_str();
  verb.add_option("--num-warmups", f.options.num_warmups, "requests sent and forgotten before the run")
      ->capture_default_str();
  verb.add_option("--sweep", f.text.sweep, "concurrency=1,2,4,...: one run for each");
  verb.add_option("--request-timeout", f.request_timeout_s, "seconds that one request may take")
      ->capture_default_str();
  verb.add_option("--seed", f.options.seed, "of prompts and arrivals")->capture_default_str();
  verb.add_flag("--ignore-eos", f.options.ignore_eos, "ask for the full output length");
}

void add_report_flags(CLI::App& verb, BenchFlags& f) {
  verb.add_option("--percentile-metrics", f.text.metrics,
                  "of ttft,tpot,itl,e2el,client_queue_time,e2el_including_client_queue")
      ->capture_default_str();
  verb.add_option("--metric-percentiles", f.text.percentiles, "which percentiles, in the order to show them")
      ->capture_default_str();
  verb.add_option("--goodput", f.text.goodput, "ttft:500 tpot:50 e2el:3000: limits of a good request, in ms");
  verb.add_option("--fail-if", f.fail_if, "p99_ttft_ms>500: exit 1 when a figure of the result does this");
  verb.add_flag("--save-result", f.save_result, "write the result as JSON");
  verb.add_flag("--save-detailed", f.save_detailed, "with the figures of each request in it");
  verb.add_option("--result-dir", f.result_dir, "where to");
  verb.add_option("--result-filename", f.result_filename, "under which name");
  verb.add_option("--request-log", f.request_log, "write one JSON line per request to this file");
}

void add_monitor_flags(CLI::App& verb, BenchFlags& f) {
  verb.add_option("--server-metrics", f.options.server_metrics,
                  "auto: read the server's /metrics each second; off; or the address of that page")
      ->capture_default_str();
  verb.add_option("--server-pid", f.options.server_pid, "watch the memory of this process and its children")
      ->check(CLI::PositiveNumber);
  verb.add_flag("--gpu-monitor", f.options.gpu_monitor, "watch the memory in use on this machine's GPUs");
}

Status fill_options(BenchFlags& f) {
  PLIMSOLL_TRY_VOID(bench::apply(f.text, f.options));
  PLIMSOLL_TRY_VOID(apply(f.request, f.options));
  PLIMSOLL_TRY_VOID(apply_workload_flags(f.workload, f.options));
  if (!(f.request_timeout_s > 0 && f.request_timeout_s < 1e9))
    return fail(ErrorCode::kUsage, "the time limit must be above 0 seconds", "--request-timeout");
  f.options.request_timeout = std::chrono::milliseconds(static_cast<std::int64_t>(f.request_timeout_s * 1e3));
  for (const std::string& text : f.fail_if) {
    PLIMSOLL_TRY(bench::Limit limit, bench::parse_limit(text));
    f.limits.push_back(std::move(limit));
  }
  bench::add_key_from_environment(f.options.headers);
  if (!f.tokenizer.empty()) {
    PLIMSOLL_TRY(const auto artifact,
                 artifact::open(f.tokenizer, open_options(f.common, artifact::Need::kText)));
    PLIMSOLL_TRY(f.options.tokenizer, text::load_tokenizer(*artifact));
    f.options.tokenizer_name = f.tokenizer;
  }
  return {};
}

void print_start(const bench::Options& o) {
  std::cerr << "Starting main benchmark run...\nTraffic request rate: "
            << (std::isinf(o.request_rate) ? "inf" : format_double(o.request_rate))
            << "\nBurstiness factor: " << (std::isinf(o.burstiness) ? "inf" : format_double(o.burstiness))
            << (o.burstiness == 1 ? " (Poisson process)" : " (Gamma distribution)")
            << "\nMaximum request concurrency: "
            << (o.max_concurrency ? std::to_string(*o.max_concurrency) : "None") << "\n";
}

Result<bench::RunResult> run_once(const BenchFlags& f, const bench::Options& options) {
  if (!f.common.quiet) print_start(options);
  report::ProgressLine line(f.common.quiet);
  return bench::run(options, [&line](const bench::Progress& p) {
    const std::int64_t done = p.completed + p.failed;
    std::string text = std::to_string(done) + "/" + std::to_string(p.total) + " requests, " +
                       report::two_decimals(p.elapsed_s) + " s";
    if (p.failed > 0) text += ", " + std::to_string(p.failed) + " failed";
    line.show(text, done == p.total);
  });
}

Status save(const BenchFlags& f, const bench::RunResult& result, const std::string& suffix) {
  if (f.save_result || f.save_detailed) {
    std::string name =
        f.result_filename.empty() ? bench::default_file_name(result) : f.result_filename + suffix;
    if (!f.result_dir.empty()) name = f.result_dir + "/" + name;
    PLIMSOLL_TRY_VOID(write_file(name, dump(bench::to_json(result, f.save_detailed)) + "\n"));
  }
  if (!f.request_log.empty())
    PLIMSOLL_TRY_VOID(write_file(f.request_log + suffix, bench::to_request_log(result)));
  return {};
}

struct Gathered {
  Json::Array documents;
  std::string reports;
  bool is_yes = true;  // requests succeeded, the client kept up, no limit was broken
};

Status run_step(const BenchFlags& f, const bench::Options& options, const std::string& suffix,
                Gathered& gathered) {
  PLIMSOLL_TRY(const bench::RunResult result, run_once(f, options));
  PLIMSOLL_TRY_VOID(save(f, result, suffix));
  Json document = bench::to_json(result, true);
  PLIMSOLL_TRY(const auto broken, bench::broken_limits(document, f.limits));
  for (const std::string& sentence : broken) std::cerr << "plimsoll: limit broken: " << sentence << "\n";
  const bool is_believable = result.summary.completed > 0 && !result.summary.client_limited;
  gathered.is_yes = gathered.is_yes && is_believable && broken.empty();
  gathered.reports += printable_page(bench::to_report(result));
  if (f.common.is_json()) gathered.documents.push_back(std::move(document));
  return {};
}

Result<Gathered> run_steps(BenchFlags& f) {
  PLIMSOLL_TRY_VOID(fill_options(f));
  PLIMSOLL_TRY(const auto steps, bench::sweep_steps(f.text.sweep));
  Gathered gathered;
  if (steps.empty()) PLIMSOLL_TRY_VOID(run_step(f, f.options, "", gathered));
  for (const std::int64_t concurrency : steps) {
    bench::Options options = f.options;
    options.max_concurrency = concurrency;
    PLIMSOLL_TRY_VOID(run_step(f, options, "." + std::to_string(concurrency), gathered));
  }
  return gathered;
}

/// The steps of --sweep are the numbers of streams, if they are given.
Result<std::vector<bench::SelftestRow>> run_selftests(const BenchFlags& f) {
  PLIMSOLL_TRY(const auto steps, bench::sweep_steps(f.text.sweep));
  std::vector<bench::SelftestCase> cases;
  for (const std::int64_t streams : steps) cases.push_back(bench::selftest_case(streams));
  if (cases.empty()) cases = bench::selftest_cases();
  std::vector<bench::SelftestRow> rows;
  for (const bench::SelftestCase& given : cases) {
    if (!f.common.quiet) std::cerr << "Self-test with " << given.streams << " streams...\n";
    PLIMSOLL_TRY(rows.emplace_back(), bench::run_selftest(given));
  }
  return rows;
}

int run_selftest(const BenchFlags& f) {
  const auto rows = run_selftests(f);
  if (!rows) return report_error(f.common, rows.error());
  const std::string text = bench::selftest_text(*rows);
  if (f.common.is_json() && !f.common.quiet) std::cerr << text;
  const auto written =
      write_output(f.common, f.common.is_json() ? dump(bench::selftest_json(*rows)) + "\n" : text);
  if (!written) return report_error(f.common, written.error());
  const bool is_limited =
      std::any_of(rows->begin(), rows->end(), [](const auto& row) { return row.client_limited; });
  return is_limited ? exit_status(ErrorCode::kNo) : 0;
}

int run_bench(BenchFlags& f) {
  if (f.selftest) return run_selftest(f);
  auto gathered = run_steps(f);
  if (!gathered) return report_error(f.common, gathered.error());
  std::string output = gathered->reports;
  if (f.common.is_json()) {
    if (!f.common.quiet) std::cerr << gathered->reports;
    Json document = f.text.sweep.empty()
                        ? std::move(gathered->documents.front())
                        : Json::object({{"schema", "plimsoll.bench/1"}, {"sweep", gathered->documents}});
    output = dump(document) + "\n";
  }
  const auto written = write_output(f.common, output);
  if (!written) return report_error(f.common, written.error());
  return gathered->is_yes ? 0 : exit_status(ErrorCode::kNo);
}

}  // namespace

Verb add_bench(CLI::App& app) {
  auto f = std::make_shared<BenchFlags>();
  CLI::App* verb =
      app.add_subcommand("bench", "load any OpenAI endpoint and report what its users would feel");
  add_common_flags(*verb, f->common);
  verb->add_flag("--selftest", f->selftest,
                 "hold this client against a built-in exact server: its error and its cost");
  verb->add_option("--backend", f->text.backend, "which protocol the endpoint speaks")
      ->check(CLI::IsMember(bench::backend_names()))
      ->capture_default_str();
  add_bench_request_flags(*verb, f->request, f->options);
  verb->add_option("--tokenizer", f->tokenizer, "MODEL whose tokenizer makes prompts of exact length");
  verb->add_option("--header", f->text.headers, "NAME=VALUE, sent with each request, never shown");
  add_load_flags(*verb, *f);
  add_workload_flags(*verb, f->workload, f->text.dataset, f->options);
  add_report_flags(*verb, *f);
  add_monitor_flags(*verb, *f);
  verb->footer(
      "Examples:\n"
      "  plimsoll bench --base-url http://localhost:8000 --dataset-name random \\\n"
      "    --random-input-len 512 --random-output-len 128 --num-prompts 64 --max-concurrency 8\n"
      "  plimsoll bench --sweep concurrency=1,2,4,8,16,32 --num-prompts 64 --ignore-eos --format json\n"
      "  plimsoll bench --request-rate 4 --goodput ttft:500 tpot:50 --percentile-metrics ttft,tpot,itl,e2el\n"
      "  plimsoll bench --num-prompts 64 --max-concurrency 8 --fail-if 'p99_ttft_ms>500'\n"
      "Exit status: 0 the run finished (failed requests are counted), 1 no request succeeded, a limit was\n"
      "broken or the client was too slow, 5 the endpoint cannot be reached.");
  return make_verb(verb, f, run_bench);
}

}  // namespace plimsoll::cli
