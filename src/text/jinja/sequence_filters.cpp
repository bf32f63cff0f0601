// SPDX-License-Identifier: Apache-2.0
// Filters on sequences and mappings.
#include <algorithm>
#include <array>

#include "text/jinja/filters.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/python_format.h"
#include "text/unicode.h"

namespace plimsoll::text::jinja {
namespace {

constexpr std::size_t kPairBytes = sizeof(Sequence) + 2 * sizeof(Value);
constexpr std::int64_t kMaxBatch = 1'000'000;  // items that a batch may be filled up to

// The value at a dotted path ("function.name", "0"), as make_attrgetter of jinja2.
Value path_value(Interpreter& run, Value value, const Value& path) {
  const std::string* dotted = path.string();
  if (!dotted) return run.item(value, path);
  for (std::size_t at = 0; at <= dotted->size() && !run.failed();) {
    const std::size_t dot = std::min(dotted->find('.', at), dotted->size());
    if (!run.charge_steps(1) || !run.charge_bytes(dot - at)) return {};
    const std::string part = dotted->substr(at, dot - at);
    const bool is_index =
        !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == std::string::npos;
    value = run.item(value, is_index ? Value(std::atoi(part.c_str())) : Value(part));
    at = dot + 1;
  }
  return value;
}

Value folded_case(Interpreter& run, const Value& value) {
  if (!value.string()) return value;
  return run.charge_reading(value) ? run.string(to_lower(*value.string())) : Value();
}

// The key to compare an element by: its attribute, in lower case unless case counts.
Value sort_key(Interpreter& run, const Value& element, const Value* attribute, bool is_case_sensitive) {
  Value key = attribute && !attribute->is_none() ? path_value(run, element, *attribute) : element;
  return is_case_sensitive ? key : folded_case(run, key);
}

bool flag(const Value* value) {
  return value && value->is_true();
}

// Sorts by key, stable. Comparisons may fail; the order then no longer matters.
std::vector<Value> sorted(Interpreter& run, std::vector<Value> items, std::vector<Value> keys,
                          bool is_reversed) {
  if (run.failed()) return {};
  std::vector<std::size_t> order(items.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::int64_t weight = 1;
  for (const Value& key : keys) weight = std::max(weight, key.weight());
  for (std::size_t n = items.size(); n > 1; n /= 2)
    if (!run.charge_steps(static_cast<std::int64_t>(items.size()) * weight)) return {};
  for (std::size_t i = 1; i < keys.size() && !run.failed(); ++i) run.less(keys[i], keys[i - 1]);
  if (run.failed()) return {};
  // After a pair that cannot be compared every comparison is false: an order still, of a result that is lost.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return is_reversed ? run.less(keys[b], keys[a]) : run.less(keys[a], keys[b]);
  });
  std::vector<Value> out;
  for (const std::size_t i : order) out.push_back(items[i]);
  return out;
}

Value length(Interpreter& run, const Value& value, const Arguments&) {
  if (value.is_undefined()) return 0;
  if (value.string()) return static_cast<std::int64_t>(num_code_points(*value.string()));
  if (const Dict* dict = value.dict()) return static_cast<std::int64_t>(dict->entries.size());
  if (const Loop* loop = value.loop()) return static_cast<std::int64_t>(loop->items.size());
  const Sequence* list = value.sequence();
  if (!list || list->form == SequenceForm::kGenerator)
    return run.type_error("object of type '" + type_name(value) + "' has no len()");
  return static_cast<std::int64_t>(list->items.size());
}

Value list_filter(Interpreter& run, const Value& value, const Arguments&) {
  return run.sequence(run.elements(value));
}

Value items_filter(Interpreter& run, const Value& value, const Arguments&) {
  if (value.is_undefined()) return run.sequence({}, SequenceForm::kGenerator);
  const Dict* dict = value.dict();
  if (!dict) return run.type_error("Can only get item pairs from a mapping.");
  std::vector<Value> pairs;
  if (!run.charge_bytes(dict->entries.size() * kPairBytes)) return {};
  for (const auto& [key, element] : dict->entries) pairs.push_back(make_tuple({key, element}));
  return run.sequence(std::move(pairs), SequenceForm::kGenerator);
}

Value first(Interpreter& run, const Value& value, const Arguments&) {
  const Elements found = run.iterate(value);
  return found.items.empty() ? Value::undefined("No first item, sequence was empty.") : found.items.front();
}

Value last(Interpreter& run, const Value& value, const Arguments&) {
  if (value.sequence(SequenceForm::kGenerator)) return run.type_error("'generator' object is not reversible");
  const Elements found = run.iterate(value);
  return found.items.empty() ? Value::undefined("No last item, sequence was empty.") : found.items.back();
}

Value join(Interpreter& run, const Value& value, const Arguments& given) {
  const Value* separator = given.get(0, "d");
  const Value* attribute = given.get(1, "attribute");
  const std::string between = separator ? run.to_text(*separator) : "";
  std::string out;
  bool is_first = true;
  for (const Value& element : run.iterate(value)) {
    if (!std::exchange(is_first, false)) out += between;
    out += run.to_text(attribute && !attribute->is_none() ? path_value(run, element, *attribute) : element);
    if (!run.charge_steps(1) || !run.charge_bytes(between.size()) || !run.allows_length(out.size()))
      return {};
  }
  return run.string(std::move(out));
}

Value map_filter(Interpreter& run, const Value& value, const Arguments& given) {
  if (!value.is_true()) return run.sequence({}, SequenceForm::kGenerator);  // None too
  std::vector<Value> out;
  const Value* attribute = given.positional.empty() ? given.get(0, "attribute") : nullptr;
  if (given.positional.empty() && !attribute)
    return run.fail("FilterArgumentError", "map requires a filter argument");
  const Value* otherwise = nullptr;
  for (const auto& [name, argument] : given.named)
    if (name == "default") otherwise = &argument;
  Arguments rest;
  std::string filter;
  if (!attribute) {
    filter = run.to_text(given.positional[0]);
    for (std::size_t i = 1; i < given.positional.size(); ++i) rest.positional.push_back(given.positional[i]);
    rest.named = given.named;
  }
  for (const Value& element : run.iterate(value)) {
    if (!run.charge_steps(1)) return {};
    Value mapped = attribute ? path_value(run, element, *attribute) : run.apply_filter(filter, element, rest);
    out.push_back(mapped.is_undefined() && attribute && otherwise ? *otherwise : std::move(mapped));
  }
  return run.sequence(std::move(out), SequenceForm::kGenerator);
}

template <bool kKeeps, bool kByAttribute>
Value select(Interpreter& run, const Value& value, const Arguments& given) {
  if (!value.is_true()) return run.sequence({}, SequenceForm::kGenerator);  // None too
  std::size_t used = 0;
  Value attribute;
  if (kByAttribute) {
    if (given.positional.empty())
      return run.fail("FilterArgumentError", "Missing parameter for attribute name");
    attribute = given.positional[used++];
  }
  std::string test;
  Arguments rest;
  if (used < given.positional.size()) {
    test = run.to_text(given.positional[used++]);
    for (; used < given.positional.size(); ++used) rest.positional.push_back(given.positional[used]);
    rest.named = given.named;
  }
  std::vector<Value> out;
  for (Value& element : run.elements(value)) {
    if (!run.charge_steps(1)) return {};
    const Value tested = kByAttribute ? path_value(run, element, attribute) : element;
    const bool is_true = test.empty() ? tested.is_true() : run.apply_test(test, tested, rest);
    if (is_true == kKeeps) out.push_back(std::move(element));
  }
  return run.sequence(std::move(out), SequenceForm::kGenerator);
}

// The key of sort: the values at all paths of "a,b.c", compared as lists.
Value sort_keys(Interpreter& run, const Value& element, const Value& attribute, bool is_case_sensitive) {
  std::vector<Value> keys;
  const std::string* paths = attribute.string();
  for (std::size_t at = 0; paths && at <= paths->size() && !run.failed();) {
    const std::size_t comma = std::min(paths->find(',', at), paths->size());
    const Value path = run.string(paths->substr(at, comma - at));
    keys.push_back(sort_key(run, element, &path, is_case_sensitive));
    at = comma + 1;
  }
  if (!paths) keys.push_back(sort_key(run, element, &attribute, is_case_sensitive));
  return run.sequence(std::move(keys));
}

Value sort_filter(Interpreter& run, const Value& value, const Arguments& given) {
  const bool is_case_sensitive = flag(given.get(1, "case_sensitive"));
  const Value* attribute = given.get(2, "attribute");
  std::vector<Value> items = run.elements(value), keys;
  for (const Value& element : items)
    if (run.charge_steps(1))
      keys.push_back(attribute && !attribute->is_none()
                         ? sort_keys(run, element, *attribute, is_case_sensitive)
                         : sort_key(run, element, nullptr, is_case_sensitive));
  return run.sequence(sorted(run, std::move(items), std::move(keys), flag(given.get(0, "reverse"))));
}

Value dictsort(Interpreter& run, const Value& value, const Arguments& given) {
  const Dict* dict = value.dict();
  if (run.refuse_undefined(value)) return {};
  if (!dict) return run.fail("AttributeError", "'" + type_name(value) + "' object has no attribute 'items'");
  const bool is_case_sensitive = flag(given.get(0, "case_sensitive"));
  const Value* by = given.get(1, "by");
  const bool by_value = by && by->string() && *by->string() == "value";
  std::vector<Value> items, keys;
  if (!run.charge_bytes(dict->entries.size() * (kPairBytes + 2 * sizeof(Value)))) return {};
  for (const auto& [key, element] : dict->entries) {
    items.push_back(make_tuple({key, element}));
    keys.push_back(sort_key(run, by_value ? element : key, nullptr, is_case_sensitive));
  }
  return run.sequence(sorted(run, std::move(items), std::move(keys), flag(given.get(2, "reverse"))));
}

Value unique(Interpreter& run, const Value& value, const Arguments& given) {
  const bool is_case_sensitive = flag(given.get(0, "case_sensitive"));
  const Value* attribute = given.get(1, "attribute");
  std::vector<Value> out, seen;
  for (Value& element : run.elements(value)) {
    Value key = sort_key(run, element, attribute, is_case_sensitive);
    if (run.refuse_unhashable(key)) return {};
    if (!run.charge_steps((static_cast<std::int64_t>(seen.size()) / 16 + 1) * key.weight())) return {};
    if (std::any_of(seen.begin(), seen.end(), [&](const Value& other) { return other.equals(key); }))
      continue;
    seen.push_back(std::move(key));
    out.push_back(std::move(element));
  }
  return run.sequence(std::move(out), SequenceForm::kGenerator);
}

template <bool kWantsMax>
Value extreme(Interpreter& run, const Value& value, const Arguments& given) {
  const bool is_case_sensitive = flag(given.get(0, "case_sensitive"));
  const Value* attribute = given.get(1, "attribute");
  const std::vector<Value> items = run.elements(value);
  if (items.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  std::size_t best = 0;
  Value best_key = sort_key(run, items[0], attribute, is_case_sensitive);
  for (std::size_t i = 1; i < items.size() && !run.failed(); ++i) {
    Value key = sort_key(run, items[i], attribute, is_case_sensitive);
    if (!run.charge_steps(std::min(best_key.weight(), key.weight()))) return {};
    if (kWantsMax ? !run.less(best_key, key) : !run.less(key, best_key)) continue;
    best = i;
    best_key = std::move(key);
  }
  return items[best];
}

Value sum(Interpreter& run, const Value& value, const Arguments& given) {
  const Value* attribute = given.get(0, "attribute");
  const Value* start = given.get(1, "start");
  Value total = start ? *start : Value(0);
  if (total.is_string()) return run.type_error("sum() can't sum strings [use ''.join(seq) instead]");
  for (const Value& element : run.iterate(value)) {
    if (!run.charge_steps(1)) return {};
    total = run.binary(Operator::kAdd, total,
                       attribute && !attribute->is_none() ? path_value(run, element, *attribute) : element);
    if (run.failed()) return {};
  }
  return total;
}

Value reverse(Interpreter& run, const Value& value, const Arguments&) {
  if (const std::string* text = value.string()) {
    const std::u32string wide = to_code_points(*text);
    return run.string(to_utf8(std::u32string(wide.rbegin(), wide.rend())));
  }
  if (!value.is_undefined() && !value.sequence() && !value.dict() && !value.loop())
    return run.fail("FilterArgumentError", "argument must be iterable");
  std::vector<Value> items = run.elements(value);
  std::reverse(items.begin(), items.end());
  return run.sequence(std::move(items), SequenceForm::kGenerator);
}

Value batch(Interpreter& run, const Value& value, const Arguments& given) {
  std::int64_t size = 0;
  const Value* count = given.get(0, "linecount");
  const Value* fill = given.get(1, "fill_with");
  if (!count || !count->as_int(size) || size < 1)
    return run.type_error("batch expects a positive number of items");
  std::vector<Value> out, row;
  for (Value& element : run.elements(value)) {
    row.push_back(std::move(element));
    if (static_cast<std::int64_t>(row.size()) == size) out.push_back(run.sequence(std::exchange(row, {})));
  }
  if (!row.empty()) {
    if (fill && !fill->is_none() && size > kMaxBatch) return run.fail("LimitError", "batch is too long");
    if (fill && !fill->is_none() && run.charge_bytes(static_cast<std::size_t>(size) * sizeof(Value)))
      row.resize(static_cast<std::size_t>(size), *fill);
    out.push_back(run.sequence(std::move(row)));
  }
  return run.sequence(std::move(out), SequenceForm::kGenerator);
}

Value groupby(Interpreter& run, const Value& value, const Arguments& given) {
  const Value* attribute = given.get(0, "attribute");
  if (!attribute) return run.type_error("do_groupby() missing 1 required positional argument: 'attribute'");
  const Value* otherwise = given.get(1, "default");
  const bool is_case_sensitive = flag(given.get(2, "case_sensitive"));
  const auto grouper = [&](const Value& element) {
    Value found = path_value(run, element, *attribute);
    return found.is_undefined() && otherwise && !otherwise->is_none() ? *otherwise : found;
  };
  const auto key_of = [&](const Value& element) {
    return is_case_sensitive ? grouper(element) : folded_case(run, grouper(element));
  };
  std::vector<Value> items = run.elements(value), keys;
  for (const Value& element : items)
    if (run.charge_steps(1)) keys.push_back(key_of(element));
  std::vector<Value> groups, group;
  Value key;
  const auto finish = [&] {
    if (!group.empty())
      groups.push_back(make_tuple({grouper(group[0]), run.sequence(std::exchange(group, {}))}));
  };
  for (Value& element : sorted(run, std::move(items), std::move(keys), false)) {
    Value next = key_of(element);
    if (!run.charge_steps(next.weight())) return {};
    if (!group.empty() && !next.equals(key)) finish();
    key = std::move(next);
    group.push_back(std::move(element));
  }
  finish();
  return run.sequence(std::move(groups));
}

Value slice_filter(Interpreter& run, const Value& value, const Arguments& given) {
  std::int64_t slices = 0;
  const Value* count = given.get(0, "slices");
  const Value* fill = given.get(1, "fill_with");
  const std::vector<Value> items = run.elements(value);
  if (run.failed()) return {};
  if (!count || !count->as_int(slices)) return run.type_error("slice expects a number of slices");
  if (slices == 0) return run.fail("ZeroDivisionError", "integer division or modulo by zero");
  if (slices > kMaxBatch) return run.fail("LimitError", "slice makes too many lists");
  std::vector<Value> out;
  const auto size = static_cast<std::int64_t>(items.size());
  for (std::int64_t i = 0, at = 0; i < slices && run.charge_steps(1); ++i) {
    const std::int64_t length = size / slices + (i < size % slices ? 1 : 0);
    std::vector<Value> part(items.begin() + at, items.begin() + at + length);
    if (fill && !fill->is_none() && i >= size % slices) part.push_back(*fill);
    out.push_back(run.sequence(std::move(part)));
    at += length;
  }
  return run.sequence(std::move(out), SequenceForm::kGenerator);
}

constexpr std::array kSequenceFilters = {
    FilterEntry{"batch", batch, "linecount,fill_with"},
    FilterEntry{"count", length, ""},
    FilterEntry{"dictsort", dictsort, "case_sensitive,by,reverse"},
    FilterEntry{"first", first, ""},
    FilterEntry{"groupby", groupby, "attribute,default,case_sensitive"},
    FilterEntry{"items", items_filter, ""},
    FilterEntry{"join", join, "d,attribute"},
    FilterEntry{"last", last, ""},
    FilterEntry{"length", length, ""},
    FilterEntry{"list", list_filter, ""},
    FilterEntry{"map", map_filter, "*"},
    FilterEntry{"max", extreme<true>, "case_sensitive,attribute"},
    FilterEntry{"min", extreme<false>, "case_sensitive,attribute"},
    FilterEntry{"reject", select<false, false>, "*"},
    FilterEntry{"rejectattr", select<false, true>, "*"},
    FilterEntry{"reverse", reverse, ""},
    FilterEntry{"select", select<true, false>, "*"},
    FilterEntry{"selectattr", select<true, true>, "*"},
    FilterEntry{"slice", slice_filter, "slices,fill_with"},
    FilterEntry{"sort", sort_filter, "reverse,case_sensitive,attribute"},
    FilterEntry{"sum", sum, "attribute,start"},
    FilterEntry{"unique", unique, "case_sensitive,attribute"},
};

}  // namespace

const FilterEntry* sequence_filter(std::string_view name) {
  return entry_named(kSequenceFilters, name);
}

}  // namespace plimsoll::text::jinja
