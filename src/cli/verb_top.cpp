// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <thread>

#include "bench/flags.h"
#include "bench/top.h"
#include "cli/verbs.h"

namespace plimsoll::cli {
namespace {

constexpr std::string_view kClearScreen = "\x1b[H\x1b[J";

struct TopFlags {
  CommonFlags common;
  bench::TopOptions options;
  std::vector<std::string> headers;
  double interval_s = 1;
  std::int64_t count = 0;  // 0: until stopped
  bool is_once = false;

  bool is_watched() const {
    return !common.is_json() && common.output.empty() && ::isatty(STDOUT_FILENO) == 1;
  }
  /// A document is one, and ends.
  std::int64_t frames() const {
    if (is_once) return 1;
    return count == 0 && (common.is_json() || !common.output.empty()) ? 1 : count;
  }
};

Status fill_options(TopFlags& f) {
  PLIMSOLL_TRY(f.options.headers, bench::parse_headers(f.headers));
  bench::add_key_from_environment(f.options.headers);
  return bench::check_top(f.options);
}

/// Reads once to have something to compare with, then a frame per interval.
Status watch(TopFlags& f) {
  PLIMSOLL_TRY_VOID(fill_options(f));
  bench::Top top(f.options);
  const std::chrono::duration<double> interval(f.interval_s);
  auto rows = top.refresh();
  const std::int64_t frames = f.frames();
  for (std::int64_t shown = 0; frames == 0 || shown < frames; ++shown) {
    std::this_thread::sleep_for(interval);
    rows = top.refresh();
    if (f.common.is_json()) continue;
    std::string text = bench::to_text(rows);
    if (f.is_watched()) text.insert(0, kClearScreen);
    if (f.common.output.empty())
      PLIMSOLL_TRY_VOID(write_stdout(text));
    else if (shown + 1 == frames)
      PLIMSOLL_TRY_VOID(write_output(f.common, text));
  }
  if (!top.was_reached())
    return fail(ErrorCode::kNetwork, "none of the addresses could be reached", f.options.urls.front(),
                "check that a server runs there");
  if (f.common.is_json()) return write_output(f.common, dump_pretty(bench::to_json(rows)));
  return {};
}

int run_top(TopFlags& f) {
  const auto watched = watch(f);
  return watched ? 0 : report_error(f.common, watched.error());
}

}  // namespace

Verb add_top(CLI::App& app) {
  auto f = std::make_shared<TopFlags>();
  CLI::App* verb = app.add_subcommand("top", "what vLLM, SGLang, llama.cpp, TGI or plimsoll servers do now");
  add_common_flags(*verb, f->common);
  verb->add_option("URL", f->options.urls, "where the servers are; /metrics is added")->required();
  verb->add_option("--interval", f->interval_s, "seconds from one reading to the next")
      ->check(CLI::Range(0.05, 86400.0))
      ->capture_default_str();
  CLI::Option* count = verb->add_option("--count", f->count, "stop after so many frames; 0: never")
                           ->check(CLI::NonNegativeNumber)
                           ->capture_default_str();
  verb->add_flag("--once", f->is_once, "one frame, then stop")->excludes(count);
  verb->add_option("--header", f->headers, "NAME=VALUE, sent with each request, never shown")
      ->allow_extra_args(false);
  verb->add_flag("!--insecure", f->options.verify_tls, "do not verify TLS certificates");
  verb->add_option("--server-pid", f->options.pids, "process of each server, in the order of the addresses")
      ->check(CLI::PositiveNumber)
      ->allow_extra_args(false);
  verb->footer(
      "Rates, percentiles and preemptions are of the last interval. A value with ~ is an estimate: "
      "percentiles\n"
      "are read from the buckets of the server's histograms, linear inside a bucket.\n"
      "Examples:\n"
      "  plimsoll top http://localhost:8000 http://localhost:8001\n"
      "  plimsoll top http://localhost:8000 --once --format json\n"
      "Exit status: 0, or 5 when no address was ever reached.");
  return make_verb(verb, f, run_top);
}

}  // namespace plimsoll::cli
