// SPDX-License-Identifier: Apache-2.0
// Where does a text stop being JSON? The parser of base tells that a document is broken, this tells where, so
// that a person can find the comma. Pure; never recursive.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace plimsoll::artifact {

struct TextPlace {
  std::size_t offset = 0;  // byte, from 0
  std::size_t line = 1;
  std::size_t column = 1;  // in bytes, from 1
};

/// Line and column of a byte of `text`.
TextPlace place_in(std::string_view text, std::size_t offset);

/// The first place at which `text` cannot be the beginning of a JSON document; its end when it is cut off;
/// nothing when its structure is sound.
/// More than 1,000 levels are a fault: no reader takes them.
std::optional<TextPlace> json_fault(std::string_view text);

}  // namespace plimsoll::artifact
