// SPDX-License-Identifier: Apache-2.0
#include "serve/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <map>
#include <mutex>

#include "base/machine.h"

namespace plimsoll::serve {
namespace {

using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Histogram;
using Buckets = Histogram::BucketBoundaries;

// vLLM's boundaries, so that its dashboards' quantiles stay comparable.
const Buckets kFirstTokenBuckets = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,  0.25,  0.5,   0.75,
                                    1.0,   2.5,   5.0,  7.5,  10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0};
const Buckets kInterTokenBuckets = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2,  0.3,  0.4, 0.5,
                                    0.75, 1.0,   2.5,  5.0,   7.5, 10.0, 20.0, 40.0, 80.0};
const Buckets kRequestBuckets = {0.3,  0.5,  0.8,  1.0,  1.5,   2.0,   2.5,   5.0,   10.0,   15.0,  20.0,
                                 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0};

/// Makes the families; every metric carries the labels model_name and engine.
class Maker {
 public:
  Maker(prometheus::Registry& registry, std::map<std::string, std::string> labels)
      : registry_(registry), labels_(std::move(labels)) {}

  Gauge& gauge(const char* name, const char* help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry_).Add(labels_);
  }
  Counter& counter(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry_).Add(labels_);
  }
  Histogram& histogram(const char* name, const char* help, const Buckets& buckets) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry_).Add(labels_, buckets);
  }
  Counter& finished(const char* reason) {
    auto labels = labels_;
    labels["finished_reason"] = reason;
    return prometheus::BuildCounter()
        .Name("vllm:request_success_total")
        .Help("Count of finished requests by reason.")
        .Register(registry_)
        .Add(labels);
  }
  void cache_config(const engine::MemoryReport& memory) {
    auto labels = labels_;
    labels["block_size"] = std::to_string(memory.block_size);
    labels["num_gpu_blocks"] = std::to_string(memory.num_blocks.value);
    prometheus::BuildGauge()
        .Name("vllm:cache_config_info")
        .Help("Layout of the KV cache, in the labels.")
        .Register(registry_)
        .Add(labels)
        .Set(1);
  }

 private:
  prometheus::Registry& registry_;
  std::map<std::string, std::string> labels_;
};

/// Raises a counter to a total that the engine counts itself.
void raise_to(Counter& counter, double total) {
  if (const double behind = total - counter.Value(); behind > 0) counter.Increment(behind);
}

}  // namespace

struct Metrics::State {
  prometheus::Registry registry;
  Maker make;
  std::mutex raising;  // raise_to reads and then writes

  Gauge& running = make.gauge("vllm:num_requests_running", "Number of requests in model execution batches.");
  Gauge& waiting = make.gauge("vllm:num_requests_waiting", "Number of requests waiting to be processed.");
  Gauge& usage = make.gauge("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.");
  Gauge& old_usage = make.gauge("vllm:gpu_cache_usage_perc", "Older name of vllm:kv_cache_usage_perc.");
  Gauge& blocks_total = make.gauge("plimsoll:kv_blocks_total", "Blocks of the KV pool.");
  Gauge& blocks_used = make.gauge("plimsoll:kv_blocks_used", "Blocks that requests hold.");
  Gauge& blocks_cached = make.gauge("plimsoll:kv_blocks_cached", "Blocks that only the prefix cache holds.");
  Counter& prompt_tokens = make.counter("vllm:prompt_tokens_total", "Number of prefill tokens processed.");
  Counter& generation_tokens =
      make.counter("vllm:generation_tokens_total", "Number of generation tokens processed.");
  Counter& prefix_queries =
      make.counter("vllm:prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache.");
  Counter& prefix_hits =
      make.counter("vllm:prefix_cache_hits_total", "Prompt tokens found in the prefix cache.");
  Counter& old_prefix_queries =
      make.counter("vllm:gpu_prefix_cache_queries_total", "Older name of vllm:prefix_cache_queries_total.");
  Counter& old_prefix_hits =
      make.counter("vllm:gpu_prefix_cache_hits_total", "Older name of vllm:prefix_cache_hits_total.");
  Counter& blocks_evicted =
      make.counter("plimsoll:kv_blocks_evicted_total", "Blocks whose cached content gave way to new tokens.");
  Counter& blocks_copied = make.counter("plimsoll:kv_blocks_copied_total",
                                        "Blocks copied because somebody else still reads the old content.");
  Counter& preemptions = make.counter("vllm:num_preemptions_total", "Cumulative number of preemptions.");
  Counter& stopped = make.finished("stop");
  Counter& cut = make.finished("length");
  Counter& aborted = make.finished("abort");
  Counter& failed = make.finished("error");
  Histogram& first_token = make.histogram("vllm:time_to_first_token_seconds",
                                          "Time to first token in seconds.", kFirstTokenBuckets);
  Histogram& inter_token = make.histogram("vllm:inter_token_latency_seconds",
                                          "Inter-token latency in seconds.", kInterTokenBuckets);
  Histogram& request = make.histogram("vllm:e2e_request_latency_seconds",
                                      "End to end request latency in seconds.", kRequestBuckets);
  Gauge& resident = prometheus::BuildGauge()
                        .Name("process_resident_memory_bytes")
                        .Help("Resident memory size in bytes.")
                        .Register(registry)
                        .Add({});

  explicit State(std::map<std::string, std::string> labels) : make(registry, std::move(labels)) {}
};

Metrics::Metrics(const std::string& model_name, const engine::MemoryReport& memory)
    : state_(std::make_unique<State>(
          std::map<std::string, std::string>{{"model_name", model_name}, {"engine", "0"}})) {
  state_->make.cache_config(memory);
  state_->blocks_total.Set(static_cast<double>(memory.num_blocks.value));
}
Metrics::~Metrics() = default;

void Metrics::set_engine(const engine::EngineStats& stats, std::int64_t queued) {
  State& s = *state_;
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  s.running.Set(number(stats.running));
  s.waiting.Set(number(stats.waiting + queued));
  const double usage =
      stats.blocks_total.value > 0 ? number(stats.blocks_used.value) / number(stats.blocks_total.value) : 0.0;
  s.usage.Set(usage);
  s.old_usage.Set(usage);
  s.blocks_total.Set(number(stats.blocks_total.value));
  s.blocks_used.Set(number(stats.blocks_used.value));
  s.blocks_cached.Set(number(stats.blocks_cached.value));
  const std::lock_guard lock(s.raising);
  raise_to(s.prefix_queries, number(stats.prefix_queries_tokens));
  raise_to(s.prefix_hits, number(stats.prefix_hits_tokens));
  raise_to(s.old_prefix_queries, number(stats.prefix_queries_tokens));
  raise_to(s.old_prefix_hits, number(stats.prefix_hits_tokens));
  raise_to(s.blocks_evicted, number(stats.blocks_evicted.value));
  raise_to(s.blocks_copied, number(stats.blocks_copied.value));
  raise_to(s.preemptions, number(stats.preemptions));
}

void Metrics::add_prompt_tokens(std::int64_t tokens) {
  state_->prompt_tokens.Increment(static_cast<double>(tokens));
}
void Metrics::add_generation_tokens(std::int64_t tokens) {
  state_->generation_tokens.Increment(static_cast<double>(tokens));
}
void Metrics::observe_first_token(double seconds) {
  state_->first_token.Observe(seconds);
}
void Metrics::observe_inter_token(double seconds) {
  state_->inter_token.Observe(seconds);
}

void Metrics::observe_request(double seconds, engine::FinishReason reason) {
  State& s = *state_;
  s.request.Observe(seconds);
  switch (reason) {
    case engine::FinishReason::kStop:
      return s.stopped.Increment();
    case engine::FinishReason::kLength:
      return s.cut.Increment();
    case engine::FinishReason::kCancelled:
      return s.aborted.Increment();
    case engine::FinishReason::kError:
      return s.failed.Increment();
  }
}

std::string Metrics::text() const {
  if (const auto resident = resident_bytes()) state_->resident.Set(static_cast<double>(resident->value));
  return prometheus::TextSerializer().Serialize(state_->registry.Collect());
}

}  // namespace plimsoll::serve
