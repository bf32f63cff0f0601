// SPDX-License-Identifier: Apache-2.0
#include "verify/log_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/json.h"

namespace plimsoll::verify {
namespace {

constexpr std::size_t kLongestLine = 64 * 1024;  // of a longer line only its beginning is looked at
constexpr std::size_t kMostRuns = 64;
constexpr std::size_t kMostUnread = 50;
constexpr std::size_t kUnreadLength = 300;
constexpr double kLargest = 4.0e18;  // below 2^62, so that differences fit as well

/// Reads on from a place in a line; every step may find nothing.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : rest_(text) {}

  /// Moves behind the next occurrence of `words`.
  bool skip_past(std::string_view words) {
    const std::size_t at = rest_.find(words);
    if (at == std::string_view::npos) return false;
    rest_.remove_prefix(at + words.size());
    return true;
  }

  void skip_if(char c) {
    if (rest_.starts_with(c)) rest_.remove_prefix(1);
  }

  /// A whole number with or without thousands commas, here.
  std::optional<Printed> integer() {
    std::string digits;
    std::size_t length = 0;
    for (; length < rest_.size() && length < 40; ++length) {
      const char c = rest_[length];
      if (c >= '0' && c <= '9')
        digits += c;
      else if (c != ',' || length + 1 >= rest_.size() || !is_digit(rest_[length + 1]))
        break;
    }
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (digits.empty() || error != std::errc{} || static_cast<double>(value) > kLargest) return std::nullopt;
    Printed printed{value, 0, std::string(rest_.substr(0, length))};
    rest_.remove_prefix(length);
    return printed;
  }

  /// A decimal number here, and half of its last digit.
  std::optional<std::pair<double, double>> decimal(std::string* text = nullptr) {
    std::size_t length = 0;
    std::size_t decimals = 0;
    bool has_point = false;
    for (; length < rest_.size() && length < 40; ++length) {
      const char c = rest_[length];
      if (c == '.' && !has_point && length > 0)
        has_point = true;
      else if (is_digit(c))
        decimals += has_point ? 1 : 0;
      else
        break;
    }
    double value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + length, value);
    if (length == 0 || error != std::errc{} || !(value <= kLargest)) return std::nullopt;
    if (text) *text = std::string(rest_.substr(0, length));
    rest_.remove_prefix(length);
    return std::pair(value, 0.5 * std::pow(10.0, -static_cast<double>(decimals)));
  }

  /// "54.82 GiB" here, also below zero; engines that print GB mean GiB.
  std::optional<Printed> gibibytes() {
    const bool is_negative = rest_.starts_with('-');
    skip_if('-');
    std::string text;
    const auto number = decimal(&text);
    if (!number) return std::nullopt;
    if (is_negative) text.insert(0, "-");
    for (const std::string_view unit : {" GiB", " GB"}) {
      if (!rest_.starts_with(unit)) continue;
      const double bytes = number->first * static_cast<double>(kGiB);
      if (bytes > kLargest) return std::nullopt;
      // A value that lies on the edge of what rounds to the print is one more byte away at most.
      const auto half = static_cast<std::int64_t>(number->second * static_cast<double>(kGiB)) + 1;
      rest_.remove_prefix(unit.size());
      return Printed{std::llround(is_negative ? -bytes : bytes), half, text + std::string(unit)};
    }
    return std::nullopt;
  }

 private:
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  std::string_view rest_;
};

void keep_largest(std::optional<Printed>& field, const Printed& found) {
  if (!field || found.value > field->value) field = found;
}

void keep_smallest(std::optional<Printed>& field, const Printed& found) {
  if (!field || found.value < field->value) field = found;
}

// How far a start is when a line is printed.
enum Phase { kLoading = 1, kAvailable = 2, kSized = 3, kSummed = 4 };

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

bool read_weights(EngineStart& run, Cursor line) {
  if (!line.skip_past("Model loading took ")) return false;
  const auto bytes = line.gibibytes();
  if (bytes) keep_largest(run.weights_bytes, *bytes);
  return bytes.has_value();
}

bool read_available(EngineStart& run, Cursor line) {
  if (!line.skip_past("Available KV cache memory: ")) return false;
  const auto bytes = line.gibibytes();
  if (bytes) keep_smallest(run.kv_cache_bytes, *bytes);
  return bytes.has_value();
}

/// The size, the concurrency, or both in one line.
bool read_capacity(EngineStart& run, std::string_view text) {
  bool is_read = false;
  Cursor size(text);
  if (size.skip_past("PU KV cache size: "))
    if (const auto tokens = size.integer()) {
      keep_smallest(run.kv_tokens, *tokens);
      is_read = true;
    }
  Cursor concurrency(text);
  if (concurrency.skip_past("Maximum concurrency for ")) {
    const auto length = concurrency.integer();
    const bool has_value = concurrency.skip_past(" tokens per request: ");
    std::string printed;
    const auto value = has_value ? concurrency.decimal(&printed) : std::nullopt;
    if (length && value) {
      run.max_model_len = *length;
      run.max_concurrency = value->first;
      run.max_concurrency_half_step = value->second;
      run.max_concurrency_text = printed + "x";
      is_read = true;
    }
  }
  return is_read;
}

/// Our own exact line; it replaces what rounded lines said.
bool read_exact(EngineStart& run, Cursor line, std::string_view text) {
  if (!line.skip_past("plimsoll memory: ")) return false;
  const auto document = parse_json(text.substr(text.find("plimsoll memory: ") + 17), "log", {.max_depth = 8});
  if (!document || !document->is_object()) return false;
  const std::pair<const char*, std::optional<Printed>*> fields[] = {
      {"weights_bytes", &run.weights_bytes}, {"kv_cache_bytes", &run.kv_cache_bytes},
      {"kv_tokens", &run.kv_tokens},         {"kv_bytes_per_token", &run.kv_bytes_per_token},
      {"num_blocks", &run.num_blocks},       {"block_size", &run.block_size},
  };
  bool is_read = false;
  for (const auto& [name, field] : fields) {
    const auto value = (*document)[name].as_integer();
    if (!value || *value < 0 || static_cast<double>(*value) > kLargest) continue;
    *field = Printed{*value, 0, std::to_string(*value)};
    is_read = true;
  }
  run.engine = "plimsoll";
  return is_read;
}

bool is_refusal(std::string_view line) {
  return contains(line, "To serve at least one request with ") ||
         contains(line, "No available memory for the cache blocks") ||
         (contains(line, "The KV cache of ") && contains(line, " that was asked for, beside "));
}

void read_refusal(EngineStart& run, std::string_view text) {
  run.failed = true;
  run.error = std::string(text.substr(0, 1000));
  Cursor length(text);
  if (length.skip_past("max seq len ("))
    if (const auto tokens = length.integer()) run.max_model_len = *tokens;
  Cursor needed(text);
  if (needed.skip_past("max seq len (") && needed.skip_past("), ")) {
    needed.skip_if('(');  // some versions open a bracket here that they never close
    if (const auto bytes = needed.gibibytes()) run.required_kv_cache_bytes = *bytes;
  }
  Cursor available(text);
  if (available.skip_past("available KV cache memory ("))
    if (const auto bytes = available.gibibytes()) run.kv_cache_bytes = *bytes;
  Cursor estimate(text);
  if (estimate.skip_past("estimated maximum model length is "))
    if (const auto tokens = estimate.integer()) run.estimated_max_model_len = *tokens;
}

bool read_version(EngineStart& run, std::string_view text) {
  for (const auto& [words, engine] :
       {std::pair<std::string_view, const char*>{"vLLM API server version ", "vllm"},
        {"plimsoll version ", "plimsoll"}}) {
    const std::size_t at = text.find(words);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = text.substr(at + words.size());
    run.version = std::string(rest.substr(0, std::min<std::size_t>(rest.find_first_of(" \t"), 80)));
    run.engine = engine;
    return true;
  }
  return false;
}

bool speaks_of_memory(std::string_view line) {
  return contains(line, "plimsoll memory:") || contains(line, "KV cache size") ||
         contains(line, "Model loading took") || contains(line, "Maximum concurrency") ||
         (contains(line, "memory") && contains(line, " GiB"));
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
  int phase = 0;
  if (is_refusal(line)) {
    // Python repeats the sentence in every traceback on the way up.
    if (run_ && run_->failed && contains(line, ".py:")) return;
    EngineStart& run = run_at(std::max<int>(phase_, kAvailable));
    note_engine(run, line);
    read_refusal(run, line);
    return;
  }
  if (read_version(found, line)) {
    EngineStart& run = run_at(0);
    run.engine = found.engine;
    run.version = found.version;
    return;
  }
  if (read_exact(found, Cursor(line), line))
    phase = kSummed;
  else if (read_capacity(found, line))
    phase = kSized;
  else if (read_available(found, Cursor(line)))
    phase = kAvailable;
  else if (read_weights(found, Cursor(line)))
    phase = kLoading;
  if (phase == 0) {
    if (!speaks_of_memory(line)) return;
    if (!run_) run_at(0);
    if (run_->unread_lines.size() < kMostUnread)
      run_->unread_lines.emplace_back(line.substr(0, kUnreadLength));
    return;
  }
  EngineStart& run = run_at(phase);
  read_exact(run, Cursor(line), line) || read_capacity(run, line) || read_available(run, Cursor(line)) ||
      read_weights(run, Cursor(line));
  note_engine(run, line);
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
