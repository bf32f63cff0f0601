// SPDX-License-Identifier: Apache-2.0
// `serve MODEL`: the embedded engine behind the OpenAI API, until SIGTERM.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "base/log.h"
#include "base/printable.h"
#include "cli/engine_flags.h"
#include "cli/model_argument.h"
#include "cli/verbs.h"
#include "serve/serve.h"

namespace plimsoll::cli {
namespace {

constexpr std::chrono::seconds kDrain{30};

struct Flags {
  CommonFlags common;
  EngineFlags engine;
  std::string model;
  std::string host = "127.0.0.1";
  int port = 8000;
  std::vector<std::string> served_model_names, api_keys;
  std::int64_t max_queue = 4096;
  std::string max_body_bytes;
  bool request_id_headers = false;
  std::vector<std::int64_t> measure;
};

/// SIGTERM and SIGINT, blocked in this thread and in all that it starts.
sigset_t block_stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

int measure(const Flags& flags, const serve::LoadOptions& load) {
  const auto measured = serve::measure_kv(load, flags.measure);
  if (!measured) return report_error(flags.common, measured.error());
  std::string text;
  if (flags.common.is_json()) {
    text = dump_pretty(serve::to_json(*measured, flags.model));
  } else {
    for (const auto& one : *measured)
      text += with_commas(one.tokens.value) + " tokens occupy " + with_commas(one.resident().value) +
              " bytes of the KV pool\n";
  }
  const auto written = write_output(flags.common, text);
  return written ? 0 : report_error(flags.common, written.error());
}

int run(Flags& flags) {
  if (const Status settled = settle_model(flags.model, flags.common); !settled)
    return report_error(flags.common, settled.error());
  auto load = load_options(flags.engine, flags.model, flags.common);
  if (!load) return report_error(flags.common, load.error());
  if (!flags.measure.empty()) return measure(flags, *load);
  serve::ServeOptions options;
  options.load = std::move(*load);
  options.load.served_model_names = flags.served_model_names;
  options.host = flags.host;
  options.port = flags.port;
  options.api_keys = flags.api_keys;
  options.max_queue = flags.max_queue;
  options.request_id_headers = flags.request_id_headers;
  options.version = PLIMSOLL_VERSION;
  if (!flags.max_body_bytes.empty()) {
    const auto size = parse_size(flags.max_body_bytes);
    if (!size || *size < 1)
      return report_error(flags.common, {ErrorCode::kUsage, "`" + flags.max_body_bytes + "` is no size",
                                         "--max-body-bytes", "give a plain integer or 32MiB"});
    options.max_body_bytes = *size;
  }
  const sigset_t signals = block_stop_signals();
  auto progress = std::make_unique<LoadProgress>(flags.common, options.load);
  auto app = serve::App::start(options);
  progress.reset();
  if (!app) return report_error(flags.common, app.error());
  for (const std::string& line : (*app)->startup_lines()) std::cerr << printable(line) << "\n";
  std::cerr << "Listening on " << (*app)->url() << std::endl;
  int signal = 0;
  sigwait(&signals, &signal);
  // A second signal ends the process at once.
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  log_info("stopping: answers under way may end");
  (*app)->stop(kDrain);
  return 0;
}

}  // namespace

Verb add_serve(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* verb = app.add_subcommand("serve", "the embedded engine behind the OpenAI API");
  verb->add_option("MODEL", flags->model, kModelHelp);
  verb->add_option("--host", flags->host, "address to listen on")->capture_default_str();
  verb->add_option("--port", flags->port, "port; 0 picks a free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  verb->add_option("--served-model-name", flags->served_model_names, "names in the API (default: MODEL)");
  verb->add_option("--api-key", flags->api_keys,
                   "ask for one of these keys under /v1; may be given several times")
      ->allow_extra_args(false);
  verb->add_option("--max-queue", flags->max_queue, "requests that may wait; beyond it 503")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 32))
      ->capture_default_str();
  verb->add_option("--max-body-bytes", flags->max_body_bytes, "longest request body (default 32MiB)");
  verb->add_flag("--enable-request-id-headers", flags->request_id_headers, "X-Request-Id on every answer");
  verb->add_option("--measure", flags->measure, "bytes that one sequence of N tokens occupies, then exit")
      ->delimiter(',')
      ->allow_extra_args(false);
  add_engine_flags(*verb, flags->engine);
  add_common_flags(*verb, flags->common);
  verb->footer(
      std::string(
          "Examples:\n"
          "  plimsoll serve ./SmolLM2-135M-Instruct.Q4_1.gguf --port 8000\n"
          "  plimsoll serve ./model --max-model-len 4096 --max-num-seqs 32 --served-model-name small\n"
          "  plimsoll serve ./model --measure 1000,4000 --format json") +
      kModelEnvironment);
  return make_verb(verb, flags, run);
}

}  // namespace plimsoll::cli
