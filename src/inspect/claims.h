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
  bool is_own = false;         // its sentence speaks of "this model" or names it
  bool is_listed = false;      // one of several sizes, as of a family: "135M, 360M, and 1.7B parameters"
  bool is_aside = false;       // another model's row or column of a table, or an end of a range of sizes
};

/// Claims of prose and tables in their order. Sizes "without embeddings" are left out, sentences about a
/// teacher, an adapter or another model, code blocks and comments. `model_name` tells which sentences are
/// about this one.
std::vector<Claim> claims_in_text(std::string_view text, std::string_view model_name = {});

/// Claims of a name: "Qwen3-30B-A3B" has a size and active parameters; "8x7B" claims their product, "E4B"
/// nothing.
std::vector<Claim> claims_in_name(std::string_view name);

/// True when `actual` rounds up to the claim (half a unit of its last digit), is cut down to it (one unit,
/// but not more than 40 %), or lies within 5 % of it.
bool agrees(const Claim& claim, std::int64_t actual);

}  // namespace plimsoll::inspect
