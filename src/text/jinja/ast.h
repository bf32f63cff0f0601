// SPDX-License-Identifier: Apache-2.0
// A parsed template: nodes owned by one arena (so that no chain of nodes, however long, is freed
// recursively), names interned to small integers. Immutable after parsing.
#pragma once

#include <deque>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace plimsoll::text::jinja {

enum class NodeKind {
  // expressions
  kConstant,
  kName,
  kList,
  kTuple,
  kDict,
  kUnary,   // op in text: "-" "+" "not"
  kBinary,  // op in text: + - * / // % **
  kAnd,
  kOr,
  kConcat,     // children joined by ~
  kCompare,    // children[0], then names[i] applied to children[i + 1]
  kAttribute,  // children[0].text
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
  kWith,         // names[i] = children[i], body
  kMacro,        // text, parameters, body
  kCallBlock,    // children[0] is the call; parameters, body
  kFilterBlock,  // children[0], body
  kScope,        // body in a scope of its own (generation, block, autoescape)
  kBreak,
  kContinue,
  // assignment targets
  kNamespaceRef,  // text.names[0]
};

struct Node;

struct CallArguments {
  std::vector<Node*> positional;
  std::vector<std::pair<std::string, Node*>> named;
  Node* star = nullptr;         // *args
  Node* double_star = nullptr;  // **kwargs
};

struct Node {
  NodeKind kind = NodeKind::kConstant;
  int line = 0;
  int name = -1;     // interned id of `text` where it names a variable
  std::string text;  // name, operator, attribute, or output text
  Value constant;
  std::vector<Node*> children;
  std::vector<std::string> names;  // compare operators, namespace attribute
  CallArguments arguments;
  Node* target = nullptr;
  std::vector<int> parameters;  // macro parameters (name ids)
  std::vector<Node*> defaults;  // of the last parameters
  std::vector<Node*> body;
  std::vector<Node*> else_body;
  bool is_recursive = false;                                            // for
  bool uses_varargs = false, uses_kwargs = false, uses_caller = false;  // macro
};

struct Program {
  std::deque<Node> nodes;
  std::vector<std::string> name_texts;
  std::unordered_map<std::string, int> name_ids;
  std::vector<Node*> body;
  int intern(const std::string& name);
};

}  // namespace plimsoll::text::jinja
