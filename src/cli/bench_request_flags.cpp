// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_request_flags.h"

#include <CLI/CLI.hpp>

namespace plimsoll::cli {

void add_bench_request_flags(CLI::App& verb, BenchRequestFlags& flags, bench::Options& options) {
  verb.add_option("--base-url", options.base_urls, "where the server is; given again: requests go round")
      ->allow_extra_args(false)
      ->capture_default_str();
  verb.add_option("--host", flags.host, "with --port, instead of --base-url");
  verb.add_option("--port", flags.port, "8000 when only --host is given")->check(CLI::Range(1, 65535));
  verb.add_option("--endpoint", options.endpoint, "path; chosen by --backend when left out");
  verb.add_option("--model", options.model, "name to ask for; the first of /v1/models when left out");
  verb.add_option("--served-model-name", options.served_model_name,
                  "name to ask for when it is not the model's");
  verb.add_flag("--insecure", flags.insecure, "do not verify TLS certificates");
  verb.add_flag("!--no-keep-alive", options.keep_alive, "open a connection for each request");
  verb.add_option("--request-id-prefix", options.request_id_prefix,
                  "send X-Request-Id: PREFIX and the request's number");
  verb.add_option("--ready-check-timeout-sec", options.ready_timeout_s,
                  "wait this long for the server to answer before anything is sent");
  verb.add_option("--temperature", flags.temperature, "of each request; the server's default when left out");
  verb.add_option("--top-p", flags.top_p, "likewise");
  verb.add_option("--top-k", flags.top_k, "likewise");
  verb.add_option("--min-p", flags.min_p, "likewise");
  verb.add_option("--frequency-penalty", flags.frequency_penalty, "likewise");
  verb.add_option("--presence-penalty", flags.presence_penalty, "likewise");
  verb.add_option("--repetition-penalty", flags.repetition_penalty, "likewise");
  verb.add_option("--extra-body", flags.extra_body, "JSON object whose members are added to each request");
}

Status apply(const BenchRequestFlags& flags, bench::Options& options) {
  if (!flags.host.empty() || flags.port) {
    const std::string host = flags.host.empty() ? "127.0.0.1" : flags.host;
    const bool is_ipv6 = host.find(':') != host.npos && host.front() != '[';
    options.base_urls = {"http://" + (is_ipv6 ? "[" + host + "]" : host) + ":" +
                         std::to_string(flags.port.value_or(8000))};
  }
  options.verify_tls = !flags.insecure;
  Json extra = Json::object();
  const auto add = [&extra](const char* name, const auto& value) {
    if (value) extra.set(name, *value);
  };
  add("temperature", flags.temperature);
  add("top_p", flags.top_p);
  add("top_k", flags.top_k);
  add("min_p", flags.min_p);
  add("frequency_penalty", flags.frequency_penalty);
  add("presence_penalty", flags.presence_penalty);
  add("repetition_penalty", flags.repetition_penalty);
  if (!flags.extra_body.empty()) {
    const auto given = parse_json(flags.extra_body, "--extra-body");
    if (!given || !given->is_object())
      return fail(ErrorCode::kUsage, "not a JSON object", "--extra-body",
                  R"(write, for example, --extra-body '{"temperature": 0}')");
    for (const auto& [name, value] : given->members()) extra.set(name, value);
  }
  options.extra_body = std::move(extra);
  return {};
}

}  // namespace plimsoll::cli
