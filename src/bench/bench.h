// SPDX-License-Identifier: Apache-2.0
// How fast, how late, for how many? Sends a load to an OpenAI endpoint and reports what its users would feel,
// in the layout and with the keys of `vllm bench serve` 0.32. One thread sends, reads and stamps; run()
// blocks.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "bench/monitor.h"
#include "bench/record.h"
#include "bench/summary.h"
#include "http/http.h"
#include "text/text.h"
#include "workload/workload.h"

namespace plimsoll::bench {

enum class Backend {
  kOpenai,
  kOpenaiChat,
  kVllm,
  kOpenaiResponses,
  kOpenaiEmbeddings,
  kSglang,
  kOllama,
  kTgi,
  kLlamaCpp
};
/// openai openai-chat vllm openai-responses openai-embeddings sglang ollama tgi llama.cpp
std::string_view to_string(Backend backend);
std::optional<Backend> backend_from(std::string_view name);

enum class Dataset { kRandom, kCustom, kShareGpt, kTrace, kTimedTrace, kBurstGpt, kPrefixRepetition };
/// random custom sharegpt trace timed_trace burstgpt prefix_repetition
std::string_view to_string(Dataset dataset);
std::optional<Dataset> dataset_from(std::string_view name);

/// vLLM's data set of this name: prompts that share one of a few beginnings.
struct PrefixRepetition {
  std::int64_t prefix_tokens = 256;
  std::int64_t suffix_tokens = 256;
  std::int64_t num_prefixes = 10;
  std::int64_t output_tokens = 128;
};

struct Options {
  Backend backend = Backend::kOpenai;
  std::vector<std::string> base_urls = {"http://127.0.0.1:8000"};  // requests go round them
  std::string endpoint;                                            // empty: the backend's own
  std::string model;                                               // empty: the first of /v1/models
  std::string served_model_name;  // asked for instead of `model`, which names the result
  /// Makes prompts of exact length and counts where the server does not; may be null.
  std::shared_ptr<const text::Tokenizer> tokenizer;
  std::string tokenizer_name;  // as it was given
  http::Headers headers;       // never printed

  Dataset dataset = Dataset::kRandom;
  std::string dataset_path;
  std::int64_t input_tokens = 1024;
  std::int64_t output_tokens = 128;  // random
  double range_ratio = 0.0;          // lengths uniform in [n(1-r), n(1+r)]
  /// custom (a row's own "output_tokens" wins) and sharegpt (default: the reply's own length)
  std::optional<std::int64_t> dataset_output_tokens;
  std::int64_t num_prompts = 1000;
  std::uint64_t seed = 0;
  bool ignore_eos = false;

  std::optional<std::int64_t> max_concurrency;
  double request_rate = std::numeric_limits<double>::infinity();  // per second
  double burstiness = 1.0;                                        // gamma's shape: 1 Poisson, inf constant
  std::int64_t num_warmups = 0;
  std::chrono::milliseconds request_timeout{std::chrono::hours(6)};
  bool keep_alive = true;  // false: a connection for each request
  bool verify_tls = true;
  Json extra_body;                       // members added to each request, over its own; null or an object
  std::function<bool()> is_interrupted;  // asked during the run; true ends it with what it has; may be null
  std::string request_id_prefix;         // of X-Request-Id; empty: none is sent
  double ready_timeout_s = 0;            // how long to wait for the server to answer at all

  /// False: num_prompts was not asked for, and a trace is replayed whole.
  bool has_num_prompts = true;
  /// random: the first tokens of every session, alike in all, in front of the length above.
  std::int64_t prefix_tokens = 0;
  /// random: instead of the two lengths and their range ratio.
  std::optional<workload::LengthPairs> lengths;
  PrefixRepetition prefix_repetition;
  /// random and sharegpt: turns of a session, each sent its delay after the reply before it. num_prompts
  /// counts turns, the request rate sessions.
  std::optional<workload::Distribution> num_turns;
  std::optional<workload::Distribution> turn_delay_s;
  std::optional<workload::Ramp> ramp;  // instead of request_rate
  /// A trace's own times are divided by this; they hold when neither request_rate nor ramp is given.
  double trace_speed = 1;
  workload::TraceOptions trace;

  MetricSelection metrics;
  std::vector<Goal> goodput;  // empty: not asked
  double stall_threshold_ms = 100;

  // What is watched beside the run; endpoints and headers are those above.
  std::string server_metrics = "auto";  // auto, off, or the URL of a /metrics page
  std::optional<std::int64_t> server_pid;
  bool gpu_monitor = false;

  std::string label;                                          // begins the file's name; empty: the backend
  std::vector<std::pair<std::string, std::string>> metadata;  // written into the result
};

struct Progress {
  std::int64_t completed = 0;
  std::int64_t failed = 0;
  std::int64_t running = 0;
  std::int64_t total = 0;
  std::int64_t chunks = 0;  // with tokens, that have come so far
  double elapsed_s = 0;
};
/// Called on run()'s thread some four times a second and at the end.
using ProgressSink = std::function<void(const Progress&)>;

struct RunResult {
  Options options;                     // with model and endpoint filled in
  std::string date;                    // YYYYmmdd-HHMMSS, local time
  std::vector<RequestRecord> records;  // in order of index
  Summary summary;
  std::vector<std::string> unwatched;  // what was to be watched and gave nothing
  bool was_interrupted = false;        // records hold what was over by then
  MonitorSeries server;                // beside the run, on its time axis
};

/// Runs the load and waits for its end. Failed requests are counted, not errors.
/// Errors: kUsage for options that make no sense; kMalformed for an unreadable data set; kNetwork when the
/// endpoint cannot be reached at all.
Result<RunResult> run(const Options& options, const ProgressSink& progress);

/// The latencies of options.metrics that the report and the result of such a run have. As in vLLM: pooling
/// has E2EL alone; a client's queue is behind a concurrency limit, and E2EL with it needs a finite rate too.
std::vector<Metric> shown_metrics(const Options& options);

/// The object of vLLM's --save-result; `detailed` keeps the arrays per request (--save-detailed). Our own
/// figures are in its member "plimsoll". Undefined figures are null.
Json to_json(const RunResult& result, bool detailed);

/// The block that vLLM prints, 50 wide; below it a block of our own in the same columns, and what makes the
/// figures doubtful: failures by kind, a client that was too slow, counts that are no exact counts.
std::string to_report(const RunResult& result);

/// One JSON line per request: schedule, stamps, chunks, outcome.
std::string to_request_log(const RunResult& result);

/// The file name that vLLM would choose: {backend}-{rate}qps[-concurrency{c}]-{model}-{date}.json.
std::string default_file_name(const RunResult& result);

}  // namespace plimsoll::bench
