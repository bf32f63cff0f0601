// SPDX-License-Identifier: Apache-2.0
// Python methods of dicts, lists and numbers, and which attributes the immutable sandbox forbids.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "text/jinja/interpreter.h"
#include "text/jinja/python_format.h"
#include "text/jinja/string_methods.h"

namespace plimsoll::text::jinja {
namespace {

Value dict_items(Interpreter& run, const Value& self, const Arguments&) {
  std::vector<Value> pairs;
  for (const auto& [key, value] : self.dict()->entries) pairs.push_back(make_tuple({key, value}));
  run.charge_bytes(pairs.size() * 3 * sizeof(Value));
  return run.sequence(std::move(pairs), SequenceForm::kDictItems);
}

Value dict_keys(Interpreter& run, const Value& self, const Arguments&) {
  std::vector<Value> keys;
  for (const auto& entry : self.dict()->entries) keys.push_back(entry.first);
  return run.sequence(std::move(keys), SequenceForm::kDictKeys);
}

Value dict_values(Interpreter& run, const Value& self, const Arguments&) {
  std::vector<Value> values;
  for (const auto& entry : self.dict()->entries) values.push_back(entry.second);
  return run.sequence(std::move(values), SequenceForm::kDictValues);
}

Value dict_get(Interpreter& run, const Value& self, const Arguments& given) {
  if (given.positional.empty() || given.positional.size() > 2 || !given.named.empty())
    return run.type_error(given.named.empty() ? "get expected at least 1 argument, got 0"
                                              : "dict.get() takes no keyword arguments");
  const Value& key = given.positional[0];
  if (run.refuse_unhashable(key) || !run.charge_key(*self.dict(), key)) return {};
  if (const Value* found = self.dict()->find(key)) return *found;
  return given.positional.size() > 1 ? given.positional[1] : Value(None{});
}

Value copy(Interpreter&, const Value& self, const Arguments&) {
  return self;
}

constexpr std::array kDictMethods = {MethodEntry{"items", dict_items, Arity::kNone},
                                     MethodEntry{"keys", dict_keys, Arity::kNone},
                                     MethodEntry{"values", dict_values, Arity::kNone},
                                     MethodEntry{"get", dict_get}, MethodEntry{"copy", copy, Arity::kNone}};
constexpr std::array<std::string_view, 5> kForbiddenOfDicts = {"clear", "pop", "popitem", "setdefault",
                                                               "update"};

Value list_count(Interpreter& run, const Value& self, const Arguments& given) {
  if (given.positional.size() != 1) return run.type_error("count() takes exactly one argument");
  run.charge_steps(self.weight());
  return static_cast<std::int64_t>(
      std::count_if(self.sequence()->items.begin(), self.sequence()->items.end(),
                    [&](const Value& item) { return item.equals(given.positional[0]); }));
}

Value list_index(Interpreter& run, const Value& self, const Arguments& given) {
  if (given.positional.empty()) return run.type_error("index expected at least 1 argument, got 0");
  run.charge_steps(self.weight());
  const auto& items = self.sequence()->items;
  for (std::size_t i = 0; i < items.size(); ++i)
    if (items[i].equals(given.positional[0])) return static_cast<std::int64_t>(i);
  return run.fail("ValueError", run.to_repr(given.positional[0]) + " is not in list");
}

constexpr std::array kListMethods = {MethodEntry{"count", list_count, Arity::kOne},
                                     MethodEntry{"index", list_index},
                                     MethodEntry{"copy", copy, Arity::kNone}};

Value is_integer(Interpreter&, const Value& self, const Arguments&) {
  double number = 0;
  self.as_double(number);
  return std::isfinite(number) && std::floor(number) == number;
}

Value bit_length(Interpreter&, const Value& self, const Arguments&) {
  std::int64_t whole = 0;
  self.as_int(whole);
  return static_cast<std::int64_t>(
      std::bit_width(whole < 0 ? 0 - static_cast<std::uint64_t>(whole) : static_cast<std::uint64_t>(whole)));
}

constexpr std::array kIntMethods = {MethodEntry{"bit_length", bit_length, Arity::kNone},
                                    MethodEntry{"conjugate", copy, Arity::kNone}};
constexpr std::array kFloatMethods = {MethodEntry{"is_integer", is_integer, Arity::kNone},
                                      MethodEntry{"conjugate", copy, Arity::kNone}};

// Names with underscores that Python's objects have; others are looked up like any name.
constexpr std::array<std::string_view, 33> kInternal = {
    "__class__",    "__delattr__", "__dir__",           "__doc__",          "__eq__",
    "__format__",   "__ge__",      "__getattribute__",  "__getstate__",     "__gt__",
    "__hash__",     "__init__",    "__init_subclass__", "__le__",           "__lt__",
    "__ne__",       "__new__",     "__reduce__",        "__reduce_ex__",    "__repr__",
    "__setattr__",  "__sizeof__",  "__str__",           "__subclasshook__", "__add__",
    "__contains__", "__getitem__", "__iter__",          "__len__",          "__mod__",
    "__mul__",      "__rmod__",    "__rmul__"};
constexpr std::size_t kNumOfAllObjects = 24;  // of kInternal
constexpr std::array<std::string_view, 13> kInternalOfFunctions = {
    "__annotations__", "__builtins__", "__call__",    "__closure__",    "__code__",
    "__defaults__",    "__dict__",     "__globals__", "__kwdefaults__", "__module__",
    "__name__",        "__qualname__", "__self__"};
constexpr std::array<std::string_view, 11> kForbiddenOfLists = {
    "append",  "clear", "extend",      "insert",      "pop",     "remove",
    "reverse", "sort",  "__setitem__", "__delitem__", "__iadd__"};

template <class Table>
Method in_table(const Table& table, std::string_view name) {
  for (const MethodEntry& entry : table)
    if (entry.name == name) return {entry.function, entry.arity, false};
  return {};
}

template <class Names>
bool is_any(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_internal(MethodSet set, std::string_view name) {
  if (!name.starts_with("__")) return false;
  const auto* end = set == MethodSet::kOther ? kInternal.begin() + kNumOfAllObjects : kInternal.end();
  return std::find(kInternal.begin(), end, name) != end ||
         (set == MethodSet::kOther && is_any(kInternalOfFunctions, name));
}

}  // namespace

MethodSet method_set(const Value& object) {
  switch (object.type()) {
    case Value::Type::kString:
      return MethodSet::kString;
    case Value::Type::kDict:
      return MethodSet::kDict;
    case Value::Type::kBool:
    case Value::Type::kInt:
      return MethodSet::kInt;
    case Value::Type::kFloat:
      return MethodSet::kFloat;
    case Value::Type::kSequence:
      switch (object.sequence()->form) {
        case SequenceForm::kList:
          return MethodSet::kList;
        case SequenceForm::kTuple:
          return MethodSet::kTuple;
        case SequenceForm::kRange:
          return MethodSet::kRange;
        default:
          return MethodSet::kOther;
      }
    default:
      return MethodSet::kOther;
  }
}

namespace {

// What Python's objects have beside, so that it must not read as undefined.
bool is_absent(MethodSet set, std::string_view name) {
  static constexpr std::array<std::string_view, 5> kOfStrings = {"encode", "format_map", "isidentifier",
                                                                 "maketrans", "translate"};
  static constexpr std::array<std::string_view, 8> kOfInts = {
      "as_integer_ratio", "bit_count", "denominator", "from_bytes", "imag", "numerator", "real", "to_bytes"};
  static constexpr std::array<std::string_view, 5> kOfFloats = {"as_integer_ratio", "fromhex", "hex", "imag",
                                                                "real"};
  static constexpr std::array<std::string_view, 3> kOfRanges = {"start", "step", "stop"};
  switch (set) {
    case MethodSet::kString:
      return is_any(kOfStrings, name);
    case MethodSet::kDict:
      return name == "fromkeys";
    case MethodSet::kInt:
      return is_any(kOfInts, name);
    case MethodSet::kFloat:
      return is_any(kOfFloats, name);
    case MethodSet::kRange:
      return is_any(kOfRanges, name);
    default:
      return false;
  }
}

}  // namespace

Method find_method(MethodSet set, std::string_view name) {
  constexpr Method kForbidden{nullptr, Arity::kAny, true};
  if (is_internal(set, name)) return kForbidden;
  if (is_absent(set, name)) return {nullptr, Arity::kAny, false, true};
  switch (set) {
    case MethodSet::kString:
      return string_method(name);
    case MethodSet::kDict:
      return is_any(kForbiddenOfDicts, name) ? kForbidden : in_table(kDictMethods, name);
    case MethodSet::kList:
      return is_any(kForbiddenOfLists, name) ? kForbidden : in_table(kListMethods, name);
    case MethodSet::kTuple:
    case MethodSet::kRange:
      return name == "copy" ? Method{} : in_table(kListMethods, name);
    case MethodSet::kInt:
      return in_table(kIntMethods, name);
    case MethodSet::kFloat:
      return in_table(kFloatMethods, name);
    case MethodSet::kOther:
      return {};
  }
  return {};
}

bool Interpreter::accepts(Arity arity, const Value& self, std::string_view name, const Arguments& given) {
  const std::size_t count = given.positional.size();
  if (arity == Arity::kAny || (given.named.empty() && count == (arity == Arity::kOne ? 1u : 0u))) return true;
  if (given.named.empty() && count == 1 && arity >= Arity::kAtMostOne) return true;
  const std::string full = type_name(self) + "." + std::string(name) + "()";
  const std::string counted = std::to_string(count) + " given)";
  if (!given.named.empty() && arity != Arity::kAtMostTwo)
    type_error(full + " takes no keyword arguments");
  else if (arity == Arity::kNone && count > 0)
    type_error(full + " takes no arguments (" + counted);
  else if (arity == Arity::kOne && count != 1)
    type_error(full + " takes exactly one argument (" + counted);
  else if (arity == Arity::kAtMostOne && count > 1)
    type_error(std::string(name) + " expected at most 1 argument, got " + std::to_string(count));
  else if (arity == Arity::kAtMostTwo && count + given.named.size() > 2)
    type_error(std::string(name) + "() takes at most 2 arguments (" +
               std::to_string(count + given.named.size()) + " given)");
  return !failed();
}

AttributeName::AttributeName(std::string name) : text(std::move(name)), field(loop_field(text)) {
  for (std::size_t set = 0; set < kNumMethodSets; ++set)
    methods[set] = find_method(static_cast<MethodSet>(set), text);
}

}  // namespace plimsoll::text::jinja
