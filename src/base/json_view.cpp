// SPDX-License-Identifier: Apache-2.0
// On simdjson's document model, whose elements are a pointer and an index; nothing of it shows in the header.
// Built and tested with 3.0.1, Debian 12's; the sources of 3.0 to 3.13 and 4.0 to 4.6 have the same two
// members.
#include "base/json_view.h"

#include <simdjson.h>

#include <algorithm>
#include <bit>

namespace plimsoll {

struct JsonViewAccess {
  struct Parts {
    const void* document;
    std::size_t place;
  };
  static_assert(sizeof(Parts) == sizeof(simdjson::dom::element) &&
                std::is_trivially_copyable_v<simdjson::dom::element>);

  static JsonView wrap(simdjson::dom::element element) {
    const auto parts = std::bit_cast<Parts>(element);
    JsonView view;
    view.document_ = parts.document;
    view.place_ = parts.place;
    return view;
  }
  /// Only for views that are not absent.
  static simdjson::dom::element unwrap(const JsonView& view) {
    return std::bit_cast<simdjson::dom::element>(Parts{view.document_, view.place_});
  }
  static bool is_absent(const JsonView& view) { return view.document_ == nullptr; }
};

namespace {

using Access = JsonViewAccess;

template <class T>
std::optional<T> get(const JsonView& view) {
  T value;
  if (Access::is_absent(view) || Access::unwrap(view).get(value) != simdjson::SUCCESS) return std::nullopt;
  return value;
}

Json tree_of(simdjson::dom::element element) {
  switch (element.type()) {
    case simdjson::dom::element_type::OBJECT: {
      Json::Object members;
      for (const auto& [key, value] : simdjson::dom::object(element))
        members.emplace_back(std::string(key), tree_of(value));
      return members;
    }
    case simdjson::dom::element_type::ARRAY: {
      Json::Array items;
      for (const auto item : simdjson::dom::array(element)) items.push_back(tree_of(item));
      return items;
    }
    case simdjson::dom::element_type::STRING:
      return std::string_view(element);
    case simdjson::dom::element_type::INT64:
      return std::int64_t(element);
    case simdjson::dom::element_type::UINT64:
      return std::uint64_t(element);
    case simdjson::dom::element_type::DOUBLE:
      return double(element);
    case simdjson::dom::element_type::BOOL:
      return bool(element);
    case simdjson::dom::element_type::NULL_VALUE:
      break;
  }
  return nullptr;
}

}  // namespace

bool JsonView::is_null() const {
  return Access::is_absent(*this) || Access::unwrap(*this).is_null();
}
bool JsonView::is_object() const {
  return !Access::is_absent(*this) && Access::unwrap(*this).is_object();
}
bool JsonView::is_array() const {
  return !Access::is_absent(*this) && Access::unwrap(*this).is_array();
}
std::optional<std::string_view> JsonView::as_string() const {
  return get<std::string_view>(*this);
}
std::optional<std::int64_t> JsonView::as_integer() const {
  if (const auto whole = get<std::int64_t>(*this)) return whole;
  const auto number = as_double();
  return number ? Json(*number).as_integer() : std::nullopt;
}
std::optional<double> JsonView::as_double() const {
  return get<double>(*this);
}
std::optional<bool> JsonView::as_bool() const {
  return get<bool>(*this);
}

std::size_t JsonView::size() const {
  std::size_t count = 0;
  if (const auto object = get<simdjson::dom::object>(*this))
    for ([[maybe_unused]] const auto& member : *object) ++count;
  if (const auto array = get<simdjson::dom::array>(*this))
    for ([[maybe_unused]] const auto item : *array) ++count;
  return count;
}

JsonView JsonView::operator[](std::string_view key) const {
  JsonView found;
  if (const auto object = get<simdjson::dom::object>(*this))
    for (const auto& [name, value] : *object)
      if (name == key) found = Access::wrap(value);
  return found;
}

JsonView JsonView::item(std::size_t index) const {
  if (const auto array = get<simdjson::dom::array>(*this))
    for (const auto element : *array)
      if (index-- == 0) return Access::wrap(element);
  return {};
}

Status JsonView::for_each_member(
    const std::function<Status(std::string_view key, JsonView value)>& visit) const {
  if (const auto object = get<simdjson::dom::object>(*this))
    for (const auto& [key, value] : *object) PLIMSOLL_TRY_VOID(visit(key, Access::wrap(value)));
  return {};
}

Status JsonView::for_each_item(const std::function<Status(JsonView item)>& visit) const {
  if (const auto array = get<simdjson::dom::array>(*this))
    for (const auto item : *array) PLIMSOLL_TRY_VOID(visit(Access::wrap(item)));
  return {};
}

Json JsonView::to_json() const {
  return Access::is_absent(*this) ? Json() : tree_of(Access::unwrap(*this));
}

struct JsonReader::State {
  simdjson::dom::parser parser;
  simdjson::dom::document document;
  std::string padded;  // the text, with the room behind it that the parser may read
};

namespace {

constexpr std::size_t kMaxDepth = 200;  // as JsonReadOptions

// What a document may leave behind in a reader: a large one is not kept for the small ones after it.
constexpr std::size_t kMostKept = std::size_t{1} << 20;

simdjson::error_code parse_padded(simdjson::dom::parser& parser, simdjson::dom::document& document,
                                  std::string& padded, std::string_view text) {
  padded.assign(text);
  padded.append(simdjson::SIMDJSON_PADDING, ' ');
  if (parser.capacity() < text.size() || document.capacity() < text.size()) {
    const std::size_t room = std::bit_ceil(std::max(text.size(), std::size_t{4096}));
    if (const auto error = parser.allocate(room, kMaxDepth)) return error;
    if (const auto error = document.allocate(room)) return error;
  }
  return parser.parse_into_document(document, padded.data(), text.size(), false).error();
}

}  // namespace

JsonReader::JsonReader() : state_(std::make_unique<State>()) {}
JsonReader::JsonReader(JsonReader&&) noexcept = default;
JsonReader& JsonReader::operator=(JsonReader&&) noexcept = default;
JsonReader::~JsonReader() = default;

Result<JsonView> JsonReader::read(std::string_view text, std::string_view source) {
  if (state_->padded.size() > kMostKept) state_ = std::make_unique<State>();
  State& s = *state_;
  if (parse_padded(s.parser, s.document, s.padded, text) == simdjson::SUCCESS)
    return Access::wrap(s.document.root());
  // The tree reader knows the place of what is wrong, and takes what this one does not: then its text, in
  // which JSON can say everything, is what is read.
  PLIMSOLL_TRY(const Json tree, parse_json(text, source));
  const auto error = parse_padded(s.parser, s.document, s.padded, dump(tree));
  if (error == simdjson::SUCCESS) return Access::wrap(s.document.root());
  return fail(ErrorCode::kMalformed, std::string("JSON cannot be read: ") + simdjson::error_message(error),
              std::string(source));
}

struct JsonDocument::State {
  simdjson::dom::document document;
};

JsonDocument::JsonDocument(std::unique_ptr<State> state) : state_(std::move(state)) {}
JsonDocument::JsonDocument(JsonDocument&&) noexcept = default;
JsonDocument& JsonDocument::operator=(JsonDocument&&) noexcept = default;
JsonDocument::~JsonDocument() = default;

Result<JsonDocument> JsonDocument::parse(std::string text, std::string_view source) {
  try {
    auto state = std::make_unique<State>();
    simdjson::dom::parser parser;
    text.reserve(text.size() + simdjson::SIMDJSON_PADDING);  // else the parser copies it
    auto error = parser.allocate(text.size(), kMaxDepth);
    if (!error) error = parser.parse_into_document(state->document, text.data(), text.size(), false).error();
    if (!error) return JsonDocument(std::move(state));
    // The tree reader knows the place of what is wrong, and takes what only Python writes.
    PLIMSOLL_TRY(const Json tree, parse_json(text, source));
    return fail(ErrorCode::kMalformed, std::string("JSON cannot be read: ") + simdjson::error_message(error),
                std::string(source),
                "write plain numbers below 2^63 instead of NaN, Infinity or larger ones");
  } catch (const std::exception& error) {  // bad_alloc of the library
    return fail(ErrorCode::kMalformed, std::string("JSON cannot be read: ") + error.what(),
                std::string(source));
  }
}

JsonView JsonDocument::root() const {
  return Access::wrap(state_->document.root());
}

}  // namespace plimsoll
