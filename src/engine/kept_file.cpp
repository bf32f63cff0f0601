// SPDX-License-Identifier: Apache-2.0
#include "engine/kept_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/json.h"

namespace plimsoll::engine {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSampledBytes = 4096;  // at three places of each tensor

void add_samples(Digest& digest, std::span<const std::byte> data) {
  const auto size = static_cast<std::int64_t>(data.size());
  const std::int64_t length = std::min(size, kSampledBytes);
  for (const std::int64_t at : {std::int64_t{0}, (size - length) / 2, size - length})
    digest.add(data.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(length)));
}

void remove_old_partials(const fs::path& file) {
  const auto too_old = fs::file_time_type::clock::now() - std::chrono::hours(1);
  std::error_code error, unknown;
  for (fs::directory_iterator entry(file.parent_path(), error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(file.filename().string() + ".partial.")) continue;
    const auto written = entry->last_write_time(unknown);
    if (!unknown && written < too_old) fs::remove(entry->path(), unknown);
  }
}

}  // namespace

void add_text(Digest& digest, std::string_view text) {
  const std::size_t size = text.size();
  digest.add(std::as_bytes(std::span(&size, 1)));
  digest.add(std::as_bytes(std::span(text)));
}

void add_model(Digest& digest, const artifact::Artifact& artifact) {
  add_text(digest, dump(artifact.config()));
  for (const auto& tensor : artifact.tensors()) {
    add_text(digest, tensor.name);
    add_text(digest, fmt::format("{} {} {} {}", name(tensor.dtype), fmt::join(tensor.shape, ","),
                                 tensor.offset_bytes, tensor.bytes));
    if (const auto data = artifact.data(tensor)) add_samples(digest, *data);
  }
  for (const auto& file : artifact.files()) {
    if (file.role != artifact::FileRole::kWeights) continue;
    std::error_code unknown;
    const auto written = fs::last_write_time(artifact.path_of(file), unknown);
    add_text(digest, fmt::format("{} {} {}", file.path, file.bytes.value,
                                 unknown ? 0 : written.time_since_epoch().count()));
  }
}

Status make_room_for(const std::string& path, std::string_view flag) {
  const fs::path file(path);
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  if (error)
    return fail(ErrorCode::kUsage, "the folder cannot be made: " + error.message(),
                file.parent_path().string(), fmt::format("name another one: {}", flag));
  remove_old_partials(file);
  return {};
}

KeptFileWriter::KeptFileWriter(const std::string& path)
    : temporary_(path + ".partial.XXXXXX"), digest_(DigestKind::kSha256), fd_(::mkstemp(temporary_.data())) {
  if (fd_ < 0) error_ = errno;
}

KeptFileWriter::~KeptFileWriter() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

void KeptFileWriter::add(std::span<const std::byte> data) {
  digest_.add(data);
  write(data);
}

std::optional<std::string> KeptFileWriter::put_in_place(const std::string& path) {
  const std::string digest = digest_.finish();
  write(std::as_bytes(std::span(digest)));
  if (error_ == 0 && (::fsync(fd_) != 0 || ::rename(temporary_.c_str(), path.c_str()) != 0)) error_ = errno;
  if (error_ != 0) return std::strerror(error_);
  ::close(std::exchange(fd_, -1));
  return std::nullopt;
}

void KeptFileWriter::write(std::span<const std::byte> data) {
  while (error_ == 0 && !data.empty()) {
    const ssize_t done = ::write(fd_, data.data(), data.size());
    if (done < 0 && errno != EINTR) error_ = errno;
    if (done > 0) data = data.subspan(static_cast<std::size_t>(done));
  }
}

}  // namespace plimsoll::engine
