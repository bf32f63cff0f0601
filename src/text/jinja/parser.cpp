// SPDX-License-Identifier: Apache-2.0
// Expressions; the order of precedence is jinja2's, which differs from Python's in places (~ binds tighter
// than +, filters bind tighter than unary minus only after it).
#include "text/jinja/parser.h"

#include <algorithm>

namespace plimsoll::text::jinja {
namespace {

constexpr int kMaxParseDepth = 200;

}  // namespace

Parser::Depth::Depth(Parser& parser) : parser_(parser) {
  if (++parser_.depth_ > kMaxParseDepth) parser_.fail("template is nested too deeply", 0, "LimitError");
}

std::string Parser::describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kBlockEnd:
      return "end of statement block";
    case TokenKind::kVariableEnd:
      return "end of print statement";
    case TokenKind::kBlockBegin:
      return "begin of statement block";
    case TokenKind::kVariableBegin:
      return "begin of print statement";
    case TokenKind::kData:
      return "template data / text";
    case TokenKind::kEnd:
      return "end of template";
    case TokenKind::kString:
      return "string";
    case TokenKind::kInteger:
      return "integer";
    case TokenKind::kFloat:
      return "float";
    default:
      return token.text;
  }
}

Node* Parser::fail(std::string message, int line, std::string type) {
  if (!error_) {
    const bool is_here = line <= 0 || line == current().line;
    error_ = TemplateError{std::move(type), std::move(message), line > 0 ? line : current().line,
                           is_here ? current().column : 0};
  }
  at_ = tokens_.size() - 1;  // the end token stops every loop
  return make(NodeKind::kConstant, current().line);
}

Node* Parser::fail_expected(std::string_view what) {
  if (current().kind == TokenKind::kEnd)
    return fail("unexpected end of template, expected '" + std::string(what) + "'.");
  return fail("expected token '" + std::string(what) + "', got '" + describe(current()) + "'");
}

void Parser::next() {
  if (at_ + 1 < tokens_.size()) ++at_;
  if (current().kind == TokenKind::kError) fail(current().text);
}

Node* Parser::make(NodeKind kind, int line) {
  Node& node = *program_.nodes.add();
  node.kind = kind;
  node.line = line;
  node.column = current().column;
  return &node;
}

Node* Parser::operation(Operator op, NodeKind kind, Node* left, Node* right) {
  Node* node = make(kind, left->line);
  node->column = left->column;
  node->op = op;
  node->first = left;
  node->second = right;
  return node;
}

// The part of a node that few have.
Rest& Parser::rest(Node* node) {
  if (!node->rest) node->rest = program_.rests.add();
  return *node->rest;
}

void Parser::assigns(int name) {
  program_.is_assigned[static_cast<std::size_t>(name)] = true;
}

bool Parser::skip_operator(std::string_view op) {
  if (!at_operator(op)) return false;
  next();
  return true;
}

bool Parser::skip_name(std::string_view name) {
  if (!at_name(name)) return false;
  next();
  return true;
}

std::string Parser::expect_name() {
  if (current().kind != TokenKind::kName) {
    fail_expected("name");
    return {};
  }
  std::string name = current().text;
  next();
  return name;
}

void Parser::expect_operator(std::string_view op) {
  if (!skip_operator(op)) fail_expected(op);
}

void Parser::use_name(Node* node, const std::string& name) {
  node->name = program_.intern(name);
  if (name == "loop") names_loop_ = true;
  if (macros_.empty()) return;
  Signature& signature = *rest(macros_.back()).signature;
  if (name == "varargs") signature.uses_varargs = true;
  if (name == "kwargs") signature.uses_kwargs = true;
  if (name == "caller") signature.uses_caller = true;
}

Node* Parser::expression(bool with_condition) {
  return with_condition ? condition() : or_();
}

Node* Parser::condition() {
  const Depth depth(*this);
  if (failed()) return fail("");
  const std::size_t unknown_before = unknown_.size();
  const int line = current().line;
  Node* value = or_();
  while (skip_name("if")) {
    Node* node = make(NodeKind::kCondition, line);
    Node* test = or_();
    Node* otherwise = skip_name("else") ? condition() : nullptr;
    rest(node).children = program_.list({test, value, otherwise});
    value = node;
    unknown_.resize(unknown_before);
  }
  return value;
}

Node* Parser::or_() {
  Node* left = and_();
  while (at_name("or")) {
    Node* node = make(NodeKind::kOr, current().line);
    next();
    node->first = left;
    node->second = and_();
    left = node;
  }
  return left;
}

Node* Parser::and_() {
  Node* left = not_();
  while (at_name("and")) {
    Node* node = make(NodeKind::kAnd, current().line);
    next();
    node->first = left;
    node->second = not_();
    left = node;
  }
  return left;
}

Node* Parser::not_() {
  const Depth depth(*this);
  if (failed()) return fail("");
  if (!at_name("not")) return compare();
  Node* node = make(NodeKind::kUnary, current().line);
  node->op = Operator::kNot;
  next();
  node->first = not_();
  return node;
}

Node* Parser::compare() {
  static constexpr std::pair<std::string_view, Operator> kOperators[] = {
      {"==", Operator::kEqual},     {"!=", Operator::kUnequal}, {"<", Operator::kLess},
      {"<=", Operator::kLessEqual}, {">", Operator::kGreater},  {">=", Operator::kGreaterEqual}};
  Node* node = sum();
  std::vector<Operator> operators;
  std::vector<Node*> operands;
  for (;;) {
    std::optional<Operator> op;
    if (current().kind == TokenKind::kOperator) {
      for (const auto& [text, known] : kOperators)
        if (current().text == text) op = known;
      if (op) next();
    } else if (skip_name("in")) {
      op = Operator::kIn;
    } else if (at_name("not") && look().kind == TokenKind::kName && look().text == "in") {
      next();
      next();
      op = Operator::kNotIn;
    }
    if (!op) break;
    operators.push_back(*op);
    operands.push_back(sum());
  }
  if (operands.empty()) return node;
  node = operation(operators[0], NodeKind::kCompare, node, operands[0]);
  if (operands.size() == 1) return node;
  rest(node).children = program_.list({operands.begin() + 1, operands.end()});
  Operator* kept = program_.operators.add(operands.size() - 1);
  std::copy(operators.begin() + 1, operators.end(), kept);
  rest(node).operators = kept;
  return node;
}

Node* Parser::sum() {
  Node* left = concat();
  std::vector<Node*> operands = {left};  // of the + before here
  const auto added = [&] {
    if (operands.size() == 1) return operands[0];
    Node* node = operation(Operator::kAdd, NodeKind::kSum, operands[0], nullptr);
    rest(node).children = program_.list(operands);
    return node;
  };
  for (;;) {
    if (skip_operator("+")) {
      operands.push_back(concat());
    } else if (skip_operator("-")) {
      left = added();
      operands = {operation(Operator::kSubtract, NodeKind::kBinary, left, concat())};
    } else {
      return added();
    }
  }
}

Node* Parser::concat() {
  Node* left = product();
  if (!at_operator("~")) return left;
  std::vector<Node*> parts = {left};
  while (skip_operator("~")) parts.push_back(product());
  Node* node = operation(Operator::kAdd, NodeKind::kConcat, left, nullptr);
  rest(node).children = program_.list(parts);
  return node;
}

Node* Parser::product() {
  static constexpr std::pair<std::string_view, Operator> kOperators[] = {{"*", Operator::kMultiply},
                                                                         {"/", Operator::kDivide},
                                                                         {"//", Operator::kFloorDivide},
                                                                         {"%", Operator::kModulo}};
  Node* left = power();
  for (;;) {
    const auto* found = std::find_if(std::begin(kOperators), std::end(kOperators),
                                     [&](const auto& entry) { return at_operator(entry.first); });
    if (found == std::end(kOperators)) return left;
    next();
    Node* right = power();
    left = operation(found->second, NodeKind::kBinary, left, right);
  }
}

Node* Parser::power() {
  Node* left = unary();
  while (skip_operator("**")) {
    Node* right = unary();
    left = operation(Operator::kPower, NodeKind::kBinary, left, right);
  }
  return left;
}

Node* Parser::unary(bool with_filter) {
  const Depth depth(*this);
  if (failed()) return fail("");
  Node* node = nullptr;
  if (at_operator("-") || at_operator("+")) {
    node = make(NodeKind::kUnary, current().line);
    node->op = at_operator("-") ? Operator::kNegate : Operator::kPlus;
    next();
    node->first = unary(false);
  } else {
    node = primary();
  }
  node = postfix(node);
  return with_filter ? filter_chain(node) : node;
}

Node* Parser::postfix(Node* node) {
  while (!failed()) {
    if (at_operator(".") || at_operator("["))
      node = subscript(node);
    else if (at_operator("("))
      node = call(node);
    else
      break;
  }
  return node;
}

Node* Parser::filter_chain(Node* node) {
  while (!failed()) {
    if (at_operator("|"))
      node = filters(node, false);
    else if (at_name("is"))
      node = test(node);
    else if (at_operator("("))
      node = call(node);
    else
      break;
  }
  return node;
}

Node* Parser::subscript(Node* object) {
  const int line = current().line;
  if (skip_operator(".")) {
    const Token token = current();
    next();
    if (token.kind == TokenKind::kName) {
      Node* node = make(NodeKind::kAttribute, line);
      node->attribute = program_.attribute(token.text);
      node->first = object;
      node->column = object->column;
      return node;
    }
    if (token.kind != TokenKind::kInteger) return fail("expected name or number", token.line);
    --at_;
    Node* node = make(NodeKind::kItem, line);
    node->first = object;
    node->column = object->column;
    node->second = integer_literal(token);
    return node;
  }
  next();  // "["
  Node* first = at_operator(":") ? nullptr : expression();
  if (!at_operator(":")) {
    if (at_operator(",")) {
      Node* key = make(NodeKind::kTuple, line);
      std::vector<Node*> parts = {first};
      while (skip_operator(",") && !at_operator("]")) parts.push_back(expression());
      rest(key).children = program_.list(parts);
      first = key;
    }
    expect_operator("]");
    Node* node = make(NodeKind::kItem, line);
    node->first = object;
    node->column = object->column;
    node->second = first;
    return node;
  }
  next();  // ":"
  Node* stop = at_operator(":") || at_operator("]") ? nullptr : expression();
  Node* step = nullptr;
  if (skip_operator(":") && !at_operator("]")) step = expression();
  expect_operator("]");
  Node* node = make(NodeKind::kSlice, line);
  node->column = object->column;
  rest(node).children = program_.list({object, first, stop, step});
  return node;
}

}  // namespace plimsoll::text::jinja
