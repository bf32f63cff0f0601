// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include "bench/backend.h"
#include "cli/bench_runs.h"
#include "cli/bench_workload_flags.h"

namespace plimsoll::cli {
namespace {

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
  verb.add_option("--sweep", f.sweep,
                  "concurrency=1,2,4 or 1..32 (doubling), or rate=0.5,1: a run for each, prompts of its own");
  verb.add_option("--search", f.search,
                  "concurrency=1..64 or rate=0.5..50: find the largest whose requests meet --goodput");
  verb.add_option(
          "--goodput-share", f.goodput_share,
          "part of all sent requests that has to be good: of a search, and exit 1 below it when given")
      ->each([&f](const std::string&) { f.has_goodput_share = true; })
      ->capture_default_str();
  verb.add_option("--search-tolerance", f.search_tolerance,
                  "the search ends when what met and what missed are this part apart")
      ->capture_default_str();
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
  verb.add_option("--goodput", f.text.goodput,
                  "ttft:500 tpot:50 itl:100 e2el:3000: limits of a good request, in ms");
  verb.add_option("--stall-threshold", f.options.stall_threshold_ms,
                  "gaps between chunks above so many ms are stalls")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb.add_option("--fail-if", f.fail_if, "p99_ttft_ms>500: exit 1 when a figure of the result does this");
  verb.add_flag("--save-result", f.save_result, "write the result as JSON");
  verb.add_flag("--save-detailed", f.save_detailed, "with the figures of each request in it");
  verb.add_flag("--append-result", f.append_result, "add the result to the file as one more line");
  verb.add_option("--label", f.options.label, "begins the result's file name");
  verb.add_option("--metadata", f.metadata, "KEY=VALUE ...: kept in the result")->take_all();
  verb.add_option("--result-dir", f.result_dir, "where to");
  verb.add_option("--result-filename", f.result_filename, "under which name");
  verb.add_option("--compare", f.compare,
                  "A.json B.json: no run; how two saved results differ, beyond chance or not")
      ->expected(2);
  verb.add_option("--html", f.html, "write a page of figures and charts to this file");
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
      "  plimsoll bench --sweep concurrency=1..32 --num-prompts 64 --ignore-eos --format json\n"
      "  plimsoll bench --request-rate 4 --goodput ttft:500 tpot:50 --percentile-metrics ttft,tpot,itl,e2el\n"
      "  plimsoll bench --search rate=0.5..50 --goodput ttft:500 tpot:50 --num-prompts 200\n"
      "  plimsoll bench --compare before.json after.json\n"
      "  plimsoll bench --num-prompts 64 --max-concurrency 8 --fail-if 'p99_ttft_ms>500'\n"
      "Exit status: 0 the run finished (failed requests are counted), 1 no request succeeded, a limit was\n"
      "broken, the client was too slow or a search found nothing, 5 the endpoint cannot be reached.");
  return make_verb(verb, f, run_benchmarks);
}

}  // namespace plimsoll::cli
