// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/regex_program.h"

#include <utility>

namespace plimsoll::text {
namespace {

constexpr std::size_t kMaxInstructions = 4'000;

class Compiler {
 public:
  // Ends of the program grow backwards: each node is compiled in front of the instruction it goes on to.
  // The tree's depth is bounded by the parser.
  std::optional<std::uint32_t> before(std::uint32_t next, const RegexNode& node) {
    using Kind = RegexNode::Kind;
    switch (node.kind) {
      case Kind::kEmpty:
        return next;
      case Kind::kSet:
        return add({RegexProgram::Op::kSet, next, 0, set_number({false, node.set, false})});
      case Kind::kAssert:
        return add({RegexProgram::Op::kAssert, next, 0, set_number(node.ahead), set_number(node.behind)});
      case Kind::kConcat:
        return concat(next, node);
      case Kind::kAlternate:
        return alternate(next, node);
      case Kind::kRepeat:
        return repeat(next, node);
      case Kind::kLook:
      case Kind::kAtomic:
        return std::nullopt;
    }
    return std::nullopt;
  }

  std::optional<std::uint32_t> add(RegexProgram::Instruction instruction) {
    if (code.size() >= kMaxInstructions) return std::nullopt;
    code.push_back(instruction);
    return static_cast<std::uint32_t>(code.size() - 1);
  }

  std::vector<RegexProgram::Instruction> code;
  std::vector<NeighbourCondition> sets;

 private:
  std::uint32_t set_number(const NeighbourCondition& wanted) {
    if (wanted.is_free) return RegexProgram::kFree;
    for (std::size_t i = 0; i < sets.size(); ++i)
      if (sets[i].set == wanted.set && sets[i].takes_edge == wanted.takes_edge)
        return static_cast<std::uint32_t>(i);
    sets.push_back(wanted);
    return static_cast<std::uint32_t>(sets.size() - 1);
  }

  std::optional<std::uint32_t> concat(std::uint32_t next, const RegexNode& node) {
    std::optional<std::uint32_t> at = next;
    for (auto child = node.children.rbegin(); at && child != node.children.rend(); ++child)
      at = before(*at, *child);
    return at;
  }

  std::optional<std::uint32_t> alternate(std::uint32_t next, const RegexNode& node) {
    std::optional<std::uint32_t> at;
    for (auto child = node.children.rbegin(); child != node.children.rend(); ++child) {
      const auto way = before(next, *child);
      if (!way) return std::nullopt;
      at = at ? split(*way, *at, RegexNode::Greed::kGreedy) : way;
      if (!at) return std::nullopt;
    }
    return at;
  }

  std::optional<std::uint32_t> split(std::uint32_t go_on, std::uint32_t stop, RegexNode::Greed greed) {
    const bool is_greedy = greed == RegexNode::Greed::kGreedy;
    return add({RegexProgram::Op::kSplit, is_greedy ? go_on : stop, is_greedy ? stop : go_on});
  }

  std::optional<std::uint32_t> repeat(std::uint32_t next, const RegexNode& node) {
    const RegexNode& child = node.children.front();
    std::optional<std::uint32_t> at = next;
    if (node.max == RegexNode::kUnlimited) {
      // Backtracking engines leave a loop after an empty round, though another way round might go on.
      if (can_be_empty(child)) return std::nullopt;
      const auto loop = add({RegexProgram::Op::kSplit});
      const auto body = loop ? before(*loop, child) : std::nullopt;
      if (!body) return std::nullopt;
      const bool is_greedy = node.greed == RegexNode::Greed::kGreedy;
      code[*loop].next = is_greedy ? *body : next;
      code[*loop].other = is_greedy ? next : *body;
      at = loop;
    } else {
      for (int i = node.min; at && i < node.max; ++i) {
        const auto body = before(*at, child);
        at = body ? split(*body, next, node.greed) : std::nullopt;
        if (at == next) break;  // only an empty child comes back to where it was
      }
    }
    for (int i = 0; at && i < node.min; ++i) {
      const auto body = before(*at, child);
      if (body == at) break;
      at = body;
    }
    return at;
  }
};

}  // namespace

std::optional<RegexProgram> compile_program(const RegexNode& root) {
  Compiler compiler;
  const auto match = compiler.add({RegexProgram::Op::kMatch});
  const auto start = compiler.before(*match, root);
  if (!start) return std::nullopt;
  RegexProgram program;
  std::vector<CodePointSet> sets;
  for (const NeighbourCondition& condition : compiler.sets) sets.push_back(condition.set);
  auto classes = divide_into_classes(sets);
  if (!classes) return std::nullopt;
  program.start = *start;
  program.code = std::move(compiler.code);
  program.classes = std::move(classes->classes);
  program.members = std::move(classes->members);
  for (std::size_t i = 0; i < sets.size(); ++i) program.members[i].push_back(compiler.sets[i].takes_edge);
  return program;
}

}  // namespace plimsoll::text
