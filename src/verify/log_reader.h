// SPDX-License-Identifier: Apache-2.0
// What does an engine's start-up log say about memory? Read piece by piece, in bounded memory, whatever the
// bytes. Lines are known by their wording, with or without timestamps and file prefixes. Values only; one
// thread per reader.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"

namespace plimsoll::verify {

/// A number of the log with what was printed for it.
struct Printed {
  std::int64_t value = 0;
  std::int64_t half_step = 0;  // half of the last printed digit, in the value's unit; 0: exact
  std::string text;            // as it stood in the log
};

/// A number that is no whole one, in the same way.
struct PrintedReal {
  double value = 0, half_step = 0;
  std::string text;
};

/// What one rank printed of itself.
struct RankFigures {
  std::optional<Printed> weights_bytes, kv_cache_bytes, activation_bytes;
};

/// One start of an engine. What the log does not say is absent.
struct EngineStart {
  std::optional<std::string> engine, version;
  std::optional<Printed> weights_bytes;   // largest rank
  std::optional<Printed> kv_cache_bytes;  // smallest rank
  std::optional<Printed> most_kv_cache;   // largest rank
  std::optional<Printed> kv_tokens;       // smallest rank
  std::optional<Printed> kv_bytes_per_token, num_blocks, block_size, max_model_len;
  std::optional<PrintedReal> max_concurrency;
  std::optional<Printed> activation_bytes, non_torch_bytes;              // largest rank
  std::optional<Printed> cuda_graph_bytes, cuda_graph_estimate_bytes;    // largest rank
  std::optional<Printed> gpu_total_bytes, gpu_free_bytes, budget_bytes;  // free: at the start
  std::optional<PrintedReal> gpu_memory_utilization;
  std::optional<Printed> max_num_batched_tokens, padding_layers;
  std::optional<Printed> tensor_parallel, pipeline_parallel;
  std::optional<Printed> suggested_kv_cache_memory_bytes;  // that would use the whole budget
  std::map<std::string, RankFigures> ranks;                // by the tag that their lines begin with
  std::map<std::string, std::string> settings;             // as the engine states them, by its own names
  bool is_ready = false;                                   // it says that it serves
  bool failed = false;
  std::string error;  // the line that says so
  std::optional<Printed> required_kv_cache_bytes, estimated_max_model_len;
  std::vector<std::string> unread_lines;  // spoke of memory and were not understood
};

struct Log {
  std::vector<EngineStart> runs;  // in order; the newest are kept
  std::int64_t num_runs = 0;      // seen, kept or not
  std::int64_t num_lines = 0;
};

class LogReader {
 public:
  /// The next bytes; lines may run over several calls.
  void feed(std::string_view bytes);
  /// The last start is over: the engine serves, or has refused. More lines may follow, of another start.
  bool has_settled() const { return run_ && (run_->failed || run_->is_ready); }
  /// The end: the last line needs no line break.
  Log finish();

 private:
  /// What a process has printed of the current start.
  struct Process {
    int phase = 0;       // how far it has come; 0 before its first line
    unsigned kinds = 0;  // of settings that it has stated
  };

  void take_line(std::string_view line);
  const Process* known(std::string_view process) const {
    const auto found = processes_.find(process);
    return found == processes_.end() ? nullptr : &found->second;
  }
  int phase_of(std::string_view process) const { return known(process) ? known(process)->phase : 0; }
  /// Whether settings of these kinds open a new start when this process states them: it has come further, or
  /// states them again after the start went on. Others of the same start may still be at their first words.
  bool is_opening(unsigned kinds, std::string_view process) const;
  /// The start that a line belongs to. Ranks repeat a line of the same phase, and need not keep step; one
  /// that prints an earlier phase after a later one of its own has started anew, and so has one that goes on
  /// after its own refusal.
  EngineStart& run_at(int phase, std::string_view process, bool is_opening);

  Log log_;
  std::string line_;                                       // the line so far, cut at kLongestLine
  int phase_ = 0;                                          // how far the current start has come
  std::map<std::string, Process, std::less<>> processes_;  // of the current start
  std::string refused_by_;                                 // the process that printed its refusal
  std::optional<EngineStart> run_;
};

}  // namespace plimsoll::verify
