// SPDX-License-Identifier: Apache-2.0
// Python methods of dicts, lists and numbers, and which attributes the immutable sandbox forbids.
#include <algorithm>
#include <array>

#include "text/jinja/interpreter.h"
#include "text/jinja/python_format.h"
#include "text/jinja/string_methods.h"

namespace plimsoll::text::jinja {
namespace {

struct Entry {
  std::string_view name;
  Function function;
};

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
  if (key.is_unhashable()) return run.type_error("unhashable type: '" + type_name(key) + "'");
  if (const Value* found = self.dict()->find(key)) return *found;
  return given.positional.size() > 1 ? given.positional[1] : Value(None{});
}

Value copy(Interpreter&, const Value& self, const Arguments&) {
  return self;
}

constexpr std::array kDictMethods = {Entry{"items", dict_items}, Entry{"keys", dict_keys},
                                     Entry{"values", dict_values}, Entry{"get", dict_get},
                                     Entry{"copy", copy}};
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
  return run.fail("ValueError", python_repr(given.positional[0]) + " is not in list");
}

constexpr std::array kListMethods = {Entry{"count", list_count}, Entry{"index", list_index},
                                     Entry{"copy", copy}};
constexpr std::array<std::string_view, 9> kForbiddenOfLists = {
    "append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort", "__setitem__"};

template <class Table>
Method in_table(const Table& table, std::string_view name) {
  for (const Entry& entry : table)
    if (entry.name == name) return {entry.function, false};
  return {};
}

template <class Names>
bool is_any(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
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

Method find_method(MethodSet set, std::string_view name) {
  if (name.size() > 4 && name.starts_with("__") && name.ends_with("__")) return {nullptr, true};
  switch (set) {
    case MethodSet::kString:
      return {string_method(name), false};
    case MethodSet::kDict:
      return is_any(kForbiddenOfDicts, name) ? Method{nullptr, true} : in_table(kDictMethods, name);
    case MethodSet::kList:
      return is_any(kForbiddenOfLists, name) ? Method{nullptr, true} : in_table(kListMethods, name);
    case MethodSet::kTuple:
    case MethodSet::kRange:
      return name == "copy" ? Method{} : in_table(kListMethods, name);
    default:
      return {};
  }
}

AttributeName::AttributeName(std::string name) : text(std::move(name)), field(loop_field(text)) {
  for (std::size_t set = 0; set < kNumMethodSets; ++set)
    methods[set] = find_method(static_cast<MethodSet>(set), text);
}

}  // namespace plimsoll::text::jinja
