// SPDX-License-Identifier: Apache-2.0
// Filters on text, tojson as transformers defines it.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "text/jinja/filters.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/parser.h"
#include "text/jinja/python_format.h"
#include "text/jinja/string_methods.h"
#include "text/unicode.h"

namespace plimsoll::text::jinja {
namespace {

constexpr std::int64_t kMaxIndent = 1000;

Value tojson(Interpreter& run, const Value& value, const Arguments& given) {
  JsonFormat format;
  if (const Value* ascii = given.get(0, "ensure_ascii")) format.ensure_ascii = ascii->is_true();
  if (const Value* indent = given.get(1, "indent"); indent && !indent->is_none()) {
    std::int64_t width = 0;
    if (const std::string* text = indent->string())
      format.indent = *text;
    else if (indent->as_int(width))
      format.indent =
          std::string(static_cast<std::size_t>(std::clamp<std::int64_t>(width, 0, kMaxIndent)), ' ');
    else
      return run.type_error("can't multiply sequence by non-int of type '" + type_name(*indent) + "'");
    format.item_separator = ",";
  }
  if (const Value* separators = given.get(2, "separators"); separators && !separators->is_none()) {
    const std::vector<Value> pair = run.elements(*separators);
    if (pair.size() != 2 || !pair[0].string() || !pair[1].string())
      return run.fail("ValueError", "separators must be two strings");
    format.item_separator = *pair[0].string();
    format.key_separator = *pair[1].string();
  }
  if (const Value* sort = given.get(3, "sort_keys")) format.sort_keys = sort->is_true();
  const std::size_t indent_bytes =
      format.indent ? format.indent->size() * static_cast<std::size_t>(value.depth()) : 0;
  if (!run.charge_steps(value.weight()) ||
      !run.charge_bytes(static_cast<std::size_t>(value.weight()) *
                        (indent_bytes + format.item_separator.size() + format.key_separator.size())))
    return {};
  std::string bad_type;
  auto text = python_json(value, format, bad_type);
  if (!text) return run.type_error("Object of type " + bad_type + " is not JSON serializable");
  return run.string(std::move(*text));
}

Value trim(Interpreter& run, const Value& value, const Arguments& given) {
  const Value* characters = given.get(0, "chars");
  const std::string* set = characters ? characters->string() : nullptr;
  if (characters && !set && !characters->is_none()) return run.type_error("strip arg must be None or str");
  const Value text = value.is_string() ? value : run.string(run.to_text(value));
  if (set) run.charge_steps(strip_cost(*set));
  if (run.failed()) return {};
  const std::string_view cut =
      set ? strip(*text.string(), Side::kBoth, set) : trimmed(*text.string(), Side::kBoth);
  return cut.size() == text.string()->size() ? text : run.string(std::string(cut), value.is_markup());
}

template <std::string (*kChange)(std::string_view)>
Value change_case(Interpreter& run, const Value& value, const Arguments&) {
  return run.string(kChange(run.to_text(value)), value.is_markup());
}

Value string_filter(Interpreter& run, const Value& value, const Arguments&) {
  return value.is_string() ? value : run.string(run.to_text(value));
}

Value safe(Interpreter& run, const Value& value, const Arguments&) {
  return run.string(run.to_text(value), true);
}

Value escape(Interpreter& run, const Value& value, const Arguments&) {
  if (value.is_markup()) return value;
  // Adding to an empty Markup escapes.
  return run.binary(Operator::kAdd, Value("", true), Value(run.to_text(value)));
}

Value default_filter(Interpreter&, const Value& value, const Arguments& given) {
  const Value* otherwise = given.get(0, "default_value");
  const Value* boolean = given.get(1, "boolean");
  if (value.is_undefined() || (boolean && boolean->is_true() && !value.is_true()))
    return otherwise ? *otherwise : Value("");
  return value;
}

Value replace_filter(Interpreter& run, const Value& value, const Arguments& given) {
  const Value* from = given.get(0, "old");
  const Value* to = given.get(1, "new");
  if (!from || !to) return run.type_error("do_replace() missing required positional arguments");
  std::int64_t count = -1;
  if (const Value* limit = given.get(2, "count"); limit && !limit->is_none()) limit->as_int(count);
  const std::string text = run.to_text(value), old_text = run.to_text(*from), new_text = run.to_text(*to);
  const std::size_t most = text.size() / std::max<std::size_t>(old_text.size(), 1) + 1;
  if (!run.charge_bytes(most * new_text.size())) return {};
  return run.string(replaced(text, old_text, new_text, count));
}

Value format_filter(Interpreter& run, const Value& value, const Arguments& given) {
  const Value pattern(run.to_text(value));
  if (given.named.empty())
    return percent_format(run, pattern,
                          make_tuple(std::vector<Value>(given.positional.begin(), given.positional.end())));
  std::vector<Dict::Entry> entries;
  for (const auto& [name, argument] : given.named) entries.emplace_back(Value(std::string(name)), argument);
  return percent_format(run, pattern, run.dict(std::move(entries)));
}

Value attribute_filter(Interpreter& run, const Value& value, const Arguments& given) {
  const Value* name = given.get(0, "name");
  if (!name || !name->string()) return run.type_error("attr expects the name of an attribute");
  if (value.dict() &&
      !find_method(MethodSet::kDict, *name->string()).function)  // attr does not look among the keys
    return Value::undefined_key(value, *name);
  return run.attribute(value, *name);
}

constexpr std::array kTextFilters = {
    FilterEntry{"attr", attribute_filter, "name"},
    FilterEntry{"capitalize", change_case<capitalize>, ""},
    FilterEntry{"d", default_filter, "default_value,boolean"},
    FilterEntry{"default", default_filter, "default_value,boolean"},
    FilterEntry{"e", escape, ""},
    FilterEntry{"escape", escape, ""},
    FilterEntry{"format", format_filter, "*"},
    FilterEntry{"lower", change_case<to_lower>, ""},
    FilterEntry{"replace", replace_filter, "old,new,count"},
    FilterEntry{"safe", safe, ""},
    FilterEntry{"string", string_filter, ""},
    FilterEntry{"tojson", tojson, "ensure_ascii,indent,separators,sort_keys"},
    FilterEntry{"trim", trim, "chars"},
    FilterEntry{"upper", change_case<to_upper>, ""},
};

}  // namespace

const FilterEntry* text_filter(std::string_view name) {
  return entry_named(kTextFilters, name);
}

const FilterEntry* find_filter(std::string_view name) {
  const FilterEntry* found = text_filter(name);
  if (!found) found = sequence_filter(name);
  if (!found) found = number_filter(name);
  return found ? found : layout_filter(name);
}

Value Interpreter::apply_filter(const FilterEntry& filter, const Value& value, const Arguments& arguments) {
  if (!charge_reading(value)) return {};
  const bool takes_all = filter.parameters == "*";
  const auto num_parameters = static_cast<std::size_t>(
      filter.parameters.empty() ? 0
                                : 1 + std::count(filter.parameters.begin(), filter.parameters.end(), ','));
  if (!takes_all && arguments.positional.size() > num_parameters)
    return type_error(fmt::format("{}() takes {} positional argument{} but {} were given", filter.name,
                                  num_parameters + 1, num_parameters ? "s" : "",
                                  arguments.positional.size() + 1));
  for (const auto& [name, argument] : arguments.named) {
    if (takes_all) break;
    bool is_known = false;
    for (std::string_view rest = filter.parameters; !rest.empty();) {
      const std::string_view parameter = rest.substr(0, rest.find(','));
      is_known = is_known || parameter == name;
      rest.remove_prefix(std::min(rest.size(), parameter.size() + 1));
    }
    if (!is_known)
      return type_error(fmt::format("{}() got an unexpected keyword argument '{}'", filter.name, name));
  }
  return filter.function(*this, value, arguments);
}

Value Interpreter::apply_filter(const std::string& name, const Value& value, const Arguments& arguments) {
  if (failed()) return {};
  const FilterEntry* filter = find_filter(name);
  if (!filter) return fail("TemplateRuntimeError", "No filter named '" + name + "' found.");
  return apply_filter(*filter, value, arguments);
}

}  // namespace plimsoll::text::jinja
