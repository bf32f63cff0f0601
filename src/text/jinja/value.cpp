// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/value.h"

#include <algorithm>

#include "text/jinja/callable.h"

namespace plimsoll::text::jinja {
namespace {

constexpr std::size_t kIndexedFrom = 12;  // linear search is faster below
constexpr std::int64_t kWeightCeiling = std::int64_t{1} << 60;

bool sequences_equal(const Sequence& left, const Sequence& right) {
  if (left.form == SequenceForm::kGenerator || right.form == SequenceForm::kGenerator) return &left == &right;
  if (left.form != right.form || left.items.size() != right.items.size()) return false;
  return std::equal(left.items.begin(), left.items.end(), right.items.begin(),
                    [](const Value& a, const Value& b) { return a.equals(b); });
}

bool dicts_equal(const Dict& left, const Dict& right) {
  if (left.entries.size() != right.entries.size()) return false;
  return std::all_of(left.entries.begin(), left.entries.end(), [&](const auto& entry) {
    const Value* other = right.find(entry.first);
    return other && entry.second.equals(*other);
  });
}

}  // namespace

void Dict::seal() {
  depth = 1;
  weight = 1;
  for (const auto& [key, value] : entries) {
    depth = std::max({depth, key.depth() + 1, value.depth() + 1});
    weight = std::min(kWeightCeiling, weight + key.weight() + value.weight());
  }
  if (entries.size() < kIndexedFrom) return;
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (const std::string* key = entries[i].first.string()) index.emplace(*key, i);
}

const Value* Dict::find_text(std::string_view key) const {
  if (!index.empty()) {
    const auto found = index.find(key);
    return found == index.end() ? nullptr : &entries[found->second].second;
  }
  for (const auto& [name, value] : entries)
    if (const std::string* text = name.string(); text && *text == key) return &value;
  return nullptr;
}

const Value* Dict::find(const Value& key) const {
  if (const std::string* text = key.string()) return find_text(*text);
  for (const auto& [name, value] : entries)
    if (name.equals(key)) return &value;
  return nullptr;
}

bool Value::as_int(std::int64_t& out) const {
  if (const auto* flag = std::get_if<bool>(&data_)) return out = *flag ? 1 : 0, true;
  if (const auto* number = std::get_if<std::int64_t>(&data_)) return out = *number, true;
  return false;
}

bool Value::as_double(double& out) const {
  if (const auto* number = std::get_if<double>(&data_)) return out = *number, true;
  std::int64_t whole = 0;
  if (!as_int(whole)) return false;
  out = static_cast<double>(whole);
  return true;
}

int Value::depth() const {
  if (const Sequence* list = sequence()) return list->depth;
  if (const Dict* map = dict()) return map->depth;
  if (const Callable* function = callable()) return function->depth;
  if (const Loop* running = loop()) return running->value_depth;
  return is_undefined() || is_none() || is_number() || is_string() ? 0 : 1;
}

std::int64_t Value::weight() const {
  if (const Sequence* list = sequence()) return list->weight;
  if (const Dict* map = dict()) return map->weight;
  return 1;
}

bool Value::is_true() const {
  if (is_undefined() || is_none()) return false;
  if (const auto* flag = std::get_if<bool>(&data_)) return *flag;
  if (const auto* number = std::get_if<std::int64_t>(&data_)) return *number != 0;
  if (const auto* number = std::get_if<double>(&data_)) return *number != 0.0;
  if (const std::string* text = string()) return !text->empty();
  if (const Sequence* list = sequence())
    return list->form == SequenceForm::kGenerator || !list->items.empty();
  if (const Dict* map = dict()) return !map->entries.empty();
  if (const Loop* running = loop()) return !running->items.empty();
  return true;
}

bool Value::equals(const Value& other) const {
  if (is_undefined() || other.is_undefined()) return is_undefined() && other.is_undefined();
  if (is_none() || other.is_none()) return is_none() && other.is_none();
  if (is_number() && other.is_number()) {
    std::int64_t a = 0, b = 0;
    if (as_int(a) && other.as_int(b)) return a == b;
    double x = 0, y = 0;
    as_double(x);
    other.as_double(y);
    return x == y;
  }
  if (string() && other.string()) return *string() == *other.string();
  if (sequence() && sequence() == other.sequence()) return true;
  if (sequence() && other.sequence()) return sequences_equal(*sequence(), *other.sequence());
  if (dict() && other.dict()) return dict() == other.dict() || dicts_equal(*dict(), *other.dict());
  return is_same(other);
}

bool Value::is_same(const Value& other) const {
  if (data_.index() != other.data_.index()) return false;
  if (is_undefined()) return false;
  if (is_none()) return true;
  if (is_bool() || is_int()) return equals(other);
  if (const Str* text = std::get_if<Str>(&data_)) return text->text == std::get<Str>(other.data_).text;
  return sequence() == other.sequence() && dict() == other.dict() && callable() == other.callable() &&
         name_space() == other.name_space() && loop() == other.loop() && !is_float();
}

Value* Namespace::find(std::string_view name) {
  for (auto& [key, value] : attributes)
    if (key == name) return &value;
  return nullptr;
}

void Namespace::set(std::string_view name, Value value) {
  if (Value* existing = find(name))
    *existing = std::move(value);
  else
    attributes.emplace_back(std::string(name), std::move(value));
}

std::string type_name(const Value& value) {
  if (value.is_undefined()) return "Undefined";
  if (value.is_none()) return "NoneType";
  if (value.is_bool()) return "bool";
  if (value.is_int()) return "int";
  if (value.is_float()) return "float";
  if (value.is_string()) return value.is_markup() ? "Markup" : "str";
  if (value.dict()) return "dict";
  if (value.name_space()) return "Namespace";
  if (value.loop()) return "LoopContext";
  if (const Callable* function = value.callable()) {
    if (function->kind == Callable::Kind::kMacro) return "Macro";
    return function->kind == Callable::Kind::kMethod ? "builtin_function_or_method" : "function";
  }
  switch (value.sequence()->form) {
    case SequenceForm::kList:
      return "list";
    case SequenceForm::kTuple:
      return "tuple";
    case SequenceForm::kRange:
      return "range";
    case SequenceForm::kDictItems:
      return "dict_items";
    case SequenceForm::kDictKeys:
      return "dict_keys";
    case SequenceForm::kDictValues:
      return "dict_values";
    case SequenceForm::kGenerator:
      return "generator";
  }
  return "object";
}

std::string object_name(const Value& value) {
  if (value.is_none()) return "None";
  if (value.name_space()) return "jinja2.utils.Namespace object";
  if (value.loop()) return "jinja2.runtime.LoopContext object";
  if (value.is_markup()) return "markupsafe.Markup object";
  return type_name(value) + " object";
}

Value make_sequence(std::vector<Value> items, SequenceForm form) {
  auto sequence = std::make_shared<Sequence>();
  sequence->form = form;
  for (const Value& item : items) {
    sequence->depth = std::max(sequence->depth, item.depth() + 1);
    sequence->weight = std::min(kWeightCeiling, sequence->weight + item.weight());
  }
  sequence->items = std::move(items);
  return SequencePtr(std::move(sequence));
}

Value make_dict(std::vector<std::pair<Value, Value>> entries) {
  auto dict = std::make_shared<Dict>();
  std::unordered_map<std::string_view, std::size_t> seen;
  for (auto& [key, value] : entries) {
    std::size_t at = dict->entries.size();
    if (const std::string* text = key.string()) {
      at = seen.emplace(*text, at).first->second;  // the shared string outlives this call
    } else {
      for (std::size_t i = 0; i < dict->entries.size() && at == dict->entries.size(); ++i)
        if (dict->entries[i].first.equals(key)) at = i;
    }
    if (at == dict->entries.size())
      dict->entries.emplace_back(key, std::move(value));
    else
      dict->entries[at].second = std::move(value);
  }
  dict->seal();
  return DictPtr(std::move(dict));
}

Value from_json(const Json& json) {
  if (json.is_null()) return None{};
  if (json.is_bool()) return *json.as_bool();
  if (json.is_integer()) return *json.as_integer();
  if (json.is_double()) return *json.as_double();
  if (json.is_string()) return *json.as_string();
  if (json.is_array()) {
    std::vector<Value> items;
    items.reserve(json.size());
    for (const Json& item : json.items()) items.push_back(from_json(item));
    return make_sequence(std::move(items));
  }
  std::vector<std::pair<Value, Value>> entries;
  entries.reserve(json.size());
  for (const auto& [key, value] : json.members()) entries.emplace_back(Value(key), from_json(value));
  return make_dict(std::move(entries));
}

}  // namespace plimsoll::text::jinja
