// SPDX-License-Identifier: Apache-2.0
// Statements, and the list of template text, prints and blocks between them.
#include <algorithm>

#include "text/jinja/parser.h"

namespace plimsoll::text::jinja {

void Parser::run() {
  program_.id_loop = program_.intern("loop");
  program_.id_caller = program_.intern("caller");
  program_.id_kwargs = program_.intern("kwargs");
  program_.id_varargs = program_.intern("varargs");
  for (const int id : {program_.id_loop, program_.id_caller, program_.id_kwargs, program_.id_varargs})
    assigns(id);
  if (current().kind == TokenKind::kError) fail(current().text);
  program_.body = body({}, false);
  if (!failed() && !unknown_.empty()) {
    fail(unknown_[0].first, unknown_[0].second->line, "TemplateAssertionError");
    error_->column = unknown_[0].second->column;
  }
  if (failed()) return;  // names may be missing
  program_.nodes.for_each([&](Node& node) {
    node.is_global =
        node.kind == NodeKind::kName && !program_.is_assigned[static_cast<std::size_t>(node.name)];
  });
}

void Parser::expect_block_end() {
  if (current().kind != TokenKind::kBlockEnd) {
    fail_expected("end of statement block");
    return;
  }
  next();
}

// Nodes up to one of the `ends` tags, which becomes the current token (or is passed with drop_needle).
NodeList Parser::body(const std::vector<std::string_view>& ends, bool drop_needle) {
  const Depth depth(*this);
  std::vector<Node*> nodes;
  if (!ends.empty()) ends_.push_back(ends);
  while (!failed()) {
    if (current().kind == TokenKind::kEnd) {
      if (!ends.empty()) fail_unknown_tag(nullptr);
      break;
    }
    if (current().kind == TokenKind::kData) {
      Node* node = make(NodeKind::kText, current().line);
      node->constant = program_.text(current().text);
      nodes.push_back(node);
      next();
    } else if (current().kind == TokenKind::kVariableBegin) {
      output(nodes);
    } else {
      next();  // block begin
      if (std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return at_name(end); })) {
        if (drop_needle) next();
        break;
      }
      nodes.push_back(statement());
    }
  }
  if (!ends.empty()) ends_.pop_back();
  return program_.list(nodes);
}

// An unknown tag, or the end of the template (no name) inside an open statement.
Node* Parser::fail_unknown_tag(const std::string* name) {
  std::string message = name ? "Encountered unknown tag '" + *name + "'." : "Unexpected end of template.";
  if (name && !tags_.empty()) tags_.pop_back();
  std::string wanted;
  bool is_known = false;
  if (!ends_.empty())
    for (const std::string_view end : ends_.back())
      wanted += (wanted.empty() ? "'" : " or '") + std::string(end) + "'";
  for (const auto& ends : ends_)
    for (const std::string_view end : ends) is_known = is_known || (name && end == *name);
  if (is_known)
    message +=
        " You probably made a nesting mistake. Jinja is expecting this tag, but currently looking for " +
        wanted + ".";
  else if (!wanted.empty())
    message += " Jinja was looking for the following tags: " + wanted + ".";
  if (!tags_.empty()) message += " The innermost block that needs to be closed is '" + tags_.back() + "'.";
  return fail(std::move(message));
}

void Parser::output(std::vector<Node*>& nodes) {
  next();
  Node* value = tuple(true, false);
  Node* node = make(NodeKind::kOutput, value->line);
  node->first = value;
  nodes.push_back(node);
  if (!failed() && current().kind != TokenKind::kVariableEnd) fail_expected("end of print statement");
  next();
}

// The body of a tag that closes with `end`: "%} ... {% end %}", in a new scope for unknown filters.
NodeList Parser::inner_body(std::string_view end) {
  expect_block_end();
  const int soft = std::exchange(soft_, 0);
  auto nodes = body({end}, true);
  soft_ = soft;
  return nodes;
}

Node* Parser::statement() {
  const Token tag = current();
  if (tag.kind != TokenKind::kName) return fail("tag name expected");
  tags_.push_back(tag.text);
  Node* node = nullptr;
  if (skip_name("if"))
    node = if_statement();
  else if (skip_name("for"))
    node = for_statement();
  else if (skip_name("set"))
    node = set_statement();
  else if (skip_name("macro"))
    node = macro_statement();
  else if (skip_name("call"))
    node = call_block();
  else if (skip_name("with"))
    node = with_statement();
  else if (skip_name("generation"))
    node = scope_statement("endgeneration", false);
  else if (skip_name("block"))
    node = scope_statement("endblock", true);
  else if (skip_name("autoescape"))
    node = autoescape_statement();
  else if (skip_name("break"))
    node = loop_jump(NodeKind::kBreak);
  else if (skip_name("continue"))
    node = loop_jump(NodeKind::kContinue);
  else if (skip_name("print")) {
    node = make(NodeKind::kOutput, tag.line);
    node->first = tuple(true, false);
  } else if (skip_name("filter")) {
    node = make(NodeKind::kFilterBlock, tag.line);
    node->first = filters(nullptr, true);
    rest(node).body = inner_body("endfilter");
  } else if (tag.text == "extends" || tag.text == "include" || tag.text == "import" || tag.text == "from") {
    return fail("a chat template is one text: there is no loader for '" + tag.text + "'", 0, "TypeError");
  } else {
    return fail_unknown_tag(&tag.text);
  }
  tags_.pop_back();
  node->line = tag.line;
  expect_block_end();
  return node;
}

Node* Parser::loop_jump(NodeKind kind) {
  if (loop_depth_ == 0)
    return fail(kind == NodeKind::kBreak ? "'break' outside loop" : "'continue' not properly in loop", 0,
                "SyntaxError");
  return make(kind, current().line);
}

Node* Parser::if_statement() {
  Node* node = make(NodeKind::kIf, current().line);
  Node* branch = node;
  ++soft_;
  while (!failed()) {
    branch->first = tuple(false, false);
    expect_block_end();
    rest(branch).body = body({"elif", "else", "endif"}, false);
    if (at_name("elif")) {
      Node* other = make(NodeKind::kIf, current().line);
      next();
      rest(branch).else_body = program_.list({other});
      branch = other;
      continue;
    }
    if (skip_name("else")) {
      expect_block_end();
      rest(branch).else_body = body({"endif"}, false);
    }
    next();  // endif
    break;
  }
  --soft_;
  return node;
}

Node* Parser::for_statement() {
  Node* node = make(NodeKind::kFor, current().line);
  const bool outer_names_loop = names_loop_;
  rest(node).target = assign_target(true, false, true);
  if (!skip_name("in")) fail_expected("in");
  Node* iterable = tuple(false, false, "recursive");
  Node* filter = skip_name("if") ? expression() : nullptr;
  node->first = iterable;
  node->second = filter;
  node->is_recursive = skip_name("recursive");
  expect_block_end();
  const int soft = std::exchange(soft_, 0);
  ++loop_depth_;
  names_loop_ = false;
  rest(node).body = body({"endfor", "else"}, false);
  node->uses_loop = names_loop_ || node->is_recursive;
  names_loop_ = names_loop_ || outer_names_loop;
  --loop_depth_;
  if (skip_name("else")) {
    expect_block_end();
    rest(node).else_body = body({"endfor"}, false);
  }
  next();  // endfor
  soft_ = soft;
  return node;
}

Node* Parser::single_target(bool with_namespace) {
  const Token token = current();
  Node* node = make(NodeKind::kName, token.line);
  const std::string name = expect_name();
  if (failed()) return node;
  if (with_namespace && skip_operator(".")) {
    node->kind = NodeKind::kNamespaceRef;
    node->attribute = program_.attribute(expect_name());
  } else {
    for (const char* reserved : {"true", "false", "none", "True", "False", "None"})
      if (token.text == reserved) return fail("can't assign to 'const'", token.line);
  }
  node->name = program_.intern(name);
  if (node->kind == NodeKind::kName) assigns(node->name);
  return node;
}

Node* Parser::assign_target(bool with_tuple, bool with_namespace, bool stops_at_in) {
  const Depth depth(*this);
  const int line = current().line;
  std::vector<Node*> items;
  bool is_tuple = false;
  while (!failed()) {
    if (!items.empty() && (current().kind == TokenKind::kBlockEnd || at_operator("=") || at_operator(")") ||
                           (stops_at_in && at_name("in"))))
      break;
    const TokenKind kind = current().kind;
    if (kind == TokenKind::kString || kind == TokenKind::kInteger || kind == TokenKind::kFloat)
      return fail(items.empty() ? "can't assign to 'const'" : "can't assign to 'tuple'");
    if (kind == TokenKind::kBlockEnd || kind == TokenKind::kEnd)
      return kind == TokenKind::kEnd ? fail("unexpected 'end of template'")
                                     : fail("Expected an expression, got '" + describe(current()) + "'");
    if (kind == TokenKind::kOperator && !at_operator("("))
      return fail(at_operator("[")   ? "can't assign to 'list'"
                  : at_operator("{") ? "can't assign to 'dict'"
                                     : "unexpected '" + describe(current()) + "'");
    if (skip_operator("(")) {
      items.push_back(assign_target(true, with_namespace, false));
      expect_operator(")");
    } else {
      items.push_back(single_target(with_namespace));
    }
    if (!with_tuple || !skip_operator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !items.empty()) return items[0];
  Node* node = make(NodeKind::kTuple, line);
  rest(node).children = program_.list(items);
  return node;
}

Node* Parser::set_statement() {
  Node* node = make(NodeKind::kSet, current().line);
  node->second = assign_target(true, true, false);
  if (skip_operator("=")) {
    node->first = tuple(true, false);
    return node;
  }
  node->kind = NodeKind::kSetBlock;
  if (at_operator("|")) node->first = filters(nullptr, false);
  rest(node).body = inner_body("endset");
  return node;
}

// "(a, b=1)" of a macro or call block.
void Parser::signature(Node* macro) {
  Signature& taken = *rest(macro).signature;
  expect_operator("(");
  while (!failed() && !at_operator(")")) {
    if (!taken.names.empty()) expect_operator(",");
    Node* parameter = single_target(false);
    taken.names.push_back(parameter->name);
    if (skip_operator("="))
      taken.defaults.push_back(expression());
    else if (!taken.defaults.empty())
      fail("non-default argument follows default argument");
  }
  expect_operator(")");
}

Node* Parser::macro_statement() {
  Node* node = make(NodeKind::kMacro, current().line);
  rest(node).signature = &program_.signatures.emplace_back();
  const Node* name = single_target(false);
  node->name = name->name;
  macros_.push_back(node);
  const int loops = std::exchange(loop_depth_, 0);
  signature(node);
  rest(node).body = inner_body("endmacro");
  loop_depth_ = loops;
  macros_.pop_back();
  return node;
}

Node* Parser::call_block() {
  Node* node = make(NodeKind::kCallBlock, current().line);
  rest(node).signature = &program_.signatures.emplace_back();
  node->name = program_.id_caller;
  macros_.push_back(node);
  if (at_operator("(")) signature(node);
  macros_.pop_back();
  Node* callee = expression();
  if (!failed() && callee->kind != NodeKind::kCall) return fail("expected call");
  node->first = callee;
  macros_.push_back(node);
  const int loops = std::exchange(loop_depth_, 0);
  rest(node).body = inner_body("endcall");
  loop_depth_ = loops;
  macros_.pop_back();
  return node;
}

Node* Parser::with_statement() {
  Node* node = make(NodeKind::kWith, current().line);
  rest(node).signature = &program_.signatures.emplace_back();
  std::vector<Node*> values;
  while (!failed() && current().kind != TokenKind::kBlockEnd) {
    if (!values.empty()) expect_operator(",");
    rest(node).signature->names.push_back(single_target(false)->name);
    expect_operator("=");
    values.push_back(expression());
  }
  rest(node).children = program_.list(values);
  rest(node).body = inner_body("endwith");
  return node;
}

// Nothing is escaped in a chat template, so that only the tag that says so can be run.
Node* Parser::autoescape_statement() {
  const Node* value = expression();
  if (!failed() && (value->kind != NodeKind::kConstant || value->constant.is_true()))
    return fail("the tag 'autoescape' is not supported", value->line);
  return scope_statement("endautoescape", false);
}

Node* Parser::scope_statement(std::string_view end, bool has_argument) {
  Node* node = make(NodeKind::kScope, current().line);
  // A block's name: there is nothing to extend in a chat template.
  if (has_argument && current().kind == TokenKind::kName) {
    if (!blocks_.insert(current().text).second)
      return fail("block '" + current().text + "' defined twice", 0, "TemplateAssertionError");
  }
  while (has_argument && current().kind != TokenKind::kBlockEnd && current().kind != TokenKind::kEnd) next();
  rest(node).body = inner_body(end);
  if (has_argument && current().kind == TokenKind::kName) next();  // {% endblock name %}
  return node;
}

}  // namespace plimsoll::text::jinja
