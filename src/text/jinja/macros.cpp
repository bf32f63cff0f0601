// SPDX-License-Identifier: Apache-2.0
// Macros and what calls are given: arguments, scopes, recursive loops.
#include <algorithm>

#include "text/jinja/interpreter.h"

namespace plimsoll::text::jinja {

const Value* Arguments::get(std::size_t position, std::string_view name) const {
  return position < positional.size() ? &positional[position] : find(name);
}

const Value* Arguments::find(std::string_view name) const {
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

Value make_method(const Value& self, const std::string& name, Function function, Arity arity) {
  auto* made = new Callable;
  Value value(made);
  made->kind = Callable::Kind::kMethod;
  made->type = TypeCode::kMethod;
  made->name = name;
  made->self = self;
  made->function = function;
  made->arity = arity;
  made->depth = self.depth() + 1;
  return value;
}

Value Interpreter::make_macro(const Node& node, const FramePtr& frame) {
  if (!charge_bytes(sizeof(Callable))) return {};
  auto* macro = new Callable;
  Value value(macro);
  macro->kind = Callable::Kind::kMacro;
  macro->type = TypeCode::kMacro;
  macro->name = program_.name_texts[static_cast<std::size_t>(node.name)];
  macro->macro = &node;
  macro->frame = frame;
  if (closures_.empty() || closures_.back().get() != frame.get()) closures_.push_back(frame);
  return value;
}

void Interpreter::bind_parameters(const Node& macro, const Arguments& arguments, const FramePtr& scope) {
  const Signature& signature = *macro.rest->signature;
  const std::size_t wanted = signature.names.size();
  const std::size_t first_default = wanted - signature.defaults.size();
  std::vector<bool> used(arguments.named.size());
  for (std::size_t i = 0; i < wanted; ++i) {
    const std::string& name = program_.name_texts[static_cast<std::size_t>(signature.names[i])];
    if (!charge_names(arguments.named.size(), name.size()) || !charge_steps(1)) return;
    const auto named = std::find_if(arguments.named.begin(), arguments.named.end(),
                                    [&](const auto& argument) { return argument.first == name; });
    Value value;
    if (i < arguments.positional.size()) {
      value = arguments.positional[i];
    } else if (named != arguments.named.end()) {
      value = named->second;
      used[static_cast<std::size_t>(named - arguments.named.begin())] = true;
    } else if (i >= first_default) {
      value = evaluate(*signature.defaults[i - first_default], scope);
    } else {
      value = Value::undefined("parameter '" + name + "' was not provided");
    }
    set_variable(scope, signature.names[i], std::move(value));
  }
  bind_rest(macro, arguments, used, scope);
}

// The arguments that no parameter took: caller, kwargs, varargs, or an error.
void Interpreter::bind_rest(const Node& macro, const Arguments& arguments, const std::vector<bool>& used,
                            const FramePtr& scope) {
  const Signature& signature = *macro.rest->signature;
  const std::size_t wanted = signature.names.size();
  std::vector<Dict::Entry> rest;
  for (std::size_t i = 0; i < arguments.named.size() && !failed(); ++i) {
    const auto& [name, value] = arguments.named[i];
    if (used[i]) continue;
    if (name == "caller" && signature.uses_caller)
      scope->set(program_.id_caller, value);
    else if (signature.uses_kwargs)
      rest.emplace_back(Value(std::string(name)), value);
    else
      type_error("macro '" + program_.name_texts[static_cast<std::size_t>(macro.name)] +
                 "' takes no keyword argument '" + std::string(name) + "'");
  }
  if (signature.uses_kwargs) scope->set(program_.id_kwargs, dict(std::move(rest)));
  if (signature.uses_varargs) {
    std::vector<Value> more;
    for (std::size_t i = wanted; i < arguments.positional.size(); ++i)
      more.push_back(arguments.positional[i]);
    scope->set(program_.id_varargs, sequence(std::move(more), SequenceForm::kTuple));
  } else if (arguments.positional.size() > wanted) {
    type_error("macro '" + program_.name_texts[static_cast<std::size_t>(macro.name)] +
               "' takes not more than " + std::to_string(wanted) + " argument(s)");
  }
}

Value Interpreter::call_macro(const Callable& macro, const Arguments& arguments) {
  const Level level(*this);
  const int line = line_;
  FramePtr scope = inner(macro.frame);
  bind_parameters(*macro.macro, arguments, scope);
  std::string text = captured(macro.macro->rest->body, scope);
  leave(std::move(scope));
  if (!failed()) line_ = line;
  return string(std::move(text));
}

Value Interpreter::call_loop(Loop& loop, const Arguments& arguments) {
  if (!loop.statement->is_recursive)
    return type_error("The loop must have the 'recursive' marker to be called recursively.");
  if (arguments.positional.empty()) return type_error("loop() missing 1 required positional argument");
  const Level level(*this);
  const std::size_t mark = out_.size();
  run_for(*loop.statement, loop.frame, arguments.positional[0], loop.depth0 + 1);
  return string(taken_back(mark));
}

}  // namespace plimsoll::text::jinja
