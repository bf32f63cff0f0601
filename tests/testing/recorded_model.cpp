// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/recorded_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>

#include "tests/testing/golden.h"

namespace plimsoll::testing {
namespace {

/// How tensors of a kind are spread: middle + reach * [-1, 1); reaches are powers of two.
struct Spread {
  float middle = 0, reach = 0.25F;
};

Spread spread_of(std::string_view name, std::size_t dims) {
  const std::size_t dot = name.rfind('.');
  const std::string_view last = dot == name.npos ? name : name.substr(dot + 1);
  const std::string_view before = dot == name.npos ? "" : name.substr(0, dot);
  const std::string_view parent = before.substr(before.rfind('.') + 1);
  if (last == "weight" && (dims == 1 || parent.find("norm") != parent.npos)) return {1.0F, 0.25F};
  if (last == "A_log") return {1.0F, 1.0F};
  return {0.0F, name.find("conv") != name.npos ? 0.5F : 0.25F};
}

std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

/// "a.{0,1}.b": a.0.b, a.1.b.
std::vector<std::string> expanded(const std::string& pattern) {
  const std::size_t open = pattern.find('{');
  if (open == pattern.npos) return {pattern};
  const std::size_t close = pattern.find('}', open);
  std::vector<std::string> names;
  for (std::size_t at = open + 1; at < close;) {
    const std::size_t end = std::min(pattern.find(',', at), close);
    const std::string part = pattern.substr(at, end - at);
    const auto more = expanded(pattern.substr(0, open) + part + pattern.substr(close + 1));
    names.insert(names.end(), more.begin(), more.end());
    at = end + 1;
  }
  return names;
}

std::vector<std::uint8_t> bytes_of_base64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<std::uint8_t> bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char letter : text.substr(0, text.find('='))) {
    bits = bits << 6 | static_cast<std::uint32_t>(kDigits.find(letter));
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<std::uint8_t>(bits >> count & 0xFF));
  }
  return bytes;
}

std::vector<std::int32_t> ids_of(const Json& list) {
  std::vector<std::int32_t> ids;
  for (const Json& id : list.items()) ids.push_back(static_cast<std::int32_t>(*id.as_integer()));
  return ids;
}

std::vector<std::int64_t> shape_of(const Json& list) {
  std::vector<std::int64_t> shape;
  for (const Json& size : list.items()) shape.push_back(*size.as_integer());
  return shape;
}

std::string shown(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t size : shape) text += (text.empty() ? "" : ",") + std::to_string(size);
  return "[" + text + "]";
}

}  // namespace

std::vector<std::string> recorded_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(data_path("architectures")))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

RecordedModel read_recorded(const std::string& name) {
  RecordedModel model;
  const auto file = read_json_file(data_path("architectures/" + name + ".json"));
  EXPECT_TRUE(file) << name;
  if (!file) return model;
  model.name = name;
  model.config = dump((*file)["config"]);
  model.tensors = (*file)["tensors"];
  model.prompt = ids_of((*file)["prompt"]);
  model.greedy = ids_of((*file)["greedy"]);
  const auto step = static_cast<float>(*(*file)["step"].as_double());
  const auto bytes = bytes_of_base64(*(*file)["logits"].as_string());
  const std::size_t width = bytes.size() / 2 / model.prompt.size();
  for (std::size_t at = 0; at + 1 < bytes.size(); at += 2) {
    if (at / 2 % width == 0) model.logits.emplace_back();
    const auto steps = static_cast<std::int16_t>(bytes[at] | bytes[at + 1] << 8);
    model.logits.back().push_back(static_cast<float>(steps) * step);
    model.scale = std::max(model.scale, std::fabs(model.logits.back().back()));
  }
  return model;
}

std::vector<float> made_values(std::string_view name, const std::vector<std::int64_t>& shape) {
  std::uint64_t seed = 0xCBF29CE484222325U;
  for (const char letter : name) seed = (seed ^ static_cast<std::uint8_t>(letter)) * 0x100000001B3U;
  std::size_t count = 1;
  for (const std::int64_t size : shape) count *= static_cast<std::size_t>(size);
  const Spread spread = spread_of(name, shape.size());
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = mixed(seed + (i + 1) * 0x9E3779B97F4A7C15U) >> 40;
    const float unit = static_cast<float>(static_cast<std::int64_t>(bits) - (1 << 23)) / (1 << 23);
    values[i] = spread.middle + spread.reach * unit;  // the product is exact, so that fusing changes nothing
  }
  return values;
}

void put_model(const MadeFolder& folder, const RecordedModel& model, std::string_view broken) {
  std::string header, data;
  for (const Json& row : model.tensors.items())
    for (const std::string& name : expanded(*row.items()[0].as_string())) {
      const auto shape = shape_of(row.items()[1]);
      auto values = made_values(name, shape);
      if (name == broken) std::fill_n(values.begin(), shape.back(), 0.0F);
      const std::string offsets =
          "[" + std::to_string(data.size()) + "," + std::to_string(data.size() + values.size() * 4) + "]";
      header += (header.empty() ? "{\"" : ",\"") + name + R"(":{"dtype":"F32","shape":)" + shown(shape) +
                R"(,"data_offsets":)" + offsets + "}";
      for (const float value : values) data += le32(std::bit_cast<std::uint32_t>(value));
    }
  folder.put("config.json", model.config);
  folder.put("model.safetensors", safetensors_file(header + "}", data));
}

}  // namespace plimsoll::testing
