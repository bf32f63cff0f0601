// SPDX-License-Identifier: Apache-2.0
// The values of a template that can be called or that live while a loop runs: functions of the environment,
// methods bound to their object, macros, and the `loop` object. Owned by shared pointers inside Values; the
// interpreter breaks the cycles of macros and namespaces when a render ends.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/value.h"

namespace plimsoll::text::jinja {

class Interpreter;

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
  /// The argument at this position or of this name, or null.
  const Value* get(std::size_t position, std::string_view name) const;
};

/// Variables of one scope; a scope sees those of its parents.
struct Frame {
  std::shared_ptr<Frame> parent;
  std::vector<std::pair<int, Value>> variables;  // by name id; few
  void set(int name, Value value);
  const Value* find_here(int name) const;
};
using FramePtr = std::shared_ptr<Frame>;

using Function = Value (*)(Interpreter&, const Value& self, const Arguments&);

struct Callable {
  enum class Kind { kFunction, kMethod, kMacro, kLoop };
  Kind kind = Kind::kFunction;
  std::string name;
  Function function = nullptr;  // kFunction, kMethod
  Value self;                   // kMethod: the object
  const Node* macro = nullptr;  // kMacro: a macro or call block
  FramePtr frame;               // kMacro: where it was defined
  int depth = 1;
};

struct Loop {
  std::vector<Value> items;
  std::size_t position = 0;
  int depth0 = 0;  // how many recursive loops are around it
  std::optional<std::vector<Value>> last_changed;
  const Node* statement = nullptr;  // the for statement, for recursive calls
  FramePtr frame;                   // scope around the loop
  int value_depth = 1;
};

}  // namespace plimsoll::text::jinja
