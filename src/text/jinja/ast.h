// SPDX-License-Identifier: Apache-2.0
// A parsed template: nodes owned by one arena (so that no chain of nodes, however long, is freed
// recursively), names interned to small integers, filters, tests and attributes looked up once. Immutable
// after parsing: any number of threads may render it, since they borrow its constants.
#pragma once

#include <deque>
#include <memory>
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
  kUnary,   // op: negate, plus, not
  kBinary,  // op: all of arithmetic but +
  kSum,     // children added from the left
  kAnd,
  kOr,
  kConcat,     // children joined by ~
  kCompare,    // children[0], then operators[i] applied to children[i + 1]
  kAttribute,  // children[0].attribute
  kItem,       // children[0][children[1]]
  kSlice,      // children[0][children[1] : children[2] : children[3]], each may be null
  kCall,       // children[0](arguments)
  kFilter,     // children[0] | text(arguments); children[0] null inside a filter block
  kTest,       // children[0] is text(arguments)
  kCondition,  // children[1] if children[0] else children[2] (may be null)
  // statements
  kText,         // constant text
  kOutput,       // children[0] printed
  kIf,           // children[0], body, else_body
  kFor,          // target, children[0] iterable, children[1] filter or null, body, else_body
  kSet,          // target = children[0]
  kSetBlock,     // target = captured body, through children[0] filter or null
  kWith,         // signature's names[i] = children[i], body
  kMacro,        // text, signature, body
  kCallBlock,    // children[0] is the call; signature, body
  kFilterBlock,  // children[0], body
  kScope,        // body in a scope of its own (generation, block, autoescape)
  kBreak,
  kContinue,
  // assignment targets
  kNamespaceRef,  // text.attribute
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

/// What running most nodes reads fits into one cache line.
struct alignas(64) Node {
  NodeKind kind = NodeKind::kConstant;
  Operator op = Operator::kAdd;
  bool is_recursive = false;  // for
  bool uses_loop = false;     // for: "loop" is named inside
  bool is_global = false;     // name: no scope can hold it
  int line = 0;
  int column = 0;         // where it begins, in bytes from 1
  int name = -1;          // interned id of `text` where it names a variable
  Node* first = nullptr;  // children[0] and [1], set when parsing ends
  Node* second = nullptr;
  union {
    const AttributeName* attribute = nullptr;  // kAttribute, kNamespaceRef
    Function filter;                           // kFilter; null: unknown, an error when it runs
    Test test;                                 // kTest; likewise
  };
  Value constant;
  const CallArguments* arguments = nullptr;  // null: none given
  std::string text;                          // name, filter, test, or output text
  std::vector<Node*> children;
  std::vector<Node*> body;
  std::vector<Node*> else_body;
  std::vector<Operator> operators;  // of a comparison
  Node* target = nullptr;
  std::unique_ptr<Signature> signature;
};

struct Program {
  std::deque<Node> nodes;
  std::deque<CallArguments> arguments;
  std::deque<AttributeName> attributes;
  std::unordered_map<std::string, const AttributeName*> attribute_names;
  std::vector<std::string> name_texts;
  std::unordered_map<std::string, int> name_ids;
  std::vector<bool> is_assigned;  // by name id: some statement sets it, so that scopes have to be searched
  std::vector<Value> globals;     // by name id: the environment's functions
  std::vector<Node*> body;
  int id_loop = -1, id_caller = -1, id_kwargs = -1, id_varargs = -1;
  int intern(const std::string& name);
  const AttributeName* attribute(const std::string& name);
};

}  // namespace plimsoll::text::jinja
