// SPDX-License-Identifier: Apache-2.0
#include "text/parsers/delta_sink.h"

#include <utility>

#include "text/parsers/markers.h"

namespace plimsoll::text {

void DeltaSink::content(std::string_view text) {
  if (dropped_marker_.empty()) {
    add_content(text);
    return;
  }
  held_ += text;
  const MarkerHit hit = find_marker(held_, {&dropped_marker_, 1});
  add_content(std::string_view(held_).substr(0, hit.at));
  held_.erase(0, hit.at);
  if (hit.marker < 0) return;
  held_.erase(0, dropped_marker_.size());
  dropped_marker_ = {};
  release_held();
}

void DeltaSink::release_held() {
  add_content(held_);
  held_.clear();
}

void DeltaSink::add_content(std::string_view text) {
  if (!in_text_) {
    const std::size_t num_blanks = num_leading_blanks(text);
    if (num_calls_ == 0) margin_ += text.substr(0, num_blanks);
    text.remove_prefix(num_blanks);
    if (text.empty()) return;
    delta_.content += margin_;
    margin_.clear();
    in_text_ = true;
  }
  delta_.content += text;
}

void DeltaSink::begin_call(std::string name, std::optional<std::string> id) {
  release_held();
  margin_.clear();
  in_text_ = false;
  ++num_calls_;
  ToolCallDelta& call = newest_call();
  call.name = std::move(name);
  call.id = std::move(id);
}

void DeltaSink::arguments(std::string_view json_text) {
  if (!json_text.empty()) newest_call().arguments += json_text;
}

void DeltaSink::end() {
  release_held();
  delta_.content += margin_;
  margin_.clear();
}

OutputDelta DeltaSink::take() {
  return std::exchange(delta_, {});
}

ToolCallDelta& DeltaSink::newest_call() {
  const int index = num_calls_ - 1;
  if (delta_.tool_calls.empty() || delta_.tool_calls.back().index != index) {
    delta_.tool_calls.push_back({.index = index, .name = {}, .id = {}, .arguments = {}});
  }
  return delta_.tool_calls.back();
}

}  // namespace plimsoll::text
