// SPDX-License-Identifier: Apache-2.0
#include "inspect/tensor_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace plimsoll::inspect {
namespace {

constexpr std::int64_t kEndsShown = 8;
constexpr std::size_t kStepBytes = std::size_t{16} << 20;  // looked at before its pages are given back
constexpr std::int64_t kBlock = 4096;                      // values that are averaged at once

template <class T>
T load(std::span<const std::byte> data, std::int64_t index) {
  T value;
  std::memcpy(&value, data.data() + static_cast<std::size_t>(index) * sizeof(T), sizeof(T));
  return value;
}

double half_to_double(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1F, mantissa = bits & 0x3FF;
  constexpr int kRebias = 127 - 15;
  if (exponent != 0 && exponent != 31)  // most are, and a float says them with the same digits
    return static_cast<double>(std::bit_cast<float>((bits & 0x8000u) << 16 |
                                                    static_cast<std::uint32_t>(exponent + kRebias) << 23 |
                                                    static_cast<std::uint32_t>(mantissa) << 13));
  const double sign = bits & 0x8000 ? -1.0 : 1.0;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return mantissa ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
}

// Eight-bit floats: `bias` and mantissa bits as the OCP page names them; E4M3 has no infinity.
double eighth_to_double(std::uint8_t bits, int mantissa_bits, int bias) {
  const int mantissa_mask = (1 << mantissa_bits) - 1;
  const int exponent = (bits & 0x7F) >> mantissa_bits, mantissa = bits & mantissa_mask;
  const double sign = bits & 0x80 ? -1.0 : 1.0;
  const bool is_e4m3 = mantissa_bits == 3;
  if (is_e4m3 ? (bits & 0x7F) == 0x7F : exponent == 31 && mantissa)
    return std::numeric_limits<double>::quiet_NaN();
  if (!is_e4m3 && exponent == 31) return sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

// Reads `count` elements from the `first` on.
using Load = void (*)(std::span<const std::byte> data, std::int64_t first, std::int64_t count,
                      double* values);

template <auto one>
void load_all(std::span<const std::byte> data, std::int64_t first, std::int64_t count, double* values) {
  for (std::int64_t i = 0; i < count; ++i) values[i] = one(data, first + i);
}

template <class T>
double load_plain(std::span<const std::byte> data, std::int64_t index) {
  return static_cast<double>(load<T>(data, index));
}

double load_half(std::span<const std::byte> data, std::int64_t index) {
  return half_to_double(load<std::uint16_t>(data, index));
}

double load_brain(std::span<const std::byte> data, std::int64_t index) {
  return static_cast<double>(
      std::bit_cast<float>(static_cast<std::uint32_t>(load<std::uint16_t>(data, index)) << 16));
}

// The value of each byte: eighth_to_double is too slow to be asked for every element.
template <int mantissa_bits, int bias>
double load_eighth(std::span<const std::byte> data, std::int64_t index) {
  static const std::array<double, 256> kValues = [] {
    std::array<double, 256> values{};
    for (int bits = 0; bits < 256; ++bits)
      values[static_cast<std::size_t>(bits)] =
          eighth_to_double(static_cast<std::uint8_t>(bits), mantissa_bits, bias);
    return values;
  }();
  return kValues[load<std::uint8_t>(data, index)];
}

// How to read elements; null for types that are stored in blocks or packed.
Load loader_of(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return load_all<load_plain<double>>;
    case DType::kF32:
      return load_all<load_plain<float>>;
    case DType::kF16:
      return load_all<load_half>;
    case DType::kBF16:
      return load_all<load_brain>;
    case DType::kI64:
      return load_all<load_plain<std::int64_t>>;
    case DType::kI32:
      return load_all<load_plain<std::int32_t>>;
    case DType::kI16:
      return load_all<load_plain<std::int16_t>>;
    case DType::kI8:
      return load_all<load_plain<std::int8_t>>;
    case DType::kU64:
      return load_all<load_plain<std::uint64_t>>;
    case DType::kU32:
      return load_all<load_plain<std::uint32_t>>;
    case DType::kU16:
      return load_all<load_plain<std::uint16_t>>;
    case DType::kU8:
    case DType::kBool:
      return load_all<load_plain<std::uint8_t>>;
    case DType::kF8E4M3:
      return load_all<load_eighth<3, 7>>;
    case DType::kF8E5M2:
      return load_all<load_eighth<2, 15>>;
    default:
      return nullptr;
  }
}

template <class T>
Json show_integer(std::span<const std::byte> data, std::int64_t index) {
  return load<T>(data, index);
}

template <class T>
bool is_less(std::span<const std::byte> data, std::int64_t a, std::int64_t b) {
  return load<T>(data, a) < load<T>(data, b);
}

// Integers are shown as they are stored. Those of 64 bits are compared so as well: as doubles many are equal.
struct Integers {
  Json (*show)(std::span<const std::byte>, std::int64_t) = nullptr;
  bool (*is_less)(std::span<const std::byte>, std::int64_t, std::int64_t) = nullptr;
};
Integers integers_of(DType dtype) {
  switch (dtype) {
    case DType::kI64:
      return {show_integer<std::int64_t>, is_less<std::int64_t>};
    case DType::kU64:
      return {show_integer<std::uint64_t>, is_less<std::uint64_t>};
    case DType::kI32:
      return {show_integer<std::int32_t>, nullptr};
    case DType::kI16:
      return {show_integer<std::int16_t>, nullptr};
    case DType::kI8:
      return {show_integer<std::int8_t>, nullptr};
    case DType::kU32:
      return {show_integer<std::uint32_t>, nullptr};
    case DType::kU16:
      return {show_integer<std::uint16_t>, nullptr};
    case DType::kU8:
    case DType::kBool:
      return {show_integer<std::uint8_t>, nullptr};
    default:
      return {};
  }
}

Json shape_json(const artifact::Shape& shape) {
  Json list = Json::array();
  for (const std::int64_t dimension : shape) list.push_back(dimension);
  return list;
}

Json describe(const artifact::Artifact& artifact, const artifact::Tensor& tensor) {
  return Json::object({{"name", tensor.name},
                       {"dtype", name(tensor.dtype)},
                       {"shape", shape_json(tensor.shape)},
                       {"file", artifact.files()[static_cast<std::size_t>(tensor.file)].path},
                       {"offset_bytes", tensor.offset_bytes},
                       {"bytes", tensor.bytes}});
}

// Infinities and NaN have no JSON: they are null there, and counted beside.
std::string values_text(const Json& values) {
  std::string text;
  for (const Json& value : values.items()) {
    const auto number = value.as_double();
    text +=
        fmt::format("{}{}", text.empty() ? "" : ", ", number ? fmt::format("{:.5g}", *number) : "not finite");
  }
  return text;
}

struct Statistics {
  std::int64_t finite = 0, nan = 0, infinite = 0;
  std::int64_t least_at = 0, most_at = 0;  // places of the finite ends
  double mean = 0, deviation = 0;
};

// Means and squared distances by Chan's rule: those of a block of values, joined to all before. `Wide` is
// wider than double where the values have 64 bits: distances of finite ones can be twice the largest double,
// and their squares are far above it.
template <class Wide>
class Moments {
 public:
  void add(std::span<const double> values) {
    if (values.empty()) return;
    const auto count = static_cast<Wide>(values.size());
    const Wide mean = sum_of(values, [](Wide value) { return value; }) / count;
    const Wide squares = sum_of(values, [mean](Wide value) { return (value - mean) * (value - mean); });
    const Wide distance = mean - mean_, all = count_ + count;
    mean_ += distance * (count / all);
    squares_ += squares + distance * distance * (count_ * (count / all));
    count_ = all;
  }
  double mean() const { return static_cast<double>(mean_); }
  double deviation() const { return count_ > 0 ? static_cast<double>(std::sqrt(squares_ / count_)) : 0; }

 private:
  // Four sums side by side: one alone waits for each addition before the next.
  template <class Term>
  static Wide sum_of(std::span<const double> values, Term term) {
    std::array<Wide, 4> sums{};
    std::size_t i = 0;
    for (; i + 4 <= values.size(); i += 4)
      for (std::size_t lane = 0; lane < 4; ++lane) sums[lane] += term(static_cast<Wide>(values[i + lane]));
    for (; i < values.size(); ++i) sums[0] += term(static_cast<Wide>(values[i]));
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }

  Wide count_ = 0, mean_ = 0, squares_ = 0;
};

template <class Wide>
Statistics read_values(const artifact::Artifact& artifact, std::span<const std::byte> data, std::size_t width,
                       Load load_some, const Integers& integers) {
  Statistics result;
  Moments<Wide> moments;
  double least = 0, most = 0;
  const auto is_less = [&](std::int64_t a, std::int64_t b) {
    return integers.is_less && integers.is_less(data, a, b);
  };
  const auto count = static_cast<std::int64_t>(data.size() / width);
  const auto step = static_cast<std::int64_t>(kStepBytes / width);
  static_assert(kStepBytes % (kBlock * sizeof(double)) == 0, "steps end where blocks end");
  std::vector<double> values(static_cast<std::size_t>(kBlock));
  for (std::int64_t first = 0; first < count; first += kBlock) {
    if (first % step == 0 && first > 0)  // a tensor can be larger than the memory
      artifact.release(data.subspan(static_cast<std::size_t>(first - step) * width, kStepBytes));
    const std::int64_t in_block = std::min(kBlock, count - first);
    load_some(data, first, in_block, values.data());
    std::size_t num_finite = 0;
    for (std::int64_t i = first; i < first + in_block; ++i) {
      const double value = values[static_cast<std::size_t>(i - first)];
      if (!std::isfinite(value)) {
        ++(std::isnan(value) ? result.nan : result.infinite);
        continue;
      }
      values[num_finite++] = value;  // the finite ones move to the front
      const bool is_first = result.finite + static_cast<std::int64_t>(num_finite) == 1;
      if (is_first || value < least || (value == least && is_less(i, result.least_at))) {
        least = value;
        result.least_at = i;
      }
      if (is_first || value > most || (value == most && is_less(result.most_at, i))) {
        most = value;
        result.most_at = i;
      }
    }
    result.finite += static_cast<std::int64_t>(num_finite);
    moments.add({values.data(), num_finite});
  }
  result.mean = moments.mean();
  result.deviation = moments.deviation();
  return result;
}

}  // namespace

Json tensor_list(const artifact::Artifact& artifact) {
  Json list = Json::array();
  for (const auto& tensor : artifact.tensors()) list.push_back(describe(artifact, tensor));
  return list;
}

Result<Json> tensor_statistics(const artifact::Artifact& artifact, const std::string& name) {
  const artifact::Tensor* tensor = artifact.find(name);
  if (!tensor)
    return fail(ErrorCode::kUsage, fmt::format("the model has no tensor \"{}\"", name), "--tensor",
                "list them with --tensors");
  const Load load = loader_of(tensor->dtype);
  if (!load)
    return fail(
        ErrorCode::kUnsupported,
        fmt::format("values of {} are packed and not shown one by one", plimsoll::name(tensor->dtype)), name);
  PLIMSOLL_TRY(const auto data, artifact.data(*tensor));
  const auto width = static_cast<std::size_t>(info(tensor->dtype).block_bytes);
  const auto count = static_cast<std::int64_t>(data.size() / width);
  const Integers integers = integers_of(tensor->dtype);
  const auto shown = [&](std::int64_t i) {
    if (integers.show) return integers.show(data, i);
    double value = 0;
    load(data, i, 1, &value);
    return Json(value);
  };
  const Statistics statistics = width == sizeof(double)
                                    ? read_values<long double>(artifact, data, width, load, integers)
                                    : read_values<double>(artifact, data, width, load, integers);
  Json first = Json::array(), last = Json::array();
  for (std::int64_t i = 0; i < std::min(count, kEndsShown); ++i) first.push_back(shown(i));
  for (std::int64_t i = std::max<std::int64_t>(0, count - kEndsShown); i < count; ++i)
    last.push_back(shown(i));
  const bool is_known = statistics.finite > 0;
  Json result = describe(artifact, *tensor);
  result.set("min", is_known ? shown(statistics.least_at) : Json());
  result.set("max", is_known ? shown(statistics.most_at) : Json());
  result.set("mean", is_known ? Json(statistics.mean) : Json());
  result.set("std", is_known ? Json(statistics.deviation) : Json());
  result.set("num_nan", statistics.nan);
  result.set("num_inf", statistics.infinite);
  result.set("first", std::move(first));
  result.set("last", std::move(last));
  return result;
}

std::string tensor_text(const Json& tensor) {
  std::string page = fmt::format("{}\n", *tensor["name"].as_string());
  const auto add = [&](std::string_view label, const std::string& value) {
    page += fmt::format("  {:<20}{}\n", label, value);
  };
  add("stored as", fmt::format("{} {}", *tensor["dtype"].as_string(), dump(tensor["shape"])));
  for (const char* key : {"min", "max", "mean", "std"}) {
    const auto value = tensor[key].as_double();
    add(key, value ? fmt::format("{:.5g}", *value) : "not known");
  }
  add("NaN, infinite", fmt::format("{}, {}", dump(tensor["num_nan"]), dump(tensor["num_inf"])));
  add("first", values_text(tensor["first"]));
  add("last", values_text(tensor["last"]));
  return page;
}

}  // namespace plimsoll::inspect
