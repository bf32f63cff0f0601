// SPDX-License-Identifier: Apache-2.0
// Runs a Program over a context. The first error sticks: every function returns a harmless value after it and
// every loop ends, so no exception is needed. Steps, bytes made, output and recursion are bounded.
// One interpreter serves one render on one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/callable.h"
#include "text/text.h"

namespace plimsoll::text::jinja {

struct Limits {
  std::int64_t steps = 5'000'000;  // nodes run and elements visited: a fraction of a second
  std::int64_t made_bytes = std::int64_t{512} << 20;  // all strings and lists made, over one render
  std::size_t output_bytes = std::size_t{64} << 20;
  int depth = 700;  // nested nodes; 8 MiB stacks hold it under asan too
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
  bool failed() const { return error_.has_value(); }
  /// Counts work; false (and LimitError) when the render has done too much.
  bool charge_steps(std::int64_t steps);
  bool charge_bytes(std::size_t bytes);
  /// Counted constructors.
  Value string(std::string text, bool is_markup = false);
  Value sequence(std::vector<Value> items, SequenceForm form = SequenceForm::kList);
  Value dict(std::vector<std::pair<Value, Value>> entries);
  static Value undefined(std::string message, bool is_unsafe = false);

  /// str(value); fails for an unsafe value.
  std::string to_text(const Value& value);
  /// Elements as Python iterates; TypeError when it cannot.
  std::vector<Value> elements(const Value& value);
  /// An UndefinedError (or SecurityError) when `value` is undefined; true then.
  bool refuse_undefined(const Value& value);
  /// environment.getitem and getattr.
  Value item(const Value& object, const Value& key);
  Value attribute(const Value& object, const std::string& name);
  Value call(const Value& callee, const Arguments& arguments);
  Value apply_filter(const std::string& name, const Value& value, const Arguments& arguments);
  bool apply_test(const std::string& name, const Value& value, const Arguments& arguments);
  Value binary(const std::string& op, const Value& left, const Value& right);
  bool compare(const std::string& op, const Value& left, const Value& right);
  bool less(const Value& left, const Value& right, const char* op = "<");
  bool contains(const Value& container, const Value& element);
  std::string_view now() const { return now_; }
  /// loop.changed() keeps values in this loop.
  void keeps_values(const LoopPtr& loop) { changed_loops_.push_back(loop); }
  Value make_namespace(const Arguments& arguments);

 private:
  struct Level {  // one more level of recursion while it lives
    explicit Level(Interpreter& interpreter);
    ~Level() { --interpreter_.depth_; }
    Interpreter& interpreter_;
  };
  enum class Jump { kNone, kBreak, kContinue };

  // statements (interpreter.cpp)
  Jump run_body(const std::vector<Node*>& nodes, const FramePtr& frame);
  Jump run_statement(const Node& node, const FramePtr& frame);
  Jump run_for(const Node& node, const FramePtr& frame, const Value& iterable, int depth0);
  std::vector<Value> filtered(const Node& node, std::vector<Value> items, const FramePtr& frame);
  std::string captured(const std::vector<Node*>& nodes, const FramePtr& frame);
  void assign(const Node& target, Value value, const FramePtr& frame);
  void unpack(const Node& target, const Value& value, const FramePtr& frame);
  Value make_macro(const Node& node, const FramePtr& frame);
  Value call_macro(const Callable& macro, const Arguments& arguments);
  void bind_parameters(const Node& macro, const Arguments& arguments, const FramePtr& scope);
  FramePtr inner(const FramePtr& frame);
  void write(std::string_view text);

  // expressions (expressions.cpp)
  Value evaluate(const Node& node, const FramePtr& frame);
  Value evaluate_name(const Node& node, const FramePtr& frame);
  Value evaluate_compare(const Node& node, const FramePtr& frame);
  Value evaluate_unary(const Node& node, const FramePtr& frame);
  Value evaluate_slice(const Node& node, const FramePtr& frame);
  Value slice(const Value& object, const Value& start, const Value& stop, const Value& step);
  Value evaluate_call(const Node& node, const FramePtr& frame, const Value* caller = nullptr);
  Value evaluate_container(const Node& node, const FramePtr& frame);
  Value evaluate_filter(const Node& node, const FramePtr& frame, const Value* input);
  Arguments evaluate_arguments(const CallArguments& arguments, const FramePtr& frame);
  Value loop_attribute(Loop& loop, const LoopPtr& pointer, const std::string& name);

  // operators (operators.cpp)
  Value add(const Value& left, const Value& right);
  Value multiply(const Value& left, const Value& right);
  Value arithmetic(const std::string& op, const Value& left, const Value& right);
  Value unsupported(const std::string& op, const Value& left, const Value& right);

  const Program& program_;
  std::string now_;
  Limits limits_;
  std::vector<std::optional<Value>> globals_;  // by name id: the context over the environment's functions
  std::string out_;
  int depth_ = 0;
  int line_ = 1;
  std::optional<TemplateError> error_;
  std::vector<NamespacePtr> namespaces_;  // cleared at the end: they may hold themselves
  std::vector<LoopPtr> changed_loops_;    // what loop.changed() remembers, likewise
  std::vector<FramePtr> closures_;        // frames that macros keep, likewise
};

/// A function of the environment (range, namespace, ...), or nothing.
std::optional<Value> environment_function(const std::string& name);
/// The method of an object of this type as a bound callable; an unsafe Undefined when the sandbox forbids it;
/// nothing when Python has no such attribute.
std::optional<Value> method(const Value& object, const std::string& name);
Value make_method(const Value& self, const std::string& name, Function function);

}  // namespace plimsoll::text::jinja
