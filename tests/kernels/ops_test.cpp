// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "tests/kernels/every_isa.h"

namespace plimsoll::kernels {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

class Ops : public EveryIsa {};
INSTANTIATE_TEST_SUITE_P(Isa, Ops, ::testing::ValuesIn(available_isas()), isa_name);

const std::vector<std::int64_t> kSizes{0,  1,  2,  7,  8,   9,   15,  16,  17,  31,
                                       33, 63, 64, 65, 100, 127, 129, 576, 1536};

std::vector<std::uint16_t> rounded(const std::vector<float>& values) {
  std::vector<std::uint16_t> result(values.size());
  kernels_for(Isa::kScalar).to_bf16(values.data(), static_cast<std::int64_t>(values.size()), result.data());
  return result;
}

std::vector<float> widened(const std::vector<std::uint16_t>& values) {
  std::vector<float> result(values.size());
  kernels_for(Isa::kScalar)
      .to_float(DType::kBF16, reinterpret_cast<const std::byte*>(values.data()),
                static_cast<std::int64_t>(values.size()), result.data());
  return result;
}

double dot_of(const float* a, const float* b, std::int64_t n, double* magnitude) {
  double sum = 0;
  *magnitude = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    *magnitude += std::abs(static_cast<double>(a[i]) * static_cast<double>(b[i]));
  }
  return sum;
}

TEST_P(Ops, DotProductsAgreeWithDoubles) {
  for (const std::int64_t n : kSizes) {
    const auto a = random_floats(n + 1), b = random_floats(n + 1);
    double magnitude = 0;
    const double expected = dot_of(a.data() + 1, b.data() + 1, n, &magnitude);
    // Chains of at most 1536 / 8 roundings; see the matmul test.
    EXPECT_NEAR(kernels().dot_f32(a.data() + 1, b.data() + 1, n), expected, 1e-6 * magnitude) << n;
    const auto halves = rounded(b);
    const auto exact = widened(halves);
    const double of_halves = dot_of(a.data() + 1, exact.data() + 1, n, &magnitude);
    EXPECT_NEAR(kernels().dot_bf16(a.data() + 1, halves.data() + 1, n), of_halves, 1e-6 * magnitude) << n;
  }
}

TEST_P(Ops, AddScaledAgreesWithDoubles) {
  for (const std::int64_t n : kSizes) {
    const auto x = random_floats(n + 1), before = random_floats(n + 2);
    const auto halves = rounded(x);
    const auto exact = widened(halves);
    auto out = before, out_of_halves = before;
    kernels().add_scaled_f32(0.37f, x.data() + 1, n, out.data() + 1);
    kernels().add_scaled_bf16(0.37f, halves.data() + 1, n, out_of_halves.data() + 1);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const bool is_inside = i >= 1 && i < static_cast<std::size_t>(n) + 1;
      const double step = is_inside ? 0.37f * static_cast<double>(x[i]) : 0;
      const double step_of_halves = is_inside ? 0.37f * static_cast<double>(exact[i]) : 0;
      // One or two roundings of numbers below 8.
      EXPECT_NEAR(out[i], static_cast<double>(before[i]) + step, is_inside ? 1e-6 : 0) << n << " " << i;
      EXPECT_NEAR(out_of_halves[i], static_cast<double>(before[i]) + step_of_halves, is_inside ? 1e-6 : 0);
    }
  }
}

// What recur() is to give, in doubles; `row` goes along.
double recurred(const Recurrence& token, std::vector<double>& row) {
  double held = 0, out = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    row[i] *= static_cast<double>(token.decays ? token.decays[i] : token.decay);
    held += row[i] * static_cast<double>(token.key[i]);
  }
  const double change = token.is_delta
                            ? (static_cast<double>(token.value) - held) * static_cast<double>(token.beta)
                            : static_cast<double>(token.value);
  for (std::size_t i = 0; i < row.size(); ++i) {
    row[i] += change * static_cast<double>(token.key[i]);
    out += row[i] * static_cast<double>(token.query[i]);
  }
  return out;
}

TEST_P(Ops, RecurrencesAgreeWithDoubles) {
  for (const std::int64_t n : kSizes) {
    const auto query = random_floats(n + 1), row = random_floats(n + 1);
    auto key = random_floats(n + 1);
    for (float& value : key)
      value /= std::sqrt(static_cast<float>(n + 1));  // else delta nets grow without end
    std::vector<float> decays(static_cast<std::size_t>(n + 1));
    for (std::size_t i = 0; i < decays.size(); ++i) decays[i] = 1.0F / (1.0F + static_cast<float>(i % 7));
    for (const bool is_delta : {false, true})
      for (const bool by_column : {false, true}) {
        Recurrence token{
            key.data() + 1, query.data() + 1, by_column ? decays.data() + 1 : nullptr, 0.9F, 0.7F,
            0.3F,           is_delta};
        std::vector<float> held(row.begin() + 1, row.end());
        std::vector<double> exact(held.begin(), held.end());
        const auto magnitude = static_cast<double>(n + 1);
        for (int step = 0; step < 3; ++step) {
          // Sums of n products of numbers of about one, and what delta nets make of their error.
          EXPECT_NEAR(kernels().recur(token, n, held.data()), recurred(token, exact), 1e-4 * magnitude) << n;
          for (std::size_t i = 0; i < held.size(); ++i) ASSERT_NEAR(held[i], exact[i], 1e-5 * magnitude) << n;
        }
      }
  }
}

TEST_P(Ops, ScaledExponentialsAgreeWithTheLibrary) {
  for (const std::int64_t n : kSizes) {
    const auto x = random_floats(n);
    std::vector<float> out(static_cast<std::size_t>(n));
    kernels().exp_scaled(-1.7F, x.data(), n, out.data());
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double expected = std::exp(static_cast<double>(-1.7F * x[i]));
      EXPECT_NEAR(out[i], expected, 4e-7 * expected) << n;
    }
  }
}

TEST_P(Ops, TheLargestLeavesNanOut) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const std::int64_t n : kSizes) {
    auto x = random_floats(n);
    const auto agrees = [&] {
      float expected = -kInfinity;
      for (const float value : x) expected = value > expected ? value : expected;
      EXPECT_EQ(kernels().largest(x.data(), n), expected) << n;
    };
    agrees();
    for (std::size_t i = 0; i < x.size(); i += 3) x[i] = i % 2 == 0 ? kNan : -kInfinity;
    agrees();
    std::ranges::fill(x, kNan);
    EXPECT_EQ(kernels().largest(x.data(), n), -kInfinity) << n;
    if (n > 0) x.back() = kInfinity;
    agrees();
  }
}

TEST_P(Ops, RmsNormAgreesWithDoubles) {
  for (const std::int64_t n : kSizes) {
    auto x = random_floats(n + 1, 3.0f);
    const auto weight = random_floats(n + 1);
    std::vector<float> out(static_cast<std::size_t>(n + 1), -77.0f);
    kernels().rms_norm(x.data() + 1, weight.data() + 1, n, 1e-5f, out.data());
    double magnitude = 0;
    const double scale =
        1 / std::sqrt(dot_of(x.data() + 1, x.data() + 1, n, &magnitude) / static_cast<double>(n) + 1e-5f);
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      const double expected = static_cast<double>(x[i + 1]) * scale * static_cast<double>(weight[i + 1]);
      EXPECT_NEAR(out[i], expected, 1e-6 * std::abs(expected)) << n << " " << i;
    }
    EXPECT_EQ(out[static_cast<std::size_t>(n)], -77.0f);
    const auto apart = out;
    kernels().rms_norm(x.data() + 1, weight.data() + 1, n, 1e-5f, x.data() + 1);
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i)
      EXPECT_EQ(bits(x[i + 1]), bits(apart[i])) << "in place";
  }
}

TEST_P(Ops, SiluMulAgreesWithDoubles) {
  std::vector<float> gate;
  for (int i = -12'000; i <= 12'000; ++i) gate.push_back(static_cast<float>(i) * 0.01f);
  const auto n = static_cast<std::int64_t>(gate.size());
  const auto up = random_floats(n);
  std::vector<float> out(gate.size());
  kernels().silu_mul(gate.data(), up.data(), n, out.data());
  for (std::size_t i = 0; i < gate.size(); ++i) {
    const double g = static_cast<double>(gate[i]);
    const double expected = g / (1 + std::exp(-g)) * static_cast<double>(up[i]);
    // An exponential within 2 units in the last place and four roundings; subnormal results within one step.
    EXPECT_NEAR(out[i], expected, 4e-7 * std::abs(expected) + 3e-36) << gate[i];
  }
  for (const std::int64_t size : kSizes) {
    std::vector<float> in_place(gate.begin() + 11'500, gate.begin() + 11'501 + size);
    kernels().silu_mul(in_place.data(), up.data() + 11'500, size, in_place.data());
    for (std::size_t i = 0; i < static_cast<std::size_t>(size); ++i)
      EXPECT_EQ(bits(in_place[i]), bits(out[11'500 + i])) << "in place, wherever the element stands";
    EXPECT_EQ(in_place.back(), gate[static_cast<std::size_t>(11'500 + size)]);
  }
}

TEST_P(Ops, SiluMulKeepsNansAndLimits) {
  std::vector<float> gate{kNan, kInf, -1e30f, 1.0f, 1e30f, -200.0f, 0.0f, -0.0f, -kInf};
  const std::vector<float> up(gate.size(), 2.0f);
  kernels().silu_mul(gate.data(), up.data(), static_cast<std::int64_t>(gate.size()), gate.data());
  EXPECT_TRUE(std::isnan(gate[0]));
  EXPECT_EQ(gate[1], kInf);
  EXPECT_EQ(gate[2], 0.0f);
  EXPECT_EQ(gate[4], 2e30f);
  EXPECT_EQ(gate[5], 0.0f);
  EXPECT_EQ(gate[6], 0.0f);
  EXPECT_EQ(gate[7], 0.0f);
}

TEST_P(Ops, SoftmaxAgreesWithDoubles) {
  for (const std::int64_t n : kSizes) {
    auto scores = random_floats(n + 1, 8.0f);
    const auto before = scores;
    kernels().softmax(scores.data(), n);
    EXPECT_EQ(scores.back(), before.back()) << "nothing is written beyond the end";
    if (n == 0) continue;
    const double highest = static_cast<double>(*std::max_element(before.begin(), before.end() - 1));
    double sum = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i)
      sum += std::exp(static_cast<double>(before[i]) - highest);
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      const double shifted = static_cast<double>(before[i]) - highest;
      // The difference is rounded at up to 64 (2^-19 / 2), e^x turns that into a share of the result.
      const double expected = std::exp(shifted) / sum;
      EXPECT_NEAR(scores[i], expected, (5e-7 + 6e-8 * std::abs(shifted)) * expected + 1e-37) << n << " " << i;
    }
  }
}

TEST_P(Ops, SoftmaxTakesExtremes) {
  std::vector<float> masked(20, -kInf);
  masked[3] = 5.0f;
  masked[19] = 5.0f;
  kernels().softmax(masked.data(), 20);
  for (std::size_t i = 0; i < masked.size(); ++i) EXPECT_EQ(masked[i], i == 3 || i == 19 ? 0.5f : 0.0f) << i;

  std::vector<float> far{3e38f, -3e38f, 0.0f, 3e38f};
  kernels().softmax(far.data(), 4);
  EXPECT_EQ(far, (std::vector<float>{0.5f, 0.0f, 0.0f, 0.5f}));

  std::vector<float> same(37, -1e4f);
  kernels().softmax(same.data(), 37);
  for (const float value : same) EXPECT_NEAR(value, 1.0 / 37, 1e-8);

  for (const std::size_t at : {0u, 5u, 16u, 18u}) {
    std::vector<float> poisoned(19, 1.0f);
    poisoned[at] = kNan;
    kernels().softmax(poisoned.data(), 19);
    for (const float value : poisoned) EXPECT_TRUE(std::isnan(value)) << at;
  }
}

TEST_P(Ops, RopeAgreesWithDoubles) {
  for (const bool interleaved : {false, true})
    for (const int rotary_dim : {2, 10, 32, 64, 80}) {
      const int heads = 3, head_dim = rotary_dim + (rotary_dim == 64 ? 0 : 6);
      auto x = random_floats(heads * head_dim);
      const auto before = x;
      std::vector<float> cos, sin;
      for (int i = 0; i < rotary_dim / 2; ++i) {
        cos.push_back(static_cast<float>(std::cos(0.7 * i)));
        sin.push_back(static_cast<float>(std::sin(0.7 * i)));
      }
      kernels().rope(x.data(), heads, head_dim, rotary_dim, interleaved, cos.data(), sin.data());
      for (int head = 0; head < heads; ++head) {
        const auto at = [&](const std::vector<float>& v, int i) {
          return static_cast<double>(v[static_cast<std::size_t>(head * head_dim + i)]);
        };
        for (int i = 0; i < rotary_dim / 2; ++i) {
          const int a = interleaved ? 2 * i : i, b = interleaved ? 2 * i + 1 : i + rotary_dim / 2;
          const double c = static_cast<double>(cos[static_cast<std::size_t>(i)]);
          const double s = static_cast<double>(sin[static_cast<std::size_t>(i)]);
          // Three roundings of numbers below 8.
          EXPECT_NEAR(at(x, a), at(before, a) * c - at(before, b) * s, 1e-6);
          EXPECT_NEAR(at(x, b), at(before, b) * c + at(before, a) * s, 1e-6);
        }
        for (int i = rotary_dim; i < head_dim; ++i) EXPECT_EQ(at(x, i), at(before, i)) << "not rotated";
      }
    }
}

TEST(Selection, ListsScalarFirstAndKnowsEveryName) {
  const auto isas = available_isas();
  ASSERT_FALSE(isas.empty());
  EXPECT_EQ(isas.front(), Isa::kScalar);
  EXPECT_TRUE(std::is_sorted(isas.begin(), isas.end()));
  for (const Isa isa : isas) EXPECT_EQ(kernels_for(isa).isa, isa);
  EXPECT_EQ(to_string(Isa::kScalar), "scalar");
  EXPECT_EQ(to_string(Isa::kAvx2), "avx2");
  EXPECT_EQ(to_string(Isa::kAvx512), "avx512");
  const char* wanted = std::getenv("PLIMSOLL_ISA");
  Isa expected = isas.back();
  for (const Isa isa : isas)
    if (wanted && to_string(isa) == wanted) expected = isa;
  EXPECT_EQ(select().isa, expected);
}

TEST(Selection, TheFreeFunctionsAreTheSelectedOnes) {
  std::vector<float> a{1, 2, 3}, b = a;
  softmax(a.data(), 3);
  select().softmax(b.data(), 3);
  EXPECT_EQ(a, b);
  const float cos = 0.6f, sin = 0.8f;
  rope(a.data(), 1, 2, 2, false, &cos, &sin);
  select().rope(b.data(), 1, 2, 2, false, &cos, &sin);
  EXPECT_EQ(a, b);
}

}  // namespace
}  // namespace plimsoll::kernels
