// SPDX-License-Identifier: Apache-2.0
// What can be called, what calls are given, and the scopes and loops around them. Attribute names are
// resolved here once, when a template is parsed, to the method that each Python type has under that name.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace plimsoll::text::jinja {

class Interpreter;
struct Node;
struct FilterEntry;
struct TestEntry;

/// A few values in place, more on the heap.
class ValueList {
 public:
  void push_back(Value value) {
    if (size_ < kInline)
      inline_[size_] = std::move(value);
    else
      spill(std::move(value));
    ++size_;
  }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const Value* begin() const { return size_ <= kInline ? inline_.data() : more_.data(); }
  const Value* end() const { return begin() + size_; }
  const Value& operator[](std::size_t i) const { return begin()[i]; }

 private:
  static constexpr std::size_t kInline = 3;
  void spill(Value value) {
    if (size_ == kInline)
      for (Value& moved : inline_) more_.push_back(std::move(moved));
    more_.push_back(std::move(value));
  }
  std::array<Value, kInline> inline_;
  std::vector<Value> more_;
  std::size_t size_ = 0;
};

struct Arguments {
  ValueList positional;
  std::vector<std::pair<std::string_view, Value>> named;
  Value keywords;  // what **keywords was given: holds the names
  /// The argument at this position or of this name, or null.
  const Value* get(std::size_t position, std::string_view name) const;
  const Value* find(std::string_view name) const;
};

/// Variables of one scope; a scope sees those of its parents.
struct Frame final : Counted {
  Ref<Frame> parent;
  std::vector<std::pair<int, Value>> variables;  // by name id; few
  void set(int name, Value value);
  const Value* find_here(int name) const {
    for (const auto& [key, value] : variables)
      if (key == name) return &value;
    return nullptr;
  }
};
using FramePtr = Ref<Frame>;

using Function = Value (*)(Interpreter&, const Value& self, const Arguments&);
using Test = bool (*)(Interpreter&, const Value&, const Arguments&);

/// How many arguments a built-in method takes; those with kAny look for themselves.
enum class Arity : std::uint8_t { kAny, kNone, kOne, kAtMostOne, kAtMostTwo };

struct Callable final : Counted {
  enum class Kind : std::uint8_t { kFunction, kMethod, kMacro };
  Kind kind = Kind::kFunction;
  TypeCode type = TypeCode::kFunction;
  std::string name;
  Function function = nullptr;  // kFunction, kMethod
  Arity arity = Arity::kAny;
  Value self;                   // kMethod: the object
  const Node* macro = nullptr;  // kMacro: a macro or call block
  FramePtr frame;               // kMacro: where it was defined
  int depth = 1;
};

struct Loop final : Counted {
  Value iterated;  // holds the items, unless `owned` does
  std::vector<Value> owned;
  std::span<const Value> items;
  std::size_t position = 0;
  int depth0 = 0;  // how many recursive loops are around it
  std::optional<std::vector<Value>> last_changed;
  const Node* statement = nullptr;  // the for statement, for recursive calls
  FramePtr frame;                   // scope around the loop
  int value_depth = 1;
};

/// A method of some Python type, or none, or one that the sandbox keeps away, or one that only Python has.
struct Method {
  Function function = nullptr;
  Arity arity = Arity::kAny;
  bool is_forbidden = false;
  bool is_absent = false;
};

struct MethodEntry {
  std::string_view name;
  Function function;
  Arity arity = Arity::kAny;
};

/// Groups of types that share their methods.
enum class MethodSet : std::uint8_t { kString, kDict, kList, kTuple, kRange, kInt, kFloat, kOther };
constexpr std::size_t kNumMethodSets = 8;
MethodSet method_set(const Value& object);
Method find_method(MethodSet set, std::string_view name);

enum class LoopField : std::uint8_t {
  kNone,
  kIndex,
  kIndex0,
  kRevindex,
  kRevindex0,
  kFirst,
  kLast,
  kLength,
  kDepth,
  kDepth0,
  kPrevitem,
  kNextitem,
  kCycle,
  kChanged
};
LoopField loop_field(std::string_view name);

/// An attribute's name with what it means for each kind of object.
struct AttributeName {
  explicit AttributeName(std::string name);
  std::string text;
  std::array<Method, kNumMethodSets> methods;
  LoopField field;
};

}  // namespace plimsoll::text::jinja
