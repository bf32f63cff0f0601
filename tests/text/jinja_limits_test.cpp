// SPDX-License-Identifier: Apache-2.0
// Everything a template can have done is counted. Each template here does little by its nodes and much by its
// data: under limits that its nodes alone would keep, it must be stopped.
#include <gtest/gtest.h>

#include <functional>

#include "text/jinja/interpreter.h"
#include "text/jinja/parser.h"

namespace plimsoll::text::jinja {
namespace {

constexpr std::int64_t kSteps = 20'000;
constexpr std::int64_t kBytes = 4 << 20;

std::string outcome(const std::string& source, std::int64_t steps = kSteps, std::int64_t bytes = kBytes) {
  const auto program = parse(source);
  if (!program) return program.error().type;
  Limits limits;
  limits.steps = steps;
  limits.made_bytes = bytes;
  const auto text = Interpreter(**program, "2026-01-15T09:30:00", limits).run(Json::object());
  return text ? "ends" : text.error().type;
}

std::string repeated(int count, const std::function<std::string(const std::string&)>& part) {
  std::string text;
  for (int i = 0; i < count; ++i) text += part(std::to_string(i));
  return text;
}

// A hundred turns of `work` after `setup`.
std::string looped(const std::string& setup, const std::string& work) {
  return setup + "{% for i in range(100) %}" + work + "{% endfor %}";
}

// Two tuples of 2^13 ones that share their halves.
const std::string kShared =
    "{% set ns = namespace(t=(1,), u=(1,)) %}{% for i in range(13) %}{% set ns.t = (ns.t, ns.t) %}"
    "{% set ns.u = (ns.u, ns.u) %}{% endfor %}{% set t = ns.t %}{% set u = ns.u %}";
const std::string kThousand = "{% set r = range(1000) %}";
const std::string kManyNames = "{% set d = dict(range(4000) | map('string') | batch(2)) %}";

TEST(JinjaLimits, TheSetupsAloneEnd) {
  for (const std::string& setup : {kShared, kThousand, kManyNames}) EXPECT_EQ(outcome(setup), "ends");
  EXPECT_EQ(outcome(looped("", "{% set x = 1 %}")), "ends");
}

TEST(JinjaLimits, WhatDataCostsIsCounted) {
  const std::string sources[] = {
      looped(kThousand + "{% set k = r | list %}{% set d = {} %}", "{% set x = d[k] %}"),
      looped(kThousand, "{% set x = r | sum %}"),
      looped("{% set e = [''] * 1000 %}", "{% set x = e | join %}"),
      looped("{% set e = [''] * 1000 %}", "{% set x = ''.join(e) %}"),
      "{% set x = ('a' * 100000).strip('b' * 100000) %}",
      "{% set x = ('a' * 100000) | trim('b' * 100000) %}",
      looped(kManyNames + "{% set k = 'a' * 10000 %}", "{% set x = d[k] %}"),
      looped(kManyNames + "{% set k = 'a' * 10000 %}", "{% set x = d.get(k) %}"),
      looped(kManyNames + "{% set k = 'a' * 10000 %}", "{% set x = k in d %}"),
      looped("{% set k = 'a' * 10000 %}", "{% set x = {k: 1} %}"),
      looped("{% set d = dict(range(1000) | batch(2)) %}", "{% for j in range(10) %}{{ d[-1] }}{% endfor %}"),
      looped(kShared + "{% set d = {} %}", "{% set x = d[t] %}"),
      looped(kShared, "{% set x = {}.get(t) %}"),
      looped(kShared, "{% set x = t in {} %}"),
      looped(kShared, "{% set x = {t: 1} %}"),
      looped(kShared, "{% if loop.changed(t if i is odd else u) %}{% endif %}"),
      looped(kShared, "{% set x = t in [u, u, u] %}"),
      looped(kShared, "{% set x = [t, u] | max %}"),
      looped("{% set e = ('b',) * 1000 %}", "{% set x = 'a'.startswith(e) %}"),
      looped("{% set a = 'a' * 10000 + 'b' %}{% set b = 'a' * 10000 + 'c' %}", "{% set x = a.endswith(b) %}"),
      looped("{% set p = 'a.' * 1000 %}{% set n = namespace() %}{% set n.a = n %}",
             "{% set x = [n] | map(attribute=p) | list %}"),
      looped(kManyNames, "{% set x = namespace(**d) %}"),
      looped(kManyNames, "{% set x = dict(**d) %}"),
      looped(kThousand, "{% set x = '{}'.format(*r) %}"),
      kManyNames + "{% set x = ('{z}' * 2000).format(z=1, **d) %}",
      repeated(3000, [](const std::string& i) { return "{% set a" + i + " = 1 %}"; }),
      looped(repeated(900, [](const std::string& i) { return "{% set a" + i + " = 1 %}"; }),
             "{% for j in range(20) %}{{ a899 and '' }}{% endfor %}"),
      looped("{% macro m(z" + repeated(500, [](const std::string& i) { return ", a" + i; }) +
                 ") %}{% endmacro %}",
             "{{ m(a1=1) }}"),
  };
  for (const std::string& source : sources) {
    SCOPED_TRACE(source.size() > 300 ? source.substr(0, 60) + "..." + source.substr(source.size() - 120)
                                     : source);
    EXPECT_EQ(outcome(source), "LimitError");
  }
}

TEST(JinjaLimits, WhatDataWeighsIsCounted) {
  constexpr std::int64_t kManySteps = 100'000'000;
  const std::string long_text = "{% set a = 'A' * 100000 %}";
  for (const std::string& source :
       {looped(kThousand + "{% set k = r | list %}{% set d = {} %}{% set ns = namespace(l=[]) %}",
               "{% for j in range(10) %}{% set ns.l = [ns.l[-1:], d[k]] %}{% endfor %}"),
        looped(long_text, "{% set x = 1.5 | attr(a) %}"), looped(long_text, "{% set x = [a] | sort %}"),
        looped(long_text, "{% set x = [a] | map(attribute=a) | list %}"),
        looped("{% set d = dict(range(4000) | map('string') | batch(2)) %}", "{% set x = d | items %}"),
        std::string("{% set x = ('\\n' * 2000000).splitlines() %}"),
        std::string("{% set x = ('\\n' * 2000000) | indent %}")}) {
    SCOPED_TRACE(source);
    EXPECT_EQ(outcome(source, kManySteps), "LimitError");
  }
}

TEST(JinjaLimits, LeavingALoopEarlyCostsNoWalk) {
  // The loop object knows its items without looking at them.
  EXPECT_EQ(outcome(looped("{% set e = [1] * 50000 %}",
                           "{% for j in e %}{{ loop.first and '' }}{% break %}{% endfor %}")),
            "ends");
}

TEST(JinjaLimits, ManyBlocksAreParsed) {
  // Each name is looked for among those before it.
  const std::string blocks =
      repeated(60'000, [](const std::string& i) { return "{%block a" + i + "%}{%endblock%}"; });
  EXPECT_TRUE(parse(blocks));
  EXPECT_EQ(outcome(blocks + "{%block a59999%}{%endblock%}"), "TemplateAssertionError");
}

}  // namespace
}  // namespace plimsoll::text::jinja
