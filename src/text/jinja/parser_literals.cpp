// SPDX-License-Identifier: Apache-2.0
// What expressions start from: names, literals, lists, tuples and dicts.
#include <charconv>
#include <cstdlib>

#include "text/jinja/parser.h"

namespace plimsoll::text::jinja {

Node* Parser::primary() {
  const Token token = current();
  if (token.kind == TokenKind::kName) {
    next();
    Node* node = make(NodeKind::kConstant, token.line);
    node->column = token.column;
    if (token.text == "true" || token.text == "True")
      node->constant = true;
    else if (token.text == "false" || token.text == "False")
      node->constant = false;
    else if (token.text == "none" || token.text == "None")
      node->constant = None{};
    else {
      node->kind = NodeKind::kName;
      use_name(node, token.text);
    }
    return node;
  }
  if (token.kind == TokenKind::kString) return string_literal();
  if (token.kind == TokenKind::kInteger) return integer_literal(token);
  if (token.kind == TokenKind::kFloat) {
    next();
    Node* node = make(NodeKind::kConstant, token.line);
    node->constant = std::strtod(token.text.c_str(), nullptr);
    return node;
  }
  if (skip_operator("(")) {
    Node* node = tuple(true, true);
    expect_operator(")");
    return node;
  }
  if (at_operator("[")) return list_literal();
  if (at_operator("{")) return dict_literal();
  return fail("unexpected '" + describe(token) + "'");
}

Node* Parser::string_literal() {
  Node* node = make(NodeKind::kConstant, current().line);
  std::string text;
  while (current().kind == TokenKind::kString) {
    text += current().text;
    next();
  }
  node->constant = program_.text(std::move(text));
  return node;
}

Node* Parser::integer_literal(const Token& token) {
  next();
  Node* node = make(NodeKind::kConstant, token.line);
  node->column = token.column;
  std::int64_t value = 0;
  std::string_view digits = token.text;
  int base = 10;
  if (digits.size() > 2 && digits[0] == '0' && digits[1] > '9') {
    base = digits[1] == 'x' || digits[1] == 'X' ? 16 : digits[1] == 'o' || digits[1] == 'O' ? 8 : 2;
    digits.remove_prefix(2);
  }
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc{}) return fail("integer is too large: " + token.text, token.line, "LimitError");
  node->constant = value;
  return node;
}

Node* Parser::list_literal() {
  Node* node = make(NodeKind::kList, current().line);
  std::vector<Node*> items;
  next();
  while (!failed() && !at_operator("]")) {
    if (!items.empty()) expect_operator(",");
    if (at_operator("]")) break;
    items.push_back(expression());
  }
  expect_operator("]");
  rest(node).children = program_.list(items);
  return node;
}

Node* Parser::dict_literal() {
  Node* node = make(NodeKind::kDict, current().line);
  std::vector<Node*> parts;
  next();
  while (!failed() && !at_operator("}")) {
    if (!parts.empty()) expect_operator(",");
    if (at_operator("}")) break;
    parts.push_back(expression());
    expect_operator(":");
    parts.push_back(expression());
  }
  expect_operator("}");
  rest(node).children = program_.list(parts);
  return node;
}

Node* Parser::tuple(bool with_condition, bool in_parentheses, std::string_view extra_end) {
  const int line = current().line;
  std::vector<Node*> items;
  bool is_tuple = false;
  while (!failed()) {
    const TokenKind kind = current().kind;
    if (kind == TokenKind::kVariableEnd || kind == TokenKind::kBlockEnd || at_operator(")") ||
        (!extra_end.empty() && at_name(extra_end)))
      break;
    items.push_back(expression(with_condition));
    if (!skip_operator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !items.empty()) return items[0];
  if (!is_tuple && !in_parentheses) return fail("Expected an expression, got '" + describe(current()) + "'");
  Node* node = make(NodeKind::kTuple, line);
  rest(node).children = program_.list(items);
  return node;
}

}  // namespace plimsoll::text::jinja
