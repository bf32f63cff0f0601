// SPDX-License-Identifier: Apache-2.0
// What does a model card say? README.md as its front matter (the few keys that are used here; a small part of
// YAML, see docs/formats/model_card.md) and its text. Judges nothing: the checks do. A value that owns its
// text; safe from any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "artifact/artifact.h"

namespace plimsoll::inspect {

struct ModelCard {
  /// Keys of the front matter in order; a key whose value is a list stands once per item.
  std::vector<std::pair<std::string, std::string>> fields;
  std::string text;  // what follows the front matter; at most 1 MiB of it

  /// The first value of a key, or nothing.
  std::optional<std::string> field(std::string_view key) const;
  /// All values of a key: a list's items, or what a key that stands twice was given.
  std::vector<std::string> values(std::string_view key) const;
  /// True when any key begins with `prefix` ("extra_gated_").
  bool has_prefix(std::string_view prefix) const;
};

/// Reads a card's text. Never fails: what is no front matter is text.
ModelCard parse_model_card(std::string_view readme);

/// The artifact's README.md; nothing when it has none.
std::optional<ModelCard> read_model_card(const artifact::Artifact& artifact);

}  // namespace plimsoll::inspect
