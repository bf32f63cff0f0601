// SPDX-License-Identifier: Apache-2.0
#include "facts/gpus.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <vector>

namespace plimsoll::facts {
namespace {

using Words = std::vector<std::string>;

/// Lower-case runs of letters and digits.
Words words_of(std::string_view text) {
  Words words(1);
  for (const char c : text) {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
      words.back() += c;
    else if (c >= 'A' && c <= 'Z')
      words.back() += static_cast<char>(c - 'A' + 'a');
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

/// Words of drivers and shops that tell no two rows apart.
bool is_noise(std::string_view word) {
  constexpr std::array<std::string_view, 22> kNoise{
      "nvidia", "amd",    "intel",      "apple",   "geforce",     "instinct", "radeon", "tesla",
      "habana", "hbm2",   "hbm2e",      "hbm3",    "hbm3e",       "gddr6",    "gpu",    "tensor",
      "core",   "server", "generation", "edition", "workstation", "quadro"};
  return is_one_of(word, kNoise);
}

/// "80gb" -> 80; nothing for other words.
std::optional<int> size_word(std::string_view word) {
  if (!word.ends_with("gb")) return std::nullopt;
  word.remove_suffix(2);
  int gigabytes = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), gigabytes);
  if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return gigabytes;
}

bool is_form_word(std::string_view word) {
  return word.starts_with("sxm") || word == "pcie" || word == "nvl";
}

/// May be left out of a name: rows stay distinct without them.
bool is_optional_word(std::string_view word) {
  constexpr std::array<std::string_view, 5> kOptional{"rtx", "dgx", "spark", "blackwell", "arc"};
  return size_word(word) || is_form_word(word) || is_one_of(word, kOptional);
}

/// Shops round in both units: 141 GB is GiB, 192 GB is 10^9.
bool size_agrees(const GpuFacts& gpu, int gigabytes) {
  constexpr double kTolerance = 0.03;
  if (!gpu.memory_mib) return true;
  const auto bytes = static_cast<double>(gpu.memory()->value);
  const auto near = [&](double unit) { return std::abs(bytes / unit - gigabytes) <= kTolerance * gigabytes; };
  return near(static_cast<double>(kGB)) || near(static_cast<double>(kGiB));
}

/// One row's name in words, ready to be looked for in a name without separators.
struct Pattern {
  const GpuFacts* gpu;
  Words words;

  /// Takes words off the front of `rest` until nothing is left; every word once, required ones all.
  bool consumes(std::string_view rest, std::uint32_t used = 0) const {
    if (rest.empty()) return required_are(used);
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (used & (1U << i)) continue;
      if (rest.starts_with(words[i]) && consumes(rest.substr(words[i].size()), used | (1U << i))) return true;
      if (words[i].starts_with("sxm") && rest.starts_with("sxm") &&
          consumes(rest.substr(3), used | (1U << i)))
        return true;
    }
    // A size that the row's own name does not carry.
    for (std::size_t length = 3; length <= std::min<std::size_t>(rest.size(), 5); ++length)
      if (const auto size = size_word(rest.substr(0, length)); size && size_agrees(*gpu, *size))
        if (consumes(rest.substr(length), used)) return true;
    return false;
  }

  bool required_are(std::uint32_t used) const {
    for (std::size_t i = 0; i < words.size(); ++i)
      if (!(used & (1U << i)) && !is_optional_word(words[i])) return false;
    return true;
  }
};

const GpuFacts* by_exact_name(std::string_view name) {
  for (const GpuFacts& gpu : all_gpus())
    if (gpu.name == name) return &gpu;
  return nullptr;
}

/// Names whose choice is settled although rows of several sizes carry them.
const GpuFacts* by_convention(std::string_view compact) {
  struct Convention {
    std::string_view compact, row;
  };
  // A GH200 of 120 or 480 GB is named by its CPU's memory: recorded starts of it have 96 GB on the GPU.
  constexpr std::array<Convention, 5> kConventions{{
      {"gh200120gb", "GH200-96GB"},
      {"gh200480gb", "GH200-96GB"},
      {"h100", "H100-SXM5-80GB"},
      {"dgxspark", "DGX-Spark-GB10"},
      {"spark", "DGX-Spark-GB10"},
  }};
  for (const auto& [text, row] : kConventions)
    if (text == compact) return by_exact_name(row);
  return nullptr;
}

std::string listed(const std::vector<const GpuFacts*>& gpus) {
  std::string text;
  for (const GpuFacts* gpu : gpus) text += (text.empty() ? "" : ", ") + std::string(gpu->name);
  return text;
}

tl::unexpected<Error> unknown(std::string_view name) {
  std::vector<const GpuFacts*> all;
  for (const GpuFacts& gpu : all_gpus()) all.push_back(&gpu);
  return fail(ErrorCode::kUsage, "no GPU is known by the name \"" + std::string(name.substr(0, 80)) + "\"",
              "--gpu", "give a size (24GB, 22.05GiB) or one of: " + listed(all));
}

}  // namespace

Result<const GpuFacts*> find_gpu(std::string_view name) {
  constexpr std::size_t kLongestName = 120;  // names of drivers stay below 60
  if (name.size() > kLongestName) return unknown(name);
  std::string compact;
  for (const std::string& word : words_of(name))
    if (!is_noise(word)) compact += word;
  if (compact.empty()) return unknown(name);
  if (const GpuFacts* gpu = by_convention(compact)) return gpu;

  std::vector<const GpuFacts*> matches;
  for (const GpuFacts& gpu : all_gpus()) {
    Pattern pattern{&gpu, {}};
    for (std::string& word : words_of(gpu.name))
      if (!is_noise(word)) pattern.words.push_back(std::move(word));
    if (pattern.consumes(compact)) matches.push_back(&gpu);
  }
  if (matches.empty()) return unknown(name);
  if (matches.size() == 1) return matches.front();

  const auto [least, most] = std::minmax_element(matches.begin(), matches.end(), [](auto* a, auto* b) {
    return a->memory_mib.value_or(0) < b->memory_mib.value_or(0);
  });
  if ((*least)->memory_mib == (*most)->memory_mib)
    for (const GpuFacts* gpu : matches)
      if (gpu->name.find("-SXM") != std::string_view::npos) return gpu;
  return fail(ErrorCode::kUsage, "\"" + std::string(name) + "\" may be any of " + listed(matches), "--gpu",
              "name one of them");
}

}  // namespace plimsoll::facts
