// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/value.h"

#include <algorithm>

#include "text/jinja/callable.h"
#include "text/jinja/python_format.h"

namespace plimsoll::text::jinja {
namespace {

constexpr std::size_t kIndexedFrom = 24;  // linear search is faster below
constexpr std::int64_t kWeightCeiling = std::int64_t{1} << 60;

struct StringObject final : Counted {
  explicit StringObject(std::string value) : text(std::move(value)) {}
  const std::string text;
};

struct TypeNames {
  std::string name, object;
};

// In the order of TypeCode, then of SequenceForm.
const TypeNames kTypes[] = {
    {"Undefined", "Undefined"},
    {"NoneType", "None"},
    {"bool", "bool object"},
    {"int", "int object"},
    {"float", "float object"},
    {"str", "str object"},
    {"Markup", "markupsafe.Markup object"},
    {"dict", "dict object"},
    {"TemplateNamespace",
     "transformers.utils.chat_template_utils._cached_compile_jinja_template.<locals>.TemplateNamespace "
     "object"},
    {"LoopContext", "jinja2.runtime.LoopContext object"},
    {"Macro", "jinja2.runtime.Macro object"},
    {"builtin_function_or_method", "builtin_function_or_method object"},
    {"function", "function object"},
    {"TemplateDict", "TemplateDict object"},
    {"type", "type object"},
    {"list", "list object"},
    {"tuple", "tuple object"},
    {"range", "range object"},
    {"dict_items", "dict_items object"},
    {"dict_keys", "dict_keys object"},
    {"dict_values", "dict_values object"},
    {"generator", "generator object"},
};

bool sequences_equal(const Sequence& left, const Sequence& right) {
  for (const SequenceForm form : {SequenceForm::kGenerator, SequenceForm::kDictValues})
    if (left.form == form || right.form == form) return &left == &right;
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

Value::Value(std::string text, bool is_markup) : type_(Type::kString), flag_(is_markup) {
  auto* object = new StringObject(std::move(text));
  object->references = 1;
  text_ = &object->text;
  owner_ = object;
}

Value::Value(Sequence* sequence) : type_(Type::kSequence), owner_(sequence) {
  sequence_ = sequence;
  ++owner_->references;
}
Value::Value(Dict* dict) : type_(Type::kDict), owner_(dict) {
  dict_ = dict;
  ++owner_->references;
}
Value::Value(Callable* callable) : type_(Type::kCallable), owner_(callable) {
  callable_ = callable;
  ++owner_->references;
}
Value::Value(Namespace* space) : type_(Type::kNamespace), owner_(space) {
  space_ = space;
  ++owner_->references;
}
Value::Value(Loop* loop) : type_(Type::kLoop), owner_(loop) {
  loop_ = loop;
  ++owner_->references;
}

Value Value::borrowed(const std::string& text) {
  Value value;
  value.type_ = Type::kString;
  value.text_ = &text;
  return value;
}
Value Value::borrowed(const Sequence& sequence) {
  Value value;
  value.type_ = Type::kSequence;
  value.sequence_ = &sequence;
  return value;
}
Value Value::borrowed(const Dict& dict) {
  Value value;
  value.type_ = Type::kDict;
  value.dict_ = &dict;
  return value;
}
Value Value::borrowed(const Callable& callable) {
  Value value;
  value.type_ = Type::kCallable;
  value.callable_ = &callable;
  return value;
}

Value Value::undefined(std::string message, bool is_unsafe) {
  Value value(std::move(message));
  value.type_ = Type::kUndefined;
  value.flag_ = is_unsafe;
  value.hint_ = Hint::kMessage;
  return value;
}

Value Value::undefined_name(const std::string& name) {
  Value value = borrowed(name);
  value.type_ = Type::kUndefined;
  value.hint_ = Hint::kName;
  return value;
}

Value Value::undefined_key(const Value& object, const Value& key) {
  Value value = key;
  value.hint_ = key.is_string() ? Hint::kAttribute : Hint::kElement;
  value.type_ = Type::kUndefined;
  value.flag_ = false;
  value.code_ = object.type_code();
  return value;
}

std::string Value::undefined_message() const {
  const std::string& object = kTypes[static_cast<std::size_t>(code_)].object;
  switch (hint_) {
    case Hint::kNone:
      return "value is undefined";
    case Hint::kMessage:
      return *text_;
    case Hint::kName:
      return "'" + *text_ + "' is undefined";
    case Hint::kAttribute:
      return "'" + object + "' has no attribute " + python_repr(borrowed(*text_));
    case Hint::kElement:
      return object + " has no element " + std::to_string(whole_);
  }
  return {};
}

std::int64_t key_cost(const Value& key, std::size_t num_entries) {
  constexpr std::int64_t kKeysPerStep = 16;
  return key.weight() * (1 + static_cast<std::int64_t>(num_entries) / kKeysPerStep) - 1;
}

const Value* Dict::find_text(std::string_view key) const {
  if (index) {
    const auto found = index->find(key);
    return found == index->end() ? nullptr : &entries[found->second].second;
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

bool Value::as_double(double& out) const {
  if (is_float()) return out = number_, true;
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
  if (const std::string* text = string())
    return 1 + static_cast<std::int64_t>(text->size()) / kBytesPerWeight;
  return 1;
}

bool Value::is_filled() const {
  switch (type_) {
    case Type::kFloat:
      return number_ != 0.0;
    case Type::kSequence:
      return sequence_->form == SequenceForm::kGenerator || !sequence_->items.empty();
    case Type::kDict:
      return !dict_->entries.empty();
    case Type::kLoop:
      return !loop_->items.empty();
    default:
      return true;
  }
}

bool Value::is_unhashable() const {
  if (dict()) return true;
  const Sequence* list = sequence();
  if (!list) return false;
  if (list->form == SequenceForm::kList || list->form == SequenceForm::kDictItems ||
      list->form == SequenceForm::kDictKeys)
    return true;
  return list->form == SequenceForm::kTuple &&
         std::any_of(list->items.begin(), list->items.end(),
                     [](const Value& item) { return item.is_unhashable(); });
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
  if (type_ != other.type_) return false;
  switch (type_) {
    case Type::kUndefined:
    case Type::kFloat:
      return false;
    case Type::kNone:
      return true;
    case Type::kBool:
    case Type::kInt:
      return whole_ == other.whole_;
    case Type::kString:
      return text_ == other.text_;
    default:
      return sequence() == other.sequence() && dict() == other.dict() && callable() == other.callable() &&
             name_space() == other.name_space() && loop() == other.loop();
  }
}

TypeCode Value::type_code() const {
  switch (type_) {
    case Type::kUndefined:
      return TypeCode::kUndefined;
    case Type::kNone:
      return TypeCode::kNone;
    case Type::kBool:
      return TypeCode::kBool;
    case Type::kInt:
      return TypeCode::kInt;
    case Type::kFloat:
      return TypeCode::kFloat;
    case Type::kString:
      return flag_ ? TypeCode::kMarkup : TypeCode::kStr;
    case Type::kSequence:
      return static_cast<TypeCode>(static_cast<int>(TypeCode::kFirstSequence) +
                                   static_cast<int>(sequence_->form));
    case Type::kDict:
      return TypeCode::kDict;
    case Type::kCallable:
      return callable_->type;
    case Type::kNamespace:
      return TypeCode::kNamespace;
    case Type::kLoop:
      return TypeCode::kLoop;
  }
  return TypeCode::kUndefined;
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
  return kTypes[static_cast<std::size_t>(value.type_code())].name;
}

std::string object_name(const Value& value) {
  return kTypes[static_cast<std::size_t>(value.type_code())].object;
}

Value make_sequence(std::vector<Value> items, SequenceForm form) {
  auto* sequence = new Sequence;
  Value made(sequence);
  sequence->form = form;
  for (const Value& item : items) {
    sequence->depth = std::max(sequence->depth, item.depth() + 1);
    sequence->weight = std::min(kWeightCeiling, sequence->weight + item.weight());
  }
  sequence->owned = std::move(items);
  sequence->items = sequence->owned;
  return made;
}

Value make_dict(std::vector<Dict::Entry> entries) {
  auto* dict = new Dict;
  Value made(dict);
  if (entries.size() >= kIndexedFrom)
    dict->index = std::make_unique<std::unordered_map<std::string_view, std::size_t>>();
  std::size_t used = 0;
  for (auto& [key, value] : entries) {
    std::size_t at = used;
    const std::string* text = key.string();
    if (dict->index && text) {
      at = dict->index->emplace(*text, used).first->second;
    } else {
      for (std::size_t i = 0; i < used && at == used; ++i)
        if (entries[i].first.equals(key)) at = i;
    }
    if (at == used) {
      if (&key != &entries[used].first) entries[used].first = std::move(key);
      ++used;
    }
    if (&value != &entries[at].second) entries[at].second = std::move(value);
  }
  entries.resize(used);
  for (const auto& [key, value] : entries) {
    dict->depth = std::max({dict->depth, key.depth() + 1, value.depth() + 1});
    // Comparing two dicts looks every key up.
    const std::int64_t key_weight = key.is_string() ? 0 : key_cost(key, entries.size());
    dict->weight = std::min(kWeightCeiling, dict->weight + key.weight() + key_weight + value.weight());
  }
  dict->owned = std::move(entries);
  dict->entries = dict->owned;
  return made;
}

}  // namespace plimsoll::text::jinja
