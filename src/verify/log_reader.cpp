// SPDX-License-Identifier: Apache-2.0
#include "verify/log_reader.h"

#include <algorithm>
#include <utility>

#include "verify/log_lines.h"

namespace plimsoll::verify {
namespace {

constexpr std::size_t kLongestLine = 64 * 1024;  // of a longer line only its beginning is looked at
constexpr std::size_t kMostRuns = 64;
constexpr std::size_t kMostUnread = 50;
constexpr std::size_t kUnreadLength = 300;
constexpr std::size_t kMostWorkers = 4096;

bool contains(std::string_view line, std::string_view words) {
  return line.find(words) != std::string_view::npos;
}

/// Only words that one engine alone prints decide: most lines are worded alike.
void note_engine(EngineStart& run, std::string_view line) {
  if (run.engine) return;
  if (contains(line, "CPU KV cache size") || contains(line, "plimsoll"))
    run.engine = "plimsoll";
  else if (contains(line, "GPU KV cache size") || contains(line, ".py:"))
    run.engine = "vllm";
}

/// Lines that more than one engine prints were worded by vLLM first.
void settle_engine(EngineStart& run) {
  const bool says_something =
      run.weights_bytes || run.kv_cache_bytes || run.kv_tokens || run.failed || run.max_concurrency;
  if (!run.engine && says_something) run.engine = "vllm";
}

/// "(Worker_TP0 pid=12)", "(VllmWorker rank=0 pid=12)": who prints, where ranks share a log.
void note_worker(EngineStart& run, std::string_view line) {
  constexpr std::string_view kTags[] = {"(Worker", "(VllmWorker", "(RayWorker"};
  for (const std::string_view tag : kTags) {
    const std::size_t begin = line.find(tag);
    if (begin == std::string_view::npos) continue;
    const std::size_t end = line.find(')', begin);
    if (end != std::string_view::npos && run.workers.size() < kMostWorkers)
      run.workers.emplace(line.substr(begin, std::min<std::size_t>(end - begin, 80)));
    return;
  }
}

}  // namespace

EngineStart& LogReader::run_at(int phase) {
  // Ranks repeat a line of the same phase; an earlier phase after a later one is another start.
  if (run_ && (phase < phase_ || run_->failed)) {
    settle_engine(*run_);
    log_.runs.push_back(std::move(*run_));
    run_.reset();
    if (log_.runs.size() > kMostRuns) log_.runs.erase(log_.runs.begin());
  }
  if (!run_) {
    run_.emplace();
    ++log_.num_runs;
  }
  phase_ = phase;
  return *run_;
}

void LogReader::take_line(std::string_view line) {
  ++log_.num_lines;
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  EngineStart found;
  if (read_refusal(line, found)) {
    // Python repeats the sentence in every traceback on the way up.
    if (run_ && run_->failed && contains(line, ".py:")) return;
    EngineStart& run = run_at(std::max<int>(phase_, kProfiled));
    note_engine(run, line);
    read_refusal(line, run);
    return;
  }
  const int phase = read_known_line(line, found);
  if (phase == kNotKnown) {
    if (!speaks_of_memory(line)) return;
    if (!run_) run_at(0);
    if (run_->unread_lines.size() < kMostUnread)
      run_->unread_lines.emplace_back(line.substr(0, kUnreadLength));
    return;
  }
  // A version opens a start. What else is said of the settings comes early, and from several processes.
  const bool is_setting = phase == kConfigured && !found.version;
  EngineStart& run = run_at(is_setting && phase_ < kSized ? phase_ : phase);
  read_known_line(line, run);
  if (const auto& bytes = found.kv_cache_bytes;
      bytes && (!run.most_kv_cache || bytes->value > run.most_kv_cache->value))
    run.most_kv_cache = bytes;
  note_engine(run, line);
  note_worker(run, line);
}

void LogReader::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    if (line_.size() < kLongestLine) line_.append(piece.substr(0, kLongestLine - line_.size()));
    if (end == std::string_view::npos) return;
    take_line(line_);
    line_.clear();
    bytes.remove_prefix(end + 1);
  }
}

Log LogReader::finish() {
  if (!line_.empty()) take_line(line_);
  line_.clear();
  if (run_) {
    settle_engine(*run_);
    log_.runs.push_back(std::move(*run_));
  }
  run_.reset();
  phase_ = 0;
  return std::exchange(log_, {});
}

}  // namespace plimsoll::verify
