// SPDX-License-Identifier: Apache-2.0
// Turns a program's threads, in their order of preference, into the states of an automaton. A thread that
// waits for a condition on the next symbol stays in the state and is decided when that symbol is known, so
// that one character of look-ahead costs nothing while matching.
#include <algorithm>
#include <map>
#include <utility>

#include "text/tokenizer/regex_dfa.h"
#include "text/tokenizer/regex_program.h"

namespace plimsoll::text {
namespace {

constexpr std::size_t kMaxStates = 4'000;
constexpr std::size_t kMaxSteps = 1'000'000;    // 4 MB per table
constexpr std::size_t kMaxVisits = 20'000'000;  // instructions looked at, about 0.2 s

}  // namespace

class RegexDfaBuilder {
 public:
  explicit RegexDfaBuilder(RegexProgram program) : program_(std::move(program)) {}

  std::optional<RegexDfa> build();

 private:
  using Threads = std::vector<std::uint32_t>;
  struct State {
    std::uint32_t memory = 0;  // what the conditions may ask about the symbol before
    bool is_start = false;
    Threads threads;
    auto operator<=>(const State&) const = default;
  };
  using Step = RegexDfa::Step;

  void number_memories();
  std::optional<std::uint16_t> number_of(State state);
  void follow(std::uint32_t from, std::size_t behind, std::size_t ahead, Threads& out);
  std::optional<Step> step(std::uint16_t from, std::size_t symbol);
  bool explore();
  Step tiling_step(std::uint16_t state, std::size_t symbol) const;
  const Step& at(std::uint16_t state, std::size_t symbol) const { return rows_[state][symbol]; }
  void lay_out(RegexDfa& dfa) const;

  static constexpr std::size_t kUnknown = ~std::size_t{0};

  RegexProgram program_;
  std::size_t num_symbols_ = 0;
  std::vector<std::uint32_t> memory_of_;  // [symbol]
  std::vector<std::size_t> example_of_;   // [memory]: a symbol that leaves it
  std::map<State, std::uint16_t> numbers_;
  std::vector<State> states_;
  std::vector<std::vector<Step>> rows_;      // [state][symbol]
  std::vector<std::uint16_t> start_behind_;  // [symbol]
  std::vector<std::uint32_t> seen_;          // [instruction]: the round that last came by
  std::uint32_t round_ = 0;
  std::vector<std::uint32_t> stack_;
  std::size_t visits_ = 0;
};

// Two symbols that no condition on the symbol before tells apart leave the same memory.
void RegexDfaBuilder::number_memories() {
  std::map<std::vector<bool>, std::uint32_t> known;
  for (std::size_t symbol = 0; symbol < num_symbols_; ++symbol) {
    std::vector<bool> answers;
    for (const auto& instruction : program_.code)
      if (instruction.behind != RegexProgram::kFree)
        answers.push_back(program_.fits(instruction.behind, symbol));
    const auto [found, is_new] = known.try_emplace(answers, static_cast<std::uint32_t>(known.size()));
    if (is_new) example_of_.push_back(symbol);
    memory_of_.push_back(found->second);
  }
}

std::optional<std::uint16_t> RegexDfaBuilder::number_of(State state) {
  if (state.threads.empty() && !state.is_start) return std::uint16_t{0};
  const auto known = numbers_.find(state);
  if (known != numbers_.end()) return known->second;
  if (states_.size() >= kMaxStates || (states_.size() + 1) * num_symbols_ > kMaxSteps) return std::nullopt;
  const auto number = static_cast<std::uint16_t>(states_.size());
  numbers_.emplace(state, number);
  states_.push_back(std::move(state));
  return number;
}

// Appends the threads that `from` comes to without a character, most preferred first. Conditions on a symbol
// ahead that is not known yet wait as threads of their own. Does not come twice by an instruction in a round.
void RegexDfaBuilder::follow(std::uint32_t from, std::size_t behind, std::size_t ahead, Threads& out) {
  using Op = RegexProgram::Op;
  stack_.assign(1, from);
  while (!stack_.empty()) {
    const std::uint32_t index = stack_.back();
    stack_.pop_back();
    ++visits_;
    if (seen_[index] == round_) continue;
    seen_[index] = round_;
    const auto& instruction = program_.code[index];
    switch (instruction.op) {
      case Op::kSplit:
        stack_.push_back(instruction.other);
        stack_.push_back(instruction.next);
        break;
      case Op::kAssert:
        if (!program_.fits(instruction.behind, behind)) break;
        if (instruction.set != RegexProgram::kFree && ahead == kUnknown)
          out.push_back(index);
        else if (ahead == kUnknown || program_.fits(instruction.set, ahead))
          stack_.push_back(instruction.next);
        break;
      case Op::kSet:
      case Op::kMatch:
        out.push_back(index);
        break;
    }
  }
}

std::optional<RegexDfaBuilder::Step> RegexDfaBuilder::step(std::uint16_t from, std::size_t symbol) {
  using Op = RegexProgram::Op;
  const std::size_t behind = example_of_[states_[from].memory];
  Threads decided;
  ++round_;
  for (const std::uint32_t thread : states_[from].threads) follow(thread, behind, symbol, decided);
  Step out;
  State next;
  ++round_;
  for (const std::uint32_t thread : decided) {
    const auto& instruction = program_.code[thread];
    if (instruction.op == Op::kMatch) {  // what is less preferred is not looked at any more
      out.flags = RegexDfa::kEnds;
      break;
    }
    if (symbol != program_.edge() && program_.fits(instruction.set, symbol))
      follow(instruction.next, symbol, kUnknown, next.threads);
  }
  next.memory = memory_of_[symbol];
  const auto number = number_of(std::move(next));
  if (!number) return std::nullopt;
  out.state = *number;
  return out;
}

bool RegexDfaBuilder::explore() {
  states_.emplace_back();  // the dead one
  for (std::size_t symbol = 0; symbol < num_symbols_; ++symbol) {
    State start{memory_of_[symbol], true, {}};
    ++round_;
    follow(program_.start, symbol, kUnknown, start.threads);
    const auto number = number_of(std::move(start));
    if (!number) return false;
    start_behind_.push_back(*number);
  }
  for (std::size_t state = 0; state < states_.size(); ++state) {
    rows_.emplace_back(num_symbols_);
    for (std::size_t symbol = 0; state > 0 && symbol < num_symbols_; ++symbol) {
      const auto made = step(static_cast<std::uint16_t>(state), symbol);
      if (!made || visits_ > kMaxVisits) return false;
      rows_[state][symbol] = *made;
    }
  }
  return true;
}

RegexDfaBuilder::Step RegexDfaBuilder::tiling_step(std::uint16_t state, std::size_t symbol) const {
  const Step inside = at(state, symbol);
  const std::uint16_t idle = start_behind_[symbol];
  if (states_[state].is_start) {  // no match is open; that an empty one may end here says nothing
    if (inside.state != 0) return {inside.state, RegexDfa::kBegins};
    return {idle, 0};
  }
  if (inside.state != 0) return {inside.state, 0};
  if (!(inside.flags & RegexDfa::kEnds)) return {0, RegexDfa::kRetry};
  const std::uint16_t start = start_behind_[example_of_[states_[state].memory]];
  const Step fresh = at(start, symbol);
  if (fresh.state == 0) return {idle, RegexDfa::kEnds};
  return {fresh.state, static_cast<std::uint16_t>(RegexDfa::kEnds | RegexDfa::kBegins)};
}

void RegexDfaBuilder::lay_out(RegexDfa& dfa) const {
  dfa.num_states_ = states_.size();
  dfa.steps_.reserve(num_symbols_ * states_.size());
  dfa.tiling_.reserve(num_symbols_ * states_.size());
  for (std::size_t symbol = 0; symbol < num_symbols_; ++symbol)
    for (std::size_t state = 0; state < states_.size(); ++state) {
      dfa.steps_.push_back(rows_[state][symbol]);
      dfa.tiling_.push_back(state == 0 ? Step{} : tiling_step(static_cast<std::uint16_t>(state), symbol));
    }
  for (std::size_t c = 0; c < dfa.ascii_.size(); ++c)
    dfa.ascii_[c] =
        static_cast<std::uint32_t>(program_.classes.class_of(static_cast<char32_t>(c)) * states_.size());
  dfa.start_behind_ = start_behind_;
  dfa.starts_alike_ = example_of_.size() == 1;
}

std::optional<RegexDfa> RegexDfaBuilder::build() {
  num_symbols_ = program_.classes.num_classes + 1;
  seen_.resize(program_.code.size());
  number_memories();
  if (!explore()) return std::nullopt;
  RegexDfa dfa;
  lay_out(dfa);
  dfa.classes_ = std::move(program_.classes);
  return dfa;
}

std::optional<RegexDfa> RegexDfa::build(const RegexNode& root) {
  auto program = compile_program(root);
  if (!program) return std::nullopt;
  return RegexDfaBuilder(std::move(*program)).build();
}

}  // namespace plimsoll::text
