// SPDX-License-Identifier: Apache-2.0
// Look-ups in the sandbox's way: slices, items, attributes, and what loops tell about themselves.
#include <algorithm>

#include "text/jinja/interpreter.h"
#include "text/jinja/python_format.h"
#include "text/unicode.h"

namespace plimsoll::text::jinja {
namespace {

Value loop_cycle(Interpreter& run, const Value& self, const Arguments& given) {
  if (given.positional.empty()) return run.type_error("no items for cycling given");
  return given.positional[self.loop()->position % given.positional.size()];
}

Value loop_changed(Interpreter& run, const Value& self, const Arguments& given) {
  run.keeps_values(self);
  auto& last = self.loop()->last_changed;
  for (const Value& value : given.positional)
    if (!run.charge_steps(value.weight())) return {};
  const bool is_same = last && last->size() == given.positional.size() &&
                       std::equal(last->begin(), last->end(), given.positional.begin(),
                                  [](const Value& a, const Value& b) { return a.equals(b); });
  if (!is_same) last = std::vector<Value>(given.positional.begin(), given.positional.end());
  return !is_same;
}

}  // namespace

LoopField loop_field(std::string_view name) {
  static constexpr std::string_view kNames[] = {"index",    "index0", "revindex", "revindex0", "first",
                                                "last",     "length", "depth",    "depth0",    "previtem",
                                                "nextitem", "cycle",  "changed"};
  const auto* found = std::find(std::begin(kNames), std::end(kNames), name);
  return found == std::end(kNames) ? LoopField::kNone
                                   : static_cast<LoopField>(found - std::begin(kNames) + 1);
}

Value Interpreter::slice(const Value& object, const Value& start, const Value& stop, const Value& step) {
  if (refuse_undefined(object)) return {};
  const std::string* text = object.string();
  const Sequence* list = object.sequence();
  if (object.dict()) return type_error("unhashable type: 'slice'");
  if (!text && (!list || list->form > SequenceForm::kRange))
    return type_error("'" + type_name(object) + "' object is not subscriptable");
  if (!charge_reading(object)) return {};
  const bool ascii = text && is_ascii(*text);
  const std::u32string wide = text && !ascii ? to_code_points(*text) : std::u32string();
  const auto size = static_cast<std::int64_t>(ascii ? text->size() : text ? wide.size() : list->items.size());

  std::int64_t by = 1, from = 0, to = 0;
  for (const Value* bound : {&start, &stop, &step})
    if (!bound->is_none() && !bound->as_int(from))
      return type_error("slice indices must be integers or None or have an __index__ method");
  if (step.as_int(by) && by == 0) return fail("ValueError", "slice step cannot be zero");
  // Python's PySlice_AdjustIndices.
  const auto adjusted = [&](const Value& bound, std::int64_t otherwise) {
    std::int64_t at = 0;
    if (!bound.as_int(at)) return otherwise;
    if (at < 0) return std::max<std::int64_t>(at + size, by < 0 ? -1 : 0);
    return std::min(at, by < 0 ? size - 1 : size);
  };
  from = adjusted(start, by < 0 ? size - 1 : 0);
  to = adjusted(stop, by < 0 ? -1 : size);
  if (by == 1 && ascii)
    return string(
        from < to ? text->substr(static_cast<std::size_t>(from), static_cast<std::size_t>(to - from)) : "",
        object.is_markup());

  std::u32string cut;
  std::vector<Value> items;
  by = std::clamp<std::int64_t>(by, -size - 1, size + 1);
  for (std::int64_t at = from; by > 0 ? at < to : at > to; at += by) {
    const auto i = static_cast<std::size_t>(at);
    if (ascii)
      cut += static_cast<char32_t>((*text)[i]);
    else if (text)
      cut += wide[i];
    else
      items.push_back(list->items[i]);
  }
  return text ? string(to_utf8(cut), object.is_markup()) : sequence(std::move(items), list->form);
}

Value Interpreter::item(const Value& object, const Value& key) {
  if (failed() || refuse_undefined(object)) return {};
  if (const Dict* map = object.dict()) {
    if (!charge_key(*map, key)) return {};
    if (const Value* found = map->find(key)) return *found;
  } else if (std::int64_t at = 0; key.as_int(at)) {
    if (const Sequence* list = object.sequence(); list && list->form <= SequenceForm::kRange) {
      const auto size = static_cast<std::int64_t>(list->items.size());
      if (at < 0) at += size;
      if (at >= 0 && at < size) return list->items[static_cast<std::size_t>(at)];
    } else if (const std::string* text = object.string()) {
      Value found = character(*text, at);
      if (found.is_string() || failed()) return found;
    }
  }
  const std::string* name = key.string();
  if (!name) return missing_key(object, key);
  if (object.name_space() || object.loop()) return attribute(object, key);
  const Method found = find_method(method_set(object), *name);
  if (found.is_forbidden) return unsafe_attribute(object, *name);
  if (found.is_absent) return absent_attribute(object, *name);
  return found.function ? make_method(object, *name, found.function, found.arity)
                        : Value::undefined_key(object, key);
}

// The message spells the key, which may be any value.
Value Interpreter::missing_key(const Value& object, const Value& key) {
  if (key.is_int()) return Value::undefined_key(object, key);
  if (!charge_steps(key.weight())) return {};
  return Value::undefined(object_name(object) + " has no element " + to_repr(key));
}

Value Interpreter::absent_attribute(const Value& object, const std::string& name) {
  return fail("TemplateRuntimeError",
              "attribute '" + name + "' of '" + type_name(object) + "' object is not supported");
}

// One code point of a string, or an Undefined.
Value Interpreter::character(const std::string& text, std::int64_t at) {
  if (!charge_steps(static_cast<std::int64_t>(text.size()) / 16)) return {};
  const bool ascii = is_ascii(text);
  const std::u32string wide = ascii ? std::u32string() : to_code_points(text);
  const auto size = static_cast<std::int64_t>(ascii ? text.size() : wide.size());
  if (at < 0) at += size;
  if (at < 0 || at >= size) return {};
  const auto i = static_cast<std::size_t>(at);
  return string(ascii ? std::string(1, text[i]) : to_utf8(wide.substr(i, 1)));
}

Value unsafe_attribute(const Value& object, const std::string& name) {
  return Value::undefined("access to attribute " + python_repr(Value::borrowed(name)) + " of '" +
                              type_name(object) + "' object is unsafe.",
                          true);
}

Value Interpreter::attribute(const Value& object, const Value& name) {
  if (!charge_bytes(name.string()->size())) return {};
  return attribute(object, AttributeName(*name.string()), name);
}

Value Interpreter::attribute(const Value& object, const AttributeName& name, const Value& key) {
  if (failed()) return {};
  const Method& found = name.methods[static_cast<std::size_t>(method_set(object))];
  if (found.is_forbidden) return unsafe_attribute(object, name.text);
  if (refuse_undefined(object)) return {};
  if (found.is_absent) return absent_attribute(object, name.text);
  if (found.function) return make_method(object, name.text, found.function, found.arity);
  if (const Dict* map = object.dict()) {
    if (!charge_steps(static_cast<std::int64_t>(name.text.size()) / 16)) return {};
    if (const Value* member = map->find_text(name.text)) return *member;
  } else if (Namespace* space = object.name_space()) {
    if (!charge_names(space->attributes.size(), name.text.size())) return {};
    if (const Value* member = space->find(name.text)) return *member;
  } else if (object.loop()) {
    return loop_attribute(object, name, key);
  } else if (const Callable* macro = object.callable()) {
    static constexpr std::string_view kOfMacros[] = {"arguments", "caller", "catch_kwargs", "catch_varargs"};
    if (name.text == "name") return macro->name;
    if (macro->kind == Callable::Kind::kMacro &&
        std::find(std::begin(kOfMacros), std::end(kOfMacros), name.text) != std::end(kOfMacros))
      return absent_attribute(object, name.text);
  }
  return Value::undefined_key(object, key);
}

Value Interpreter::loop_attribute(const Value& object, const AttributeName& name, const Value& key) {
  const Loop& loop = *object.loop();
  const auto at = static_cast<std::int64_t>(loop.position);
  const auto length = static_cast<std::int64_t>(loop.items.size());
  switch (name.field) {
    case LoopField::kIndex:
      return at + 1;
    case LoopField::kIndex0:
      return at;
    case LoopField::kRevindex:
      return length - at;
    case LoopField::kRevindex0:
      return length - at - 1;
    case LoopField::kFirst:
      return at == 0;
    case LoopField::kLast:
      return at == length - 1;
    case LoopField::kLength:
      return length;
    case LoopField::kDepth:
      return loop.depth0 + 1;
    case LoopField::kDepth0:
      return loop.depth0;
    case LoopField::kPrevitem:
      return at > 0 ? loop.items[loop.position - 1] : Value::undefined("there is no previous item");
    case LoopField::kNextitem:
      return at + 1 < length ? loop.items[loop.position + 1] : Value::undefined("there is no next item");
    case LoopField::kCycle:
      return make_method(object, name.text, loop_cycle);
    case LoopField::kChanged:
      return make_method(object, name.text, loop_changed);
    case LoopField::kNone:
      break;
  }
  return Value::undefined_key(object, key);
}

}  // namespace plimsoll::text::jinja
