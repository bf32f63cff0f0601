// SPDX-License-Identifier: Apache-2.0
// What follows an expression with arguments: calls, filters, tests.
#include "text/jinja/filters.h"
#include "text/jinja/parser.h"

namespace plimsoll::text::jinja {

// "(...)", or null when nothing is inside.
const CallArguments* Parser::call_arguments() {
  CallArguments arguments;
  expect_operator("(");
  bool is_first = true;
  while (!failed() && !at_operator(")")) {
    if (!is_first) expect_operator(",");
    is_first = false;
    if (at_operator(")")) break;
    if (skip_operator("**")) {
      arguments.double_star = expression();
    } else if (skip_operator("*")) {
      arguments.star = expression();
    } else if (current().kind == TokenKind::kName && look().kind == TokenKind::kOperator &&
               look().text == "=") {
      std::string name = expect_name();
      next();
      arguments.named.emplace_back(std::move(name), expression());
    } else {
      if (!arguments.named.empty() || arguments.star || arguments.double_star)
        fail("invalid syntax for function call expression");
      arguments.positional.push_back(expression());
    }
  }
  expect_operator(")");
  if (is_first) return nullptr;
  return &program_.arguments.emplace_back(std::move(arguments));
}

Node* Parser::call(Node* callee) {
  Node* node = make(NodeKind::kCall, current().line);
  node->first = callee;
  node->column = callee->column;
  node->arguments = call_arguments();
  return node;
}

Node* Parser::filters(Node* value, bool first_without_pipe) {
  while (!failed() && (at_operator("|") || first_without_pipe)) {
    if (!first_without_pipe) next();
    first_without_pipe = false;
    Node* node = make(NodeKind::kFilter, current().line);
    std::string name = expect_name();
    while (skip_operator(".")) name += "." + expect_name();
    node->name = program_.intern(name);
    node->first = value;
    if (value) node->column = value->column;
    if (at_operator("(")) node->arguments = call_arguments();
    node->filter = find_filter(name);
    if (!node->filter && soft_ == 0) unknown_.emplace_back("No filter named '" + name + "'.", node);
    value = node;
  }
  return value;
}

Node* Parser::test(Node* value) {
  next();  // "is"
  const int line = current().line;
  const bool is_negated = skip_name("not");
  Node* node = make(NodeKind::kTest, line);
  std::string name = expect_name();
  while (skip_operator(".")) name += "." + expect_name();
  node->name = program_.intern(name);
  node->first = value;
  if (value) node->column = value->column;
  const TokenKind kind = current().kind;
  if (at_operator("(")) {
    node->arguments = call_arguments();
  } else if ((kind == TokenKind::kName && !at_name("else") && !at_name("or") && !at_name("and")) ||
             kind == TokenKind::kString || kind == TokenKind::kInteger || kind == TokenKind::kFloat ||
             at_operator("[") || at_operator("{")) {
    if (at_name("is")) return fail("You cannot chain multiple tests with is");
    CallArguments& arguments = program_.arguments.emplace_back();
    arguments.positional.push_back(postfix(primary()));
    node->arguments = &arguments;
  }
  node->test = find_test(name);
  if (!node->test && soft_ == 0) unknown_.emplace_back("No test named '" + name + "'.", node);
  if (!is_negated) return node;
  Node* negation = make(NodeKind::kUnary, line);
  negation->op = Operator::kNot;
  negation->first = node;
  return negation;
}

}  // namespace plimsoll::text::jinja
