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
  if (key.dict() || key.sequence(SequenceForm::kList))
    return run.type_error("unhashable type: '" + type_name(key) + "'");
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
std::optional<Value> bound(const Table& table, const Value& object, const std::string& name) {
  for (const Entry& entry : table)
    if (entry.name == name) return make_method(object, name, entry.function);
  return std::nullopt;
}

template <class Names>
bool is_any(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::optional<Value> method(const Value& object, const std::string& name) {
  const Sequence* list = object.sequence();
  const bool is_forbidden = (name.size() > 4 && name.starts_with("__") && name.ends_with("__")) ||
                            (object.dict() && is_any(kForbiddenOfDicts, name)) ||
                            (list && list->form == SequenceForm::kList && is_any(kForbiddenOfLists, name));
  if (is_forbidden)
    return Interpreter::undefined("access to attribute " + python_repr(Value(name)) + " of '" +
                                      type_name(object) + "' object is unsafe.",
                                  true);
  if (object.is_string()) {
    if (const Function function = string_method(name)) return make_method(object, name, function);
  } else if (object.dict()) {
    return bound(kDictMethods, object, name);
  } else if (list && list->form <= SequenceForm::kRange) {
    return list->form == SequenceForm::kList || name != "copy" ? bound(kListMethods, object, name)
                                                               : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace plimsoll::text::jinja
