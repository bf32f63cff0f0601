// SPDX-License-Identifier: Apache-2.0
// Which published models are known without a network, and what do their configs say?
// Config facts only (values that decide memory and structure), never copied files; each entry with its
// source. Constants; any thread may call.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/json.h"

namespace plimsoll::facts {

struct CatalogueEntry {
  std::string_view id;       // org/name as the hub spells it
  std::string_view title;    // "Llama 3.1 8B"; empty: the id says it
  std::string_view config;   // the config's values as JSON text; model::read_spec reads them
  std::string_view license;  // the hub's license id; empty: not known
  std::string_view source;
  std::int64_t hub_parameters = 0;  // total that the hub shows for its safetensors; 0: not known

  /// The config as a tree, as if read from config.json.
  Json config_json() const;
};

/// Where the entries' `hub_parameters` were read.
inline constexpr std::string_view kHubParametersSource = "hub totals listed by llmfit 1.1.17";

/// All entries, each id once.
std::span<const CatalogueEntry> catalogue();
/// Those of the generated table (tools/make_catalogue.py); `catalogue` adds the ones written by hand.
std::span<const CatalogueEntry> catalogue_table();

/// The entry of `org/name`; case does not count; `@revision` behind it is ignored. Null when not known.
const CatalogueEntry* find_catalogue(std::string_view id);

/// The config of `org/name[@revision]`, as artifact::open asks for it when no hub answers.
std::optional<Json> catalogue_config(std::string_view id);

}  // namespace plimsoll::facts
