// SPDX-License-Identifier: Apache-2.0
// Does the hub still say about a file what its listing says? A listing that an earlier run kept may be wrong;
// a connection that ends says nothing about it. Any thread may note a disagreement; the rest is one thread's.
#pragma once

#include <atomic>
#include <string>
#include <utility>

#include "artifact/hub/client.h"
#include "artifact/hub/repository.h"
#include "base/result.h"

namespace plimsoll::artifact {

/// True once an answer of the hub contradicted the listing: another digest, another size, no such file.
using Disagreement = std::atomic<bool>;

/// HEAD of a file of the listing, as `asked` names it.
/// Errors: kNetwork, as HubClient::head; also, and then noted, when the hub has no such file or gives it
/// another size than the listing. `kind`, when given, receives what kind of refusal an error was.
Result<FileHead> head_of_listed(HubClient& client, const HubFile& file, const Asked& asked,
                                Disagreement& disagrees, Refusal* kind = nullptr);

/// Asks for the files of the repository's commit anew. True when the answer came and is another listing: it
/// then stands in `repository` and in the cache. What goes wrong leaves both as they are.
bool renew_listing(HubClient& client, const HubCache& cache, Repository& repository);

/// Runs work(disagrees), and once more when its error came of a kept listing that the hub contradicts and now
/// gives otherwise.
template <class Work>
auto with_true_listing(HubClient& client, const HubCache& cache, Repository& repository, const Work& work) {
  Disagreement disagrees = false;
  auto done = work(disagrees);
  if (done || !disagrees || !repository.is_listing_kept || !renew_listing(client, cache, repository))
    return done;
  return work(disagrees);
}

}  // namespace plimsoll::artifact
