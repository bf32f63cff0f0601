// SPDX-License-Identifier: Apache-2.0
#include "artifact/shard_name.h"

#include <fmt/format.h>

#include <charconv>

namespace plimsoll::artifact {
namespace {

std::optional<int> number_of(std::string_view text) {
  int value = 0;
  if (text.empty() || text.size() > 6) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string ShardName::of_number(int other) const {
  return fmt::format("{}-{:0{}}-of-{:0{}}{}", prefix, other, digits, count, digits, extension);
}

std::optional<ShardName> shard_name(std::string_view name) {
  const std::size_t of = name.rfind("-of-");
  if (of == std::string_view::npos || of == 0) return std::nullopt;
  const std::size_t dot = name.find('.', of);  // a variant may stand before the ending: .fp16.safetensors
  if (dot == std::string_view::npos) return std::nullopt;
  const std::size_t dash = name.rfind('-', of - 1);
  if (dash == std::string_view::npos) return std::nullopt;
  const auto number = number_of(name.substr(dash + 1, of - dash - 1));
  const auto count = number_of(name.substr(of + 4, dot - of - 4));
  if (!number || !count || *number < 1 || *count < 1 || *number > *count || *count > 100'000)
    return std::nullopt;
  return ShardName{std::string(name.substr(0, dash)), std::string(name.substr(dot)),
                   static_cast<int>(of - dash - 1), *number, *count};
}

}  // namespace plimsoll::artifact
