// SPDX-License-Identifier: Apache-2.0
// Limits, scopes and statements. Scoping is jinja2's: loops, macros, blocks and filters have their own scope,
// if does not; a loop's scope is new in every turn.
#include "text/jinja/interpreter.h"

#include <algorithm>

#include "text/jinja/python_format.h"

namespace plimsoll::text::jinja {
namespace {

constexpr std::size_t kFirstOutputBytes = 1000;  // a short conversation; longer ones grow

}  // namespace

Interpreter::Interpreter(const Program& program, std::string_view now, const Limits& limits)
    : program_(program), now_(now), limits_(limits), globals_(program.name_texts.size()) {}

Interpreter::~Interpreter() {
  for (const Value& space : namespaces_) space.name_space()->attributes.clear();
  for (const Value& loop : changed_loops_) loop.loop()->last_changed.reset();
  for (const FramePtr& frame : closures_) {
    frame->variables.clear();
    frame->parent = FramePtr();
  }
}

tl::expected<std::string, TemplateError> Interpreter::run(const Json& context) {
  for (std::size_t id = 0; id < globals_.size(); ++id)
    if (!program_.globals[id].is_undefined()) globals_[id] = program_.globals[id].borrowed();
  for (const auto& [name, value] : context.members()) {
    const auto found = program_.name_ids.find(name);
    if (found != program_.name_ids.end())
      globals_[static_cast<std::size_t>(found->second)] = json_.convert(value);
  }
  if (json_.is_too_deep()) fail("LimitError", "the conversation is nested too deeply");
  out_.reserve(kFirstOutputBytes);
  run_body(program_.body, FramePtr(new Frame));
  if (has_failed_) return tl::unexpected(std::move(error_));
  return std::move(out_);
}

Value Interpreter::fail(std::string type, std::string message) {
  if (!has_failed_) error_ = TemplateError{std::move(type), std::move(message), line_, 0};
  has_failed_ = true;
  return {};
}

// The innermost expression that begins on the reported line is where the error is.
void Interpreter::locate(const Node& node) {
  if (error_.column == 0 && node.line == error_.line) error_.column = node.column;
}

bool Interpreter::refuse_steps() {
  fail("LimitError", "template takes too many steps");
  return false;
}

void Interpreter::refuse_depth() {
  fail("LimitError", "template recurses too deeply");
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

bool Interpreter::allows_length(std::size_t bytes) {
  if (bytes > limits_.output_bytes) fail("LimitError", "template makes too much data");
  return !failed();
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

Value Interpreter::dict(std::vector<Dict::Entry> entries) {
  if (!charge_bytes(entries.size() * sizeof(Dict::Entry) + 64)) return {};
  for (const auto& [key, value] : entries)
    if (!(key.is_string() ? charge_reading(key) : charge_steps(key_cost(key, entries.size())))) return {};
  Value made = make_dict(std::move(entries));
  if (made.depth() > kMaxValueDepth || made.weight() > kMaxValueWeight)
    return fail("LimitError", "values are nested too deeply");
  return made;
}

bool Interpreter::complain_undefined(const Value& value) {
  fail(value.is_unsafe() ? "SecurityError" : "UndefinedError", value.undefined_message());
  return true;
}

std::string Interpreter::to_text(const Value& value) {
  std::string text = python_str(value);
  charge_bytes(text.size());
  return text;
}

std::string Interpreter::to_repr(const Value& value) {
  std::string text = python_repr(value);
  charge_bytes(text.size());
  return text;
}

bool Interpreter::refuse_unhashable(const Value& key) {
  if (key.sequence() && !charge_steps(key.weight())) return true;
  if (!key.is_unhashable()) return false;
  type_error("unhashable type: '" + type_name(key) + "'");
  return true;
}

void Interpreter::write(std::string_view text) {
  if (out_.size() + text.size() > limits_.output_bytes) {
    fail("LimitError", "template writes too much");
    return;
  }
  out_ += text;
}

FramePtr Interpreter::inner(const FramePtr& frame) {
  FramePtr scope;
  if (spare_.empty()) {
    scope = FramePtr(new Frame);
  } else {
    scope = std::move(spare_.back());
    spare_.pop_back();
  }
  scope->parent = frame;
  return scope;
}

void Interpreter::leave(FramePtr scope) {
  if (!scope || scope.is_shared()) return;
  scope->variables.clear();
  scope->parent = FramePtr();
  spare_.push_back(std::move(scope));
}

Interpreter::Jump Interpreter::run_body(NodeList nodes, const FramePtr& frame) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Node* node = nodes[i];
    if (i + 1 < nodes.size()) __builtin_prefetch(nodes[i + 1]);
    if (!charge_steps(1)) break;
    if (node->kind == NodeKind::kText)
      write(*node->constant.string());
    else if (const Jump jump = run_statement(*node, frame); jump != Jump::kNone)
      return jump;
  }
  return Jump::kNone;
}

Interpreter::Jump Interpreter::run_statement(const Node& node, const FramePtr& frame) {
  const Level level(*this);
  if (failed()) return Jump::kNone;
  line_ = node.line;
  switch (node.kind) {
    case NodeKind::kOutput:
      print(*node.first, frame);
      return Jump::kNone;
    case NodeKind::kIf: {
      const bool is_true = evaluate(*node.first, frame).is_true();
      return failed() ? Jump::kNone : run_body(is_true ? node.rest->body : node.rest->else_body, frame);
    }
    case NodeKind::kFor:
      return run_for(node, frame, evaluate(*node.first, frame), 0);
    case NodeKind::kSet:
      if (!is_assignable(*node.second, frame)) return Jump::kNone;
      assign(*node.second, evaluate(*node.first, frame), frame);
      return Jump::kNone;
    case NodeKind::kMacro:
      set_variable(frame, node.name, make_macro(node, frame));
      return Jump::kNone;
    case NodeKind::kBreak:
      return Jump::kBreak;
    case NodeKind::kContinue:
      return Jump::kContinue;
    default:
      return run_scoped(node, frame);
  }
}

// Statements with a scope of their own.
Interpreter::Jump Interpreter::run_scoped(const Node& node, const FramePtr& frame) {
  switch (node.kind) {
    case NodeKind::kSetBlock: {
      Value text = string(captured(node.rest->body, inner(frame)));
      if (node.first) text = evaluate_filter(*node.first, frame, &text);
      assign(*node.second, std::move(text), frame);
      return Jump::kNone;
    }
    case NodeKind::kWith: {
      const FramePtr scope = inner(frame);
      for (std::size_t i = 0; i < node.rest->signature->names.size(); ++i)
        set_variable(scope, node.rest->signature->names[i], evaluate(*node.rest->children[i], frame));
      return run_body(node.rest->body, scope);
    }
    case NodeKind::kCallBlock: {
      const Value caller = make_macro(node, frame);
      write(to_text(evaluate_call(*node.first, frame, &caller)));
      return Jump::kNone;
    }
    case NodeKind::kFilterBlock: {
      const Value text = string(captured(node.rest->body, inner(frame)));
      write(to_text(evaluate_filter(*node.first, frame, &text)));
      return Jump::kNone;
    }
    case NodeKind::kScope:
      return run_body(node.rest->body, inner(frame));
    default:
      PLIMSOLL_CHECK(false, "an expression stands where a statement belongs");
      return Jump::kNone;
  }
}

void Interpreter::print(const Node& expression, const FramePtr& frame) {
  if (expression.kind == NodeKind::kSum) {
    evaluate_sum(expression, frame, true);
    return;
  }
  const Value value = evaluate(expression, frame);
  if (failed()) return;
  if (const std::string* text = value.string())
    write(*text);
  else
    write(to_text(value));
}

// What was written since `mark`, unwritten.
std::string Interpreter::taken_back(std::size_t mark) {
  std::string text = out_.substr(std::min(mark, out_.size()));
  out_.resize(out_.size() - text.size());
  return text;
}

std::string Interpreter::captured(NodeList nodes, const FramePtr& frame) {
  const std::size_t mark = out_.size();
  run_body(nodes, frame);
  return taken_back(mark);
}

std::vector<Value> Interpreter::filtered(const Node& node, std::span<const Value> items,
                                         const FramePtr& frame) {
  std::vector<Value> kept;
  for (const Value& element : items) {
    if (!charge_steps(1)) break;
    const FramePtr scope = inner(frame);
    assign(*node.rest->target, element, scope);
    if (evaluate(*node.second, scope).is_true()) kept.push_back(element);
  }
  return kept;
}

Interpreter::Jump Interpreter::run_for(const Node& node, const FramePtr& frame, const Value& iterable,
                                       int depth0) {
  if (failed()) return Jump::kNone;
  const int items_depth = iterable.depth();
  Elements elements = iterate(iterable);
  if (node.second) {
    elements.owned = filtered(node, elements.items, frame);
    elements.items = elements.owned;
  }
  if (failed()) return Jump::kNone;
  if (elements.items.empty()) return run_body(node.rest->else_body, inner(frame));

  // Nobody sees the loop object when the body does not name it.
  Loop unseen;
  Loop* loop = node.uses_loop ? new Loop : &unseen;
  const Value loop_value = node.uses_loop ? Value(loop) : Value();
  loop->items = elements.items;
  loop->iterated = std::move(elements.holder);
  loop->owned = std::move(elements.owned);
  if (node.uses_loop) {
    loop->value_depth = std::max(1, items_depth);
    loop->depth0 = depth0;
    loop->statement = &node;
    loop->frame = frame;
    if (node.is_recursive) closures_.push_back(frame);
  }
  FramePtr scope;
  bool has_completed = false;
  for (; loop->position < loop->items.size(); ++loop->position) {
    if (!charge_steps(1)) break;
    if (scope && !scope.is_shared())
      scope->variables.clear();
    else
      scope = inner(frame);
    if (node.uses_loop) scope->variables.emplace_back(program_.id_loop, loop_value);
    line_ = node.line;
    assign(*node.rest->target, loop->items[loop->position], scope);
    const Jump jump = run_body(node.rest->body, scope);
    if (jump == Jump::kBreak || failed()) break;
    has_completed = has_completed || jump == Jump::kNone;
  }
  leave(std::move(scope));
  // jinja2 takes the else branch also when every turn was left early.
  return has_completed || failed() ? Jump::kNone : run_body(node.rest->else_body, inner(frame));
}

// Namespaces are looked at before the value is computed.
bool Interpreter::is_assignable(const Node& target, const FramePtr& frame) {
  if (target.kind == NodeKind::kTuple)
    for (const Node* part : target.rest->children) is_assignable(*part, frame);
  if (target.kind == NodeKind::kNamespaceRef && !failed() && !evaluate_name(target, frame).name_space())
    fail("TemplateRuntimeError", "cannot assign attribute on non-namespace object");
  return !failed();
}

void Interpreter::set_variable(const FramePtr& frame, int name, Value value) {
  if (charge_names(frame->variables.size())) frame->set(name, std::move(value));
}

void Interpreter::assign(const Node& target, Value value, const FramePtr& frame) {
  if (failed()) return;
  if (target.kind == NodeKind::kName) {
    set_variable(frame, target.name, std::move(value));
  } else if (target.kind == NodeKind::kTuple) {
    unpack(target, value, frame);
  } else {
    Namespace* space = evaluate_name(target, frame).name_space();
    if (!space) {
      fail("TemplateRuntimeError", "cannot assign attribute on non-namespace object");
    } else if (value.depth() >= kMaxValueDepth) {
      fail("LimitError", "values are nested too deeply");
    } else if (stores(target.attribute->text) &&
               charge_names(space->attributes.size(), target.attribute->text.size())) {
      space->set(target.attribute->text, std::move(value));
    }
  }
}

// Whether a namespace may have an attribute of this name; a SecurityError when not.
bool Interpreter::stores(const std::string& name) {
  if (name.starts_with('_'))
    fail("SecurityError",
         "Chat templates cannot store underscore-prefixed attributes on a namespace, but got " +
             python_repr(Value::borrowed(name)) + ". Please rename the attribute.");
  return !failed();
}

void Interpreter::unpack(const Node& target, const Value& value, const FramePtr& frame) {
  if (value.is_none() || value.is_number()) {
    type_error("cannot unpack non-iterable " + type_name(value) + " object");
    return;
  }
  const Elements parts = iterate(value);
  const std::size_t wanted = target.rest->children.size();
  if (failed()) return;
  if (parts.items.size() > wanted) {
    fail("ValueError", "too many values to unpack (expected " + std::to_string(wanted) + ")");
  } else if (parts.items.size() < wanted) {
    fail("ValueError", "not enough values to unpack (expected " + std::to_string(wanted) + ", got " +
                           std::to_string(parts.items.size()) + ")");
  } else {
    for (std::size_t i = 0; i < wanted; ++i) assign(*target.rest->children[i], parts.items[i], frame);
  }
}

}  // namespace plimsoll::text::jinja
