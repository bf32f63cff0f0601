// SPDX-License-Identifier: Apache-2.0
// Expressions: names, sums, calls.
#include <algorithm>

#include "text/jinja/filters.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/python_format.h"

namespace plimsoll::text::jinja {
namespace {

const Arguments kNoArguments{};

bool is_plain_string(const Value& value) {
  return value.is_string() && !value.is_markup();
}

}  // namespace

Value Interpreter::evaluate(const Node& node, const FramePtr& frame) {
  if (!charge_steps(1)) return {};
  if (node.kind == NodeKind::kConstant) return node.constant.borrowed();
  if (node.kind == NodeKind::kName) return evaluate_name(node, frame);
  const Expression level(*this, node);
  switch (node.kind) {
    case NodeKind::kAttribute: {
      const Value object = evaluate(*node.first, frame);
      return failed() ? Value() : attribute(object, *node.attribute);
    }
    case NodeKind::kItem: {
      const Value object = evaluate(*node.first, frame);
      if (failed()) return {};
      const Node& subscript = *node.second;
      if (subscript.kind == NodeKind::kConstant) return item(object, subscript.constant.borrowed());
      const Value key = evaluate(subscript, frame);
      return failed() ? Value() : item(object, key);
    }
    case NodeKind::kAnd:
    case NodeKind::kOr: {
      Value left = evaluate(*node.first, frame);
      if (failed() || left.is_true() == (node.kind == NodeKind::kOr)) return left;
      return evaluate(*node.second, frame);
    }
    case NodeKind::kSum:
      return evaluate_sum(node, frame, false);
    case NodeKind::kCompare:
      return evaluate_compare(node, frame);
    case NodeKind::kUnary:
      return evaluate_unary(node, frame);
    case NodeKind::kTest:
      return evaluate_test(node, frame);
    case NodeKind::kFilter:
      return evaluate_filter(node, frame, nullptr);
    case NodeKind::kCall:
      return evaluate_call(node, frame);
    default:
      return evaluate_rare(node, frame);
  }
}

Value Interpreter::evaluate_rare(const Node& node, const FramePtr& frame) {
  switch (node.kind) {
    case NodeKind::kList:
    case NodeKind::kTuple:
    case NodeKind::kDict:
      return evaluate_container(node, frame);
    case NodeKind::kBinary: {
      const Value left = evaluate(*node.first, frame);
      const Value right = evaluate(*node.second, frame);
      return failed() ? Value() : binary(node.op, left, right);
    }
    case NodeKind::kConcat:
      return evaluate_concat(node, frame);
    case NodeKind::kSlice:
      return evaluate_slice(node, frame);
    case NodeKind::kCondition: {
      const NodeList parts = node.rest->children;
      const bool is_true = evaluate(*parts[0], frame).is_true();
      if (failed()) return {};
      if (is_true) return evaluate(*parts[1], frame);
      if (parts[2]) return evaluate(*parts[2], frame);
      return Value::undefined("the inline if-expression on line " + std::to_string(node.line) +
                              " evaluated to false and no else section was defined.");
    }
    default:
      PLIMSOLL_CHECK(false, "a statement stands where an expression belongs");
      return {};
  }
}

Value Interpreter::evaluate_name(const Node& node, const FramePtr& frame) {
  const auto id = static_cast<std::size_t>(node.name);
  if (!node.is_global)
    for (const Frame* scope = frame.get(); scope; scope = scope->parent.get()) {
      if (!charge_names(scope->variables.size())) return {};
      if (const Value* found = scope->find_here(node.name)) return *found;
    }
  if (const auto& global = globals_[id]) return *global;
  static constexpr std::string_view kAbsent[] = {"cycler", "joiner", "lipsum", "self"};
  if (std::find(std::begin(kAbsent), std::end(kAbsent), program_.name_texts[id]) != std::end(kAbsent))
    return fail("TemplateRuntimeError", "'" + program_.name_texts[id] + "' is not supported");
  return Value::undefined_name(program_.name_texts[id]);
}

Value Interpreter::evaluate_container(const Node& node, const FramePtr& frame) {
  std::vector<Value> parts;
  parts.reserve(node.rest->children.size());
  for (const Node* child : node.rest->children) parts.push_back(evaluate(*child, frame));
  if (failed()) return {};
  if (node.kind != NodeKind::kDict)
    return sequence(std::move(parts),
                    node.kind == NodeKind::kTuple ? SequenceForm::kTuple : SequenceForm::kList);
  std::vector<Dict::Entry> entries;
  for (std::size_t i = 0; i + 1 < parts.size(); i += 2) {
    if (refuse_unhashable(parts[i])) return {};
    entries.emplace_back(std::move(parts[i]), std::move(parts[i + 1]));
  }
  return dict(std::move(entries));
}

// Operands added from the left. While all of them are strings the sum is written where it may belong anyway,
// at the end of the output; it is taken back when it turns out to be something else.
Value Interpreter::evaluate_sum(const Node& node, const FramePtr& frame, bool prints) {
  const Level level(*this);
  const NodeList operands = node.rest->children;
  const std::size_t mark = out_.size();
  std::size_t next = 1;
  Value sum = evaluate(*operands[0], frame);
  if (is_plain_string(sum)) {
    write(*sum.string());
    while (next < operands.size()) {
      const Value right = evaluate(*operands[next++], frame);
      if (failed()) return {};
      if (!is_plain_string(right)) {
        sum = binary(Operator::kAdd, string(taken_back(mark)), right);
        break;
      }
      write(*right.string());
      if (next == operands.size()) return prints ? Value() : string(taken_back(mark));
    }
  }
  while (next < operands.size() && !failed()) {
    const Value right = evaluate(*operands[next++], frame);
    if (!failed()) sum = binary(Operator::kAdd, sum, right);
  }
  if (failed()) return {};
  if (prints) write(sum.is_string() ? *sum.string() : to_text(sum));
  return sum;
}

Value Interpreter::evaluate_concat(const Node& node, const FramePtr& frame) {
  const std::size_t mark = out_.size();
  for (const Node* part : node.rest->children) {
    const Value value = evaluate(*part, frame);
    if (failed()) return {};
    if (const std::string* text = value.string())
      write(*text);
    else
      write(to_text(value));
  }
  return string(taken_back(mark));
}

Value Interpreter::evaluate_unary(const Node& node, const FramePtr& frame) {
  const Value value = evaluate(*node.first, frame);
  if (failed()) return {};
  if (node.op == Operator::kNot) return !value.is_true();
  if (refuse_undefined(value)) return {};
  std::int64_t whole = 0;
  if (value.as_int(whole)) {
    if (whole == INT64_MIN) return fail("LimitError", "integer is too large");
    return node.op == Operator::kNegate ? -whole : whole;
  }
  double number = 0;
  if (value.as_double(number)) return node.op == Operator::kNegate ? -number : number;
  return type_error(std::string("bad operand type for unary ") + spelling(node.op) + ": '" +
                    type_name(value) + "'");
}

Value Interpreter::evaluate_compare(const Node& node, const FramePtr& frame) {
  const Value left = evaluate(*node.first, frame);
  Value right = evaluate(*node.second, frame);
  if (failed()) return {};
  bool holds = compare(node.op, left, right);
  for (std::size_t i = 0; node.rest && holds && i < node.rest->children.size(); ++i) {
    Value next = evaluate(*node.rest->children[i], frame);
    if (failed()) return {};
    holds = compare(node.rest->operators[i], right, next);
    right = std::move(next);
  }
  return holds;
}

Value Interpreter::evaluate_slice(const Node& node, const FramePtr& frame) {
  Value parts[4] = {Value(), None{}, None{}, None{}};
  for (std::size_t i = 0; i < 4; ++i)
    if (node.rest->children[i]) parts[i] = evaluate(*node.rest->children[i], frame);
  return failed() ? Value() : slice(parts[0], parts[1], parts[2], parts[3]);
}

void Interpreter::evaluate_arguments(const CallArguments& arguments, const FramePtr& frame,
                                     Arguments& values) {
  for (const Node* node : arguments.positional) values.positional.push_back(evaluate(*node, frame));
  for (const auto& [name, node] : arguments.named) values.named.emplace_back(name, evaluate(*node, frame));
  if (arguments.star)
    for (const Value& value : iterate(evaluate(*arguments.star, frame)))
      if (charge_steps(1)) values.positional.push_back(value);
  if (!arguments.double_star) return;
  values.keywords = evaluate(*arguments.double_star, frame);
  if (refuse_undefined(values.keywords)) return;
  const Dict* map = values.keywords.dict();
  if (!map) {
    type_error("argument after ** must be a mapping, not " + type_name(values.keywords));
    return;
  }
  for (const auto& [key, value] : map->entries) {
    if (!charge_steps(1)) return;
    if (key.is_string())
      values.named.emplace_back(*key.string(), value);
    else
      type_error("keywords must be strings");
  }
}

Value Interpreter::evaluate_call(const Node& node, const FramePtr& frame, const Value* caller) {
  const Node& called = *node.first;
  if (called.kind == NodeKind::kAttribute) {
    // object.method(...): no bound method needs to be made.
    const Value object = evaluate(*called.first, frame);
    if (failed()) return {};
    const Method& method = called.attribute->methods[static_cast<std::size_t>(method_set(object))];
    if (method.function && !caller && !node.arguments) {
      if (!charge_reading(object) || !accepts(method.arity, object, called.attribute->text, kNoArguments))
        return {};
      return method.function(*this, object, kNoArguments);
    }
    Arguments arguments;
    if (method.function && !caller) {
      if (node.arguments) evaluate_arguments(*node.arguments, frame, arguments);
      if (!charge_reading(object) || !accepts(method.arity, object, called.attribute->text, arguments))
        return {};
      return method.function(*this, object, arguments);
    }
    const Value callee = attribute(object, *called.attribute);
    if (node.arguments) evaluate_arguments(*node.arguments, frame, arguments);
    if (failed()) return {};
    if (caller) arguments.named.emplace_back("caller", *caller);
    return call(callee, arguments);
  }
  const Value callee = evaluate(called, frame);
  Arguments arguments;
  if (node.arguments) evaluate_arguments(*node.arguments, frame, arguments);
  if (failed()) return {};
  if (caller) arguments.named.emplace_back("caller", *caller);
  return call(callee, arguments);
}

Value Interpreter::call(const Value& callee, const Arguments& arguments) {
  if (failed() || refuse_undefined(callee)) return {};
  if (Loop* loop = callee.loop()) return call_loop(*loop, arguments);
  const Callable* callable = callee.callable();
  if (!callable) return type_error("'" + type_name(callee) + "' object is not callable");
  if (callable->kind == Callable::Kind::kMacro) return call_macro(*callable, arguments);
  if (!charge_reading(callable->self) || !accepts(callable->arity, callable->self, callable->name, arguments))
    return {};
  return callable->function(*this, callable->self, arguments);
}

Value Interpreter::evaluate_test(const Node& node, const FramePtr& frame) {
  const Value value = evaluate(*node.first, frame);
  if (!charge_reading(value)) return {};
  // Most tests are given nothing.
  if (!node.arguments && node.test && node.test->num_arguments == 0)
    return node.test->test(*this, value, kNoArguments);
  Arguments arguments;
  if (node.arguments) evaluate_arguments(*node.arguments, frame, arguments);
  if (failed()) return {};
  if (node.test) return apply_test(*node.test, value, arguments);
  return apply_test(program_.name_texts[static_cast<std::size_t>(node.name)], value, arguments);
}

Value Interpreter::evaluate_filter(const Node& node, const FramePtr& frame, const Value* input) {
  const Level level(*this);
  if (failed()) return {};
  Value value;
  if (!node.first)
    value = input ? *input : Value();
  else if (node.first->kind == NodeKind::kFilter)
    value = evaluate_filter(*node.first, frame, input);
  else
    value = evaluate(*node.first, frame);
  if (!charge_reading(value)) return {};
  if (!node.arguments && node.filter) return node.filter->function(*this, value, kNoArguments);
  Arguments arguments;
  if (node.arguments) evaluate_arguments(*node.arguments, frame, arguments);
  if (failed()) return {};
  if (node.filter) return apply_filter(*node.filter, value, arguments);
  return apply_filter(program_.name_texts[static_cast<std::size_t>(node.name)], value, arguments);
}

}  // namespace plimsoll::text::jinja
