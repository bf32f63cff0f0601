// SPDX-License-Identifier: Apache-2.0
// How is a file of requests worked off? OpenAI's batch form in and out, each request answered by the server's
// own routes, without a socket. What the file of answers holds already is not asked again. One thread calls;
// the engine has one of its own while run() lasts. Source: docs/formats/batch.md.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "serve/loaded_model.h"

namespace plimsoll::serve {

struct BatchCounts {
  std::int64_t requests = 0;           // lines of the input
  std::int64_t answered = 0;           // those of before included
  std::int64_t answered_before = 0;    // found in the file of answers
  std::int64_t failed = 0;             // of the answered
  std::int64_t completion_tokens = 0;  // of this run
};

struct BatchOptions {
  int max_num_seqs = 64;  // of the engine; twice as many requests are under way
  std::function<void(const BatchCounts&)> on_answer = [](const BatchCounts&) {};
};

class Batch {
 public:
  /// Reads the requests, each line once, and keeps those that `output` (empty: none) holds no answer of. A
  /// last answer of `output` that is not whole is cut off. Errors: kMalformed when the requests cannot be
  /// read or two of them have one custom_id, or a line of `output` is no answer and no beginning of one;
  /// kUsage when `output` cannot be cut.
  static Result<Batch> open(std::istream& requests, const std::string& output);

  bool is_done() const { return open_.empty(); }
  const BatchCounts& counts() const { return counts_; }

  /// Answers what is open, a line of `out` for each as soon as it is there. A request that is refused or
  /// fails has a line as well, and the work goes on.
  /// Errors: kUsage when the answers cannot be written; kInternal when the engine failed as a whole. What was
  ///         written until then stays, the rest is open.
  Status run(LoadedModel& model, std::ostream& out, const BatchOptions& options);

 private:
  struct Line {
    std::int64_t number = 0;  // from 1
    std::string custom_id;    // empty: none could be read
    std::string path, body;   // what is asked of which route
    Json refusal;             // why the line is no request; null: it is one
  };

  static Line read_line(std::string_view text, std::int64_t number);
  Status write(const Json& answer, std::ostream& out, const BatchOptions& options);

  std::vector<Line> open_;
  BatchCounts counts_;
};

}  // namespace plimsoll::serve
