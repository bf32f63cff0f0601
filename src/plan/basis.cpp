// SPDX-License-Identifier: Apache-2.0
// How sure the numbers of a row are.
#include <algorithm>

#include "plan/rows.h"

namespace plimsoll::plan {

Basis basis_with_bar(std::string field, std::string kind, Bytes middle, Bytes half, std::string source) {
  const auto center = static_cast<double>(middle.value);
  const auto bar = static_cast<double>(half.value);
  return {std::move(field), std::move(kind), std::max(0.0, center - bar), center + bar, std::move(source)};
}

std::string part_field(const Row& row, std::string_view part) {
  const auto at =
      std::find_if(row.parts.begin(), row.parts.end(), [&](const Part& p) { return p.part == part; });
  return "memory/" + std::to_string(at - row.parts.begin()) + "/bytes";
}

void add_weights_basis(Row& row, std::int64_t gpus) {
  if (row.weights_basis.empty()) return;
  const Bytes bar(row.weights_bar.value / gpus);
  for (const std::string& field : {std::string("weights_bytes_per_gpu"), part_field(row, "weights"),
                                   std::string("ranks/0/weights_bytes")}) {
    row.basis.push_back(
        basis_with_bar(field, row.weights_basis, row.weights, bar, "docs/formulas/weights.md"));
    if (row.weights_are_least) row.basis.back().low = static_cast<double>(row.weights.value);
  }
}

void add_pool_basis(Row& row, const std::string& source) {
  for (const std::string& field : {std::string("kv_cache_bytes_per_gpu"), part_field(row, "kv_cache")})
    row.basis.push_back(basis_with_bar(field, "assumed", row.kv_cache, row.error_bar, source));
  // What the pool holds grows in proportion to it.
  const auto pool = static_cast<double>(row.kv_cache.value);
  const double share = pool > 0 ? static_cast<double>(row.error_bar.value) / pool : 0;
  const auto add = [&](const char* field, double middle) {
    Basis basis{field, "assumed", {}, {}, source};
    if (pool > 0) {
      basis.low = std::max(0.0, middle * (1 - share));
      basis.high = middle * (1 + share);
    }
    row.basis.push_back(std::move(basis));
  };
  add("num_blocks", static_cast<double>(row.num_blocks.value));
  add("kv_tokens", static_cast<double>(row.kv_tokens.value));
  add("max_concurrency", row.max_concurrency);
  row.basis.push_back({"error_bar_bytes", "assumed", {}, {}, source});
}

}  // namespace plimsoll::plan
