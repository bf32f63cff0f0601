// SPDX-License-Identifier: Apache-2.0
// How are many requests answered without a server? Lines of JSON in, lines of JSON out, up to N at a time,
// and one prompt with its text as it comes. The same reading of requests as over HTTP. One thread calls; it
// runs the engine itself.
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "serve/api_error.h"
#include "serve/loaded_model.h"

namespace plimsoll::serve {

class Offline {
 public:
  /// Errors: those of load_model and check_generates.
  static Result<std::unique_ptr<Offline>> load(const LoadOptions& options);
  explicit Offline(LoadedModel model) : model_(std::move(model)) {}

  const LoadedModel& model() const { return model_; }

  /// Answers every line of `in` on a line of `out`, in the same order, at most `batch` lines under way at a
  /// time. A line that is refused or fails becomes {"error":{…}}; blank lines are skipped.
  /// Returns how many lines failed. Errors: kUsage when the answers cannot be written.
  Result<std::int64_t> run_lines(std::istream& in, std::ostream& out, int batch);

  /// Answers one request; `on_text` hears the first choice's text as it comes. The answer is that of a line.
  ApiResult<Json> run_one(const Json& body, const std::function<void(std::string_view)>& on_text);

 private:
  LoadedModel model_;
};

}  // namespace plimsoll::serve
