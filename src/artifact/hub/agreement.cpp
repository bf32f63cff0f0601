// SPDX-License-Identifier: Apache-2.0
#include "artifact/hub/agreement.h"

#include <fmt/format.h>

namespace plimsoll::artifact {

Result<FileHead> head_of_listed(HubClient& client, const HubFile& file, const Asked& asked,
                                Disagreement& disagrees, Refusal* kind) {
  Refusal refusal = Refusal::kOther;
  auto head = client.head(asked, &refusal);
  if (kind) *kind = refusal;
  if (!head) {
    if (refusal == Refusal::kNoEntry) disagrees = true;
    return head;
  }
  if (!head->size || *head->size == file.bytes) return head;
  disagrees = true;
  return fail(ErrorCode::kNetwork,
              fmt::format("asking the hub: its list gives {} bytes, its answer {}", file.bytes, *head->size),
              asked.place(), "try again; if it stays so, a proxy or mirror in between changes files");
}

bool renew_listing(HubClient& client, const HubCache& cache, Repository& repository) {
  Refusal kind = Refusal::kOther;
  auto files = ask_files(client, repository, kind);
  if (!files || *files == repository.files) return false;
  repository.files = std::move(*files);
  repository.is_listing_kept = false;
  cache.keep_tree(repository.info.commit, repository.files);
  return true;
}

}  // namespace plimsoll::artifact
