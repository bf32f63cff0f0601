// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/symbol_classes.h"

#include <algorithm>
#include <bitset>
#include <unordered_map>

namespace plimsoll::text {
namespace {

constexpr std::size_t kMaxSets = 128;
constexpr std::size_t kMaxClasses = 255;

using Signature = std::bitset<kMaxSets>;  // the sets that hold a code point

struct Edge {
  char32_t at = 0;
  std::size_t set = 0;
};

// From `first` up to the next run, all code points are of one class.
struct Run {
  char32_t first = 0;
  std::uint8_t symbol = 0;
};

std::vector<Edge> edges_of(const std::vector<CodePointSet>& sets) {
  std::vector<Edge> edges;
  for (std::size_t i = 0; i < sets.size(); ++i)
    for (const CodePoints& range : sets[i].ranges()) {
      edges.push_back({range.first, i});
      edges.push_back({range.last + 1, i});
    }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.at < b.at; });
  return edges;
}

void fill_blocks(SymbolClasses& classes, const std::vector<Run>& runs) {
  constexpr std::uint16_t kNone = 0xFFFF;
  std::array<std::uint16_t, kMaxClasses + 1> uniform;  // the block all of whose members are of this class
  uniform.fill(kNone);
  std::size_t run = 0;
  for (std::size_t b = 0; b < classes.block_of.size(); ++b) {
    const auto first = static_cast<char32_t>(b * SymbolClasses::kBlock);
    const char32_t end = first + static_cast<char32_t>(SymbolClasses::kBlock);
    while (run + 1 < runs.size() && runs[run + 1].first <= first) ++run;
    const bool is_uniform = run + 1 == runs.size() || runs[run + 1].first >= end;
    std::uint16_t& known = uniform[runs[run].symbol];
    if (is_uniform && known != kNone) {
      classes.block_of[b] = known;
      continue;
    }
    classes.block_of[b] = static_cast<std::uint16_t>(classes.blocks.size());
    if (is_uniform) known = classes.block_of[b];
    auto& block = classes.blocks.emplace_back();
    for (char32_t c = first; c < end; ++c) {
      while (run + 1 < runs.size() && runs[run + 1].first <= c) ++run;
      block[c - first] = runs[run].symbol;
    }
  }
}

}  // namespace

std::optional<DividedSets> divide_into_classes(const std::vector<CodePointSet>& sets) {
  if (sets.size() > kMaxSets) return std::nullopt;
  std::unordered_map<Signature, std::uint8_t> known;
  std::vector<Run> runs;
  DividedSets out;
  out.members.resize(sets.size());
  Signature now;
  const auto start_run = [&](char32_t first) {
    const auto [found, is_new] = known.try_emplace(now, static_cast<std::uint8_t>(known.size()));
    if (is_new)
      for (std::size_t s = 0; s < sets.size(); ++s) out.members[s].push_back(now[s]);
    runs.push_back({first, found->second});
  };
  const std::vector<Edge> edges = edges_of(sets);
  if (edges.empty() || edges.front().at > 0) start_run(0);
  for (std::size_t i = 0; i < edges.size();) {
    const char32_t at = edges[i].at;
    for (; i < edges.size() && edges[i].at == at; ++i) now.flip(edges[i].set);
    if (at > kLastCodePoint) break;
    if (known.size() == kMaxClasses && !known.contains(now)) return std::nullopt;
    start_run(at);
  }
  out.classes.num_classes = known.size();
  fill_blocks(out.classes, runs);
  return out;
}

}  // namespace plimsoll::text
