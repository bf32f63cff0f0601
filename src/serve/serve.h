// SPDX-License-Identifier: Apache-2.0
// How does a request (HTTP, `generate`, `eval`) become engine work and events? The face of the room: a whole
// server in this process (App), many requests without one (offline.h, batch.h), a model's quality
// (eval/eval.h), the pool measured (measure.h). App owns its threads (HTTP, engine loop); its methods may be
// called from any one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "serve/batch.h"
#include "serve/eval/eval.h"
#include "serve/loaded_model.h"
#include "serve/measure.h"
#include "serve/offline.h"

namespace plimsoll::serve {

struct ServeOptions {
  LoadOptions load;
  std::string host = "127.0.0.1";
  int port = 8000;                    // 0 picks a free one
  std::vector<std::string> api_keys;  // empty: open
  std::int64_t max_queue = 4096;      // requests that may wait; beyond it 503
  std::int64_t max_body_bytes = std::int64_t{32} << 20;
  bool request_id_headers = false;
  std::string version = "0";  // what /version says
};

class App {
 public:
  /// Loads the model, then opens the port and serves on threads of its own.
  /// Errors: those of load_model; kNetwork when the port is in use.
  static Result<std::unique_ptr<App>> start(const ServeOptions& options);
  /// Stops without waiting for answers under way.
  ~App();

  int port() const;
  std::string url() const;                // http://127.0.0.1:PORT
  const std::string& model_name() const;  // that /v1/models gives first
  engine::MemoryReport memory() const;    // of the engine, as loaded
  double load_seconds() const;
  const std::vector<std::string>& startup_lines() const;

  /// Refuses new requests, lets answers under way end for up to `drain`, then stops. A second call does
  /// nothing.
  void stop(std::chrono::milliseconds drain);

 private:
  struct State;
  explicit App(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace plimsoll::serve
