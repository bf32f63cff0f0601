// SPDX-License-Identifier: Apache-2.0
// An endpoint whose replies follow a timetable: for each request a script of events and the milliseconds at
// which they leave. What was asked is kept. The same http::Server that `serve` uses, driven by one thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/json.h"
#include "http/http.h"
#include "tests/http/wire.h"

namespace plimsoll::bench {

struct Step {
  int at_ms = 0;
  std::string data;  // of one event; written as it is when `is_raw`
  bool is_raw = false;
};

struct Script {
  int status = 200;
  std::string body;         // of a status that is not 200
  std::vector<Step> steps;  // of a stream
  std::string content_type = "text/event-stream";
  bool is_cut = false;   // the connection closes without the stream's end
  bool is_dead = false;  // never answered
};

class TimetableServer {
 public:
  using ScriptOf = std::function<Script(int number, const Json& request)>;

  explicit TimetableServer(ScriptOf script)
      : script_(std::move(script)),
        server_([this](http::Request r, std::shared_ptr<http::Responder> w) {
          handle(std::move(r), std::move(w));
        }),
        clock_([this] { tick(); }) {}
  ~TimetableServer() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    clock_.join();
    server_.stop(std::chrono::milliseconds(0));
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_.port()); }
  /// What GET /metrics answers from now on; 404 while empty.
  void set_metrics(std::string text) {
    const std::lock_guard lock(mutex_);
    metrics_ = std::move(text);
  }
  int num_metrics_asked() {
    const std::lock_guard lock(mutex_);
    return num_metrics_asked_;
  }
  int peak() {
    const std::lock_guard lock(mutex_);
    return peak_;
  }
  std::vector<Json> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  std::vector<http::Headers> headers() {
    const std::lock_guard lock(mutex_);
    return headers_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  void handle(http::Request request, std::shared_ptr<http::Responder> responder) {
    if (request.path == "/v1/models")
      return responder->send({200, {{"Content-Type", "application/json"}}, R"({"data":[{"id":"toy"}]})"});
    if (request.path == "/metrics") {
      const std::lock_guard lock(mutex_);
      ++num_metrics_asked_;
      return responder->send({metrics_.empty() ? 404 : 200, {{"Content-Type", "text/plain"}}, metrics_});
    }
    const std::lock_guard lock(mutex_);
    requests_.push_back(*parse_json(request.body, "request"));
    headers_.push_back(request.headers);
    const Script script = script_(static_cast<int>(requests_.size()) - 1, requests_.back());
    if (script.is_dead) {
      dead_.push_back(std::move(responder));
      return;
    }
    if (script.status != 200) return responder->send({script.status, {}, script.body});
    responder->begin_stream(200, {{"Content-Type", script.content_type}});
    peak_ = std::max(peak_, ++active_);
    const auto now = Clock::now();
    int last = 0;
    for (const Step& step : script.steps) {
      const std::string bytes = step.is_raw ? step.data : "data: " + step.data + "\n\n";
      plan_.emplace(now + std::chrono::milliseconds(step.at_ms),
                    [responder, bytes] { responder->write(bytes); });
      last = std::max(last, step.at_ms);
    }
    plan_.emplace(now + std::chrono::milliseconds(last), [this, responder, is_cut = script.is_cut]() mutable {
      --active_;
      if (!is_cut) responder->finish();
      responder.reset();
    });
    changed_.notify_all();
  }

  void tick() {
    std::unique_lock lock(mutex_);
    while (!is_over_) {
      if (plan_.empty()) {
        changed_.wait(lock);
      } else if (const auto at = plan_.begin()->first; Clock::now() < at) {
        changed_.wait_until(lock, at);
      } else {
        // Equal times keep the order in which they were planned.
        const auto work = std::move(plan_.begin()->second);
        plan_.erase(plan_.begin());
        work();
      }
    }
    plan_.clear();
  }

  ScriptOf script_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<Clock::time_point, std::function<void()>> plan_;
  std::vector<Json> requests_;
  std::vector<http::Headers> headers_;
  std::vector<std::shared_ptr<http::Responder>> dead_;
  std::string metrics_;
  int num_metrics_asked_ = 0;
  int active_ = 0;
  int peak_ = 0;
  bool is_over_ = false;
  http::RunningServer server_;
  std::thread clock_;
};

inline std::string text_event(std::string_view text) {
  return R"({"choices":[{"index":0,"text":")" + std::string(text) + R"(","finish_reason":null}]})";
}
inline std::string role_event() {
  return R"({"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]})";
}
inline std::string content_event(std::string_view text) {
  return R"({"choices":[{"index":0,"delta":{"content":")" + std::string(text) + R"("}}]})";
}
inline std::string usage_event(int prompt, int completion) {
  return R"({"choices":[],"usage":{"prompt_tokens":)" + std::to_string(prompt) + R"(,"completion_tokens":)" +
         std::to_string(completion) + "}}";
}

/// `n` tokens from first_ms on, every gap_ms, then usage and [DONE].
inline Script completion(int n, int first_ms = 2, int gap_ms = 1) {
  Script script;
  for (int i = 0; i < n; ++i) script.steps.push_back({first_ms + i * gap_ms, text_event(" the")});
  const int end = first_ms + n * gap_ms;
  script.steps.push_back({end, usage_event(5, n)});
  script.steps.push_back({end, "[DONE]"});
  return script;
}

}  // namespace plimsoll::bench
