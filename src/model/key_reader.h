// SPDX-License-Identifier: Apache-2.0
// Typed, bounded look-up of a config's or a GGUF file's keys. Keeps the first error and goes on with harmless
// values, so that a family reads as a list of its keys; `status()` is asked once at the end.
// Views the tree, which must outlive it; single thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace plimsoll::model {

/// Largest values that are believed; above them a file is taken for damaged. Far above any published model.
constexpr std::int64_t kMaxLayers = 4'096;
constexpr std::int64_t kMaxWidth = std::int64_t{1} << 20;  // hidden and intermediate sizes
constexpr std::int64_t kMaxHeads = 4'096;
constexpr std::int64_t kMaxHeadDim = 8'192;
constexpr std::int64_t kMaxVocab = std::int64_t{1} << 28;
constexpr std::int64_t kMaxExperts = 65'536;
constexpr std::int64_t kMaxContext = std::int64_t{1} << 40;

/// Other spellings of a key, in the order they are looked at; empty for a key that has none.
/// Source: docs/formats/config.md.
std::span<const std::string_view> other_spellings(std::string_view key);

class KeyReader {
 public:
  /// A config object; `pointer` is its JSON pointer within `source`.
  static KeyReader of_config(const Json& object, std::string_view source, std::string pointer);
  /// GGUF metadata; keys are looked up behind "ARCHITECTURE.".
  static KeyReader of_gguf(const Json& metadata, std::string_view source, std::string_view architecture);

  bool has(std::string_view key) const { return !(*this)[key].is_null(); }
  /// The value under `key`, or under another spelling of it that published configs use (n_layer for
  /// num_hidden_layers, ...; key_aliases.cpp). Null when none is there.
  const Json& operator[](std::string_view key) const;
  /// True also where the value is null; this very spelling.
  bool contains(std::string_view key) const;
  /// Lets a wrapper's own word on tied embeddings stand before this object's, as transformers does. The
  /// outermost is given last.
  void inherit(const Json& wrapper);
  /// The head is a matrix of its own, whatever the config says.
  void untie() { is_untied_ = true; }
  /// True for the text_config of a wrapper.
  bool is_nested() const { return is_nested_; }

  /// A whole number from `least` to `most`. An absent or null value gives `otherwise`, and is an error when
  /// there is none.
  std::int64_t integer(std::string_view key, std::int64_t least, std::int64_t most,
                       std::optional<std::int64_t> otherwise = std::nullopt);
  int count(std::string_view key, std::int64_t most, std::optional<std::int64_t> otherwise = std::nullopt);
  /// As Python takes it: a null that is written counts as false.
  bool truth(std::string_view key, bool otherwise);
  /// A finite number above zero.
  double positive(std::string_view key, double otherwise);
  bool flag(std::string_view key, bool otherwise);
  std::string text(std::string_view key, std::string_view otherwise);
  /// A list of finite numbers of at most `most` entries; empty when absent.
  std::vector<double> numbers(std::string_view key, std::size_t most);
  /// One whole number per layer: a list of that many, or one number for all.
  std::vector<std::int64_t> per_layer(std::string_view key, std::size_t layers, std::int64_t least,
                                      std::int64_t most,
                                      std::optional<std::int64_t> otherwise = std::nullopt);
  /// True for each layer that a list of layer numbers names. Absent: none.
  std::vector<bool> named_layers(std::string_view key, std::size_t layers, int first_layer = 0);

  /// A reader of the object under `key`; its errors are this reader's.
  KeyReader child(std::string_view key) const;
  /// The same for an entry of the list under `key`, which must have it.
  KeyReader child(std::string_view key, std::size_t index) const;
  void take_error(const KeyReader& child);

  /// Keeps an error about `key`; the first one counts.
  void add_error(ErrorCode code, std::string_view key, std::string message);
  /// The first error, or success.
  Status status() const;

 private:
  KeyReader(const Json& object, std::string place, std::string key_prefix)
      : object_(&object), place_(std::move(place)), key_prefix_(std::move(key_prefix)) {}

  const Json* object_;
  const Json* wrapper_ = nullptr;  // the outermost that says whether embeddings are tied
  std::string place_;              // "config.json: /text_config/" or "model.gguf: "
  std::string key_prefix_;         // "llama."
  bool is_nested_ = false;
  bool is_untied_ = false;
  std::optional<Error> error_;
};

}  // namespace plimsoll::model
