// SPDX-License-Identifier: Apache-2.0
#include "artifact/hub/open_hub.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "artifact/content.h"
#include "artifact/folder.h"
#include "artifact/hub/choose_files.h"
#include "artifact/hub/download.h"
#include "artifact/hub/header_reads.h"
#include "artifact/hub/repository.h"
#include "artifact/hub/view.h"
#include "artifact/hub_cache.h"
#include "artifact/index_text.h"
#include "artifact/open_folder.h"
#include "artifact/pickle_files.h"
#include "base/log.h"
#include "base/units.h"

namespace plimsoll::artifact {
namespace {

namespace fs = std::filesystem;
using Opened = Result<std::shared_ptr<const Artifact>>;

constexpr std::size_t kMaxOthers = 2'000;  // stand-ins of files that no reader looks for

// The names in the set's index, as the reader of a local folder sees them; nothing when it cannot be read.
std::optional<std::vector<std::string>> indexed_in(const std::string& folder, const WeightSet& set) {
  if (set.index.empty()) return std::nullopt;
  Findings findings;  // told by the reader who opens the folder
  auto index = read_index_text(folder + "/" + set.index, set.index, findings);
  if (!index) return std::nullopt;
  return std::move(index->shards);
}

// The folder's files as a listing, for a snapshot whose listing was not kept.
std::vector<HubFile> files_on_disk(const std::string& folder) {
  std::vector<HubFile> files;
  for (const File& file : list_folder(folder).files) {
    HubFile entry;
    entry.path = file.path;
    entry.bytes = file.bytes.value;
    files.push_back(std::move(entry));
  }
  return files;
}

// The files of a folder, then those of the repository that have no place in it; all with their digests.
std::vector<File> with_listing(std::vector<File> files, const std::vector<HubFile>& listing) {
  std::unordered_map<std::string_view, const HubFile*> by_path;
  for (const HubFile& file : listing) by_path.emplace(file.path, &file);
  for (File& file : files)
    if (const auto entry = by_path.find(file.path); entry != by_path.end()) {
      file.sha256 = entry->second->sha256;
      by_path.erase(entry);
    }
  for (const HubFile& file : listing)
    if (by_path.contains(file.path))
      files.push_back({file.path, Bytes(file.bytes), role_of(file.path), file.sha256});
  return files;
}

// Those of a folder that have a digest in the repository's listing.
std::vector<File> with_digests(std::vector<File> files, const std::vector<HubFile>& listing) {
  const std::size_t here = files.size();
  files = with_listing(std::move(files), listing);
  files.erase(files.begin() + static_cast<std::ptrdiff_t>(here), files.end());
  return files;
}

// Which files lie in a folder of stand-ins: what readers look for, and some that are only listed.
std::vector<const HubFile*> stand_ins_of(const std::vector<HubFile>& files) {
  std::vector<const HubFile*> placed;
  std::size_t num_others = 0;
  for (const HubFile& file : files) {
    const FileRole role = role_of(file.path);
    const bool is_other = role == FileRole::kOther || role == FileRole::kCode;
    if (!is_other || ++num_others <= kMaxOthers) placed.push_back(&file);
  }
  return placed;
}

// Does the snapshot hold what is needed? Sizes are not looked at: what is wrong with a file on this disk is
// to be told, not hidden behind the hub's good one.
bool holds_needed(const HubCache& cache, const std::string& commit, Need need) {
  const std::string folder = cache.snapshot(commit);
  std::error_code error;
  if (!fs::is_directory(folder, error)) return false;
  const auto tree = cache.tree(commit);
  const std::vector<HubFile> files = tree ? *tree : files_on_disk(folder);
  const auto is_there = [&](const std::string& path) { return !cache.file(commit, path).empty(); };
  if (tree) {
    const auto small = small_files(files);
    if (!std::all_of(small.begin(), small.end(), [&](const HubFile& f) { return is_there(f.path); }))
      return false;
  }
  if (need == Need::kText && has_tokenizer_file(files)) return true;
  const WeightSet set = weight_set(files);
  const auto indexed = indexed_in(folder, set);
  const auto taken = weight_files(files, set, indexed);
  if (!taken || !std::all_of(taken->begin(), taken->end(), is_there)) return false;
  // Without a listing, only an index or the names themselves tell that something is absent.
  if (tree) return true;
  return set.kind != WeightSet::Kind::kNone &&
         (!indexed || std::all_of(indexed->begin(), indexed->end(), is_there));
}

class HubOpener {
 public:
  HubOpener(const HubId& id, const OpenOptions& options, const HubSettings& settings)
      : id_(id),
        options_(options),
        settings_(settings),
        revision_(id.revision.empty() ? "main" : id.revision),
        cache_(settings.cache, id.repo, settings.uses_links) {}

  Opened open() {
    if (is_commit(revision_) && holds_needed(cache_, revision_, options_.need))
      return open_snapshot(revision_, {}, {});
    if (settings_.is_offline)
      return open_without_hub(Error{
          ErrorCode::kNetwork,
          fmt::format(
              "opening {}: it is not in the cache, and the hub is not asked since HF_HUB_OFFLINE is set",
              id_.repo),
          settings_.cache, "unset HF_HUB_OFFLINE, or pull the model where there is a network"});
    HubClient client(settings_);
    Refusal kind = Refusal::kOther;
    auto repository = ask_repository(client, cache_, id_, kind);
    if (!repository)
      return may_do_without(kind) ? open_without_hub(repository.error()) : fail(repository.error());
    return with_true_listing(client, cache_, *repository, [&](Disagreement& disagrees) {
      return open_repository(*repository, client, disagrees);
    });
  }

 private:
  // A revision or repository that is not there has no other answer; the rest may pass.
  static bool may_do_without(Refusal kind) {
    return kind != Refusal::kNoRevision && kind != Refusal::kNoRepo && kind != Refusal::kNoEntry &&
           kind != Refusal::kNotAHub && kind != Refusal::kDisabled && kind != Refusal::kOther;
  }

  HubFacts facts_of(const Repository& repository) const {
    return {repository.name(),
            revision_,
            repository.info.commit,
            repository.info.license,
            repository.info.is_gated,
            repository.info.is_private,
            repository.info.safetensors_total};
  }

  // What holds no model is the repository, wherever its files lie for now.
  Opened open_files(const std::string& folder, const std::string& commit) const {
    Opened opened = open_folder(folder);
    if (opened) return opened;
    Error error = std::move(opened).error();
    error.where = id_.repo + "@" + commit;
    error.fix = "name a repository that holds a model";
    return fail(std::move(error));
  }

  Opened open_snapshot(const std::string& commit, std::optional<HubFacts> hub, Findings findings) {
    PLIMSOLL_TRY(auto shown, open_files(cache_.snapshot(commit), commit));
    ViewParts parts;
    const std::string today = hub ? hub->id : std::string();
    parts.findings = origin_findings(id_.repo, today, revision_, commit);
    parts.findings.insert(parts.findings.end(), std::make_move_iterator(findings.begin()),
                          std::make_move_iterator(findings.end()));
    if (!hub) hub = HubFacts{id_.repo, revision_, commit, {}, false, false, std::nullopt};
    if (const auto tree = cache_.tree(commit)) parts.files = with_digests(shown->files(), *tree);
    parts.shown = std::move(shown);
    parts.hub = std::move(hub);
    return make_view(std::move(parts));
  }

  Opened open_without_hub(const Error& reason) {
    const std::string commit = cache_.commit_of(revision_);
    std::error_code error;
    if (!commit.empty() && fs::is_directory(cache_.snapshot(commit), error)) {
      Findings findings;
      if (!settings_.is_offline)
        findings.push_back(
            {"CACHE_USED", FindingLevel::kInfo, FindingKind::kCheckFailed, id_.repo,
             fmt::format("the snapshot {} of the cache is used, since the hub did not answer: {}", commit,
                         reason.message),
             reason.fix});
      return open_snapshot(commit, {}, std::move(findings));
    }
    auto config = options_.catalogue ? options_.catalogue(id_.repo) : std::nullopt;
    if (!config) return fail(reason);
    ViewParts parts;
    parts.shown = from_config(std::move(*config), id_.repo);
    parts.findings.push_back({"CATALOGUE_USED", FindingLevel::kInfo, FindingKind::kCheckFailed, id_.repo,
                              "the built-in catalogue's config facts are used: " + reason.message,
                              reason.fix});
    return make_view(std::move(parts));
  }

  Opened open_repository(const Repository& repository, HubClient& client, Disagreement& disagrees) {
    const std::string& commit = repository.info.commit;
    if (holds_needed(cache_, commit, options_.need)) return open_snapshot(commit, facts_of(repository), {});
    const auto small = small_files(repository.files);
    if (repository.info.is_gated && !small.empty()) {
      Refusal kind = Refusal::kOther;
      const auto head = head_of_listed(client, small.front(), {repository.name(), commit, small.front().path},
                                       disagrees, &kind);
      if (!head) return may_do_without(kind) ? open_without_hub(head.error()) : fail(head.error());
    }
    if (options_.need == Need::kTensors) return open_downloaded(repository, small, disagrees);
    return open_headers(repository, small, client, disagrees);
  }

  Opened open_downloaded(const Repository& repository, std::vector<HubFile> files, Disagreement& disagrees) {
    const std::string& commit = repository.info.commit;
    PLIMSOLL_TRY_VOID(fetch_files(settings_, cache_, {repository.name(), commit, files, {}}, disagrees));
    const WeightSet set = weight_set(repository.files);
    std::vector<HubFile> large;
    std::int64_t bytes = 0;
    // An index that cannot be read names nothing to download: the reader of the snapshot tells what is wrong.
    for (const std::string& path :
         weight_files(repository.files, set, indexed_in(cache_.snapshot(commit), set))
             .value_or(std::vector<std::string>{}))
      large.push_back(*find_hub_file(repository.files, path));
    for (const HubFile& file : large) bytes += file.bytes;
    log_info(fmt::format("downloading {} of weights of {}", as_gb(Bytes(bytes)), repository.name()));
    PLIMSOLL_TRY_VOID(fetch_files(settings_, cache_, {repository.name(), commit, large, {}}, disagrees));
    return open_snapshot(commit, facts_of(repository), {});
  }

  // A folder of the small files and of stand-ins for the large ones, opened as any other.
  Opened open_headers(const Repository& repository, const std::vector<HubFile>& small, HubClient& client,
                      Disagreement& disagrees) {
    PLIMSOLL_TRY(TemporaryFolder temporary, TemporaryFolder::make());
    const std::string& commit = repository.info.commit;
    const std::string folder = temporary.path() + "/snapshots/" + commit;
    PLIMSOLL_TRY_VOID(place_small_files(repository, small, temporary.path(), folder, disagrees));
    if (options_.need != Need::kText || !has_tokenizer_file(repository.files))
      PLIMSOLL_TRY_VOID(place_weights(repository, folder, client, disagrees));
    PLIMSOLL_TRY(auto shown, open_files(folder, commit));
    ViewParts parts;
    parts.findings = origin_findings(id_.repo, repository.name(), revision_, commit);
    std::vector<std::string_view> paths;
    for (const HubFile& file : repository.files) paths.push_back(file.path);
    if (auto pickle = shown->weights_files().empty() ? std::nullopt : pickle_beside(paths))
      parts.findings.push_back(std::move(*pickle));
    parts.files = with_listing(shown->files(), repository.files);
    parts.shown = std::move(shown);
    parts.folder = std::move(temporary);
    parts.hub = facts_of(repository);
    parts.has_tensor_bytes = false;
    for (const HubFile& file : repository.files) parts.stand_ins.insert(file.path);
    for (const HubFile& file : small) parts.stand_ins.erase(file.path);
    return make_view(std::move(parts));
  }

  Status place_small_files(const Repository& repository, const std::vector<HubFile>& small,
                           const std::string& temporary, const std::string& folder, Disagreement& disagrees) {
    const std::string& commit = repository.info.commit;
    const Fetch fetch{repository.name(), commit, small, {}};
    HubCache holder = cache_;
    Status fetched = fetch_files(settings_, holder, fetch, disagrees);
    if (!fetched && fetched.error().code == ErrorCode::kUsage) {
      log_debug("the hub cache is not writable; small files go to a temporary folder");
      holder = HubCache(temporary + "/cache", id_.repo, true);
      fetched = fetch_files(settings_, holder, fetch, disagrees);
    }
    PLIMSOLL_TRY_VOID(std::move(fetched));
    std::error_code error;
    fs::create_directories(folder, error);
    for (const HubFile& file : small) {
      const fs::path place = folder + "/" + file.path;
      fs::create_directories(place.parent_path(), error);
      const fs::path source = fs::canonical(holder.file(commit, file.path), error);
      if (!error) fs::create_hard_link(source, place, error);
      if (error) {
        error.clear();
        fs::copy_file(source, place, error);
      }
      if (error)
        return fail(ErrorCode::kUsage, "a file cannot be placed: " + error.message(), place.string(),
                    "name a writable folder with TMPDIR");
    }
    return {};
  }

  Status place_weights(const Repository& repository, const std::string& folder, HubClient& client,
                       Disagreement& disagrees) {
    std::error_code error;
    for (const HubFile* file : stand_ins_of(repository.files)) {
      const fs::path place = folder + "/" + file->path;
      if (fs::exists(place, error)) continue;
      fs::create_directories(place.parent_path(), error);
      PLIMSOLL_TRY_VOID(make_sparse(place.string(), file->bytes));
    }
    const WeightSet set = weight_set(repository.files);
    std::vector<const HubFile*> wanted;
    for (const std::string& path :
         weight_files(repository.files, set, indexed_in(folder, set)).value_or(std::vector<std::string>{}))
      wanted.push_back(find_hub_file(repository.files, path));
    const Asked asked{repository.name(), repository.info.commit, {}};
    // One answer holds the headers of all shards, but only of main as it is now.
    if (wanted.size() > 1 && !set.index.empty() && revision_ == "main") {
      const auto done = read_all_headers_into(folder, asked, set.index, wanted, client);
      std::erase_if(wanted, [&](const HubFile* file) {
        return std::find(done.begin(), done.end(), file->path) != done.end();
      });
    }
    return for_each_with_client(settings_, wanted.size(), [&](std::size_t i, HubClient& one) {
      const HubFile& file = *wanted[i];
      return read_header_into(folder + "/" + file.path, {asked.repo, asked.revision, file.path}, file, one,
                              disagrees);
    });
  }

  const HubId& id_;
  const OpenOptions& options_;
  const HubSettings& settings_;
  const std::string revision_;
  const HubCache cache_;
};

}  // namespace

Opened open_hub(const HubId& id, const OpenOptions& options, const HubSettings& settings) {
  return HubOpener(id, options, settings).open();
}

}  // namespace plimsoll::artifact
