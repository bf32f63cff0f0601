// SPDX-License-Identifier: Apache-2.0
// The rows of golden/configs/models_truth.tsv: published configs and what is known of them. Tests only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "tests/testing/golden.h"

namespace plimsoll::inspect {

/// One row by the names of its columns, up to the first bracket: "full_B_per_tok(2B)" is "full_B_per_tok".
struct PublishedRow {
  std::map<std::string, std::string> cells;

  const std::string& model() const { return cells.at("model"); }
  std::string config() const {
    std::string folder = model();
    if (const std::size_t slash = folder.find('/'); slash != std::string::npos)
      folder.replace(slash, 1, "__");
    return testing::golden_path("configs/" + folder + "/config.json");
  }
  /// Empty cells are not known.
  std::optional<std::int64_t> number(const std::string& column) const {
    const auto cell = cells.find(column);
    if (cell == cells.end() || cell->second.empty()) return std::nullopt;
    return std::stoll(cell->second);
  }
};

/// Rows of a table with a head line; lines that open with # are skipped. Empty where the set is absent.
inline std::vector<PublishedRow> published_rows(const std::string& table = "configs/models_truth.tsv") {
  std::ifstream file(testing::golden_path(table));
  std::vector<std::string> names;
  std::vector<PublishedRow> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::vector<std::string> cells;
    std::stringstream stream(line);
    for (std::string cell; std::getline(stream, cell, '\t');) cells.push_back(cell);
    if (names.empty()) {
      for (std::string& name : cells) names.push_back(name.substr(0, name.find('(')));
      continue;
    }
    PublishedRow row;
    for (std::size_t i = 0; i < names.size(); ++i) row.cells[names[i]] = i < cells.size() ? cells[i] : "";
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace plimsoll::inspect
