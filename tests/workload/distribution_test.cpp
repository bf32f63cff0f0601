// SPDX-License-Identifier: Apache-2.0
#include "workload/distribution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/mapped_file.h"

namespace plimsoll::workload {
namespace {

constexpr Distribution::Bounds kLengths{1, 1'000'000, true};
constexpr Distribution::Bounds kDelays{0, 3600, false};

Distribution length(std::string_view word) {
  const auto made = Distribution::parse(word, kLengths, "--input-len");
  EXPECT_TRUE(made) << made.error().describe();
  return made ? *made : Distribution::whole(1, 1);
}

std::vector<double> draws(const Distribution& distribution, int n) {
  Random random(11);
  std::vector<double> values;
  for (int i = 0; i < n; ++i) values.push_back(distribution.draw(random));
  std::sort(values.begin(), values.end());
  return values;
}

std::string made_file(const std::string& name, std::string_view content) {
  const std::string path = (std::filesystem::path(::testing::TempDir()) / name).string();
  EXPECT_TRUE(write_file(path, content));
  return path;
}

TEST(Distribution, OneNumberIsAlwaysIt) {
  Random random(0);
  const Distribution fixed = length("512");
  EXPECT_TRUE(fixed.is_fixed());
  EXPECT_EQ(fixed.draw_count(random), 512);
  EXPECT_EQ(Distribution::whole(3, 3).draw_count(random), 3);
  EXPECT_DOUBLE_EQ(Distribution::parse("0.5", kDelays, "--turn-delay")->draw(random), 0.5);
}

TEST(Distribution, UniformReachesBothEndsEquallyOften) {
  std::map<double, int> counts;
  for (double value : draws(length("uniform:3,7"), 10'000)) ++counts[value];
  ASSERT_EQ(counts.size(), 5u);
  // 2,000 each; a binomial scatters by 40, the limit is five deviations.
  for (const auto& [value, count] : counts) EXPECT_NEAR(count, 2000, 200) << value;
  const auto delays = draws(*Distribution::parse("uniform:1,2", kDelays, "--turn-delay"), 1000);
  EXPECT_GE(delays.front(), 1);
  EXPECT_LE(delays.back(), 2);
  EXPECT_NE(delays[1], delays[2]);
}

TEST(Distribution, NormalAndLognormalStayInTheirBounds) {
  const auto normal = draws(length("normal:100,10,90,120"), 10'000);
  EXPECT_EQ(normal.front(), 90);
  EXPECT_EQ(normal.back(), 120);
  // Drawn again, not cut: the bounds hold no heap. A normal has 0.055 within half a unit around 90's side.
  EXPECT_LT(std::count(normal.begin(), normal.end(), 90), 600);
  const auto lognormal = draws(length("lognormal:200,0.5"), 10'000);
  EXPECT_NEAR(lognormal[5000], 200, 5);                   // the median; its error is 0.6 % of 200 times 1.25
  EXPECT_NEAR(lognormal[8413], 200 * std::exp(0.5), 12);  // one deviation above
  EXPECT_EQ(draws(length("normal:5,0"), 10).back(), 5);
  EXPECT_EQ(draws(length("normal:-900,1,1,9"), 10).back(), 1);  // cut after a thousand tries
}

TEST(Distribution, FilesAreDrawnFromAsTheyAre) {
  const std::string path = made_file("plimsoll_lengths.csv", "in,out\r\n10,1\r\n\"20\",2\n\n30,3\n");
  const LengthPairs together(length("csv:" + path + ":in"), length("csv:" + path + ":out"));
  Random random(5);
  std::map<std::int64_t, std::int64_t> pairs;
  for (int i = 0; i < 200; ++i) {
    const Lengths drawn = together.draw(random);
    pairs[drawn.input_tokens] = drawn.output_tokens;
    EXPECT_EQ(drawn.input_tokens, 10 * drawn.output_tokens);  // row by row
  }
  EXPECT_EQ(pairs.size(), 3u);
  EXPECT_EQ(length("csv:" + path).min(), 10);  // the first column, a header in words left out
  EXPECT_EQ(length("csv:" + path).max(), 30);
  std::filesystem::remove(path);
}

TEST(Distribution, RefusesWithTheFlagOrTheLine) {
  for (const char* word : {"", "x", "1,2", "uniform:5", "uniform:9,3", "uniform:0,5", "uniform:1,2000000",
                           "normal:5", "normal:5,-1", "lognormal:0,1", "normal:5,1,9,2", "0", "1.5", "nan",
                           "uniform:1,2,3", "poisson:3", "csv:", "1e99"}) {
    const auto refused = Distribution::parse(word, kLengths, "--input-len");
    ASSERT_FALSE(refused) << word;
    EXPECT_EQ(refused.error().code, ErrorCode::kUsage) << word;
    EXPECT_EQ(refused.error().where, "--input-len") << word;
  }
  EXPECT_FALSE(Distribution::parse("csv:/nowhere.csv", kLengths, "--input-len"));
  const std::string path = made_file("plimsoll_bad_lengths.csv", "in\n7\n0\n");
  const auto bad = Distribution::parse("csv:" + path + ":in", kLengths, "--input-len");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, ErrorCode::kMalformed);
  EXPECT_TRUE(bad.error().where.ends_with("line 3")) << bad.error().where;
  EXPECT_FALSE(Distribution::parse("csv:" + path + ":out", kLengths, "--input-len"));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace plimsoll::workload
