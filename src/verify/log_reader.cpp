// SPDX-License-Identifier: Apache-2.0
#include "verify/log_reader.h"

#include <algorithm>
#include <utility>

#include "verify/log_lines.h"
#include "verify/log_settings.h"

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

/// "Worker_TP0 pid=12" of "(Worker_TP0 pid=12)", "VllmWorker rank=0 pid=12", " TP1" of "[date TP1]": who
/// prints, where ranks share a log. Empty where none is named.
std::string_view rank_of(std::string_view line) {
  constexpr std::size_t kLongestTag = 80;
  for (const std::string_view tag : {"(Worker", "(VllmWorker", "(RayWorker", " TP"}) {
    const std::size_t begin = line.find(tag);
    const std::size_t end = line.find_first_of(")]", begin);
    if (begin == std::string_view::npos || end == std::string_view::npos) continue;
    if (tag == " TP" && (line[end] != ']' || !line.starts_with('['))) continue;
    return line.substr(begin + 1, std::min(end - begin - 1, kLongestTag));
  }
  return {};
}

/// "EngineCore_DP0" of "(EngineCore_DP0 pid=12) INFO ...": the process that prints, by the name that it has
/// in the next start too. Ray's have one name for all, and are told apart by their numbers.
std::string_view process_of(std::string_view line) {
  const std::size_t begin = line.find('(');
  const std::size_t end = line.find(" pid=", begin);
  constexpr std::size_t kLongestName = 60;
  if (begin == std::string_view::npos || end == std::string_view::npos || end - begin > kLongestName)
    return rank_of(line);
  if (line.substr(begin + 1).starts_with("Ray")) return rank_of(line);
  return line.substr(begin + 1, end - begin - 1);
}

void note_rank(EngineStart& run, std::string_view line, const EngineStart& found) {
  const std::string_view tag = rank_of(line);
  if (tag.empty() || (run.ranks.size() >= kMostWorkers && !run.ranks.contains(std::string(tag)))) return;
  RankFigures& rank = run.ranks[std::string(tag)];
  if (found.weights_bytes) rank.weights_bytes = found.weights_bytes;
  if (found.kv_cache_bytes) rank.kv_cache_bytes = found.kv_cache_bytes;
  if (found.activation_bytes) rank.activation_bytes = found.activation_bytes;
}

/// Kinds of settings, as bits: the first two are what a start begins with.
constexpr unsigned kVersion = 1, kFlags = 2, kLength = 4, kBatch = 8, kBlock = 16;

unsigned kinds_of(const EngineStart& found) {
  unsigned kinds = found.version ? kVersion : found.settings.empty() ? 0 : kFlags;
  if (found.max_model_len) kinds |= kLength;
  if (found.max_num_batched_tokens) kinds |= kBatch;
  if (found.block_size) kinds |= kBlock;
  return kinds;
}

/// "EngineCore_DP0" and "EngineCore_DP1": several of one kind in the same start.
bool are_peers(std::string_view one, std::string_view other) {
  const auto stem = [](std::string_view name) {
    return name.substr(0, name.find_last_not_of("0123456789") + 1);
  };
  return one != other && stem(one) == stem(other);
}

/// The last line of a start, by engine.
bool says_ready(std::string_view line) {
  for (const std::string_view words :
       {"init engine (profile, create kv cache, warmup model) took", "Application startup complete",
        "The server is fired up and ready to roll", "server is listening on http", "Listening on http"})
    if (contains(line, words)) return true;
  return false;
}

}  // namespace

bool LogReader::is_opening(unsigned kinds, std::string_view process) const {
  const unsigned first = kinds & (kVersion | kFlags);
  const int limit = first ? kLoading : kSized;
  const Process* own = known(process);
  if (own && own->phase >= limit) return true;
  if (own && (own->kinds & (first ? first : kinds)) && phase_ >= limit) return true;
  return first && run_ && run_->failed && !are_peers(process, refused_by_);
}

EngineStart& LogReader::run_at(int phase, std::string_view process, bool is_opening) {
  const bool goes_on = run_ && run_->failed && process == refused_by_;
  if (run_ && (goes_on || is_opening || phase < phase_of(process))) {
    settle_engine(*run_);
    log_.runs.push_back(std::move(*run_));
    run_.reset();
    processes_.clear();
    phase_ = 0;
    if (log_.runs.size() > kMostRuns) log_.runs.erase(log_.runs.begin());
  }
  if (!run_) {
    run_.emplace();
    ++log_.num_runs;
  }
  phase_ = std::max(phase_, phase);
  if (processes_.size() < kMostWorkers || known(process)) processes_[std::string(process)].phase = phase;
  return *run_;
}

void LogReader::take_line(std::string_view line) {
  ++log_.num_lines;
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  EngineStart found;
  if (read_refusal(line, found)) {
    const std::string_view process = process_of(line);
    // Python repeats the sentence in every traceback on the way up; other ranks say the same of theirs.
    if (run_ && run_->failed && (contains(line, ".py:") || process != refused_by_)) return;
    EngineStart& run = run_at(std::max<int>(phase_, kProfiled), process, false);
    refused_by_ = process;
    note_engine(run, line);
    read_refusal(line, run);
    return;
  }
  int phase = read_known_line(line, found);
  if (read_settings(line, found.settings) && phase == kNotKnown) phase = kConfigured;
  if (phase == kNotKnown) {
    if (run_ && says_ready(line)) run_->is_ready = true;
    if (!speaks_of_memory(line)) return;
    if (!run_) run_at(0, {}, false);
    if (run_->unread_lines.size() < kMostUnread)
      run_->unread_lines.emplace_back(line.substr(0, kUnreadLength));
    return;
  }
  // What is said of the settings comes early, and from several processes.
  const bool is_setting = phase == kConfigured;
  const std::string_view process = process_of(line);
  const unsigned kinds = is_setting ? kinds_of(found) : 0;
  const bool opens = is_setting && is_opening(kinds, process);
  const bool is_anywhere = !opens && ((is_setting && !found.version) || phase == kAnywhere);
  EngineStart& run = run_at(is_anywhere ? phase_of(process) : std::min<int>(phase, kSummed), process, opens);
  if (const auto own = processes_.find(process); own != processes_.end()) own->second.kinds |= kinds;
  read_known_line(line, run);
  if (const auto& bytes = found.kv_cache_bytes;
      bytes && (!run.most_kv_cache || bytes->value > run.most_kv_cache->value))
    run.most_kv_cache = bytes;
  for (auto& [key, value] : found.settings) run.settings[key] = std::move(value);
  note_engine(run, line);
  note_rank(run, line, found);
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
  processes_.clear();
  return std::exchange(log_, {});
}

}  // namespace plimsoll::verify
