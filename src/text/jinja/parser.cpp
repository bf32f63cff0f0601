// SPDX-License-Identifier: Apache-2.0
// Expressions; the order of precedence is jinja2's, which differs from Python's in places (~ binds tighter
// than +, filters bind tighter than unary minus only after it).
#include "text/jinja/parser.h"

#include <algorithm>

namespace plimsoll::text::jinja {
namespace {

constexpr int kMaxParseDepth = 200;
constexpr std::size_t kMaxSourceBytes = std::size_t{4} << 20;

}  // namespace

int Program::intern(const std::string& name) {
  const auto [found, is_new] = name_ids.emplace(name, static_cast<int>(name_texts.size()));
  if (is_new) name_texts.push_back(name);
  return found->second;
}

tl::expected<std::shared_ptr<const Program>, TemplateError> parse(std::string_view source) {
  if (source.size() > kMaxSourceBytes)
    return tl::unexpected(TemplateError{"LimitError", "template is larger than 4 MiB", 1});
  auto tokens = tokenize(source);
  if (!tokens) return tl::unexpected(tokens.error());
  auto program = std::make_shared<Program>();
  Parser parser(std::move(*tokens), *program);
  parser.run();
  if (parser.error()) return tl::unexpected(*parser.error());
  return program;
}

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
    default:
      return token.text;
  }
}

Node* Parser::fail(std::string message, int line, std::string type) {
  if (!error_) error_ = TemplateError{std::move(type), std::move(message), line > 0 ? line : current().line};
  at_ = tokens_.size() - 1;  // the end token stops every loop
  return make(NodeKind::kConstant, current().line);
}

Node* Parser::make(NodeKind kind, int line) {
  Node& node = program_.nodes.emplace_back();
  node.kind = kind;
  node.line = line;
  return &node;
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
    fail("expected token 'name', got '" + describe(current()) + "'");
    return {};
  }
  std::string name = current().text;
  next();
  return name;
}

void Parser::expect_operator(std::string_view op) {
  if (!skip_operator(op)) fail("expected token '" + std::string(op) + "', got '" + describe(current()) + "'");
}

void Parser::use_name(Node* node) {
  node->name = program_.intern(node->text);
  if (macros_.empty()) return;
  if (node->text == "varargs") macros_.back()->uses_varargs = true;
  if (node->text == "kwargs") macros_.back()->uses_kwargs = true;
  if (node->text == "caller") macros_.back()->uses_caller = true;
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
    node->children = {test, value, otherwise};
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
    node->children = {left, and_()};
    left = node;
  }
  return left;
}

Node* Parser::and_() {
  Node* left = not_();
  while (at_name("and")) {
    Node* node = make(NodeKind::kAnd, current().line);
    next();
    node->children = {left, not_()};
    left = node;
  }
  return left;
}

Node* Parser::not_() {
  const Depth depth(*this);
  if (failed()) return fail("");
  if (!at_name("not")) return compare();
  Node* node = make(NodeKind::kUnary, current().line);
  node->text = "not";
  next();
  node->children = {not_()};
  return node;
}

Node* Parser::compare() {
  Node* left = sum();
  Node* node = nullptr;
  for (;;) {
    std::string op;
    if (current().kind == TokenKind::kOperator) {
      for (const char* known : {"==", "!=", "<", "<=", ">", ">="})
        if (current().text == known) op = known;
      if (!op.empty()) next();
    } else if (skip_name("in")) {
      op = "in";
    } else if (at_name("not") && look().kind == TokenKind::kName && look().text == "in") {
      next();
      next();
      op = "not in";
    }
    if (op.empty()) return node ? node : left;
    if (!node) {
      node = make(NodeKind::kCompare, current().line);
      node->children = {left};
    }
    node->names.push_back(op);
    node->children.push_back(sum());
  }
}

Node* Parser::sum() {
  Node* left = concat();
  while (at_operator("+") || at_operator("-")) {
    Node* node = make(NodeKind::kBinary, current().line);
    node->text = current().text;
    next();
    node->children = {left, concat()};
    left = node;
  }
  return left;
}

Node* Parser::concat() {
  Node* left = product();
  if (!at_operator("~")) return left;
  Node* node = make(NodeKind::kConcat, current().line);
  node->children = {left};
  while (skip_operator("~")) node->children.push_back(product());
  return node;
}

Node* Parser::product() {
  Node* left = power();
  while (at_operator("*") || at_operator("/") || at_operator("//") || at_operator("%")) {
    Node* node = make(NodeKind::kBinary, current().line);
    node->text = current().text;
    next();
    node->children = {left, power()};
    left = node;
  }
  return left;
}

Node* Parser::power() {
  Node* left = unary();
  while (at_operator("**")) {
    Node* node = make(NodeKind::kBinary, current().line);
    node->text = "**";
    next();
    node->children = {left, unary()};
    left = node;
  }
  return left;
}

Node* Parser::unary(bool with_filter) {
  const Depth depth(*this);
  if (failed()) return fail("");
  Node* node = nullptr;
  if (at_operator("-") || at_operator("+")) {
    node = make(NodeKind::kUnary, current().line);
    node->text = current().text;
    next();
    node->children = {unary(false)};
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
      node->text = token.text;
      node->children = {object};
      return node;
    }
    if (token.kind != TokenKind::kInteger) return fail("expected name or number", token.line);
    --at_;
    Node* node = make(NodeKind::kItem, line);
    node->children = {object, integer_literal(token)};
    return node;
  }
  next();  // "["
  Node* first = at_operator(":") ? nullptr : expression();
  if (!at_operator(":")) {
    if (at_operator(",")) {
      Node* key = make(NodeKind::kTuple, line);
      key->children = {first};
      while (skip_operator(",") && !at_operator("]")) key->children.push_back(expression());
      first = key;
    }
    expect_operator("]");
    Node* node = make(NodeKind::kItem, line);
    node->children = {object, first};
    return node;
  }
  next();  // ":"
  Node* stop = at_operator(":") || at_operator("]") ? nullptr : expression();
  Node* step = nullptr;
  if (skip_operator(":") && !at_operator("]")) step = expression();
  expect_operator("]");
  Node* node = make(NodeKind::kSlice, line);
  node->children = {object, first, stop, step};
  return node;
}

void Parser::call_arguments(CallArguments& arguments) {
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
}

Node* Parser::call(Node* callee) {
  Node* node = make(NodeKind::kCall, current().line);
  node->children = {callee};
  call_arguments(node->arguments);
  return node;
}

Node* Parser::filters(Node* value, bool first_without_pipe) {
  while (!failed() && (at_operator("|") || first_without_pipe)) {
    if (!first_without_pipe) next();
    first_without_pipe = false;
    Node* node = make(NodeKind::kFilter, current().line);
    node->text = expect_name();
    while (skip_operator(".")) node->text += "." + expect_name();
    node->children = {value};
    if (at_operator("(")) call_arguments(node->arguments);
    if (!is_known_filter(node->text) && soft_ == 0)
      unknown_.emplace_back("No filter named '" + node->text + "'.", node->line);
    value = node;
  }
  return value;
}

Node* Parser::test(Node* value) {
  next();  // "is"
  const int line = current().line;
  const bool is_negated = skip_name("not");
  Node* node = make(NodeKind::kTest, line);
  node->text = expect_name();
  while (skip_operator(".")) node->text += "." + expect_name();
  node->children = {value};
  const TokenKind kind = current().kind;
  if (at_operator("(")) {
    call_arguments(node->arguments);
  } else if ((kind == TokenKind::kName && !at_name("else") && !at_name("or") && !at_name("and")) ||
             kind == TokenKind::kString || kind == TokenKind::kInteger || kind == TokenKind::kFloat ||
             at_operator("[") || at_operator("{")) {
    if (at_name("is")) return fail("You cannot chain multiple tests with is");
    node->arguments.positional.push_back(postfix(primary()));
  }
  if (!is_known_test(node->text) && soft_ == 0)
    unknown_.emplace_back("No test named '" + node->text + "'.", node->line);
  if (!is_negated) return node;
  Node* negation = make(NodeKind::kUnary, line);
  negation->text = "not";
  negation->children = {node};
  return negation;
}

}  // namespace plimsoll::text::jinja
