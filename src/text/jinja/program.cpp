// SPDX-License-Identifier: Apache-2.0
// What a parsed template keeps, and making one from its source.
#include <algorithm>

#include "text/jinja/interpreter.h"
#include "text/jinja/parser.h"

namespace plimsoll::text::jinja {
namespace {

constexpr std::size_t kMaxSourceBytes = std::size_t{4} << 20;

}  // namespace

int Program::intern(const std::string& name) {
  const auto [found, is_new] = name_ids.emplace(name, static_cast<int>(name_texts.size()));
  if (is_new) {
    name_texts.push_back(name);
    is_assigned.push_back(false);
    const Callable* function = environment_function(name);
    globals.push_back(function ? Value::borrowed(*function) : Value());
  }
  return found->second;
}

NodeList Program::list(const std::vector<Node*>& parsed) {
  if (parsed.empty()) return {};
  Node** kept = lists.add(parsed.size());
  std::copy(parsed.begin(), parsed.end(), kept);
  return {kept, parsed.size()};
}

Value Program::text(std::string text) {
  std::string& kept = *texts.add();
  kept = std::move(text);
  return Value::borrowed(kept);
}

const AttributeName* Program::attribute(const std::string& name) {
  const AttributeName*& known = attribute_names[name];
  if (!known) known = &attributes.emplace_back(name);
  return known;
}

tl::expected<std::shared_ptr<const Program>, TemplateError> parse(std::string_view source) {
  if (source.size() > kMaxSourceBytes)
    return tl::unexpected(TemplateError{"LimitError", "template is larger than 4 MiB", 1});
  auto program = std::make_shared<Program>();
  Parser parser(tokenize(source), *program);
  parser.run();
  if (parser.error()) return tl::unexpected(*parser.error());
  return program;
}

}  // namespace plimsoll::text::jinja
