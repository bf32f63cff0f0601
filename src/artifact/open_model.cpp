// SPDX-License-Identifier: Apache-2.0
// MODEL in all its forms: a path, a lock record, a hub id; and any of them held against a lock record.
#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "artifact/artifact.h"
#include "artifact/hub/listing.h"
#include "artifact/hub/open_hub.h"
#include "artifact/hub/settings.h"
#include "artifact/hub/view.h"
#include "artifact/lock.h"
#include "artifact/open_folder.h"

namespace plimsoll::artifact {
namespace {

using Opened = Result<std::shared_ptr<const Artifact>>;

// Links that lead nowhere exist too: they are no name on a hub.
bool exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::symlink_status(path, error));
}

Opened held_against(const LockRecord& record, Opened opened, const OpenOptions& options,
                    Findings before = {}) {
  if (!opened) return opened;
  ViewParts parts;
  parts.findings = std::move(before);
  // Who computes with the weights wants the locked ones: they are read in any case.
  const bool reads_files = options.checks_digests || options.need == Need::kTensors;
  for (Finding& finding : check_lock(record, **opened, reads_files))
    parts.findings.push_back(std::move(finding));
  parts.lock = record;
  parts.shown = std::move(*opened);
  return make_view(std::move(parts));
}

Opened open_locked(const LockRecord& record, const OpenOptions& options) {
  // The catalogue knows no commit: it cannot stand for what is pinned.
  OpenOptions pinned = options;
  pinned.catalogue = {};
  return held_against(record, open_hub({record.repo, record.commit}, pinned, HubSettings::from_environment()),
                      options);
}

// MODEL beside --lock: a path is checked as it is; an id has to be the locked one.
Opened open_with_lock(const std::string& model, const OpenOptions& options) {
  PLIMSOLL_TRY(const LockRecord record, read_lock_file(options.lock));
  if (model.empty() || is_lock_file(model)) return open_locked(record, options);
  if (exists(model)) return held_against(record, open_path(model), options);
  const auto id = parse_hub_id(model);
  if (!id) return held_against(record, open_path(model), options);
  const bool is_other_commit = is_commit(id->revision) && id->revision != record.commit;
  if (id->repo == record.repo && !is_other_commit) return open_locked(record, options);
  return fail(ErrorCode::kNo,
              fmt::format("opening {}: the lock record pins {}@{}", model, record.repo, record.commit),
              options.lock, "give the locked model, or write a new record with `plimsoll pull ... -o FILE`");
}

}  // namespace

Opened open(const std::string& model, const OpenOptions& options) {
  if (!options.lock.empty()) return open_with_lock(model, options);
  if (exists(model)) {
    if (!is_lock_file(model)) return open_path(model);
    PLIMSOLL_TRY(const LockRecord record, read_lock_file(model));
    return open_locked(record, options);
  }
  const auto id = parse_hub_id(model);
  if (!id) return open_path(model);
  Opened opened = open_hub(*id, options, HubSettings::from_environment());
  if (opened || opened.error().code != ErrorCode::kNetwork) return opened;
  Error error = opened.error();
  error.fix += "; there is no such path here, so it was taken as a hub's name";
  return fail(std::move(error));
}

}  // namespace plimsoll::artifact
