// SPDX-License-Identifier: Apache-2.0
// What one push settles, gathered into an OutputDelta; and the rule for blanks around calls: blanks before
// the first content are held until content follows and vanish when a call does; blanks after a call vanish.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/parsers/output_parser.h"

namespace plimsoll::text {

class DeltaSink {
 public:
  void reasoning(std::string_view text) { delta_.reasoning += text; }
  void content(std::string_view text);
  /// Content where no calls are looked for: blanks are not held.
  void plain_content(std::string_view text) { delta_.content += text; }
  /// The next `marker` in content is layout.
  void drop_next(std::string_view marker) { dropped_marker_ = marker; }
  void begin_call(std::string name, std::optional<std::string> id = {});
  /// Appends to the newest call.
  void arguments(std::string_view json_text);
  /// The answer has ended: blanks that no call followed are content.
  void end();

  int num_calls() const { return num_calls_; }
  OutputDelta take();

 private:
  ToolCallDelta& newest_call();
  void add_content(std::string_view text);
  void release_held();

  OutputDelta delta_;
  std::string_view dropped_marker_;  // not seen yet; empty: none
  std::string held_;                 // a beginning of it, at the end of the content so far
  std::string margin_;               // blanks since the start, or since the last call
  bool in_text_ = false;             // content has come since then
  int num_calls_ = 0;
};

}  // namespace plimsoll::text
