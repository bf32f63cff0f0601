// SPDX-License-Identifier: Apache-2.0
#include "loop/demo.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "artifact/artifact.h"
#include "base/hash.h"
#include "base/machine.h"
#include "base/mapped_file.h"
#include "bench/bench.h"
#include "http/http.h"
#include "inspect/inspect.h"
#include "loop/server_process.h"
#include "plan/plan.h"
#include "text/text.h"
#include "verify/verify.h"

namespace plimsoll::loop {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::minutes kPatience{5};
constexpr std::string_view kPrompt = "What is the capital of France? Answer in one sentence.";

double seconds_since(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

// A request that must succeed: an answer of another status is an error with the server's own words.
Result<Json> post(const std::string& url, const Json& body) {
  PLIMSOLL_TRY(const http::Response response,
               http::fetch("POST", url, dump(body), {{"Content-Type", "application/json"}}, kPatience));
  if (response.status != 200)
    return fail(ErrorCode::kInternal,
                fmt::format("the server answered {}: {}", response.status, response.body.substr(0, 300)),
                url);
  return parse_json(response.body, url);
}

Result<plan::Row> plan_here(const DemoOptions& options, const inspect::Report& report,
                            const std::string& plan_path) {
  plan::Request request;
  PLIMSOLL_TRY(request.engine, facts::parse_engine("plimsoll"));
  const Machine machine = read_machine();
  request.machine_threads = machine.cores.usable;
  PLIMSOLL_TRY(plan::Target here, plan::target_here(machine));
  request.targets.push_back(std::move(here));
  plan::Model model;
  model.source = options.model;
  model.title = report.spec->name.empty() ? options.model : report.spec->name;
  model.spec = *report.spec;
  model.stored_weights = report.weights.bytes;
  request.models.push_back(std::move(model));
  request.settings.max_model_len = options.max_model_len;
  request.settings.max_num_seqs = options.max_num_seqs;
  PLIMSOLL_TRY(const plan::Plan plan, plan::make_plan(request));
  PLIMSOLL_TRY_VOID(write_file(plan_path, dump_pretty(plan::to_json(plan))));
  const plan::Row& row = plan.rows.front();
  if (!row.fits)
    return fail(ErrorCode::kNo, row.engine_message, "--max-model-len", "free some memory and try again");
  return row;
}

// Bytes of the pool that hold memory after one prompt of as many tokens as fill whole blocks, by the kernel's
// count.
Result<std::optional<std::int64_t>> measure_bytes_per_token(const DemoOptions& options,
                                                            std::int64_t vocab_size,
                                                            const ServerProcess& server,
                                                            std::int64_t block_size) {
  const std::int64_t tokens = (options.max_model_len - 1) / block_size * block_size;
  Json prompt = Json::array();
  for (std::int64_t i = 0; i < tokens; ++i)
    prompt.push_back(i % vocab_size);  // what they say does not matter
  PLIMSOLL_TRY(const Json answer, post(server.url + "/v1/completions",
                                       Json::object({{"prompt", std::move(prompt)}, {"max_tokens", 1}})));
  const auto pool = kv_pool_mapping(server.process.pid());
  if (!pool || answer.at_pointer("/usage/prompt_tokens").as_integer() != tokens)
    return std::optional<std::int64_t>();
  return std::optional(pool->resident.value / tokens);
}

Result<Level> bench_level(const DemoOptions& options, const std::string& url,
                          const std::shared_ptr<const text::Tokenizer>& tokenizer, std::int64_t concurrency) {
  bench::Options load;
  load.base_urls = {url};
  load.tokenizer = tokenizer;
  load.tokenizer_name = options.model;
  load.input_tokens = options.input_tokens;
  load.output_tokens = options.output_tokens;
  load.ignore_eos = true;
  load.max_concurrency = concurrency;
  load.num_prompts = std::max<std::int64_t>(4, 2 * concurrency);
  load.seed = static_cast<std::uint64_t>(
      concurrency);  // prompts of their own, so that no level finds another's in the cache
  PLIMSOLL_TRY(const bench::RunResult run, bench::run(load, [](const bench::Progress&) {}));
  Level level;
  level.max_concurrency = concurrency;
  level.completed = run.summary.completed;
  level.failed = run.summary.failed;
  level.mean_ttft_ms = run.summary.of(bench::Metric::kTtft).mean();
  level.mean_tpot_ms = run.summary.of(bench::Metric::kTpot).mean();
  level.output_throughput = run.summary.output_rate;
  level.total_token_throughput = run.summary.total_rate;
  return level;
}

Result<verify::Report> verify_log(const std::string& log_path, const std::string& plan_path) {
  PLIMSOLL_TRY(const std::string log, read_file(log_path));
  PLIMSOLL_TRY(const Json plan, read_json_file(plan_path));
  verify::LogReader reader;
  reader.feed(log);
  return verify::compare(reader.finish(), &plan, nullptr);
}

std::string four_values(const DemoOptions& options, const inspect::Report& report) {
  return fmt::format(
      "weights {} ({} bytes), context {} tokens, KV {} bytes per token, traffic {} tokens in and {} out",
      as_gb(*report.weights.bytes), with_commas(report.weights.bytes->value),
      report.context.max_model_len ? with_commas(*report.context.max_model_len) : "unknown",
      with_commas(report.kv_cache->bytes_per_token.value), options.input_tokens, options.output_tokens);
}

std::string machine_line() {
  const Machine machine = read_machine();
  return fmt::format("{}, {} cores, {}", machine.cpu_model.empty() ? "unknown CPU" : machine.cpu_model,
                     machine.cores.usable,
                     machine.memory_total ? as_gib(*machine.memory_total) : "unknown memory");
}

// What the plan said beside what the process shows. `bytes_per_token` was measured before the pool filled.
std::vector<Comparison> compare(const plan::Row& row, const ServerProcess& server, const verify::Report& log,
                                std::optional<std::int64_t> bytes_per_token) {
  const auto pool = kv_pool_mapping(server.process.pid());
  const auto peak = peak_memory(server.process.pid());
  const auto& start = log.log.runs.back();
  std::optional<std::int64_t> pool_bytes, pool_tokens, weights, peak_bytes, planned_peak;
  if (pool) pool_bytes = pool->size.value;
  if (pool && bytes_per_token && *bytes_per_token > 0) pool_tokens = pool->size.value / *bytes_per_token;
  if (start.weights_bytes) weights = start.weights_bytes->value;
  if (peak) peak_bytes = peak->value;
  if (row.peak) planned_peak = row.peak->value;
  return {
      {"kv_bytes_per_token", "KV bytes per token", "bytes", row.kv_bytes_per_token.value, bytes_per_token,
       "resident pages of the pool after one prompt, by the kernel's page tables"},
      {"kv_tokens", "KV pool tokens", "tokens", row.kv_tokens.value, pool_tokens,
       "the pool's mapping over the measured bytes per token"},
      {"kv_cache_bytes", "KV pool bytes", "bytes", row.kv_cache.value, pool_bytes,
       "size of the pool's mapping"},
      {"weights_bytes", "Weight bytes", "bytes", row.weights.value, weights,
       "sizes of the tensors that the engine took, from its log"},
      {"peak_memory_bytes", "Peak memory", "bytes", planned_peak, peak_bytes,
       "VmHWM of the server's process"},
  };
}

}  // namespace

Result<DemoResult> run_demo(const DemoOptions& options, const std::function<void(std::string_view)>& say) {
  const auto start = steady_clock::now();
  std::error_code ignored;
  std::filesystem::create_directories(options.folder, ignored);
  const std::string plan_path = options.folder + "/plan.json";
  DemoResult result;
  result.machine = machine_line();

  say("inspect: what is this model?");
  PLIMSOLL_TRY(const inspect::Report report, inspect::inspect(options.model));
  if (auto error = artifact::first_error(report.findings)) return fail(std::move(*error));
  if (!report.spec || !report.kv_cache || !report.weights.bytes)
    return fail(ErrorCode::kUnsupported, "the model has no weights to serve", options.model,
                "give a GGUF file or a complete folder");
  result.model_name = report.spec->name.empty() ? options.model : report.spec->name;
  result.architecture = report.spec->architecture;
  result.parameters = report.parameters.total;
  if (std::filesystem::is_regular_file(options.model, ignored)) {
    PLIMSOLL_TRY(const MappedFile file, MappedFile::open(options.model));
    result.sha256 = sha256_hex(file.bytes());
  }
  result.inspect_summary = four_values(options, report);

  say("plan: what fits on this machine?");
  PLIMSOLL_TRY(const plan::Row row, plan_here(options, report, plan_path));

  say("serve: the engine on a free port");
  PLIMSOLL_TRY(ServerProcess server, start_server(options.program, options.model,
                                                  {"--max-model-len", std::to_string(options.max_model_len),
                                                   "--max-num-seqs", std::to_string(options.max_num_seqs)},
                                                  options.folder + "/serve.log", kPatience));
  PLIMSOLL_TRY(const auto bytes_per_token,
               measure_bytes_per_token(options, report.spec->vocab_size, server, *row.block_size));
  Json message = Json::object({{"role", "user"}, {"content", kPrompt}});
  PLIMSOLL_TRY(const Json answer, post(server.url + "/v1/chat/completions",
                                       Json::object({{"messages", Json(Json::Array{std::move(message)})},
                                                     {"max_tokens", 64},
                                                     {"temperature", 0}})));
  result.prompt = kPrompt;
  if (const auto* text = answer.at_pointer("/choices/0/message/content").as_string()) result.answer = *text;

  PLIMSOLL_TRY(const auto artifact, artifact::open(options.model));
  PLIMSOLL_TRY(const auto tokenizer, text::load_tokenizer(*artifact));
  for (const std::int64_t concurrency : options.concurrencies) {
    say(fmt::format("bench: {} at once", concurrency));
    PLIMSOLL_TRY(Level level, bench_level(options, server.url, tokenizer, concurrency));
    result.sweep.push_back(level);
  }

  say("verify: the engine's log against the plan");
  PLIMSOLL_TRY(const verify::Report verified, verify_log(server.log_path, plan_path));
  if (!verified.is_recognised())
    return fail(ErrorCode::kInternal, "the server's log holds no start that verify knows", server.log_path);
  result.log_agrees = verified.agrees();
  result.comparisons = compare(row, server, verified, bytes_per_token);
  if (const int status = server.process.stop(std::chrono::seconds(30)); status != 0)
    return fail(ErrorCode::kInternal,
                fmt::format("the server ended with status {} when asked to stop", status), server.log_path);
  result.wall_s = seconds_since(start);
  return result;
}

}  // namespace plimsoll::loop
