// SPDX-License-Identifier: Apache-2.0
#include "engine/panel_file.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>

#include "base/hash.h"
#include "base/mapped_file.h"
#include "engine/kept_file.h"

namespace plimsoll::engine {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "plimsoll panels 1\n";  // rises when their layout changes
constexpr std::size_t kHeaderBytes = 4096;  // a page, so that panels begin at the border of one
constexpr std::size_t kDigestBytes = 64;    // of the header, at the end

std::string path_of(const std::string& folder, const std::string& identity) {
  return (fs::path(folder) / (identity.substr(0, 32) + ".panels")).string();
}

std::string header_of(const std::string& identity, std::int64_t bytes) {
  std::string header = fmt::format("{}{}\n{}\n", kMagic, identity, bytes);
  header.resize(kHeaderBytes);
  return header;
}

}  // namespace

std::string panels_identity(const artifact::Artifact& artifact, std::string_view quantization) {
  Digest digest(DigestKind::kSha256);
  add_text(digest, kMagic);
  add_text(digest, quantization);
  add_model(digest, artifact);
  return digest.finish();
}

Result<std::shared_ptr<std::byte>> map_panels(const std::string& folder, const std::string& identity,
                                              std::int64_t bytes) {
  const std::string path = path_of(folder, identity);
  std::error_code unknown;
  if (!fs::exists(path, unknown)) return std::shared_ptr<std::byte>();
  PLIMSOLL_TRY(MappedFile opened, MappedFile::open(path));
  const auto content = opened.bytes();
  const std::string header = header_of(identity, bytes);
  if (content.size() != kHeaderBytes + static_cast<std::size_t>(bytes) + kDigestBytes ||
      std::memcmp(content.data(), header.data(), kHeaderBytes) != 0)
    return fail(ErrorCode::kMalformed, "the kept panels are not used: they belong to another model or layout",
                path, "delete the file; it is written anew at this start");
  const auto file = std::make_shared<MappedFile>(std::move(opened));
  // Only read; the pointer's type is that of panels in memory of their own.
  auto* const panels = const_cast<std::byte*>(file->bytes().data()) + kHeaderBytes;
  return std::shared_ptr<std::byte>(file, panels);
}

Status keep_panels(const std::string& folder, const std::string& identity,
                   std::span<const std::byte> panels) {
  const std::string path = path_of(folder, identity);
  PLIMSOLL_TRY_VOID(make_room_for(path, "--packed-cache"));
  const std::string header = header_of(identity, std::ssize(panels));
  KeptFileWriter writer(path);
  writer.add(std::as_bytes(std::span(header)));
  writer.add_unchecked(panels);
  if (const auto reason = writer.put_in_place(path))
    return fail(ErrorCode::kUsage, "the panels cannot be kept: " + *reason, path,
                "make room, or name another folder: --packed-cache");
  return {};
}

}  // namespace plimsoll::engine
