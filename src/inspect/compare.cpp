// SPDX-License-Identifier: Apache-2.0
#include "inspect/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"

namespace plimsoll::inspect {
namespace {

struct Figure {
  std::string_view name, pointer;  // into the document plimsoll.inspect/1
};
constexpr std::array<Figure, 22> kFigures{{
    {"architecture", "/model/architecture"},
    {"parameters", "/parameters/total"},
    {"active parameters", "/parameters/active"},
    {"prediction layers", "/parameters/mtp"},
    {"weight bytes", "/weights/bytes"},
    {"quantization", "/weights/quantization/method"},
    {"quantization format", "/weights/quantization/format"},
    {"quantization bits", "/weights/quantization/bits"},
    {"quantization groups", "/weights/quantization/group_size"},
    {"KV bytes per token", "/kv_cache/bytes_per_token"},
    {"growing KV bytes per token", "/kv_cache/growing_bytes_per_token"},
    {"index bytes per token", "/kv_cache/indexer_bytes_per_token"},
    {"state bytes per sequence", "/kv_cache/state_bytes_per_sequence"},
    {"KV dtype", "/kv_cache/dtype"},
    {"native context", "/context/native_tokens"},
    {"context", "/context/max_model_len"},
    {"rotary embedding", "/context/rope"},
    {"tokenizer", "/tokenizer/kind"},
    {"vocabulary", "/tokenizer/vocab_size"},
    {"special tokens", "/tokenizer/special"},
    {"stop ids", "/tokenizer/stop_ids"},
    {"chat template", "/tokenizer/chat_template"},
}};

using TensorRows = std::map<std::string_view, const Json*>;  // by name; views into the reports

TensorRows tensors_of(const Report& report) {
  TensorRows rows;
  for (const Json& tensor : report.tensors.items())
    if (const std::string* name = tensor["name"].as_string()) rows.emplace(*name, &tensor);
  return rows;
}

Json figures_of(const Json& a, const Json& b, bool& same) {
  Json rows = Json::array();
  for (const Figure& figure : kFigures) {
    const Json& left = a.at_pointer(figure.pointer);
    const Json& right = b.at_pointer(figure.pointer);
    same &= left == right;
    rows.push_back(Json::object({{"name", figure.name}, {"a", left}, {"b", right}, {"same", left == right}}));
  }
  return rows;
}

Json dtypes_of(const Report& a, const Report& b, bool& same) {
  std::map<std::string_view, std::pair<std::int64_t, std::int64_t>> bytes;
  for (const StoredAs& row : a.weights.by_dtype) bytes[name(row.dtype)].first = row.bytes.value;
  for (const StoredAs& row : b.weights.by_dtype) bytes[name(row.dtype)].second = row.bytes.value;
  Json rows = Json::array();
  for (const auto& [dtype, sides] : bytes) {
    same &= sides.first == sides.second;
    rows.push_back(Json::object({{"dtype", dtype}, {"a_bytes", sides.first}, {"b_bytes", sides.second}}));
  }
  return rows;
}

// What a layer is, without the place of its run; null behind the last one.
std::vector<Json> layers_of(const Json& document) {
  std::vector<Json> layers;
  for (const Json& run : document["layers"].items()) {
    Json layer = Json::object();
    for (const auto& [key, value] : run.members())
      if (key != "first" && key != "count") layer.set(key, value);
    layers.insert(layers.end(), static_cast<std::size_t>(run["count"].as_integer().value_or(0)), layer);
  }
  return layers;
}

// Runs of neighbouring layers that differ in the same way.
Json layers_that_differ(const Json& a, const Json& b, bool& same) {
  std::vector<Json> left = layers_of(a), right = layers_of(b);
  const std::size_t count = std::max(left.size(), right.size());
  left.resize(count);
  right.resize(count);
  Json rows = Json::array();
  for (std::size_t first = 0; first < count;) {
    std::size_t end = first + 1;
    while (end < count && left[end] == left[first] && right[end] == right[first]) ++end;
    if (left[first] != right[first]) {
      same = false;
      rows.push_back(
          Json::object({{"first", first}, {"count", end - first}, {"a", left[first]}, {"b", right[first]}}));
    }
    first = end;
  }
  return rows;
}

Json dtype_and_shape(const Json& tensor) {
  return Json::object({{"dtype", tensor["dtype"]}, {"shape", tensor["shape"]}});
}

Json named(const Json& tensor) {
  return Json::object({{"name", tensor["name"]}, {"dtype", tensor["dtype"]}, {"shape", tensor["shape"]}});
}

Json tensors_that_differ(const Report& a, const Report& b, bool& same) {
  const TensorRows left = tensors_of(a), right = tensors_of(b);
  Json added = Json::array(), removed = Json::array(), changed = Json::array();
  for (const auto& [name, tensor] : left) {
    const auto other = right.find(name);
    if (other == right.end())
      removed.push_back(named(*tensor));
    else if (Json one = dtype_and_shape(*tensor), two = dtype_and_shape(*other->second); one != two)
      changed.push_back(Json::object({{"name", name}, {"a", std::move(one)}, {"b", std::move(two)}}));
  }
  for (const auto& [name, tensor] : right)
    if (!left.contains(name)) added.push_back(named(*tensor));
  same &= added.size() + removed.size() + changed.size() == 0;
  return Json::object({{"a", left.size()},
                       {"b", right.size()},
                       {"added", std::move(added)},
                       {"removed", std::move(removed)},
                       {"changed", std::move(changed)}});
}

// A value in one cell of the table.
std::string cell(const Json& value) {
  constexpr std::size_t kWidest = 32;
  if (value.is_null()) return "not known";
  if (const auto number = value.as_integer()) return with_commas(*number);
  if (const std::string* text = value.as_string()) return *text;
  const std::string text = dump(value);
  return text.size() <= kWidest ? text : fmt::format("{} entries", value.size());
}

std::string tensor_cell(const Json& tensor) {
  return *tensor["dtype"].as_string() + " " + dump(tensor["shape"]);
}

void add_row(std::string& page, std::string_view name, const std::string& a, const std::string& b,
             bool same) {
  page += fmt::format("{:<28}{:<34}{:<34}{}", name, a, b, same ? "" : "differs");
  page.erase(page.find_last_not_of(' ') + 1);
  page += '\n';
}

std::string layer_cell(const Json& layer) {
  if (layer.is_null()) return "none";
  return fmt::format("{}, {} KV heads, {}", cell(layer["kind"]), cell(layer["kv_heads"]), cell(layer["ffn"]));
}

// The first ones of a list of tensors; the JSON document has them all.
void add_tensors(std::string& page, const char* what, const Json& list) {
  constexpr std::size_t kShown = 20;
  for (std::size_t i = 0; i < std::min(list.size(), kShown); ++i) {
    const Json& tensor = list.items()[i];
    page += fmt::format("  {} {}  {}\n", what, *tensor["name"].as_string(),
                        tensor.contains("a") ? tensor_cell(tensor["a"]) + " -> " + tensor_cell(tensor["b"])
                                             : tensor_cell(tensor));
  }
  if (list.size() > kShown) page += fmt::format("  {} {} more\n", what, with_commas(list.size() - kShown));
}

}  // namespace

Json compare(const Report& a, const Report& b) {
  const Json left = to_json(a), right = to_json(b);
  bool same = true;
  Json figures = figures_of(left, right, same);
  Json dtypes = dtypes_of(a, b, same);
  Json layers = layers_that_differ(left, right, same);
  Json tensors = tensors_that_differ(a, b, same);
  return Json::object({{"a", a.source},
                       {"b", b.source},
                       {"same", same},
                       {"figures", std::move(figures)},
                       {"dtypes", std::move(dtypes)},
                       {"layers", std::move(layers)},
                       {"tensors", std::move(tensors)}});
}

std::string compare_text(const Json& comparison) {
  std::string page = fmt::format("A  {}\nB  {}\n\n", cell(comparison["a"]), cell(comparison["b"]));
  add_row(page, "", "A", "B", true);
  for (const Json& row : comparison["figures"].items())
    add_row(page, cell(row["name"]), cell(row["a"]), cell(row["b"]), *row["same"].as_bool());
  for (const Json& row : comparison["dtypes"].items())
    add_row(page, "stored as " + cell(row["dtype"]), cell(row["a_bytes"]), cell(row["b_bytes"]),
            row["a_bytes"] == row["b_bytes"]);
  for (const Json& row : comparison["layers"].items()) {
    const std::int64_t first = *row["first"].as_integer(), last = first + *row["count"].as_integer() - 1;
    add_row(page,
            first == last ? fmt::format("layer {}", first) : fmt::format("layers {} to {}", first, last),
            layer_cell(row["a"]), layer_cell(row["b"]), false);
  }
  const Json& tensors = comparison["tensors"];
  page += fmt::format("\nTensors: {} and {}; {} added, {} removed, {} changed\n", cell(tensors["a"]),
                      cell(tensors["b"]), tensors["added"].size(), tensors["removed"].size(),
                      tensors["changed"].size());
  add_tensors(page, "+", tensors["added"]);
  add_tensors(page, "-", tensors["removed"]);
  add_tensors(page, "~", tensors["changed"]);
  return page + (*comparison["same"].as_bool() ? "\nThe same\n" : "\nThey differ\n");
}

}  // namespace plimsoll::inspect
