// SPDX-License-Identifier: Apache-2.0
// Expressions: names, look-ups in the sandbox's way, calls.
#include <algorithm>

#include "text/jinja/interpreter.h"
#include "text/jinja/python_format.h"
#include "text/unicode.h"

namespace plimsoll::text::jinja {

Value Interpreter::evaluate(const Node& node, const FramePtr& frame) {
  const Level level(*this);
  if (!charge_steps(1)) return {};
  switch (node.kind) {
    case NodeKind::kConstant:
      return node.constant;
    case NodeKind::kName:
      return evaluate_name(node, frame);
    case NodeKind::kList:
    case NodeKind::kTuple:
    case NodeKind::kDict:
      return evaluate_container(node, frame);
    case NodeKind::kUnary:
      return evaluate_unary(node, frame);
    case NodeKind::kBinary: {
      const Value left = evaluate(*node.children[0], frame);
      const Value right = evaluate(*node.children[1], frame);
      return failed() ? Value() : binary(node.text, left, right);
    }
    case NodeKind::kAnd:
    case NodeKind::kOr: {
      Value left = evaluate(*node.children[0], frame);
      if (failed() || left.is_true() == (node.kind == NodeKind::kOr)) return left;
      return evaluate(*node.children[1], frame);
    }
    case NodeKind::kConcat: {
      std::string text;
      for (const Node* part : node.children) text += to_text(evaluate(*part, frame));
      return string(std::move(text));
    }
    case NodeKind::kCompare:
      return evaluate_compare(node, frame);
    case NodeKind::kAttribute: {
      const Value object = evaluate(*node.children[0], frame);
      return failed() ? Value() : attribute(object, node.text);
    }
    case NodeKind::kItem: {
      const Value object = evaluate(*node.children[0], frame);
      const Value key = evaluate(*node.children[1], frame);
      return failed() ? Value() : item(object, key);
    }
    case NodeKind::kSlice:
      return evaluate_slice(node, frame);
    case NodeKind::kCall:
      return evaluate_call(node, frame);
    case NodeKind::kFilter:
      return evaluate_filter(node, frame, nullptr);
    case NodeKind::kTest: {
      const Value value = evaluate(*node.children[0], frame);
      const Arguments arguments = evaluate_arguments(node.arguments, frame);
      return failed() ? Value() : Value(apply_test(node.text, value, arguments));
    }
    case NodeKind::kCondition: {
      const bool is_true = evaluate(*node.children[0], frame).is_true();
      if (failed()) return {};
      if (is_true) return evaluate(*node.children[1], frame);
      if (node.children[2]) return evaluate(*node.children[2], frame);
      return undefined("the inline if-expression on line " + std::to_string(node.line) +
                       " evaluated to false and no else section was defined.");
    }
    default:
      PLIMSOLL_CHECK(false, "a statement stands where an expression belongs");
      return {};
  }
}

Value Interpreter::evaluate_name(const Node& node, const FramePtr& frame) {
  for (const Frame* scope = frame.get(); scope; scope = scope->parent.get())
    if (const Value* found = scope->find_here(node.name)) return *found;
  if (const auto& global = globals_[static_cast<std::size_t>(node.name)]) return *global;
  return undefined("'" + node.text + "' is undefined");
}

Value Interpreter::evaluate_container(const Node& node, const FramePtr& frame) {
  std::vector<Value> parts;
  parts.reserve(node.children.size());
  for (const Node* child : node.children) parts.push_back(evaluate(*child, frame));
  if (failed()) return {};
  if (node.kind != NodeKind::kDict)
    return sequence(std::move(parts),
                    node.kind == NodeKind::kTuple ? SequenceForm::kTuple : SequenceForm::kList);
  std::vector<std::pair<Value, Value>> entries;
  for (std::size_t i = 0; i + 1 < parts.size(); i += 2) {
    if (parts[i].dict() || parts[i].sequence(SequenceForm::kList))
      return type_error("unhashable type: '" + type_name(parts[i]) + "'");
    entries.emplace_back(std::move(parts[i]), std::move(parts[i + 1]));
  }
  return dict(std::move(entries));
}

Value Interpreter::evaluate_unary(const Node& node, const FramePtr& frame) {
  const Value value = evaluate(*node.children[0], frame);
  if (failed()) return {};
  if (node.text == "not") return !value.is_true();
  if (refuse_undefined(value)) return {};
  std::int64_t whole = 0;
  if (value.as_int(whole)) {
    if (whole == INT64_MIN) return fail("LimitError", "integer is too large");
    return node.text == "-" ? -whole : whole;
  }
  double number = 0;
  if (value.as_double(number)) return node.text == "-" ? -number : number;
  return type_error("bad operand type for unary " + node.text + ": '" + type_name(value) + "'");
}

Value Interpreter::evaluate_compare(const Node& node, const FramePtr& frame) {
  Value left = evaluate(*node.children[0], frame);
  for (std::size_t i = 0; i < node.names.size(); ++i) {
    Value right = evaluate(*node.children[i + 1], frame);
    if (failed()) return {};
    if (!compare(node.names[i], left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Interpreter::evaluate_slice(const Node& node, const FramePtr& frame) {
  Value parts[4] = {Value(), None{}, None{}, None{}};
  for (std::size_t i = 0; i < 4; ++i)
    if (node.children[i]) parts[i] = evaluate(*node.children[i], frame);
  return failed() ? Value() : slice(parts[0], parts[1], parts[2], parts[3]);
}

Value Interpreter::slice(const Value& object, const Value& start, const Value& stop, const Value& step) {
  if (refuse_undefined(object)) return {};
  const std::string* text = object.string();
  const Sequence* list = object.sequence();
  if (object.dict()) return type_error("unhashable type: 'slice'");
  if (!text && (!list || list->form > SequenceForm::kRange))
    return type_error("'" + type_name(object) + "' object is not subscriptable");
  const bool ascii = text && is_ascii(*text);
  const std::u32string wide = text && !ascii ? to_code_points(*text) : std::u32string();
  const auto size = static_cast<std::int64_t>(ascii ? text->size() : text ? wide.size() : list->items.size());

  std::int64_t by = 1, from = 0, to = 0;
  for (const Value* bound : {&start, &stop, &step})
    if (!bound->is_none() && !bound->as_int(from))
      return type_error("slice indices must be integers or None or have an __index__ method");
  if (step.as_int(by) && by == 0) return fail("ValueError", "slice step cannot be zero");
  // Python's PySlice_AdjustIndices.
  const auto adjusted = [&](const Value& bound, std::int64_t otherwise) {
    std::int64_t at = 0;
    if (!bound.as_int(at)) return otherwise;
    if (at < 0) return std::max<std::int64_t>(at + size, by < 0 ? -1 : 0);
    return std::min(at, by < 0 ? size - 1 : size);
  };
  from = adjusted(start, by < 0 ? size - 1 : 0);
  to = adjusted(stop, by < 0 ? -1 : size);
  if (by == 1 && ascii)
    return string(
        from < to ? text->substr(static_cast<std::size_t>(from), static_cast<std::size_t>(to - from)) : "",
        object.is_markup());

  std::u32string cut;
  std::vector<Value> items;
  by = std::clamp<std::int64_t>(by, -size - 1, size + 1);
  for (std::int64_t at = from; by > 0 ? at < to : at > to; at += by) {
    const auto i = static_cast<std::size_t>(at);
    if (ascii)
      cut += static_cast<char32_t>((*text)[i]);
    else if (text)
      cut += wide[i];
    else
      items.push_back(list->items[i]);
  }
  return text ? string(to_utf8(cut), object.is_markup()) : sequence(std::move(items), list->form);
}

Value Interpreter::item(const Value& object, const Value& key) {
  if (failed() || refuse_undefined(object)) return {};
  if (const Dict* map = object.dict()) {
    if (const Value* found = map->find(key)) return *found;
  } else if (std::int64_t at = 0; key.as_int(at)) {
    if (const Sequence* list = object.sequence(); list && list->form <= SequenceForm::kRange) {
      const auto size = static_cast<std::int64_t>(list->items.size());
      if (at < 0) at += size;
      if (at >= 0 && at < size) return list->items[static_cast<std::size_t>(at)];
    } else if (const std::string* text = object.string()) {
      const bool ascii = is_ascii(*text);
      const std::u32string wide = ascii ? std::u32string() : to_code_points(*text);
      const auto size = static_cast<std::int64_t>(ascii ? text->size() : wide.size());
      if (at < 0) at += size;
      if (at >= 0 && at < size) {
        const auto i = static_cast<std::size_t>(at);
        return ascii ? string(std::string(1, (*text)[i])) : string(to_utf8(wide.substr(i, 1)));
      }
    }
  }
  if (const std::string* name = key.string()) {
    if (auto found = method(object, *name)) return *found;
    if (object.name_space() || object.loop()) return attribute(object, *name);
    return undefined("'" + object_name(object) + "' has no attribute " + python_repr(key));
  }
  return undefined(object_name(object) + " has no element " + python_repr(key));
}

Value Interpreter::attribute(const Value& object, const std::string& name) {
  if (failed() || refuse_undefined(object)) return {};
  if (auto found = method(object, name)) return *found;
  if (const Dict* map = object.dict()) {
    if (const Value* found = map->find_text((name))) return *found;
  } else if (Namespace* space = object.name_space()) {
    if (const Value* found = space->find(name)) return *found;
  } else if (Loop* loop = object.loop()) {
    return loop_attribute(*loop, *object.loop_pointer(), name);
  } else if (const Callable* macro = object.callable(); macro && name == "name") {
    return macro->name;
  }
  return undefined("'" + object_name(object) + "' has no attribute " + python_repr(Value(name)));
}

Value Interpreter::loop_attribute(Loop& loop, const LoopPtr& pointer, const std::string& name) {
  const auto at = static_cast<std::int64_t>(loop.position);
  const auto length = static_cast<std::int64_t>(loop.items.size());
  if (name == "index") return at + 1;
  if (name == "index0") return at;
  if (name == "revindex") return length - at;
  if (name == "revindex0") return length - at - 1;
  if (name == "first") return at == 0;
  if (name == "last") return at == length - 1;
  if (name == "length") return length;
  if (name == "depth") return loop.depth0 + 1;
  if (name == "depth0") return loop.depth0;
  if (name == "previtem")
    return at > 0 ? loop.items[loop.position - 1] : undefined("there is no previous item");
  if (name == "nextitem")
    return at + 1 < length ? loop.items[loop.position + 1] : undefined("there is no next item");
  if (name == "cycle")
    return make_method(Value(pointer), name, [](Interpreter& run, const Value& self, const Arguments& given) {
      if (given.positional.empty()) return run.type_error("no items for cycling given");
      return given.positional[self.loop()->position % given.positional.size()];
    });
  if (name == "changed")
    return make_method(Value(pointer), name, [](Interpreter& run, const Value& self, const Arguments& given) {
      run.keeps_values(*self.loop_pointer());
      auto& last = self.loop()->last_changed;
      const bool is_same = last && last->size() == given.positional.size() &&
                           std::equal(last->begin(), last->end(), given.positional.begin(),
                                      [](const Value& a, const Value& b) { return a.equals(b); });
      if (!is_same) last = given.positional;
      return Value(!is_same);
    });
  return undefined("'jinja2.runtime.LoopContext object' has no attribute '" + name + "'");
}

Arguments Interpreter::evaluate_arguments(const CallArguments& arguments, const FramePtr& frame) {
  Arguments values;
  for (const Node* node : arguments.positional) values.positional.push_back(evaluate(*node, frame));
  for (const auto& [name, node] : arguments.named) values.named.emplace_back(name, evaluate(*node, frame));
  if (arguments.star)
    for (Value& value : elements(evaluate(*arguments.star, frame)))
      values.positional.push_back(std::move(value));
  if (arguments.double_star) {
    const Value more = evaluate(*arguments.double_star, frame);
    if (const Dict* map = more.dict()) {
      for (const auto& [key, value] : map->entries) values.named.emplace_back(python_str(key), value);
    } else {
      type_error("argument after ** must be a mapping, not " + type_name(more));
    }
  }
  return values;
}

Value Interpreter::evaluate_call(const Node& node, const FramePtr& frame, const Value* caller) {
  const Value callee = evaluate(*node.children[0], frame);
  Arguments arguments = evaluate_arguments(node.arguments, frame);
  if (failed()) return {};
  if (caller) arguments.named.emplace_back("caller", *caller);
  return call(callee, arguments);
}

Value Interpreter::call(const Value& callee, const Arguments& arguments) {
  if (failed() || refuse_undefined(callee)) return {};
  if (Loop* loop = callee.loop()) {
    if (!loop->statement->is_recursive)
      return type_error("The loop must have the 'recursive' marker to be called recursively.");
    if (arguments.positional.empty()) return type_error("loop() missing 1 required positional argument");
    const Level level(*this);
    std::string outside = std::move(out_);
    out_.clear();
    run_for(*loop->statement, loop->frame, arguments.positional[0], loop->depth0 + 1);
    std::string text = std::move(out_);
    out_ = std::move(outside);
    return string(std::move(text));
  }
  const Callable* callable = callee.callable();
  if (!callable) return type_error("'" + type_name(callee) + "' object is not callable");
  if (callable->kind == Callable::Kind::kMacro) return call_macro(*callable, arguments);
  return callable->function(*this, callable->self, arguments);
}

Value Interpreter::evaluate_filter(const Node& node, const FramePtr& frame, const Value* input) {
  const Level level(*this);
  if (failed()) return {};
  Value value;
  if (!node.children[0])
    value = input ? *input : Value();
  else if (node.children[0]->kind == NodeKind::kFilter)
    value = evaluate_filter(*node.children[0], frame, input);
  else
    value = evaluate(*node.children[0], frame);
  const Arguments arguments = evaluate_arguments(node.arguments, frame);
  return failed() ? Value() : apply_filter(node.text, value, arguments);
}

}  // namespace plimsoll::text::jinja
