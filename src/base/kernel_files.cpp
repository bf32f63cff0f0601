// SPDX-License-Identifier: Apache-2.0
#include "base/kernel_files.h"

#include <algorithm>
#include <charconv>
#include <fstream>

namespace plimsoll {
namespace {

constexpr int kMostCpus = 1 << 16;

/// Where this process stands in a hierarchy, from the lines "number:controllers:path" of /proc/self/cgroup.
std::optional<std::string> group_path(std::string_view groups, std::string_view controller) {
  if (controller.empty()) {
    const auto path = line_after(groups, "0::");
    return path ? std::optional<std::string>(*path) : std::nullopt;
  }
  while (!groups.empty()) {
    const std::string_view line = groups.substr(0, groups.find('\n'));
    groups.remove_prefix(std::min(line.size() + 1, groups.size()));
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    std::string_view names = line.substr(first + 1, second - first - 1);
    while (!names.empty()) {
      const std::string_view name = names.substr(0, names.find(','));
      if (name == controller) return std::string(line.substr(second + 1));
      names.remove_prefix(std::min(name.size() + 1, names.size()));
    }
  }
  return std::nullopt;
}

}  // namespace

std::string read_kernel_file(const std::string& path) {
  constexpr std::size_t kMostBytes = std::size_t{4} << 20;  // cpuinfo of a thousand cores
  std::ifstream file(path, std::ios::binary);
  std::string text;
  char buffer[4096];
  while (text.size() < kMostBytes && (file.read(buffer, sizeof buffer) || file.gcount() > 0))
    text.append(buffer, static_cast<std::size_t>(file.gcount()));
  return text;
}

std::optional<std::int64_t> leading_integer(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 0) return std::nullopt;
  return value;
}

std::optional<std::string_view> line_after(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.starts_with(key)) return line.substr(key.size());
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return std::nullopt;
}

std::vector<int> parse_cpu_list(std::string_view text) {
  std::vector<int> cpus;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    const auto first = leading_integer(part);
    if (!first || *first >= kMostCpus) break;
    const auto dash = part.find('-');
    const auto last = dash == std::string_view::npos ? first : leading_integer(part.substr(dash + 1));
    if (!last || *last >= kMostCpus) break;
    for (std::int64_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<int>(cpu));
  }
  return cpus;
}

std::vector<std::string> group_folders(const std::string& root, std::string_view controller) {
  auto path = group_path(read_kernel_file(root + "/proc/self/cgroup"), controller);
  std::string mount = root + "/sys/fs/cgroup";
  if (!controller.empty()) mount += "/" + std::string(controller);
  // In a container of version 1 the path may be the host's, and only the root is there to be read.
  if (!path && controller.empty()) return {};
  if (!path) path.emplace();
  std::vector<std::string> folders;
  while (true) {
    if (*path == "/") path->clear();
    folders.push_back(mount + *path);
    if (path->empty()) return folders;
    path->resize(std::min(path->find_last_of('/'), path->size() - 1));
  }
}

}  // namespace plimsoll
