// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "bench/bench.h"

namespace plimsoll::bench {
namespace {

template <class Enum, std::size_t N>
using Names = std::array<std::pair<Enum, std::string_view>, N>;

constexpr Names<Dataset, 7> kDatasets = {{{Dataset::kRandom, "random"},
                                          {Dataset::kCustom, "custom"},
                                          {Dataset::kShareGpt, "sharegpt"},
                                          {Dataset::kTrace, "trace"},
                                          {Dataset::kTimedTrace, "timed_trace"},
                                          {Dataset::kBurstGpt, "burstgpt"},
                                          {Dataset::kPrefixRepetition, "prefix_repetition"}}};
constexpr Names<ErrorKind, 7> kErrorKinds = {{{ErrorKind::kNone, "none"},
                                              {ErrorKind::kHttpStatus, "http_status"},
                                              {ErrorKind::kConnect, "connect"},
                                              {ErrorKind::kTimeout, "timeout"},
                                              {ErrorKind::kEarlyClose, "early_close"},
                                              {ErrorKind::kBadStream, "bad_stream"},
                                              {ErrorKind::kErrorEvent, "error_event"}}};
constexpr Names<CountSource, 3> kCountSources = {{{CountSource::kUsage, "usage"},
                                                  {CountSource::kTokenizer, "tokenizer"},
                                                  {CountSource::kChunks, "chunks"}}};

template <class Enum, std::size_t N>
std::string_view name_of(const Names<Enum, N>& names, Enum value) {
  for (const auto& [known, name] : names)
    if (known == value) return name;
  return {};
}

template <class Enum, std::size_t N>
std::optional<Enum> value_of(const Names<Enum, N>& names, std::string_view text) {
  for (const auto& [known, name] : names)
    if (name == text) return known;
  return std::nullopt;
}

}  // namespace

std::string_view to_string(Dataset dataset) {
  return name_of(kDatasets, dataset);
}
std::optional<Dataset> dataset_from(std::string_view name) {
  return value_of(kDatasets, name);
}
std::string_view to_string(ErrorKind kind) {
  return name_of(kErrorKinds, kind);
}
std::string_view to_string(CountSource source) {
  return name_of(kCountSources, source);
}

}  // namespace plimsoll::bench
