// SPDX-License-Identifier: Apache-2.0
// Which sizes do names and prose claim? Finds "180B parameters", "6B active", "A3B", "128K context" in a
// model's card, name or folder. Says nothing about their truth. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::inspect {

struct Claim {
  enum class Kind { kSize, kTotal, kActive, kContext };  // kSize: a number of parameters of either kind
  Kind kind = Kind::kSize;
  std::int64_t value = 0;      // parameters or tokens
  std::int64_t precision = 0;  // one unit of the last digit that is written: 100,000,000 for "7.6B"
  std::string text;            // as written
};

/// Claims of prose in their order. Sizes "without embeddings" are left out.
std::vector<Claim> claims_in_text(std::string_view text);

/// Claims of a name: "Qwen3-30B-A3B" has a size and active parameters; "8x7B" claims their product, "E4B"
/// nothing.
std::vector<Claim> claims_in_name(std::string_view name);

/// True when `actual` rounds or truncates to the claim, or lies within 5 % of it.
bool agrees(const Claim& claim, std::int64_t actual);

}  // namespace plimsoll::inspect
