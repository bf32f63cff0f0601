// SPDX-License-Identifier: Apache-2.0
#include "artifact/hub/pull.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <unordered_map>
#include <unordered_set>

#include "artifact/hub/choose_files.h"
#include "artifact/hub/repository.h"
#include "artifact/open_folder.h"
#include "base/hash.h"

namespace plimsoll::artifact {
namespace {

bool is_included(const std::vector<std::string>& globs, const std::string& path) {
  return globs.empty() || std::any_of(globs.begin(), globs.end(),
                                      [&](const std::string& glob) { return matches_glob(path, glob); });
}

// What the cache alone knows about a revision.
Result<Repository> cached_repository(const HubCache& cache, const HubId& id) {
  Repository repository;
  repository.asked = id.repo;
  repository.revision = id.revision.empty() ? "main" : id.revision;
  repository.info.commit = cache.commit_of(repository.revision);
  auto tree = cache.tree(repository.info.commit);
  if (!tree)
    return fail(
        ErrorCode::kNetwork,
        fmt::format("pulling {}: the cache does not know {}, and HF_HUB_OFFLINE is set", id.repo,
                    repository.info.commit.empty() ? "revision " + repository.revision
                                                   : "which files commit " + repository.info.commit + " has"),
        cache.folder(), "unset HF_HUB_OFFLINE");
  repository.files = std::move(*tree);
  return repository;
}

// Nothing may be asked of a hub: what the cache lacks is an error.
Status check_held(const HubCache& cache, const Fetch& fetch) {
  for (const HubFile& file : fetch.files)
    if (!is_held(cache, fetch, file))
      return fail(ErrorCode::kNetwork,
                  fmt::format("pulling {}: the cache does not hold {} whole, and HF_HUB_OFFLINE is set",
                              fetch.repo, file.path),
                  cache.snapshot(fetch.commit), "unset HF_HUB_OFFLINE");
  return {};
}

Result<std::vector<LockedFile>> locked_files(const HubCache& cache, const std::string& commit,
                                             const std::vector<HubFile>& files) {
  std::vector<LockedFile> locked;
  for (const HubFile& file : files) {
    LockedFile entry{file.path, file.bytes, file.sha256};
    // Git names small files by another digest; theirs is computed from what is here.
    if (entry.sha256.empty()) {
      PLIMSOLL_TRY(entry.sha256, digest_of_file(cache.file(commit, file.path), DigestKind::kSha256));
    }
    locked.push_back(std::move(entry));
  }
  std::sort(locked.begin(), locked.end(),
            [](const LockedFile& a, const LockedFile& b) { return a.path < b.path; });
  return locked;
}

// Files that a lock record names and the repository has otherwise. `pulled` are those that came, with the
// digests of what came.
Findings differences(const LockRecord& locked, const std::vector<HubFile>& listed,
                     const std::vector<LockedFile>& pulled) {
  std::unordered_map<std::string_view, LockedFile> known;
  for (const HubFile& file : listed) known[file.path] = {file.path, file.bytes, file.sha256};
  for (const LockedFile& file : pulled) known[file.path] = file;
  Findings findings;
  for (const LockedFile& file : locked.files) {
    const auto found = known.find(file.path);
    std::string message;
    if (found == known.end())
      message = "the lock record names this file, and the repository has none of that name";
    else if (found->second.bytes != file.bytes)
      message =
          fmt::format("the lock record gives {} bytes, the repository {}", file.bytes, found->second.bytes);
    else if (!file.sha256.empty() && !found->second.sha256.empty() && found->second.sha256 != file.sha256)
      message = fmt::format("the lock record gives sha256 {}, the repository {}", file.sha256,
                            found->second.sha256);
    else
      continue;
    findings.push_back({"LOCK_MISMATCH", FindingLevel::kError, FindingKind::kCheckFailed, file.path,
                        std::move(message), "write a new record with `plimsoll pull ... -o FILE`"});
  }
  return findings;
}

struct Wanted {
  HubId id;
  std::optional<LockRecord> lock;
};

Result<Wanted> wanted_by(const PullOptions& options) {
  Wanted wanted;
  std::error_code error;
  if (std::filesystem::exists(options.model, error)) {
    if (!is_lock_file(options.model))
      return fail(ErrorCode::kUsage, "pulling: this is a path on this machine and no lock record",
                  options.model, "give org/name[@revision] of a hub");
    PLIMSOLL_TRY(wanted.lock, read_lock_file(options.model));
    wanted.id = {wanted.lock->repo, wanted.lock->commit};
    return wanted;
  }
  const auto id = parse_hub_id(options.model);
  if (!id)
    return fail(ErrorCode::kUsage, "pulling: this is not the name of a hub's repository", options.model,
                "give org/name, or org/name@revision");
  wanted.id = *id;
  return wanted;
}

// Those of the repository's files that are asked for.
Result<Fetch> wanted_files(const Wanted& wanted, const Repository& repository, const PullOptions& options) {
  const std::string& commit = repository.info.commit;
  Fetch fetch{repository.name(), commit, {}, options.progress, options.checks_all || wanted.lock};
  std::unordered_set<std::string_view> locked;
  if (wanted.lock)
    for (const LockedFile& file : wanted.lock->files) locked.insert(file.path);
  for (const HubFile& file : repository.files)
    if ((!wanted.lock || locked.contains(file.path)) && is_included(options.include, file.path))
      fetch.files.push_back(file);
  if (fetch.files.empty() && options.include.empty() && !wanted.lock)
    return fail(ErrorCode::kMalformed, fmt::format("pulling {}: the repository has no files", wanted.id.repo),
                wanted.id.repo + "@" + commit, "name a repository that holds a model");
  // Of a record whose files are all gone the differences are told.
  if (fetch.files.empty() && !options.include.empty())
    return fail(
        ErrorCode::kUsage,
        fmt::format("pulling {}: none of its {} files is asked for", wanted.id.repo, repository.files.size()),
        "--include", "patterns are as in a shell: '*.safetensors', 'tokenizer*'");
  return fetch;
}

void describe(const std::string& folder, LockRecord& record) {
  const auto artifact = open_folder(folder);
  if (!artifact) return;  // only a part was pulled that describes no model
  record.chat_template_sha256 = chat_template_digest(**artifact);
  record.generation_config = (*artifact)->json_file("generation_config.json");
}

}  // namespace

Result<Pulled> pull(const PullOptions& options) {
  PLIMSOLL_TRY(const Wanted wanted, wanted_by(options));
  const HubSettings settings = HubSettings::from_environment();
  const HubCache cache(settings.cache, wanted.id.repo, settings.uses_links);
  HubClient client(settings);
  Refusal kind = Refusal::kOther;
  PLIMSOLL_TRY(Repository repository, settings.is_offline ? cached_repository(cache, wanted.id)
                                                          : ask_repository(client, cache, wanted.id, kind));
  const auto bring = [&](Disagreement& disagrees) -> Result<Fetch> {
    PLIMSOLL_TRY(Fetch fetch, wanted_files(wanted, repository, options));
    PLIMSOLL_TRY_VOID(settings.is_offline ? check_held(cache, fetch)
                                          : fetch_files(settings, cache, fetch, disagrees));
    return fetch;
  };
  PLIMSOLL_TRY(const Fetch fetch, with_true_listing(client, cache, repository, bring));
  const std::string& commit = repository.info.commit;
  Pulled pulled;
  pulled.folder = cache.snapshot(commit);
  for (const HubFile& file : fetch.files) pulled.bytes += Bytes(file.bytes);
  pulled.findings = origin_findings(wanted.id.repo, repository.name(), repository.revision, commit);
  LockRecord& record = pulled.record;
  record.repo = wanted.id.repo;
  record.revision = repository.revision;
  record.commit = commit;
  record.license = repository.info.license;
  PLIMSOLL_TRY(record.files, locked_files(cache, commit, fetch.files));
  if (wanted.lock)
    for (Finding& finding : differences(*wanted.lock, repository.files, record.files))
      pulled.findings.push_back(std::move(finding));
  describe(pulled.folder, record);
  return pulled;
}

}  // namespace plimsoll::artifact
