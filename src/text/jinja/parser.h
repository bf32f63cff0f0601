// SPDX-License-Identifier: Apache-2.0
// Tokens -> Program, by jinja2's grammar with the extensions that transformers turns on (break, continue,
// generation). Nesting is bounded, so hostile templates cannot exhaust the stack.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/lexer.h"
#include "text/text.h"

namespace plimsoll::text::jinja {

/// Errors: TemplateSyntaxError with line; LimitError when nested too deeply or too large.
tl::expected<std::shared_ptr<const Program>, TemplateError> parse(std::string_view source);

/// Recursive descent over a token list; the first error sticks and ends every loop.
class Parser {
 public:
  Parser(std::vector<Token> tokens, Program& program) : tokens_(std::move(tokens)), program_(program) {}
  void run();
  const std::optional<TemplateError>& error() const { return error_; }

 private:
  // statements (parser_statements.cpp)
  NodeList body(const std::vector<std::string_view>& ends, bool drop_needle);
  void output(std::vector<Node*>& nodes);
  Node* statement();
  Node* if_statement();
  Node* for_statement();
  Node* set_statement();
  Node* macro_statement();
  Node* call_block();
  Node* with_statement();
  Node* autoescape_statement();
  Node* scope_statement(std::string_view end, bool has_argument);
  void signature(Node* macro);
  Node* assign_target(bool with_tuple, bool with_namespace, bool stops_at_in);
  Node* single_target(bool with_namespace);
  NodeList inner_body(std::string_view end);
  Node* loop_jump(NodeKind kind);

  // expressions (parser.cpp)
  Node* expression(bool with_condition = true);
  Node* condition();
  Node* or_();
  Node* and_();
  Node* not_();
  Node* compare();
  Node* sum();
  Node* concat();
  Node* product();
  Node* power();
  Node* unary(bool with_filter = true);
  Node* postfix(Node* node);
  Node* filter_chain(Node* node);
  Node* subscript(Node* node);
  Node* call(Node* callee);
  const CallArguments* call_arguments();
  Node* filters(Node* node, bool first_without_pipe);
  Node* test(Node* node);
  // literals (parser_literals.cpp)
  Node* primary();
  Node* tuple(bool with_condition, bool in_parentheses, std::string_view extra_end = {});
  Node* list_literal();
  Node* dict_literal();
  Node* string_literal();
  Node* integer_literal(const Token& token);

  const Token& current() const { return tokens_[at_]; }
  const Token& look() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  bool at_operator(std::string_view op) const {
    return current().kind == TokenKind::kOperator && current().text == op;
  }
  bool at_name(std::string_view name) const {
    return current().kind == TokenKind::kName && current().text == name;
  }
  bool skip_operator(std::string_view op);
  bool skip_name(std::string_view name);
  void next();
  std::string expect_name();
  void expect_operator(std::string_view op);
  void expect_block_end();
  Node* fail(std::string message, int line = 0, std::string type = "TemplateSyntaxError");
  bool failed() const { return error_.has_value(); }
  Node* make(NodeKind kind, int line);
  Node* operation(Operator op, NodeKind kind, Node* left, Node* right);
  Rest& rest(Node* node);
  void assigns(int name);
  void use_name(Node* node, const std::string& name);
  Node* fail_expected(std::string_view what);
  Node* fail_unknown_tag(const std::string* name);
  static std::string describe(const Token& token);

  struct Depth {  // one more level of recursion while it lives
    explicit Depth(Parser& parser);
    ~Depth() { --parser_.depth_; }
    Parser& parser_;
  };

  std::vector<Token> tokens_;
  Program& program_;
  std::size_t at_ = 0;
  int depth_ = 0;
  int soft_ = 0;             // inside an if: unknown filters fail when they run, not when they are parsed
  int loop_depth_ = 0;       // break and continue need a loop
  bool names_loop_ = false;  // "loop" was named since the innermost for began
  std::vector<std::pair<std::string, const Node*>>
      unknown_;                                      // unknown filters and tests met outside conditions
  std::vector<Node*> macros_;                        // open macros, innermost last
  std::vector<std::vector<std::string_view>> ends_;  // tags that each open body may end with
  std::unordered_set<std::string> blocks_;           // names of blocks met so far
  std::vector<std::string> tags_;                    // open statements, for messages
  std::optional<TemplateError> error_;
};

}  // namespace plimsoll::text::jinja
