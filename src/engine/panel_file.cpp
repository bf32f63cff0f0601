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

std::span<const std::byte> KeptPanels::panels() const {
  const auto content = file->bytes();
  return content.subspan(kHeaderBytes, content.size() - kHeaderBytes - kDigestBytes);
}

std::optional<Error> KeptPanels::cut_error() const {
  if (!file || !file->was_cut()) return std::nullopt;
  return Error{ErrorCode::kMalformed,
               "reading kept panels: the file became shorter while it was used, or its disk fails", path,
               "start again: the file is written anew"};
}

Result<KeptPanels> map_panels(const std::string& folder, const std::string& identity, std::int64_t bytes) {
  const std::string path = path_of(folder, identity);
  std::error_code unknown;
  if (!fs::exists(path, unknown)) return KeptPanels();
  PLIMSOLL_TRY(MappedFile file, MappedFile::open(path));
  const auto content = file.bytes();
  const std::string header = header_of(identity, bytes);
  const auto panels_end = kHeaderBytes + static_cast<std::size_t>(bytes);
  if (content.size() != panels_end + kDigestBytes ||
      std::memcmp(content.data(), header.data(), kHeaderBytes) != 0 ||
      std::memcmp(content.data() + panels_end, sha256_hex(content.first(kHeaderBytes)).data(),
                  kDigestBytes) != 0)
    return fail(ErrorCode::kMalformed, "the kept panels are not used: they belong to another model or layout",
                path, "nothing: the file is written anew at this start");
  return KeptPanels{std::make_shared<const MappedFile>(std::move(file)), path};
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
