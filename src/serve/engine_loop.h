// SPDX-License-Identifier: Apache-2.0
// Who calls the engine? One thread: it takes jobs and cancellations from a queue, steps while there is work,
// sleeps when there is none, and hands each output to its job's sink. A fault of one job ends that job alone.
// The loop borrows the engine and the metrics; submit, cancel and stop may be called from any thread, sinks
// are called from the loop's thread only.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "serve/api_error.h"
#include "serve/metrics.h"

namespace plimsoll::serve {

/// Names a job of the loop; never used twice.
using Ticket = std::uint64_t;

/// What a job's owner hears.
class JobSink {
 public:
  virtual ~JobSink() = default;
  /// New tokens, or the end. Nothing follows an output with `finish`, nor a cancellation.
  virtual void on_output(Ticket ticket, const engine::Output& output) = 0;
  /// The engine did not take the job (`ticket` is that of its first choice), or the engine failed as a whole.
  virtual void on_refused(Ticket ticket, const ApiError& error) = 0;
};

struct Job {
  Ticket ticket = 0;  // of the first choice, from new_tickets(); the other choices' follow it
  engine::Submission submission;
  std::shared_ptr<JobSink> sink;
};

struct EngineLoopOptions {
  std::int64_t max_queue = 4096;  // sequences that may wait; beyond it submit refuses
  int max_num_seqs = 64;          // of the engine
};

class EngineLoop {
 public:
  EngineLoop(engine::Engine& engine, Metrics& metrics, const EngineLoopOptions& options);
  /// Ends at once: jobs under way are cancelled.
  ~EngineLoop();

  /// The first of `count` consecutive tickets.
  Ticket new_tickets(std::size_t count);
  /// Queues all jobs or none.
  /// Errors: 503 queue_full when too many wait, 503 when the server is stopping or the engine has failed.
  std::optional<ApiError> submit(std::vector<Job> jobs);
  /// The choice's blocks are free after the step under way; its sink hears nothing more of it. `reason` is
  /// what the metrics count: kStop when a stop string ended it. Unknown tickets are ignored.
  void cancel(Ticket ticket, engine::FinishReason reason = engine::FinishReason::kCancelled);

  /// Jobs that are queued, and sequences that wait or run: 0 when nothing is left.
  std::int64_t num_unfinished() const;
  /// False once the engine has failed as a whole.
  bool is_alive() const;
  /// Refuses new jobs from now on; those under way go on.
  void begin_drain();
  /// Waits until no job is left, or for `limit`; then cancels the rest and ends the thread.
  void stop(std::chrono::milliseconds limit);

 private:
  using Clock = std::chrono::steady_clock;
  struct Active {  // a choice that the engine holds
    Ticket ticket = 0;
    std::shared_ptr<JobSink> sink;
    std::int64_t prompt_tokens = 0;  // 0 for further choices: the prompt is computed once
    Clock::time_point arrival, last_token;
    bool has_tokens = false;
  };
  struct Command {  // a new job, or a cancellation when `job.sink` is empty
    Job job;
    Clock::time_point arrival;
    engine::FinishReason reason = engine::FinishReason::kCancelled;
  };

  void run();
  void give_up(std::string_view reason);
  void apply(Command command);
  void add(Job job, Clock::time_point arrival);
  void dispatch(std::span<const engine::Output> outputs);
  void count(Active& active, const engine::Output& output);
  void publish();
  void fail_all(const ApiError& error);
  void refuse(JobSink& sink, Ticket ticket, const ApiError& error);
  ApiError unavailable(std::string message, std::string code) const;

  engine::Engine& engine_;
  Metrics& metrics_;
  EngineLoopOptions options_;

  // Of the loop's thread.
  std::unordered_map<engine::RequestId, Active> active_;
  std::unordered_map<Ticket, engine::RequestId> requests_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable wake_, idle_;
  std::vector<Command> inbox_;
  Ticket last_ticket_ = 0;
  std::int64_t queued_ = 0;                 // jobs in the inbox
  std::int64_t in_engine_ = 0;              // sequences of the engine
  std::int64_t running_ = 0, waiting_ = 0;  // of the engine, after its last step
  bool is_draining_ = false, is_stopping_ = false, is_alive_ = true;
  std::thread thread_;
};

}  // namespace plimsoll::serve
