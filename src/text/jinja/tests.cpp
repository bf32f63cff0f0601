// SPDX-License-Identifier: Apache-2.0
// jinja2's tests (`x is defined`).
#include <array>
#include <cmath>

#include "text/jinja/filters.h"
#include "text/jinja/interpreter.h"
#include "text/unicode.h"

namespace plimsoll::text::jinja {
namespace {

Value argument(Interpreter& run, const Arguments& given, const char* name) {
  if (const Value* value = given.get(0, name)) return *value;
  return run.type_error("missing 1 required positional argument: '" + std::string(name) + "'");
}

template <int kRemainder>
bool has_remainder(Interpreter& run, const Value& value, const Arguments&) {
  const Value rest = run.binary(Operator::kModulo, value, Value(2));
  return !run.failed() && rest.equals(Value(kRemainder));
}

template <Operator kOp>
bool compares(Interpreter& run, const Value& value, const Arguments& given) {
  const Value other = argument(run, given, "b");
  return !run.failed() && run.compare(kOp, value, other);
}

// Python's str.islower / isupper: some cased letter, and none of the other case.
bool has_case(Interpreter& run, const Value& value, bool (*wanted)(char32_t), bool (*other)(char32_t)) {
  bool found = false;
  for (const char32_t c : to_code_points(run.to_text(value))) {
    if (other(c)) return false;
    found = found || wanted(c);
  }
  return found;
}

bool is_sequence(Interpreter&, const Value& value, const Arguments&) {
  if (value.is_string() || value.dict()) return true;
  if (value.is_undefined()) return true;  // it has a length and answers [] by complaining
  return value.sequence() && value.sequence()->form <= SequenceForm::kRange;
}

constexpr std::array kTests = {
    TestEntry{"defined", [](Interpreter&, const Value& v, const Arguments&) { return !v.is_undefined(); }},
    TestEntry{"undefined", [](Interpreter&, const Value& v, const Arguments&) { return v.is_undefined(); }},
    TestEntry{"none", [](Interpreter&, const Value& v, const Arguments&) { return v.is_none(); }},
    TestEntry{"boolean", [](Interpreter&, const Value& v, const Arguments&) { return v.is_bool(); }},
    TestEntry{"true",
              [](Interpreter&, const Value& v, const Arguments&) { return v.is_bool() && v.is_true(); }},
    TestEntry{"false",
              [](Interpreter&, const Value& v, const Arguments&) { return v.is_bool() && !v.is_true(); }},
    TestEntry{"integer", [](Interpreter&, const Value& v, const Arguments&) { return v.is_int(); }},
    TestEntry{"float", [](Interpreter&, const Value& v, const Arguments&) { return v.is_float(); }},
    TestEntry{"number", [](Interpreter&, const Value& v, const Arguments&) { return v.is_number(); }},
    TestEntry{"string", [](Interpreter&, const Value& v, const Arguments&) { return v.is_string(); }},
    TestEntry{"mapping", [](Interpreter&, const Value& v, const Arguments&) { return v.dict() != nullptr; }},
    TestEntry{"iterable",
              [](Interpreter&, const Value& v, const Arguments&) {
                return v.is_undefined() || v.is_string() || v.sequence() || v.dict() || v.loop();
              }},
    TestEntry{"sequence", is_sequence},
    TestEntry{"callable",
              [](Interpreter&, const Value& v, const Arguments&) {
                return v.callable() != nullptr || v.is_undefined() || v.loop();
              }},
    TestEntry{"sameas",
              [](Interpreter& run, const Value& v, const Arguments& given) {
                return v.is_same(argument(run, given, "other"));
              },
              1},
    TestEntry{"lower", [](Interpreter& run, const Value& v,
                          const Arguments&) { return has_case(run, v, is_lower, is_upper); }},
    TestEntry{"upper", [](Interpreter& run, const Value& v,
                          const Arguments&) { return has_case(run, v, is_upper, is_lower); }},
    TestEntry{"escaped", [](Interpreter&, const Value& v, const Arguments&) { return v.is_markup(); }},
    TestEntry{"odd", has_remainder<1>},
    TestEntry{"even", has_remainder<0>},
    TestEntry{"divisibleby",
              [](Interpreter& run, const Value& v, const Arguments& given) {
                const Value rest = run.binary(Operator::kModulo, v, argument(run, given, "num"));
                return !run.failed() && rest.equals(Value(0));
              },
              1},
    TestEntry{"in",
              [](Interpreter& run, const Value& v, const Arguments& given) {
                return run.contains(argument(run, given, "seq"), v);
              },
              1},
    TestEntry{"filter", [](Interpreter& run, const Value& v,
                           const Arguments&) { return find_filter(run.to_text(v)) != nullptr; }},
    TestEntry{"test", [](Interpreter& run, const Value& v,
                         const Arguments&) { return find_test(run.to_text(v)) != nullptr; }},
    TestEntry{"eq", compares<Operator::kEqual>, 1},
    TestEntry{"equalto", compares<Operator::kEqual>, 1},
    TestEntry{"==", compares<Operator::kEqual>, 1},
    TestEntry{"ne", compares<Operator::kUnequal>, 1},
    TestEntry{"!=", compares<Operator::kUnequal>, 1},
    TestEntry{"lt", compares<Operator::kLess>, 1},
    TestEntry{"lessthan", compares<Operator::kLess>, 1},
    TestEntry{"<", compares<Operator::kLess>, 1},
    TestEntry{"le", compares<Operator::kLessEqual>, 1},
    TestEntry{"<=", compares<Operator::kLessEqual>, 1},
    TestEntry{"gt", compares<Operator::kGreater>, 1},
    TestEntry{"greaterthan", compares<Operator::kGreater>, 1},
    TestEntry{">", compares<Operator::kGreater>, 1},
    TestEntry{"ge", compares<Operator::kGreaterEqual>, 1},
    TestEntry{">=", compares<Operator::kGreaterEqual>, 1},
};

}  // namespace

const TestEntry* find_test(std::string_view name) {
  return entry_named(kTests, name);
}

bool Interpreter::apply_test(const TestEntry& test, const Value& value, const Arguments& arguments) {
  const std::size_t given = arguments.positional.size() + arguments.named.size();
  if (!charge_reading(value)) return false;
  if (given <= test.num_arguments) return test.test(*this, value, arguments);
  type_error("test_" + std::string(test.name) + "() takes " + std::to_string(test.num_arguments + 1) +
             " positional argument" + (test.num_arguments ? "s" : "") + " but " + std::to_string(given + 1) +
             (given == 0 ? " was given" : " were given"));
  return false;
}

bool Interpreter::apply_test(const std::string& name, const Value& value, const Arguments& arguments) {
  if (failed()) return false;
  if (const TestEntry* test = find_test(name)) return apply_test(*test, value, arguments);
  fail("TemplateRuntimeError", "No test named '" + name + "' found.");
  return false;
}

}  // namespace plimsoll::text::jinja
