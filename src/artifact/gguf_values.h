// SPDX-License-Identifier: Apache-2.0
// What is the value of one key of a GGUF file? Numbers, strings and arrays as a JSON tree, held against the
// bytes that are left before anything is allocated. Views the file through a cursor; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "artifact/byte_cursor.h"
#include "artifact/finding_list.h"
#include "base/json.h"
#include "base/mapped_file.h"

namespace plimsoll::artifact {

/// Value types of the format page.
enum class GgufValueType : std::uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

class GgufValues {
 public:
  /// `mapping`: whose bytes the cursor reads, or null.
  GgufValues(ByteCursor& cursor, FindingList& findings, const MappedFile* mapping)
      : cursor_(cursor), findings_(findings), mapping_(mapping) {}

  /// Counts and lengths have 32 bits in version 1.
  void use_version_1() { is_v1_ = true; }

  bool read_size(std::uint64_t& value);
  /// A string in place; `what` names it where the file ends inside.
  std::optional<std::string_view> read_text(std::string_view what);
  /// One key's value. Values too long to be of use (see docs/formats/gguf.md) are passed over and are null.
  /// False ends reading: what is behind cannot be found; the finding is added.
  bool read_value(GgufValueType type, const std::string& key, Json& value);
  /// Always false.
  bool truncated(std::string_view what);
  std::string at() const;

 private:
  template <class T>
  bool read_number(const std::string& key, Json& value);
  bool read_bool(const std::string& key, Json& value);
  bool read_string(const std::string& key, Json& value);
  bool read_array(const std::string& key, Json& value);
  bool pass_over(GgufValueType element, std::int64_t count, std::int64_t least, const std::string& key);
  void tell_passed_over(const std::string& key, std::string_view what);
  void release_pages();

  ByteCursor& cursor_;
  FindingList& findings_;
  const MappedFile* mapping_;
  std::int64_t num_elements_ = 0;  // kept, over all arrays of the tokenizer
  std::int64_t num_elements_of_others_ = 0;
  std::int64_t text_bytes_ = 0;        // kept, over all arrays of strings
  std::int64_t plain_text_bytes_ = 0;  // kept, of strings outside arrays
  std::int64_t released_ = 0;
  bool is_v1_ = false;
  bool has_bool_finding_ = false;
};

}  // namespace plimsoll::artifact
