// SPDX-License-Identifier: Apache-2.0
// What is this file really? Tells weights from the things that lie in their place after a failed download:
// Git-LFS pointers, HTML pages, pickles. Looks at bytes only; pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "artifact/artifact.h"
#include "base/finding.h"

namespace plimsoll::artifact {

/// The first bytes as text, for looking at magics and headers.
std::string_view as_text(std::span<const std::byte> bytes);

/// An error finding (LFS_POINTER, NOT_WEIGHTS) when `bytes`, found under the name of a weights file, are
/// something else that can be recognised; nothing otherwise.
std::optional<Finding> foreign_content(std::span<const std::byte> bytes, std::string_view path);

/// True for a Git LFS pointer; `foreign_content` says which.
bool is_lfs_pointer(std::span<const std::byte> bytes);

/// True for the name of a file that a Python pickle is kept in (.bin, .pt, .pth, .ckpt).
bool has_pickle_name(std::string_view path);

/// True when the bytes begin as a Python pickle does, bare or inside a zip archive.
bool looks_like_pickle(std::span<const std::byte> bytes);

/// True for the JSON text of a tokenizer, in the form of `tokenizers` or of Tekken. Looks at keys, builds
/// nothing.
bool holds_tokenizer(std::span<const std::byte> bytes);

/// What a file of this name is for. `path` is relative to the model root.
FileRole role_of(std::string_view path);

}  // namespace plimsoll::artifact
