// SPDX-License-Identifier: Apache-2.0
// What a template computes with: Python's values, immutable except namespaces and loops (the reference
// environment is jinja2's immutable sandbox). Payloads are shared, so copies are cheap; every container knows
// how deep it nests, so that building one too deep can be refused before recursion over it could overflow.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.h"

namespace plimsoll::text::jinja {

class Value;
struct Namespace;
struct Callable;
struct Loop;

/// Nesting of containers beyond which building one is refused (LimitError).
constexpr int kMaxValueDepth = 250;
/// Weight beyond which building a container is refused: shared lists can unfold to more than any memory.
constexpr std::int64_t kMaxValueWeight = 5'000'000;

struct None {
  bool operator==(const None&) const = default;
};

/// jinja2's Undefined: says, when used, what was missing.
struct Undefined {
  std::shared_ptr<const std::string> message;  // "'x' is undefined"
  bool is_unsafe = false;                      // using it is a SecurityError (sandbox)
};

struct Str {
  std::shared_ptr<const std::string> text;
  bool is_markup = false;  // passed through `safe`: adding a plain string to it escapes that string
};

enum class SequenceForm { kList, kTuple, kRange, kDictItems, kDictKeys, kDictValues, kGenerator };

struct Sequence {
  SequenceForm form = SequenceForm::kList;
  std::vector<Value> items;
  int depth = 1;
  std::int64_t weight = 1;  // values inside, shared ones counted each time: what walking it costs
};

/// Insertion-ordered. String keys are indexed once there are many; other keys are few (template literals).
struct Dict {
  std::vector<std::pair<Value, Value>> entries;
  std::unordered_map<std::string_view, std::size_t> index;  // filled by seal(); views into the key strings
  int depth = 1;
  std::int64_t weight = 1;
  void seal();
  const Value* find(const Value& key) const;
  const Value* find_text(std::string_view key) const;
};

using SequencePtr = std::shared_ptr<const Sequence>;
using DictPtr = std::shared_ptr<const Dict>;
using CallablePtr = std::shared_ptr<const Callable>;
using NamespacePtr = std::shared_ptr<Namespace>;
using LoopPtr = std::shared_ptr<Loop>;

class Value {
 public:
  Value() = default;  // an Undefined without message
  Value(None) : data_(None{}) {}
  Value(Undefined undefined) : data_(std::move(undefined)) {}
  Value(bool value) : data_(value) {}
  Value(int value) : data_(std::int64_t{value}) {}
  Value(std::int64_t value) : data_(value) {}
  Value(double value) : data_(value) {}
  Value(std::string text, bool is_markup = false)
      : data_(Str{std::make_shared<const std::string>(std::move(text)), is_markup}) {}
  Value(const char* text) : Value(std::string(text)) {}
  Value(SequencePtr sequence) : data_(std::move(sequence)) {}
  Value(DictPtr dict) : data_(std::move(dict)) {}
  Value(CallablePtr callable) : data_(std::move(callable)) {}
  Value(NamespacePtr space) : data_(std::move(space)) {}
  Value(LoopPtr loop) : data_(std::move(loop)) {}

  bool is_undefined() const { return std::holds_alternative<Undefined>(data_); }
  bool is_none() const { return std::holds_alternative<None>(data_); }
  bool is_bool() const { return std::holds_alternative<bool>(data_); }
  bool is_int() const { return std::holds_alternative<std::int64_t>(data_); }
  bool is_float() const { return std::holds_alternative<double>(data_); }
  bool is_number() const { return is_bool() || is_int() || is_float(); }
  bool is_string() const { return std::holds_alternative<Str>(data_); }

  const Undefined* undefined() const { return std::get_if<Undefined>(&data_); }
  const std::string* string() const {
    const Str* text = std::get_if<Str>(&data_);
    return text ? text->text.get() : nullptr;
  }
  bool is_markup() const {
    const Str* text = std::get_if<Str>(&data_);
    return text && text->is_markup;
  }
  const Sequence* sequence() const {
    const SequencePtr* sequence = std::get_if<SequencePtr>(&data_);
    return sequence ? sequence->get() : nullptr;
  }
  /// The sequence when it has exactly this form.
  const Sequence* sequence(SequenceForm form) const {
    const Sequence* found = sequence();
    return found && found->form == form ? found : nullptr;
  }
  const Dict* dict() const {
    const DictPtr* dict = std::get_if<DictPtr>(&data_);
    return dict ? dict->get() : nullptr;
  }
  const Callable* callable() const {
    const CallablePtr* callable = std::get_if<CallablePtr>(&data_);
    return callable ? callable->get() : nullptr;
  }
  Namespace* name_space() const {
    const NamespacePtr* space = std::get_if<NamespacePtr>(&data_);
    return space ? space->get() : nullptr;
  }
  Loop* loop() const {
    const LoopPtr* loop = std::get_if<LoopPtr>(&data_);
    return loop ? loop->get() : nullptr;
  }
  const LoopPtr* loop_pointer() const { return std::get_if<LoopPtr>(&data_); }
  /// Bool and int as Python's int(); false for anything else.
  bool as_int(std::int64_t& out) const;
  /// Any number.
  bool as_double(double& out) const;

  /// Nesting depth: 0 for scalars.
  int depth() const;
  /// Values that walking this one meets; 1 for scalars. Saturates.
  std::int64_t weight() const;
  bool is_true() const;
  /// Python's ==; never fails.
  bool equals(const Value& other) const;
  /// Same object, Python's `is`.
  bool is_same(const Value& other) const;

 private:
  std::variant<Undefined, None, bool, std::int64_t, double, Str, SequencePtr, DictPtr, CallablePtr,
               NamespacePtr, LoopPtr>
      data_;
};

struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;
  Value* find(std::string_view name);
  void set(std::string_view name, Value value);
};

/// Python's type name: "str", "NoneType", "dict_items".
std::string type_name(const Value& value);
/// How jinja2 names an object in its messages: "dict object", "None".
std::string object_name(const Value& value);

/// A container of these; its depth is computed.
Value make_sequence(std::vector<Value> items, SequenceForm form = SequenceForm::kList);
inline Value make_tuple(std::vector<Value> items) {
  return make_sequence(std::move(items), SequenceForm::kTuple);
}
/// Later values of equal keys replace earlier ones in place, as Python does.
Value make_dict(std::vector<std::pair<Value, Value>> entries);

Value from_json(const Json& json);

}  // namespace plimsoll::text::jinja
