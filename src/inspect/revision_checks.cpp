// SPDX-License-Identifier: Apache-2.0
#include "inspect/revision_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace plimsoll::inspect {
namespace {

constexpr std::size_t kMaxFiles = 64;  // of which the metadata is read: shards of one download agree

std::string_view first_line(std::string_view text) {
  std::string_view line = text.substr(0, text.find('\n'));
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
  return line;
}

/// 40 hexadecimal digits, as git writes a commit.
bool is_commit(std::string_view text) {
  return text.size() == 40 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

/// Commits of the files as `hf download --local-dir` recorded them, each with one file of it.
std::map<std::string, std::string> downloaded_commits(const artifact::Artifact& artifact) {
  std::map<std::string, std::string> commits;
  std::size_t seen = 0;
  for (const artifact::File& file : artifact.files()) {
    if (++seen > kMaxFiles) break;
    const auto text = artifact.text_file(".cache/huggingface/download/" + file.path + ".metadata");
    // Without any record for the first files there is no such download.
    if (!text && commits.empty() && seen >= 8) break;
    if (text && is_commit(first_line(*text))) commits.emplace(first_line(*text), file.path);
  }
  return commits;
}

/// The commit that a clone has checked out.
std::optional<std::string> cloned_commit(const artifact::Artifact& artifact) {
  const auto head = artifact.text_file(".git/HEAD");
  if (!head) return std::nullopt;
  std::string_view line = first_line(*head);
  if (is_commit(line)) return std::string(line);
  constexpr std::string_view kReference = "ref: ";
  if (!line.starts_with(kReference)) return std::nullopt;
  const std::string reference(line.substr(kReference.size()));
  if (const auto loose = artifact.text_file(".git/" + reference); loose && is_commit(first_line(*loose)))
    return std::string(first_line(*loose));
  const auto packed = artifact.text_file(".git/packed-refs");
  if (!packed) return std::nullopt;
  const std::size_t at = packed->find(" " + reference + "\n");
  if (at == std::string::npos || at < 40) return std::nullopt;
  const std::string commit = packed->substr(at - 40, 40);
  return is_commit(commit) ? std::optional(commit) : std::nullopt;
}

}  // namespace

void check_revision(const Subject& subject, const ModelCard* card, Report& report) {
  const artifact::Artifact& artifact = subject.artifact;
  if (!report.commit.empty() || artifact.files().empty()) return;
  const auto commits = downloaded_commits(artifact);
  if (commits.size() > 1) {
    const auto& [one, file] = *commits.begin();
    const auto& [other, other_file] = *std::next(commits.begin());
    add_check(report.findings, "REVISION_MIXED", FindingLevel::kWarning, ".cache/huggingface",
              fmt::format("{} is of commit {}, {} of {}", file, one, other_file, other),
              "download one revision into an empty folder");
    return;
  }
  if (!commits.empty())
    report.commit = commits.begin()->first;
  else if (const auto commit = cloned_commit(artifact))
    report.commit = *commit;
  else if (card && artifact.form() == artifact::Form::kSafetensors)
    add_check(report.findings, "REVISION_UNKNOWN", FindingLevel::kInfo, "README.md",
              "the folder looks like a hub repository, but nothing in it tells which commit it is",
              "download it with a pinned --revision, so that the deployment can be repeated");
}

}  // namespace plimsoll::inspect
