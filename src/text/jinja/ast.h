// SPDX-License-Identifier: Apache-2.0
// A parsed template: nodes owned by one arena (so that no chain of nodes, however long, is freed
// recursively), names interned to small integers, filters, tests and attributes looked up once. Immutable
// after parsing: any number of threads may render it, since they borrow its constants.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/jinja/callable.h"
#include "text/jinja/value.h"

namespace plimsoll::text::jinja {

enum class NodeKind : std::uint8_t {
  // expressions
  kConstant,
  kName,
  kList,
  kTuple,
  kDict,
  kUnary,   // op first: negate, plus, not
  kBinary,  // first op second: all of arithmetic but +
  kSum,     // rest's children added from the left
  kAnd,
  kOr,
  kConcat,     // rest's children joined by ~
  kCompare,    // first op second, then rest's
  kAttribute,  // first.attribute
  kItem,       // first[second]
  kSlice,      // [0][[1] : [2] : [3]] of rest's children, each bound may be null
  kCall,       // first(arguments)
  kFilter,     // first | filter(arguments); first is null inside a filter block
  kTest,       // first is test(arguments)
  kCondition,  // [1] if [0] else [2] of rest's children; [2] may be null
  // statements
  kText,         // constant text
  kOutput,       // first printed
  kIf,           // first, body, else_body
  kFor,          // target, first iterable, second filter or null, body, else_body
  kSet,          // second = first
  kSetBlock,     // second = captured body, through filter first or null
  kWith,         // signature's names[i] = children[i], body
  kMacro,        // name, signature, body
  kCallBlock,    // first is the call; signature, body
  kFilterBlock,  // first, body
  kScope,        // body in a scope of its own (generation, block, autoescape)
  kBreak,
  kContinue,
  // assignment targets
  kNamespaceRef,  // name.attribute
};

enum class Operator : std::uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kEqual,
  kUnequal,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
  kNegate,
  kPlus,
  kNot
};

struct Node;

struct CallArguments {
  std::vector<Node*> positional;
  std::vector<std::pair<std::string, Node*>> named;
  Node* star = nullptr;         // *args
  Node* double_star = nullptr;  // **kwargs
};

/// What a macro or call block takes; the names of `with`.
struct Signature {
  std::vector<int> names;       // ids
  std::vector<Node*> defaults;  // of the last parameters
  bool uses_varargs = false, uses_kwargs = false, uses_caller = false;
};

/// Nodes in the program's memory.
using NodeList = std::span<Node* const>;

/// What few kinds of node have.
struct Rest {
  NodeList children;                    // of lists, sums, ...; of a comparison those after the second
  const Operator* operators = nullptr;  // of a comparison: before each of them
  NodeList body;
  NodeList else_body;
  Node* target = nullptr;          // for
  Signature* signature = nullptr;  // macro, call block, with
};

/// One cache line: what is rendered once in a while comes from far away.
struct Node {
  NodeKind kind = NodeKind::kConstant;
  Operator op = Operator::kAdd;
  bool is_recursive : 1 = false;  // for
  bool uses_loop : 1 = false;     // for: "loop" is named inside
  bool is_global : 1 = false;     // name: no scope can hold it
  int line = 0;
  int column = 0;  // where it begins, in bytes from 1
  int name = -1;   // interned id of what is named: variable, filter, test, macro
  Node* first = nullptr;
  union {
    Node* second = nullptr;
    const CallArguments* arguments;  // kCall, kFilter, kTest; null: none given
  };
  union {
    Rest* rest = nullptr;
    const AttributeName* attribute;  // kAttribute, kNamespaceRef
    const FilterEntry* filter;       // kFilter; null: unknown, an error when it runs
    const TestEntry* test;           // kTest; likewise
  };
  Value constant;  // kConstant, kText
};
static_assert(sizeof(Node) == 64);

/// Memory of one kind of thing: in blocks, so that what is parsed together lies together and stays in place.
template <class T>
class Blocks {
 public:
  static constexpr std::size_t kBlock = 64;
  T* add() { return add(1); }
  /// Several side by side.
  T* add(std::size_t count) {
    if (blocks_.empty() || capacity_ - used_ < count) {
      capacity_ = std::max(count, kBlock);
      blocks_.emplace_back(new T[capacity_], 0);
      used_ = 0;
    }
    T* found = blocks_.back().first.get() + used_;
    used_ += count;
    blocks_.back().second = used_;
    return found;
  }
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const auto& [block, used] : blocks_)
      for (std::size_t i = 0; i < used; ++i) visit(block[i]);
  }

 private:
  std::vector<std::pair<std::unique_ptr<T[]>, std::size_t>> blocks_;
  std::size_t used_ = 0, capacity_ = 0;
};

struct Program {
  Blocks<Node> nodes;
  Blocks<Rest> rests;
  Blocks<Node*> lists;
  Blocks<Operator> operators;
  Blocks<std::string> texts;  // what constants borrow
  std::deque<Signature> signatures;
  std::deque<CallArguments> arguments;
  std::deque<AttributeName> attributes;
  std::unordered_map<std::string, const AttributeName*> attribute_names;
  std::vector<std::string> name_texts;
  std::unordered_map<std::string, int> name_ids;
  std::vector<bool> is_assigned;  // by name id: some statement sets it, so that scopes have to be searched
  std::vector<Value> globals;     // by name id: the environment's functions
  NodeList body;
  int id_loop = -1, id_caller = -1, id_kwargs = -1, id_varargs = -1;
  int intern(const std::string& name);
  const AttributeName* attribute(const std::string& name);
  NodeList list(const std::vector<Node*>& nodes);
  /// A constant string.
  Value text(std::string text);
};

}  // namespace plimsoll::text::jinja
