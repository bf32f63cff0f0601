// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/interpreter.h"
#include "text/jinja/parser.h"
#include "text/text.h"

namespace plimsoll::text {
namespace {

using jinja::Node;
using jinja::NodeKind;

// Does this expression read `<something>.content` or `<something>["content"]`?
bool reads_content(const Node* node) {
  if (!node) return false;
  if (node->kind == NodeKind::kAttribute) return node->attribute->text == "content";
  if (node->kind == NodeKind::kItem) {
    const std::string* key = node->second->constant.string();
    return key && *key == "content";
  }
  if (node->kind == NodeKind::kFilter) return reads_content(node->first);
  return false;
}

class ParsedTemplate final : public ChatTemplate {
 public:
  explicit ParsedTemplate(std::shared_ptr<const jinja::Program> program) : program_(std::move(program)) {
    // As vLLM detects it: some loop runs over a message's content, perhaps through a name it was set to.
    std::vector<bool> is_content(program_->name_texts.size());  // by name id
    program_->nodes.for_each([&](const Node& node) {
      if (node.kind == NodeKind::kSet && node.second->kind == NodeKind::kName && reads_content(node.first))
        is_content[static_cast<std::size_t>(node.second->name)] = true;
    });
    program_->nodes.for_each([&](const Node& node) {
      if (node.kind != NodeKind::kFor) return;
      takes_parts_ =
          takes_parts_ || reads_content(node.first) ||
          (node.first->kind == NodeKind::kName && is_content[static_cast<std::size_t>(node.first->name)]);
    });
  }

  tl::expected<std::string, TemplateError> render(const Json& context, std::string_view now) const override {
    return jinja::Interpreter(*program_, now).run(context);
  }
  bool takes_content_parts() const override { return takes_parts_; }

 private:
  std::shared_ptr<const jinja::Program> program_;
  bool takes_parts_ = false;
};

}  // namespace

tl::expected<std::shared_ptr<const ChatTemplate>, TemplateError> ChatTemplate::parse(
    std::string_view source) {
  auto program = jinja::parse(source);
  if (!program) return tl::unexpected(program.error());
  return std::make_shared<const ParsedTemplate>(std::move(*program));
}

}  // namespace plimsoll::text
