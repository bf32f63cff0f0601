// SPDX-License-Identifier: Apache-2.0
// Brings files of one commit into the shared cache: resumed, size and digest checked before a file gets its
// final name. What arrives under a wrong digest never becomes visible. Uses several connections at once.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "artifact/hub/agreement.h"
#include "artifact/hub/client.h"
#include "artifact/hub/listing.h"
#include "artifact/hub_cache.h"
#include "base/result.h"

namespace plimsoll::artifact {

/// Called from any of the threads, one at a time: bytes that arrived in all so far, and of how many; `file`
/// is named when it is complete, else empty.
using Progress = std::function<void(std::int64_t done, std::int64_t total, std::string_view file)>;

struct Fetch {
  std::string repo, commit;
  std::vector<HubFile> files;
  Progress progress;  // may be empty
  /// Also large files that are here already are read and held against their digest; small ones always are.
  bool checks_large = false;
};

/// Connections at once; more does not make a hub faster, and it counts requests.
constexpr int kHubConnections = 8;

/// True when the cache holds the file: all its bytes, and under the digest as far as `fetch` has it checked.
bool is_held(const HubCache& cache, const Fetch& fetch, const HubFile& file);

/// Fetches every file that the cache does not hold, or holds damaged. What contradicts the listing that the
/// files are from is noted in `disagrees`.
/// Errors: kNetwork from the hub, and for a file whose size or digest is not the listed one; kUsage when the
/// cache cannot be written. The first error ends the work; what has arrived is kept for the next run.
Status fetch_files(const HubSettings& settings, const HubCache& cache, const Fetch& fetch,
                   Disagreement& disagrees);

/// Calls work(index, client) for 0 .. count-1 on several threads, each with its own client, until one fails.
Status for_each_with_client(const HubSettings& settings, std::size_t count,
                            const std::function<Status(std::size_t, HubClient&)>& work);

}  // namespace plimsoll::artifact
