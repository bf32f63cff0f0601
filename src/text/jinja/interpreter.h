// SPDX-License-Identifier: Apache-2.0
// Runs a Program over a context. The first error sticks: every function returns a harmless value after it and
// every loop ends, so no exception is needed. Steps, bytes made, output and recursion are bounded.
// One interpreter serves one render on one thread; the context must outlive it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/callable.h"
#include "text/jinja/json_values.h"
#include "text/text.h"

namespace plimsoll::text::jinja {

struct Limits {
  std::int64_t steps = 5'000'000;  // nodes run and elements visited: a fraction of a second
  std::int64_t made_bytes = std::int64_t{512} << 20;  // all strings and lists made, over one render
  std::size_t output_bytes = std::size_t{64} << 20;
  int depth = 700;  // nested nodes; 8 MiB stacks hold it under asan too
};

constexpr std::int64_t kNamesPerStep = 64;  // compared one after the other while a node runs

/// The elements of something that is iterated: those of a list where they are, others made for it.
struct Elements {
  Value holder;
  std::vector<Value> owned;
  std::span<const Value> items;
  auto begin() const { return items.begin(); }
  auto end() const { return items.end(); }
};

class Interpreter {
 public:
  /// `now` is what strftime_now sees: ISO 8601, or the clock when empty.
  Interpreter(const Program& program, std::string_view now, const Limits& limits = {});
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  tl::expected<std::string, TemplateError> run(const Json& context);

  // For filters, tests and methods:

  /// Sets the first error; always returns an Undefined.
  Value fail(std::string type, std::string message);
  Value type_error(std::string message) { return fail("TypeError", std::move(message)); }
  bool failed() const { return has_failed_; }
  /// Counts work; false (and LimitError) when the render has done too much.
  bool charge_steps(std::int64_t steps) {
    limits_.steps -= steps;
    return (limits_.steps >= 0 && !has_failed_) || refuse_steps();
  }
  bool charge_bytes(std::size_t bytes);
  /// Counts reading a string once, character by character; other values count where they are walked.
  bool charge_reading(const Value& value) {
    return value.is_string() ? charge_steps(static_cast<std::int64_t>(value.string()->size()) / 16)
                             : !failed();
  }
  /// Counts looking a key up: reading a text, or comparing anything else with every key.
  bool charge_key(const Dict& dict, const Value& key) {
    return charge_steps(key.is_string() ? static_cast<std::int64_t>(key.string()->size()) / 16
                                        : key_cost(key, dict.entries.size()));
  }
  /// Counts looking a name up among so many, one by one.
  bool charge_names(std::size_t count, std::size_t name_bytes = 0) {
    return charge_steps(static_cast<std::int64_t>(count) *
                        (1 + static_cast<std::int64_t>(name_bytes) / kBytesPerWeight) / kNamesPerStep);
  }
  /// TypeError for a key that Python refuses; counts looking into it.
  bool refuse_unhashable(const Value& key);
  /// Whether a text may become so long; LimitError when not.
  bool allows_length(std::size_t bytes);
  /// Counted constructors.
  Value string(std::string text, bool is_markup = false);
  Value sequence(std::vector<Value> items, SequenceForm form = SequenceForm::kList);
  Value dict(std::vector<Dict::Entry> entries);

  /// str(value), counted.
  std::string to_text(const Value& value);
  /// repr(value), counted.
  std::string to_repr(const Value& value);
  /// Elements as Python iterates; TypeError when it cannot.
  Elements iterate(const Value& value);
  std::vector<Value> elements(const Value& value);
  /// An UndefinedError (or SecurityError) when `value` is undefined; true then.
  bool refuse_undefined(const Value& value) { return value.is_undefined() && complain_undefined(value); }
  /// environment.getitem and getattr.
  Value item(const Value& object, const Value& key);
  Value attribute(const Value& object, const AttributeName& of_program) {
    return attribute(object, of_program, Value::borrowed(of_program.text));
  }
  /// `name` is a string.
  Value attribute(const Value& object, const Value& name);
  Value call(const Value& callee, const Arguments& arguments);
  /// Whether a built-in method takes so many arguments; a TypeError when not.
  bool accepts(Arity arity, const Value& self, std::string_view name, const Arguments& given);
  Value apply_filter(const std::string& name, const Value& value, const Arguments& arguments);
  bool apply_test(const std::string& name, const Value& value, const Arguments& arguments);
  /// With a TypeError for arguments that it does not take.
  Value apply_filter(const FilterEntry& filter, const Value& value, const Arguments& arguments);
  bool apply_test(const TestEntry& test, const Value& value, const Arguments& arguments);
  Value binary(Operator op, const Value& left, const Value& right);
  bool compare(Operator op, const Value& left, const Value& right);
  bool less(const Value& left, const Value& right, const char* op = "<");
  bool contains(const Value& container, const Value& element);
  std::string_view now() const { return now_; }
  /// loop.changed() keeps values in this loop.
  void keeps_values(const Value& loop) { changed_loops_.push_back(loop); }
  /// Whether a namespace may have an attribute of this name; a SecurityError when not.
  bool stores(const std::string& name);
  void keeps_namespace(const Value& space) { namespaces_.push_back(space); }

 private:
  struct Level {  // one more level of recursion while it lives
    explicit Level(Interpreter& interpreter) : interpreter_(interpreter) {
      if (++interpreter_.depth_ > interpreter_.limits_.depth) interpreter_.refuse_depth();
    }
    ~Level() { --interpreter_.depth_; }
    Interpreter& interpreter_;
  };
  struct Expression : Level {  // tells an error where it is
    Expression(Interpreter& interpreter, const Node& node) : Level(interpreter), node_(node) {}
    ~Expression() {
      if (interpreter_.has_failed_) interpreter_.locate(node_);
    }
    const Node& node_;
  };
  enum class Jump { kNone, kBreak, kContinue };

  // limits (interpreter.cpp)
  bool refuse_steps();
  void refuse_depth();
  bool complain_undefined(const Value& value);
  void locate(const Node& node);

  // statements (interpreter.cpp)
  Jump run_body(NodeList nodes, const FramePtr& frame);
  Jump run_statement(const Node& node, const FramePtr& frame);
  Jump run_scoped(const Node& node, const FramePtr& frame);
  void print(const Node& expression, const FramePtr& frame);
  Jump run_for(const Node& node, const FramePtr& frame, const Value& iterable, int depth0);
  std::vector<Value> filtered(const Node& node, std::span<const Value> items, const FramePtr& frame);
  std::string captured(NodeList nodes, const FramePtr& frame);
  std::string taken_back(std::size_t mark);
  bool is_assignable(const Node& target, const FramePtr& frame);
  void set_variable(const FramePtr& frame, int name, Value value);
  void assign(const Node& target, Value value, const FramePtr& frame);
  void unpack(const Node& target, const Value& value, const FramePtr& frame);
  FramePtr inner(const FramePtr& frame);
  void leave(FramePtr scope);
  void write(std::string_view text);

  // macros (macros.cpp)
  Value make_macro(const Node& node, const FramePtr& frame);
  Value call_macro(const Callable& macro, const Arguments& arguments);
  void bind_parameters(const Node& macro, const Arguments& arguments, const FramePtr& scope);
  void bind_rest(const Node& macro, const Arguments& arguments, const std::vector<bool>& used,
                 const FramePtr& scope);
  Value call_loop(Loop& loop, const Arguments& arguments);

  // expressions (expressions.cpp)
  Value evaluate(const Node& node, const FramePtr& frame);
  Value evaluate_rare(const Node& node, const FramePtr& frame);
  Value evaluate_name(const Node& node, const FramePtr& frame);
  Value evaluate_compare(const Node& node, const FramePtr& frame);
  Value evaluate_unary(const Node& node, const FramePtr& frame);
  Value evaluate_sum(const Node& node, const FramePtr& frame, bool prints);
  Value evaluate_concat(const Node& node, const FramePtr& frame);
  Value evaluate_slice(const Node& node, const FramePtr& frame);
  Value evaluate_call(const Node& node, const FramePtr& frame, const Value* caller = nullptr);
  Value evaluate_container(const Node& node, const FramePtr& frame);
  Value evaluate_filter(const Node& node, const FramePtr& frame, const Value* input);
  Value evaluate_test(const Node& node, const FramePtr& frame);
  void evaluate_arguments(const CallArguments& arguments, const FramePtr& frame, Arguments& values);

  // look-ups (subscripts.cpp)
  Value absent_attribute(const Value& object, const std::string& name);
  Value missing_key(const Value& object, const Value& key);
  Value slice(const Value& object, const Value& start, const Value& stop, const Value& step);
  Value character(const std::string& text, std::int64_t at);
  Value attribute(const Value& object, const AttributeName& name, const Value& key);
  Value loop_attribute(const Value& object, const AttributeName& name, const Value& key);

  // operators (operators.cpp)
  Value add(const Value& left, const Value& right);
  Value multiply(const Value& left, const Value& right);
  Value arithmetic(Operator op, const Value& left, const Value& right);
  Value whole_arithmetic(Operator op, std::int64_t a, std::int64_t b);
  Value unsupported(Operator op, const Value& left, const Value& right);

  const Program& program_;
  std::string now_;
  Limits limits_;
  bool has_failed_ = false;
  int depth_ = 0;
  int line_ = 1;
  JsonValues json_;
  std::vector<std::optional<Value>> globals_;  // by name id: the context over the environment's functions
  std::string out_;
  TemplateError error_;
  std::vector<Value> namespaces_;     // cleared at the end: they may hold themselves
  std::vector<Value> changed_loops_;  // what loop.changed() remembers, likewise
  std::vector<FramePtr> closures_;    // frames that macros keep, likewise
  std::vector<FramePtr> spare_;       // left scopes that nothing refers to
};

/// A function of the environment (range, namespace, ...), which lives for ever, or nothing.
const Callable* environment_function(std::string_view name);
Value make_method(const Value& self, const std::string& name, Function function, Arity arity = Arity::kAny);
/// What reading an attribute that the sandbox forbids gives: an error when it is used.
Value unsafe_attribute(const Value& object, const std::string& name);
/// How a message spells the operator.
const char* spelling(Operator op);

}  // namespace plimsoll::text::jinja
