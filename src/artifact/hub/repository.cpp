// SPDX-License-Identifier: Apache-2.0
#include "artifact/hub/repository.h"

#include <fmt/format.h>

#include <utility>

namespace plimsoll::artifact {
namespace {

constexpr int kMaxPages = 200;  // of 1000 entries, folders among them

}  // namespace

Result<std::vector<HubFile>> ask_files(HubClient& client, const Repository& repository, Refusal& kind) {
  const Asked asked{repository.asked, repository.revision, ""};
  std::vector<HubFile> files;
  std::string page = "/api/models/" + quoted(repository.name(), true) + "/tree/" + repository.info.commit +
                     "?recursive=true&expand=false";
  for (int i = 0; !page.empty(); ++i) {
    if (i == kMaxPages)
      return fail(ErrorCode::kNetwork,
                  fmt::format("reading the hub's list of files: it does not end after {} pages", kMaxPages),
                  asked.place(), "check HF_ENDPOINT");
    PLIMSOLL_TRY(HubJson answer, client.json(page, asked, &kind));
    PLIMSOLL_TRY_VOID(read_tree_page(answer.value, files));
    page = std::move(answer.next);
  }
  PLIMSOLL_TRY_VOID(check_tree(files));
  return files;
}

Result<Repository> ask_repository(HubClient& client, const HubCache& cache, const HubId& id, Refusal& kind) {
  Repository repository;
  repository.asked = id.repo;
  repository.revision = id.revision.empty() ? "main" : id.revision;
  const Asked asked{id.repo, repository.revision, ""};
  PLIMSOLL_TRY(const HubJson answer, client.json("/api/models/" + quoted(id.repo, true) + "/revision/" +
                                                     quoted(repository.revision, false),
                                                 asked, &kind));
  kind = Refusal::kNotAHub;
  PLIMSOLL_TRY(repository.info, read_info(answer.value));
  if (is_commit(repository.revision) && repository.info.commit != repository.revision)
    return fail(ErrorCode::kNetwork,
                fmt::format("asking the hub: it was asked for commit {} and answers with {}",
                            repository.revision, repository.info.commit),
                asked.place(), "check HF_ENDPOINT");
  if (repository.info.is_disabled) {
    kind = Refusal::kDisabled;
    return fail(ErrorCode::kNetwork, fmt::format("asking the hub: access to {} has been disabled", id.repo),
                asked.place(),
                "the hub itself has closed this repository; look for another copy of the model");
  }
  cache.set_ref(repository.revision, repository.info.commit);
  if (auto kept = cache.tree(repository.info.commit)) {
    repository.files = std::move(*kept);
    repository.is_listing_kept = true;
    return repository;
  }
  PLIMSOLL_TRY(repository.files, ask_files(client, repository, kind));
  cache.keep_tree(repository.info.commit, repository.files);
  return repository;
}

Findings origin_findings(const std::string& asked, const std::string& today, const std::string& revision,
                         const std::string& commit) {
  Findings findings;
  if (!is_commit(revision))
    findings.push_back(
        {"REVISION_NOT_PINNED", FindingLevel::kWarning, FindingKind::kCheckFailed, asked + "@" + revision,
         fmt::format("\"{}\" is a name that can move; it means commit {} now", revision, commit),
         fmt::format("deploy {}@{}", asked, commit)});
  if (!today.empty() && today != asked)
    findings.push_back({"REPO_RENAMED", FindingLevel::kInfo, FindingKind::kCheckFailed, asked,
                        fmt::format("{} is called {} now; the hub redirects the old name", asked, today),
                        "use the new name"});
  return findings;
}

}  // namespace plimsoll::artifact
