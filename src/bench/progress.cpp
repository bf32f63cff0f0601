// SPDX-License-Identifier: Apache-2.0
#include "bench/progress.h"

#include <fmt/format.h>

namespace plimsoll::bench {
namespace {
constexpr double kWindowS = 5;
}  // namespace

void ProgressText::note(const Progress& progress) {
  last_ = progress;
  if (recent_.empty()) recent_.emplace_back();  // the start
  recent_.push_back(progress);
  while (recent_.size() > 2 && recent_[1].elapsed_s <= progress.elapsed_s - kWindowS) recent_.pop_front();
}

std::string ProgressText::text() const {
  const std::int64_t done = last_.completed + last_.failed;
  std::string out = fmt::format("{}/{} requests", done, last_.total);
  if (last_.running > 0) out += fmt::format(", {} running", last_.running);
  const Progress since = recent_.empty() ? last_ : recent_.front();
  const double seconds = last_.elapsed_s - since.elapsed_s;
  if (seconds > 0 && last_.chunks > 0)
    out += fmt::format(", {:.1f} chunks/s", static_cast<double>(last_.chunks - since.chunks) / seconds);
  if (last_.failed > 0) out += fmt::format(", {} failed", last_.failed);
  out += fmt::format(", {:.2f} s", last_.elapsed_s);
  if (done > 0 && done < last_.total)
    out += fmt::format(", {:.0f} s left",
                       last_.elapsed_s * static_cast<double>(last_.total - done) / static_cast<double>(done));
  return out;
}

}  // namespace plimsoll::bench
