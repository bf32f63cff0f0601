// SPDX-License-Identifier: Apache-2.0
// What a template computes with: Python's values, immutable except namespaces and loops (the reference
// environment is jinja2's immutable sandbox). Every container knows how deep it nests, so that building one
// too deep can be refused before recursion over it could overflow. Memory: a Value either shares an object,
// counted by a plain integer (a render is one thread's), or borrows from what outlives the render: the
// program's constants and the conversation.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace plimsoll::text::jinja {

class Value;
struct Sequence;
struct Dict;
struct Namespace;
struct Callable;
struct Loop;

/// Nesting of containers beyond which building one is refused (LimitError).
constexpr int kMaxValueDepth = 250;
/// Weight beyond which building a container is refused: shared lists can unfold to more than any memory.
constexpr std::int64_t kMaxValueWeight = 5'000'000;

/// An object shared by values of one thread.
struct Counted {
  virtual ~Counted() = default;
  std::uint32_t references = 0;
};

/// Shares a counted object that is no value of the language (a scope).
template <class T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* object) : object_(object) { retain(); }
  Ref(const Ref& other) : object_(other.object_) { retain(); }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ && --object_->references == 0) delete object_;
  }
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  bool is_shared() const { return object_->references > 1; }

 private:
  void retain() {
    if (object_) ++object_->references;
  }
  T* object_ = nullptr;
};

/// Bytes of a string that weigh as much as one value.
constexpr std::int64_t kBytesPerWeight = 64;

struct None {};

enum class SequenceForm : std::uint8_t {
  kList,
  kTuple,
  kRange,
  kDictItems,
  kDictKeys,
  kDictValues,
  kGenerator
};

/// Python types as messages name them.
enum class TypeCode : std::uint8_t {
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kStr,
  kMarkup,
  kDict,
  kNamespace,
  kLoop,
  kMacro,
  kMethod,
  kFunction,
  kDictClass,
  kNamespaceClass,
  kFirstSequence  // + SequenceForm
};

class Value {
 public:
  enum class Type : std::uint8_t {
    kUndefined,
    kNone,
    kBool,
    kInt,
    kFloat,
    kString,
    kSequence,
    kDict,
    kCallable,
    kNamespace,
    kLoop
  };

  Value() = default;  // an Undefined without message
  Value(None) : type_(Type::kNone) {}
  template <std::same_as<bool> T>  // no pointer turns into a bool
  Value(T value) : type_(Type::kBool) {
    whole_ = value ? 1 : 0;
  }
  Value(int value) : Value(std::int64_t{value}) {}
  Value(std::int64_t value) : type_(Type::kInt) { whole_ = value; }
  Value(double value) : type_(Type::kFloat) { number_ = value; }
  Value(std::string text, bool is_markup = false);
  Value(const char* text) : Value(std::string(text)) {}
  // Of a new object: shares it.
  explicit Value(Sequence* sequence);
  explicit Value(Dict* dict);
  explicit Value(Callable* callable);
  explicit Value(Namespace* space);
  explicit Value(Loop* loop);

  Value(const Value& other)
      : type_(other.type_), flag_(other.flag_), hint_(other.hint_), code_(other.code_), owner_(other.owner_) {
    whole_ = other.whole_;
    if (owner_) ++owner_->references;
  }
  Value(Value&& other) noexcept
      : type_(other.type_), flag_(other.flag_), hint_(other.hint_), code_(other.code_), owner_(other.owner_) {
    whole_ = other.whole_;
    other.owner_ = nullptr;
    other.type_ = Type::kUndefined;
    other.hint_ = Hint::kNone;
  }
  Value& operator=(Value other) noexcept {
    type_ = other.type_;
    flag_ = other.flag_;
    hint_ = other.hint_;
    code_ = other.code_;
    whole_ = other.whole_;
    std::swap(owner_, other.owner_);
    return *this;
  }
  ~Value() {
    if (owner_ && --owner_->references == 0) delete owner_;
  }

  /// Strings and containers that outlive every use of the value.
  static Value borrowed(const std::string& text);
  static Value borrowed(const Sequence& sequence);
  static Value borrowed(const Dict& dict);
  static Value borrowed(const Callable& callable);
  /// The same value without a share in its object, whose owner outlives every use.
  Value borrowed() const {
    Value value;
    value.type_ = type_;
    value.flag_ = flag_;
    value.hint_ = hint_;
    value.code_ = code_;
    value.whole_ = whole_;
    return value;
  }

  // jinja2's Undefined: says, when used, what was missing.
  static Value undefined(std::string message, bool is_unsafe = false);
  /// "'name' is undefined"; `name` outlives the render.
  static Value undefined_name(const std::string& name);
  /// "'dict object' has no attribute 'key'", or "list object has no element 3"; of a string or an int.
  static Value undefined_key(const Value& object, const Value& key);
  std::string undefined_message() const;
  /// Using it is a SecurityError (sandbox).
  bool is_unsafe() const { return type_ == Type::kUndefined && flag_; }

  Type type() const { return type_; }
  bool is_undefined() const { return type_ == Type::kUndefined; }
  bool is_none() const { return type_ == Type::kNone; }
  bool is_bool() const { return type_ == Type::kBool; }
  bool is_int() const { return type_ == Type::kInt; }
  bool is_float() const { return type_ == Type::kFloat; }
  bool is_number() const { return type_ >= Type::kBool && type_ <= Type::kFloat; }
  bool is_string() const { return type_ == Type::kString; }
  bool is_markup() const { return type_ == Type::kString && flag_; }

  const std::string* string() const { return type_ == Type::kString ? text_ : nullptr; }
  const Sequence* sequence() const { return type_ == Type::kSequence ? sequence_ : nullptr; }
  /// The sequence when it has exactly this form.
  const Sequence* sequence(SequenceForm form) const;
  const Dict* dict() const { return type_ == Type::kDict ? dict_ : nullptr; }
  const Callable* callable() const { return type_ == Type::kCallable ? callable_ : nullptr; }
  Namespace* name_space() const { return type_ == Type::kNamespace ? space_ : nullptr; }
  Loop* loop() const { return type_ == Type::kLoop ? loop_ : nullptr; }
  /// Python refuses it as a key: lists and dicts, and tuples that hold them.
  bool is_unhashable() const;
  /// Bool and int as Python's int(); false for anything else.
  bool as_int(std::int64_t& out) const {
    if (type_ != Type::kInt && type_ != Type::kBool) return false;
    out = whole_;
    return true;
  }
  /// Any number.
  bool as_double(double& out) const;

  /// Nesting depth: 0 for scalars.
  int depth() const;
  /// Values that walking this one meets, long strings counting for more; 1 for other scalars. Saturates.
  std::int64_t weight() const;
  bool is_true() const {
    if (type_ <= Type::kNone) return false;
    if (type_ <= Type::kInt) return whole_ != 0;
    return type_ == Type::kString ? !text_->empty() : is_filled();
  }
  /// Python's ==; never fails.
  bool equals(const Value& other) const;
  /// Same object, Python's `is`.
  bool is_same(const Value& other) const;
  TypeCode type_code() const;

 private:
  bool is_filled() const;

  enum class Hint : std::uint8_t { kNone, kMessage, kName, kAttribute, kElement };

  Type type_ = Type::kUndefined;
  bool flag_ = false;  // strings: passed through `safe`, so that adding a plain string to it escapes that
                       // one; undefined: unsafe
  Hint hint_ = Hint::kNone;               // undefined: what text_ or whole_ is
  TypeCode code_ = TypeCode::kUndefined;  // undefined: of the object that lacks it
  union {
    std::int64_t whole_ = 0;
    double number_;
    const std::string* text_;
    const Sequence* sequence_;
    const Dict* dict_;
    const Callable* callable_;
    Namespace* space_;
    Loop* loop_;
  };
  Counted* owner_ = nullptr;  // null: nothing to own, or borrowed
};

struct Sequence final : Counted {
  SequenceForm form = SequenceForm::kList;
  int depth = 1;
  std::int64_t weight = 1;  // values inside, shared ones counted each time: what walking it costs
  std::span<const Value> items;
  std::vector<Value> owned;  // behind `items`, unless an arena is
};

/// Steps that finding a key that is no string costs: it is compared with every key.
std::int64_t key_cost(const Value& key, std::size_t num_entries);

/// Insertion-ordered. String keys are indexed once there are many; other keys are few (template literals).
struct Dict final : Counted {
  using Entry = std::pair<Value, Value>;
  int depth = 1;
  std::int64_t weight = 1;
  std::span<const Entry> entries;
  std::vector<Entry> owned;                                                  // as in Sequence
  std::unique_ptr<std::unordered_map<std::string_view, std::size_t>> index;  // views into the key strings
  const Value* find(const Value& key) const;
  const Value* find_text(std::string_view key) const;
};

struct Namespace final : Counted {
  std::vector<std::pair<std::string, Value>> attributes;
  Value* find(std::string_view name);
  void set(std::string_view name, Value value);
};

inline const Sequence* Value::sequence(SequenceForm form) const {
  return type_ == Type::kSequence && sequence_->form == form ? sequence_ : nullptr;
}

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
Value make_dict(std::vector<Dict::Entry> entries);

}  // namespace plimsoll::text::jinja
