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

struct Entry {
  std::string_view name;
  Test test;
};

constexpr std::array kTests = {
    Entry{"defined", [](Interpreter&, const Value& v, const Arguments&) { return !v.is_undefined(); }},
    Entry{"undefined", [](Interpreter&, const Value& v, const Arguments&) { return v.is_undefined(); }},
    Entry{"none", [](Interpreter&, const Value& v, const Arguments&) { return v.is_none(); }},
    Entry{"boolean", [](Interpreter&, const Value& v, const Arguments&) { return v.is_bool(); }},
    Entry{"true", [](Interpreter&, const Value& v, const Arguments&) { return v.is_bool() && v.is_true(); }},
    Entry{"false",
          [](Interpreter&, const Value& v, const Arguments&) { return v.is_bool() && !v.is_true(); }},
    Entry{"integer", [](Interpreter&, const Value& v, const Arguments&) { return v.is_int(); }},
    Entry{"float", [](Interpreter&, const Value& v, const Arguments&) { return v.is_float(); }},
    Entry{"number", [](Interpreter&, const Value& v, const Arguments&) { return v.is_number(); }},
    Entry{"string", [](Interpreter&, const Value& v, const Arguments&) { return v.is_string(); }},
    Entry{"mapping", [](Interpreter&, const Value& v, const Arguments&) { return v.dict() != nullptr; }},
    Entry{"iterable",
          [](Interpreter&, const Value& v, const Arguments&) {
            return v.is_undefined() || v.is_string() || v.sequence() || v.dict() || v.loop();
          }},
    Entry{"sequence", is_sequence},
    Entry{"callable",
          [](Interpreter&, const Value& v, const Arguments&) {
            return v.callable() != nullptr || v.is_undefined() || v.loop();
          }},
    Entry{"sameas", [](Interpreter& run, const Value& v,
                       const Arguments& given) { return v.is_same(argument(run, given, "other")); }},
    Entry{"lower", [](Interpreter& run, const Value& v,
                      const Arguments&) { return has_case(run, v, is_lower, is_upper); }},
    Entry{"upper", [](Interpreter& run, const Value& v,
                      const Arguments&) { return has_case(run, v, is_upper, is_lower); }},
    Entry{"escaped", [](Interpreter&, const Value& v, const Arguments&) { return v.is_markup(); }},
    Entry{"odd", has_remainder<1>},
    Entry{"even", has_remainder<0>},
    Entry{"divisibleby",
          [](Interpreter& run, const Value& v, const Arguments& given) {
            const Value rest = run.binary(Operator::kModulo, v, argument(run, given, "num"));
            return !run.failed() && rest.equals(Value(0));
          }},
    Entry{"in", [](Interpreter& run, const Value& v,
                   const Arguments& given) { return run.contains(argument(run, given, "seq"), v); }},
    Entry{"filter", [](Interpreter& run, const Value& v,
                       const Arguments&) { return find_filter(run.to_text(v)) != nullptr; }},
    Entry{"test", [](Interpreter& run, const Value& v,
                     const Arguments&) { return find_test(run.to_text(v)) != nullptr; }},
    Entry{"eq", compares<Operator::kEqual>},
    Entry{"equalto", compares<Operator::kEqual>},
    Entry{"==", compares<Operator::kEqual>},
    Entry{"ne", compares<Operator::kUnequal>},
    Entry{"!=", compares<Operator::kUnequal>},
    Entry{"lt", compares<Operator::kLess>},
    Entry{"lessthan", compares<Operator::kLess>},
    Entry{"<", compares<Operator::kLess>},
    Entry{"le", compares<Operator::kLessEqual>},
    Entry{"<=", compares<Operator::kLessEqual>},
    Entry{"gt", compares<Operator::kGreater>},
    Entry{"greaterthan", compares<Operator::kGreater>},
    Entry{">", compares<Operator::kGreater>},
    Entry{"ge", compares<Operator::kGreaterEqual>},
    Entry{">=", compares<Operator::kGreaterEqual>},
};

}  // namespace

Test find_test(std::string_view name) {
  for (const Entry& entry : kTests)
    if (entry.name == name) return entry.test;
  return nullptr;
}

bool Interpreter::apply_test(const std::string& name, const Value& value, const Arguments& arguments) {
  if (failed()) return false;
  const Test test = find_test(name);
  if (test) return test(*this, value, arguments);
  fail("TemplateRuntimeError", "No test named '" + name + "' found.");
  return false;
}

}  // namespace plimsoll::text::jinja
