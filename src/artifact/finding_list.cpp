// SPDX-License-Identifier: Apache-2.0
#include "artifact/finding_list.h"

#include <fmt/format.h>

#include <algorithm>

namespace plimsoll::artifact {
namespace {

constexpr std::int64_t kListedPerId = 20;
constexpr std::size_t kMaxPlace = 512;  // names of hostile files may have megabytes

}  // namespace

bool FindingList::add(std::string_view id, std::string_view place, std::string message, FindingLevel level,
                      std::string_view fix, FindingKind kind) {
  auto count = std::find_if(counts_.begin(), counts_.end(), [&](const Count& c) { return c.id == id; });
  if (count == counts_.end()) count = counts_.insert(count, {std::string(id), level, kind, 0});
  if (++count->added > kListedPerId) return false;
  if (message.size() > 4 * kMaxPlace) message = message.substr(0, 4 * kMaxPlace) + "...";
  findings_.push_back({std::string(id), level, kind, fmt::format("{}: {}", path_, place.substr(0, kMaxPlace)),
                       std::move(message), std::string(fix)});
  return false;
}

FindingList::~FindingList() {
  for (const Count& count : counts_)
    if (count.added > kListedPerId)
      findings_.push_back(
          {count.id,
           count.level,
           count.kind,
           path_,
           fmt::format("{} more faults of this kind are not listed", count.added - kListedPerId),
           {}});
}

}  // namespace plimsoll::artifact
