// SPDX-License-Identifier: Apache-2.0
// Does a config's pattern mean this module? Quantization configs name modules as plain words, with shell
// wildcards, and as regular expressions of Python's kind. Expressions run in time linear in the name, so a
// hostile config cannot hang; what they use beyond the usual signs makes them unusable, and is said. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace plimsoll::model {

class ModulePattern {
 public:
  enum class Kind {
    kWords,  // whole segments of the name, anywhere in it: "lm_head", "layers.0.mlp"; '*' for a part of one
    kGlob,   // '*' for anything, dots too; the module itself or one below it
    kRegex,  // from the start of the name, not necessarily to its end
    kAny,
  };

  ModulePattern(Kind kind, std::string text);
  /// As compressed-tensors writes them: "re:..." is an expression, else a module's name.
  static ModulePattern prefixed(std::string_view text);

  bool matches(std::string_view module) const;
  /// False when the expression uses signs that are not read here; it then matches nothing.
  bool is_usable() const { return is_usable_; }
  Kind kind() const { return kind_; }
  /// What one question costs, counted in questions to a pattern of the usual length.
  std::int64_t cost() const;
  const std::string& text() const { return text_; }

 private:
  struct Step {
    enum class Kind { kClass, kSplit, kEnd, kAccept } kind = Kind::kAccept;
    int next = -1, other = -1;        // kSplit has two
    std::uint64_t low = 0, high = 0;  // kClass: the ASCII characters it takes
  };
  class Compiler;

  bool matches_regex(std::string_view module) const;

  Kind kind_;
  std::string text_;
  bool is_usable_ = true;
  std::vector<Step> steps_;  // kRegex
  int start_ = -1;
};

/// Many patterns asked at once: configs list thousands of modules by name.
class ModulePatternSet {
 public:
  void add(ModulePattern pattern);
  bool matches(std::string_view module) const;
  bool empty() const { return words_.empty() && beginnings_.empty() && others_.empty(); }
  /// What the patterns cost that each question tries one by one: long expressions count several times.
  std::int64_t num_tried() const { return num_tried_; }
  /// Expressions that could not be read.
  const std::vector<std::string>& unusable() const { return unusable_; }

 private:
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_set<std::string, TextHash, std::equal_to<>> words_;  // without wildcards
  std::uint64_t word_lengths_ = 0;                                    // bit n: some word has n segments
  std::vector<std::string> beginnings_;  // "model.layers.0*": sorted, none begins with another
  std::vector<ModulePattern> others_;
  std::int64_t num_tried_ = 0;
  std::vector<std::string> unusable_;
};

}  // namespace plimsoll::model
