// SPDX-License-Identifier: Apache-2.0
// Limits, scopes and statements. Scoping is jinja2's: loops, macros, blocks and filters have their own scope,
// if does not; a loop's scope is new in every turn.
#include "text/jinja/interpreter.h"

#include <algorithm>

#include "text/jinja/python_format.h"

namespace plimsoll::text::jinja {

const Value* Arguments::get(std::size_t position, std::string_view name) const {
  if (position < positional.size()) return &positional[position];
  for (const auto& [key, value] : named)
    if (key == name) return &value;
  return nullptr;
}

void Frame::set(int name, Value value) {
  for (auto& [key, existing] : variables)
    if (key == name) {
      existing = std::move(value);
      return;
    }
  variables.emplace_back(name, std::move(value));
}

const Value* Frame::find_here(int name) const {
  for (const auto& [key, value] : variables)
    if (key == name) return &value;
  return nullptr;
}

Interpreter::Interpreter(const Program& program, std::string_view now, const Limits& limits)
    : program_(program), now_(now), limits_(limits), globals_(program.name_texts.size()) {}

Interpreter::~Interpreter() {
  for (const auto& space : namespaces_) space->attributes.clear();
  for (const auto& loop : changed_loops_) loop->last_changed.reset();
  for (const auto& frame : closures_) {
    frame->variables.clear();
    frame->parent.reset();
  }
}

Interpreter::Level::Level(Interpreter& interpreter) : interpreter_(interpreter) {
  if (++interpreter_.depth_ > interpreter_.limits_.depth)
    interpreter_.fail("LimitError", "template recurses too deeply");
}

tl::expected<std::string, TemplateError> Interpreter::run(const Json& context) {
  for (std::size_t id = 0; id < program_.name_texts.size(); ++id)
    globals_[id] = environment_function(program_.name_texts[id]);
  for (const auto& [name, value] : context.members()) {
    const auto found = program_.name_ids.find(name);
    if (found != program_.name_ids.end())
      globals_[static_cast<std::size_t>(found->second)] = from_json(value);
  }
  run_body(program_.body, std::make_shared<Frame>());
  if (error_) return tl::unexpected(*error_);
  return std::move(out_);
}

Value Interpreter::fail(std::string type, std::string message) {
  if (!error_) error_ = TemplateError{std::move(type), std::move(message), line_};
  return {};
}

bool Interpreter::charge_steps(std::int64_t steps) {
  if (failed()) return false;
  limits_.steps -= steps;
  if (limits_.steps >= 0) return true;
  fail("LimitError", "template takes too many steps");
  return false;
}

bool Interpreter::charge_bytes(std::size_t bytes) {
  if (failed()) return false;
  if (bytes <= limits_.output_bytes) {
    limits_.made_bytes -= static_cast<std::int64_t>(bytes);
    if (limits_.made_bytes >= 0) return true;
  }
  fail("LimitError", "template makes too much data");
  return false;
}

Value Interpreter::string(std::string text, bool is_markup) {
  if (!charge_bytes(text.size() + 32)) return {};
  return Value(std::move(text), is_markup);
}

Value Interpreter::sequence(std::vector<Value> items, SequenceForm form) {
  if (!charge_bytes(items.size() * sizeof(Value) + 64)) return {};
  Value made = make_sequence(std::move(items), form);
  if (made.depth() > kMaxValueDepth || made.weight() > kMaxValueWeight)
    return fail("LimitError", "values are nested too deeply");
  return made;
}

Value Interpreter::dict(std::vector<std::pair<Value, Value>> entries) {
  if (!charge_bytes(entries.size() * 2 * sizeof(Value) + 64)) return {};
  Value made = make_dict(std::move(entries));
  if (made.depth() > kMaxValueDepth || made.weight() > kMaxValueWeight)
    return fail("LimitError", "values are nested too deeply");
  return made;
}

Value Interpreter::undefined(std::string message, bool is_unsafe) {
  return Undefined{std::make_shared<const std::string>(std::move(message)), is_unsafe};
}

bool Interpreter::refuse_undefined(const Value& value) {
  const Undefined* missing = value.undefined();
  if (!missing) return false;
  fail(missing->is_unsafe ? "SecurityError" : "UndefinedError",
       missing->message ? *missing->message : "value is undefined");
  return true;
}

std::string Interpreter::to_text(const Value& value) {
  if (const Undefined* missing = value.undefined(); missing && missing->is_unsafe) refuse_undefined(value);
  std::string text = python_str(value);
  charge_bytes(text.size());
  return text;
}

void Interpreter::write(std::string_view text) {
  if (out_.size() + text.size() > limits_.output_bytes) {
    fail("LimitError", "template writes too much");
    return;
  }
  out_ += text;
}

FramePtr Interpreter::inner(const FramePtr& frame) {
  auto scope = std::make_shared<Frame>();
  scope->parent = frame;
  return scope;
}

Interpreter::Jump Interpreter::run_body(const std::vector<Node*>& nodes, const FramePtr& frame) {
  for (const Node* node : nodes) {
    if (!charge_steps(1)) break;
    if (const Jump jump = run_statement(*node, frame); jump != Jump::kNone) return jump;
  }
  return Jump::kNone;
}

Interpreter::Jump Interpreter::run_statement(const Node& node, const FramePtr& frame) {
  const Level level(*this);
  if (failed()) return Jump::kNone;
  line_ = node.line;
  switch (node.kind) {
    case NodeKind::kText:
      write(node.text);
      return Jump::kNone;
    case NodeKind::kOutput: {
      const Value value = evaluate(*node.children[0], frame);
      if (failed()) return Jump::kNone;
      if (const std::string* text = value.string())
        write(*text);
      else
        write(to_text(value));
      return Jump::kNone;
    }
    case NodeKind::kIf: {
      const bool is_true = evaluate(*node.children[0], frame).is_true();
      return failed() ? Jump::kNone : run_body(is_true ? node.body : node.else_body, frame);
    }
    case NodeKind::kFor:
      return run_for(node, frame, evaluate(*node.children[0], frame), 0);
    case NodeKind::kSet:
      assign(*node.target, evaluate(*node.children[0], frame), frame);
      return Jump::kNone;
    case NodeKind::kSetBlock: {
      Value text = string(captured(node.body, inner(frame)));
      if (node.children[0]) text = evaluate_filter(*node.children[0], frame, &text);
      assign(*node.target, std::move(text), frame);
      return Jump::kNone;
    }
    case NodeKind::kWith: {
      const FramePtr scope = inner(frame);
      for (std::size_t i = 0; i < node.parameters.size(); ++i)
        scope->set(node.parameters[i], evaluate(*node.children[i], frame));
      return run_body(node.body, scope);
    }
    case NodeKind::kMacro:
      frame->set(node.name, make_macro(node, frame));
      return Jump::kNone;
    case NodeKind::kCallBlock: {
      const Value caller = make_macro(node, frame);
      write(to_text(evaluate_call(*node.children[0], frame, &caller)));
      return Jump::kNone;
    }
    case NodeKind::kFilterBlock: {
      const Value text = string(captured(node.body, inner(frame)));
      write(to_text(evaluate_filter(*node.children[0], frame, &text)));
      return Jump::kNone;
    }
    case NodeKind::kScope:
      return run_body(node.body, inner(frame));
    case NodeKind::kBreak:
      return Jump::kBreak;
    case NodeKind::kContinue:
      return Jump::kContinue;
    default:
      PLIMSOLL_CHECK(false, "an expression stands where a statement belongs");
      return Jump::kNone;
  }
}

std::string Interpreter::captured(const std::vector<Node*>& nodes, const FramePtr& frame) {
  std::string outside = std::move(out_);
  out_.clear();
  run_body(nodes, frame);
  std::string text = std::move(out_);
  out_ = std::move(outside);
  return text;
}

std::vector<Value> Interpreter::filtered(const Node& node, std::vector<Value> items, const FramePtr& frame) {
  std::vector<Value> kept;
  for (Value& element : items) {
    if (!charge_steps(1)) break;
    const FramePtr scope = inner(frame);
    assign(*node.target, element, scope);
    if (evaluate(*node.children[1], scope).is_true()) kept.push_back(std::move(element));
  }
  return kept;
}

Interpreter::Jump Interpreter::run_for(const Node& node, const FramePtr& frame, const Value& iterable,
                                       int depth0) {
  if (failed()) return Jump::kNone;
  std::vector<Value> items = elements(iterable);
  if (node.children[1]) items = filtered(node, std::move(items), frame);
  if (failed()) return Jump::kNone;
  if (items.empty()) return run_body(node.else_body, inner(frame));

  static const std::string kLoop = "loop";
  const auto loop_name = program_.name_ids.find(kLoop);
  auto loop = std::make_shared<Loop>();
  for (const Value& element : items) loop->value_depth = std::max(loop->value_depth, element.depth() + 1);
  loop->items = std::move(items);
  loop->depth0 = depth0;
  loop->statement = &node;
  loop->frame = frame;
  if (node.is_recursive) closures_.push_back(frame);
  for (; loop->position < loop->items.size(); ++loop->position) {
    if (!charge_steps(1)) break;
    const FramePtr scope = inner(frame);
    if (loop_name != program_.name_ids.end()) scope->set(loop_name->second, LoopPtr(loop));
    line_ = node.line;
    assign(*node.target, loop->items[loop->position], scope);
    if (run_body(node.body, scope) == Jump::kBreak || failed()) break;
  }
  return Jump::kNone;
}

void Interpreter::assign(const Node& target, Value value, const FramePtr& frame) {
  if (failed()) return;
  if (target.kind == NodeKind::kName) {
    frame->set(target.name, std::move(value));
  } else if (target.kind == NodeKind::kTuple) {
    unpack(target, value, frame);
  } else {
    Namespace* space = evaluate_name(target, frame).name_space();
    if (!space) {
      fail("TemplateRuntimeError", "cannot assign attribute on non-namespace object");
    } else if (value.depth() >= kMaxValueDepth) {
      fail("LimitError", "values are nested too deeply");
    } else {
      space->set(target.names[0], std::move(value));
    }
  }
}

void Interpreter::unpack(const Node& target, const Value& value, const FramePtr& frame) {
  if (value.is_none() || value.is_number()) {
    type_error("cannot unpack non-iterable " + type_name(value) + " object");
    return;
  }
  std::vector<Value> parts = elements(value);
  const std::size_t wanted = target.children.size();
  if (failed()) return;
  if (parts.size() > wanted) {
    fail("ValueError", "too many values to unpack (expected " + std::to_string(wanted) + ")");
  } else if (parts.size() < wanted) {
    fail("ValueError", "not enough values to unpack (expected " + std::to_string(wanted) + ", got " +
                           std::to_string(parts.size()) + ")");
  } else {
    for (std::size_t i = 0; i < wanted; ++i) assign(*target.children[i], std::move(parts[i]), frame);
  }
}

Value Interpreter::make_macro(const Node& node, const FramePtr& frame) {
  if (!charge_bytes(sizeof(Callable))) return {};
  auto macro = std::make_shared<Callable>();
  macro->kind = Callable::Kind::kMacro;
  macro->name = node.text;
  macro->macro = &node;
  macro->frame = frame;
  closures_.push_back(frame);
  return CallablePtr(std::move(macro));
}

void Interpreter::bind_parameters(const Node& macro, const Arguments& arguments, const FramePtr& scope) {
  const std::size_t wanted = macro.parameters.size();
  const std::size_t first_default = wanted - macro.defaults.size();
  std::vector<bool> used(arguments.named.size());
  for (std::size_t i = 0; i < wanted; ++i) {
    const std::string& name = program_.name_texts[static_cast<std::size_t>(macro.parameters[i])];
    const auto named = std::find_if(arguments.named.begin(), arguments.named.end(),
                                    [&](const auto& argument) { return argument.first == name; });
    Value value;
    if (i < arguments.positional.size()) {
      value = arguments.positional[i];
    } else if (named != arguments.named.end()) {
      value = named->second;
      used[static_cast<std::size_t>(named - arguments.named.begin())] = true;
    } else if (i >= first_default) {
      value = evaluate(*macro.defaults[i - first_default], scope);
    } else {
      value = undefined("parameter '" + name + "' was not provided");
    }
    scope->set(macro.parameters[i], std::move(value));
  }
  std::vector<std::pair<Value, Value>> rest;
  for (std::size_t i = 0; i < arguments.named.size() && !failed(); ++i) {
    const auto& [name, value] = arguments.named[i];
    if (used[i]) continue;
    if (name == "caller" && macro.uses_caller)
      scope->set(program_.name_ids.at("caller"), value);
    else if (macro.uses_kwargs)
      rest.emplace_back(Value(name), value);
    else
      type_error("macro '" + macro.text + "' takes no keyword argument '" + name + "'");
  }
  if (macro.uses_kwargs) scope->set(program_.name_ids.at("kwargs"), dict(std::move(rest)));
  if (macro.uses_varargs) {
    std::vector<Value> more;
    for (std::size_t i = wanted; i < arguments.positional.size(); ++i)
      more.push_back(arguments.positional[i]);
    scope->set(program_.name_ids.at("varargs"), sequence(std::move(more), SequenceForm::kTuple));
  } else if (arguments.positional.size() > wanted) {
    type_error("macro '" + macro.text + "' takes not more than " + std::to_string(wanted) + " argument(s)");
  }
}

Value Interpreter::call_macro(const Callable& macro, const Arguments& arguments) {
  const Level level(*this);
  const int line = line_;
  const FramePtr scope = inner(macro.frame);
  bind_parameters(*macro.macro, arguments, scope);
  std::string text = captured(macro.macro->body, scope);
  if (!failed()) line_ = line;
  return string(std::move(text));
}

}  // namespace plimsoll::text::jinja
