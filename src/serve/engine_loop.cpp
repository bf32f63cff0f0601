// SPDX-License-Identifier: Apache-2.0
#include "serve/engine_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "base/log.h"

namespace plimsoll::serve {
namespace {

double seconds_between(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

EngineLoop::EngineLoop(engine::Engine& engine, Metrics& metrics, const EngineLoopOptions& options)
    : engine_(engine), metrics_(metrics), options_(options) {
  publish();
  thread_ = std::thread([this] { run(); });
}

EngineLoop::~EngineLoop() {
  stop(std::chrono::milliseconds(0));
}

Ticket EngineLoop::new_tickets(std::size_t count) {
  const std::lock_guard lock(mutex_);
  const Ticket first = last_ticket_ + 1;
  last_ticket_ += count;
  return first;
}

ApiError EngineLoop::unavailable(std::string message, std::string code) const {
  ApiError error;
  error.status = 503;
  error.type = "server_error";
  error.message = std::move(message);
  error.code = std::move(code);
  return error;
}

std::optional<ApiError> EngineLoop::submit(std::vector<Job> jobs) {
  const std::lock_guard lock(mutex_);
  if (!is_alive_) return unavailable("the engine has failed; restart the server", "engine_failed");
  if (is_draining_ || is_stopping_) return unavailable("the server is stopping", "server_stopping");
  // Once somebody waits for blocks, free slots help nobody. The choices of a prompt are one sequence until it
  // is computed.
  const std::int64_t places = waiting_ > 0 ? running_ : options_.max_num_seqs;
  const std::int64_t waiting = in_engine_ + queued_ + std::ssize(jobs) - places;
  if (waiting > options_.max_queue)
    return unavailable(
        fmt::format("the queue is full: {} requests may wait; try again later", options_.max_queue),
        "queue_full");
  queued_ += std::ssize(jobs);
  const auto now = Clock::now();
  for (Job& job : jobs) inbox_.push_back({.job = std::move(job), .arrival = now});
  wake_.notify_one();
  return std::nullopt;
}

void EngineLoop::cancel(Ticket ticket, engine::FinishReason reason) {
  Command command;
  command.job.ticket = ticket;
  command.reason = reason;
  const std::lock_guard lock(mutex_);
  inbox_.push_back(std::move(command));
  wake_.notify_one();
}

std::int64_t EngineLoop::num_unfinished() const {
  const std::lock_guard lock(mutex_);
  return queued_ + in_engine_;
}

bool EngineLoop::is_alive() const {
  const std::lock_guard lock(mutex_);
  return is_alive_;
}

void EngineLoop::begin_drain() {
  const std::lock_guard lock(mutex_);
  is_draining_ = true;
}

void EngineLoop::stop(std::chrono::milliseconds limit) {
  {
    std::unique_lock lock(mutex_);
    is_draining_ = true;
    idle_.wait_for(lock, limit, [&] { return queued_ + in_engine_ == 0 || !is_alive_; });
    is_stopping_ = true;
    wake_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void EngineLoop::run() {
  try {
    while (true) {
      std::vector<Command> commands;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return is_stopping_ || !inbox_.empty() || engine_.has_work(); });
        if (is_stopping_) break;
        commands.swap(inbox_);
      }
      for (Command& command : commands) apply(std::move(command));
      if (engine_.has_work()) {
        // Published before the step as well: a cancelled job's blocks are free now, not a step later.
        if (!commands.empty()) publish();
        const auto outputs = engine_.step();
        if (const auto cut = engine_.cut_error())
          return give_up(fmt::format("{} ({})", cut->message, cut->where));
        dispatch(outputs);
      }
      publish();
    }
    fail_all(unavailable("the server is stopping", "server_stopping"));
  } catch (const std::exception& error) {
    // Memory that runs out inside a step ends the engine, not the process: /health tells.
    give_up(error.what());
  }
}

void EngineLoop::give_up(std::string_view reason) {
  log_warning(fmt::format("the engine failed: {}", reason));
  {
    const std::lock_guard lock(mutex_);
    is_alive_ = false;
  }
  fail_all(unavailable("the engine has failed; restart the server", "engine_failed"));
  idle_.notify_all();
}

void EngineLoop::apply(Command command) {
  if (command.job.sink) return add(std::move(command.job), command.arrival);
  const auto found = requests_.find(command.job.ticket);
  if (found == requests_.end()) return;
  engine_.cancel(found->second);
  const Active& active = active_.at(found->second);
  metrics_.observe_request(seconds_between(active.arrival, Clock::now()), command.reason);
  active_.erase(found->second);
  requests_.erase(found);
}

void EngineLoop::add(Job job, Clock::time_point arrival) {
  const std::size_t num_choices = job.submission.choices.size();
  const std::int64_t prompt_tokens = std::ssize(job.submission.prompt);
  const auto first = engine_.add(std::move(job.submission));
  {
    const std::lock_guard lock(mutex_);
    --queued_;
    ++in_engine_;  // publish() corrects it when the engine refused
  }
  if (!first) {
    metrics_.observe_request(seconds_between(arrival, Clock::now()), engine::FinishReason::kError);
    refuse(*job.sink, job.ticket, from_error(first.error()));
    return;
  }
  for (std::size_t k = 0; k < num_choices; ++k) {
    requests_[job.ticket + k] = *first + k;
    active_.emplace(*first + k, Active{.ticket = job.ticket + k,
                                       .sink = job.sink,
                                       .prompt_tokens = k == 0 ? prompt_tokens : 0,
                                       .arrival = arrival,
                                       .last_token = arrival});
  }
}

void EngineLoop::count(Active& active, const engine::Output& output) {
  if (!output.embedding.empty()) metrics_.add_prompt_tokens(active.prompt_tokens);
  if (output.tokens.empty()) return;
  const auto now = Clock::now();
  const double since_last = seconds_between(active.last_token, now);
  auto tokens = static_cast<std::int64_t>(output.tokens.size());
  metrics_.add_generation_tokens(tokens);
  if (!active.has_tokens) {
    metrics_.add_prompt_tokens(active.prompt_tokens);
    metrics_.observe_first_token(since_last);
    active.has_tokens = true;
    --tokens;
  }
  for (std::int64_t i = 0; i < tokens; ++i)
    metrics_.observe_inter_token(since_last / static_cast<double>(output.tokens.size()));
  active.last_token = now;
}

void EngineLoop::dispatch(std::span<const engine::Output> outputs) {
  for (const engine::Output& output : outputs) {
    const auto found = active_.find(output.request);
    if (found == active_.end()) continue;  // cancelled meanwhile
    count(found->second, output);
    const auto sink = found->second.sink;
    const Ticket ticket = found->second.ticket;
    if (output.finish) {
      metrics_.observe_request(seconds_between(found->second.arrival, Clock::now()), *output.finish);
      requests_.erase(ticket);
      active_.erase(found);
    }
    try {
      sink->on_output(ticket, output);
    } catch (const std::exception& error) {
      // The answer could not be built; the job ends, the others go on.
      log_warning(fmt::format("an answer was given up: {}", error.what()));
      if (output.finish) continue;
      Command give_up;
      give_up.job.ticket = ticket;
      give_up.reason = engine::FinishReason::kError;
      apply(std::move(give_up));
    }
  }
}

void EngineLoop::publish() {
  const engine::EngineStats stats = engine_.stats();
  const std::lock_guard lock(mutex_);
  running_ = stats.running;
  waiting_ = stats.waiting;
  in_engine_ = stats.running + stats.waiting;
  metrics_.set_engine(stats, queued_);
  if (queued_ + in_engine_ == 0) idle_.notify_all();
}

// A sink that cannot even be refused is left alone: its connection ends with the responder.
void EngineLoop::refuse(JobSink& sink, Ticket ticket, const ApiError& error) {
  try {
    sink.on_refused(ticket, error);
  } catch (const std::exception& fault) {
    log_warning(fmt::format("a refusal could not be sent: {}", fault.what()));
  }
}

void EngineLoop::fail_all(const ApiError& error) {
  std::vector<Command> rest;
  {
    const std::lock_guard lock(mutex_);
    rest.swap(inbox_);
    queued_ = in_engine_ = 0;
  }
  auto active = std::exchange(active_, {});
  requests_.clear();
  for (const auto& [id, job] : active) engine_.cancel(id);  // what they computed may be kept
  for (auto& [id, job] : active) refuse(*job.sink, job.ticket, error);
  for (Command& command : rest)
    if (command.job.sink) refuse(*command.job.sink, command.job.ticket, error);
}

}  // namespace plimsoll::serve
