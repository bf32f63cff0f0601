// SPDX-License-Identifier: Apache-2.0
// What does an operator see of this server? Counters, gauges and histograms under vLLM's names, so that
// dashboards and autoscalers made for it work unchanged, and a few of our own (plimsoll:). Any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/engine.h"

namespace plimsoll::serve {

class Metrics {
 public:
  explicit Metrics(const std::string& model_name, const engine::MemoryReport& memory);
  ~Metrics();

  /// The engine's state after a step; `queued` requests have not reached it yet.
  void set_engine(const engine::EngineStats& stats, std::int64_t queued);
  void add_prompt_tokens(std::int64_t tokens);
  void add_generation_tokens(std::int64_t tokens);
  void observe_first_token(double seconds);
  void observe_inter_token(double seconds);
  void observe_request(double seconds, engine::FinishReason reason);

  /// The page of GET /metrics, in the text format 0.0.4.
  std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace plimsoll::serve
