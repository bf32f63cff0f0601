// SPDX-License-Identifier: Apache-2.0
#include "report/chart.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <regex>

namespace plimsoll::report {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

/// Every tag is closed by its own name, attributes are quoted, no bare & or < is left.
void expect_well_formed(const std::string& markup) {
  static const std::regex kTag(R"(<(/?)([a-z]+)((?:\s[a-zA-Z-]+(?::[a-z]+)?="[^"<]*")*)(/?)>)");
  static const std::regex kBare(R"(&(?!amp;|lt;|gt;|quot;|#39;)|<)");
  std::vector<std::string> open;
  std::string between;
  auto from = markup.cbegin();
  for (std::sregex_iterator i(markup.begin(), markup.end(), kTag), end; i != end; ++i) {
    between.append(from, (*i)[0].first);
    from = (*i)[0].second;
    if ((*i)[1].length() > 0) {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.back(), (*i)[2]);
      open.pop_back();
    } else if ((*i)[4].length() == 0) {
      open.push_back((*i)[2]);
    }
  }
  between.append(from, markup.cend());
  EXPECT_TRUE(open.empty());
  EXPECT_FALSE(std::regex_search(between, kBare)) << between.substr(0, 300);
  for (const char* word : {"nan", "inf\"", "inf ", "e+", "E+"})
    EXPECT_EQ(markup.find(word), markup.npos) << word;
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}

Chart simple() {
  return {.title = "A", .x_label = "x", .y_label = "y", .series = {{"s", {{0, 0, {}}, {10, 5, {}}}}}};
}

TEST(Chart, PutsValuesWhereTheyBelong) {
  const std::string svg = to_svg(simple());
  expect_well_formed(svg);
  // The plot reaches from 56 to 466 and from 240 up to 10.
  EXPECT_NE(svg.find("<path class=\"l0\" d=\"M56 240L466 10\"/>"), svg.npos) << svg;
  for (const char* tick : {">0<", ">2<", ">4<", ">6<", ">8<", ">10<", ">1<", ">5<"})
    EXPECT_NE(svg.find(tick), svg.npos) << tick;
  EXPECT_EQ(svg.find("legend"), svg.npos);  // one series needs none
}

TEST(Chart, HoldsAValueUntilTheNextOfASteppedOne) {
  Chart chart = simple();
  chart.is_step = true;
  EXPECT_NE(to_svg(chart).find("d=\"M56 240H466V10\""), std::string::npos);
}

TEST(Chart, ALogAxisHasDecadesAndNoPointAtZero) {
  Chart chart = simple();
  chart.has_log_x = true;
  chart.has_dots = true;
  chart.series[0].points = {{0, 1, {}}, {-1, 1, {}}, {1, 1, {}}, {10, 2, {}}, {100, 3, "here"}};
  const std::string svg = to_svg(chart);
  expect_well_formed(svg);
  EXPECT_EQ(occurrences(svg, "<circle"), 3u);
  EXPECT_NE(svg.find("cx=\"56\""), svg.npos);
  EXPECT_NE(svg.find("cx=\"261\""), svg.npos);  // 10 is halfway from 1 to 100
  EXPECT_NE(svg.find("<title>here</title>"), svg.npos);
  EXPECT_EQ(round_ticks(1, 100, 5, true), (std::vector<double>{1, 2, 5, 10, 20, 50, 100}));
}

TEST(Chart, WritesNothingThatIsNoNumber) {
  Chart chart = simple();
  chart.has_dots = true;
  chart.series[0].points = {{kNan, 1, {}},      {1, kNan, {}},     {kInf, 1, {}}, {1, -kInf, {}},
                            {1.7e308, -1, {}},  {1, -1.7e308, {}}, {1, 1, {}},    {2, 4e-320, {}},
                            {1e299, 1e299, {}}, {-1e299, -1, {}}};
  const std::string svg = to_svg(chart);
  EXPECT_EQ(occurrences(svg, "<circle"), 4u);
  EXPECT_EQ(svg.find("nan"), svg.npos);
  EXPECT_EQ(svg.find("inf"), svg.npos);
  chart.series[0].points = {{kNan, kNan, {}}};
  EXPECT_NE(to_svg(chart).find("No data."), std::string::npos);
  EXPECT_NE(to_svg(Chart{}).find("No data."), std::string::npos);
}

TEST(Chart, DrawsAnyRange) {
  for (const double low : {0.0, 5.0, -3.0, 1e-9, 1e12})
    for (const double span : {0.0, 1e-12, 1.0, 1e9}) {
      Chart chart = simple();
      chart.starts_at_zero = false;
      chart.series[0].points = {{low, low, {}}, {low + span, low + span, {}}};
      const std::string svg = to_svg(chart);
      EXPECT_EQ(svg.find("nan"), svg.npos) << low << " " << span;
      EXPECT_GE(occurrences(svg, "class=\"grid\""), 4u) << low << " " << span;
      EXPECT_LE(occurrences(svg, "class=\"grid\""), 40u) << low << " " << span;
    }
}

TEST(Chart, TextIsEscaped) {
  Chart chart = simple();
  chart.title = "<script>alert(1)</script> & \"q\" 'a' \x01\xff";
  chart.series.push_back({"</li><b>", {{1, 1, {}}}});
  chart.x_label = "a<b";
  const std::string svg = to_svg(chart);
  expect_well_formed(svg);
  EXPECT_EQ(svg.find("<script"), svg.npos);
  EXPECT_NE(svg.find("&lt;/li&gt;&lt;b&gt;"), svg.npos);
  EXPECT_EQ(escaped_markup("a\x01\xff\x7f\tb"), "a\xEF\xBF\xBD\xEF\xBF\xBD\x7f\tb");
}

TEST(Chart, IsBoundedAndKeepsExtremes) {
  std::vector<Point> many;
  for (int i = 0; i < 200'000; ++i) many.push_back({double(i), std::sin(i * 0.1), {}});
  many[77'777].y = 50;
  many[123'456].y = -50;
  const auto few = thinned(many, 2000);
  EXPECT_LE(few.size(), 2000u);
  EXPECT_GT(few.size(), 1000u);
  const auto y_of = [](const Point& p) { return p.y; };
  EXPECT_EQ(std::ranges::max(few, {}, y_of).x, 77'777);
  EXPECT_EQ(std::ranges::min(few, {}, y_of).x, 123'456);
  EXPECT_EQ(few.front().x, 0);
  EXPECT_EQ(few.back().x, 199'999);
  EXPECT_TRUE(std::ranges::is_sorted(few, {}, [](const Point& p) { return p.x; }));
  Chart chart = simple();
  chart.series = {{"a", many}, {"b", many}};
  EXPECT_LT(to_svg(chart).size(), 60'000u);
}

TEST(Timeline, HasARowForEachRequestAndAtMost400) {
  Timeline timeline{"T", "s", {{"queued", 7}, {"decoding", 1}}, {}};
  timeline.rows = {{{0, 1, 0}, {1, 4, 1}}, {{2, 3, 1}, {kNan, 3, 1}, {3, 2, 1}, {0, 1, 7}}, {}};
  const std::string svg = to_svg(timeline);
  expect_well_formed(svg);
  EXPECT_EQ(occurrences(svg, "<rect"), 3u);
  EXPECT_NE(svg.find("<rect class=\"f1\" x=\"158.5\" y=\"10\" width=\"307.5\""), svg.npos) << svg;
  EXPECT_NE(svg.find("queued</li>"), svg.npos);
  timeline.rows.assign(12'345, {{0, 1, 0}, {1, 2, 1}});
  const std::string large = to_svg(timeline);
  EXPECT_LE(occurrences(large, "<rect"), 800u);
  EXPECT_NE(large.find(" of 12345 rows)"), large.npos);
  timeline.rows.clear();
  EXPECT_NE(to_svg(timeline).find("No data."), std::string::npos);
}

TEST(Ticks, AreRound) {
  EXPECT_EQ(round_ticks(0, 10, 5, false), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(round_ticks(-1, 1, 5, false).size(), 5u);
  EXPECT_EQ(tick_text(1500), "1500");
  EXPECT_EQ(tick_text(4.2e9), "4.2G");
  EXPECT_EQ(tick_text(0.25), "0.25");
  EXPECT_EQ(tick_text(0), "0");
}

TEST(Page, StandsAlone) {
  const std::string page = to_page("a<b", "<p>x</p>");
  EXPECT_NE(page.find("<title>a&lt;b</title>"), page.npos);
  for (const char* word : {"<script", "http://", "https://", "@import", "url("})
    EXPECT_EQ(page.find(word), page.npos) << word;
  EXPECT_NE(page.find("prefers-color-scheme:dark"), page.npos);
}

}  // namespace
}  // namespace plimsoll::report
