// SPDX-License-Identifier: Apache-2.0
// Python's operators with Python's complaints.
#include <algorithm>
#include <cmath>

#include "text/jinja/interpreter.h"
#include "text/jinja/python_format.h"
#include "text/jinja/string_methods.h"
#include "text/unicode.h"

namespace plimsoll::text::jinja {
const char* spelling(Operator op) {
  static constexpr const char* kSpellings[] = {"+",           "-",  "*",      "/", "//", "%",
                                               "** or pow()", "==", "!=",     "<", "<=", ">",
                                               ">=",          "in", "not in", "-", "+",  "not"};
  return kSpellings[static_cast<std::size_t>(op)];
}

Value Interpreter::unsupported(Operator op, const Value& left, const Value& right) {
  return type_error(std::string("unsupported operand type(s) for ") + spelling(op) + ": '" + type_name(left) +
                    "' and '" + type_name(right) + "'");
}

Value Interpreter::binary(Operator op, const Value& left, const Value& right) {
  if (failed()) return {};
  if (op == Operator::kModulo && left.string()) return percent_format(*this, left, right);
  if (refuse_undefined(left) || refuse_undefined(right)) return {};
  if (op == Operator::kAdd && !left.is_number()) return add(left, right);
  if (op == Operator::kMultiply && !(left.is_number() && right.is_number())) return multiply(left, right);
  if (!left.is_number() || !right.is_number()) return unsupported(op, left, right);
  return arithmetic(op, left, right);
}

Value Interpreter::add(const Value& left, const Value& right) {
  if (left.string()) {
    if (!right.string()) {
      if (left.is_markup()) return unsupported(Operator::kAdd, left, right);
      return type_error("can only concatenate str (not \"" + type_name(right) + "\") to str");
    }
    const bool is_markup = left.is_markup() || right.is_markup();
    std::string text = is_markup && !left.is_markup() ? escaped_markup(*left.string()) : *left.string();
    text += is_markup && !right.is_markup() ? escaped_markup(*right.string()) : *right.string();
    return string(std::move(text), is_markup);
  }
  const Sequence* a = left.sequence();
  if (!a || a->form > SequenceForm::kTuple) return unsupported(Operator::kAdd, left, right);
  const Sequence* b = right.sequence(a->form);
  if (!b)
    return type_error("can only concatenate " + type_name(left) + " (not \"" + type_name(right) + "\") to " +
                      type_name(left));
  std::vector<Value> items(a->items.begin(), a->items.end());
  items.insert(items.end(), b->items.begin(), b->items.end());
  return sequence(std::move(items), a->form);
}

Value Interpreter::multiply(const Value& left, const Value& right) {
  std::int64_t count = 0;
  const bool count_is_right = right.as_int(count);
  if (!count_is_right && !left.as_int(count)) {
    for (const auto& [repeated, by] : {std::pair(&left, &right), std::pair(&right, &left)})
      if (repeated->string() || (repeated->sequence() && repeated->sequence()->form <= SequenceForm::kTuple))
        return type_error("can't multiply sequence by non-int of type '" + type_name(*by) + "'");
    return unsupported(Operator::kMultiply, left, right);
  }
  const Value& repeated = count_is_right ? left : right;
  count = std::max<std::int64_t>(count, 0);
  const std::string* text = repeated.string();
  const Sequence* list = repeated.sequence();
  if (!text && (!list || list->form > SequenceForm::kTuple))
    return unsupported(Operator::kMultiply, left, right);
  const std::size_t unit = text ? text->size() : list->items.size() * sizeof(Value);
  if (unit != 0 && count > static_cast<std::int64_t>(limits_.output_bytes / unit))
    return fail("LimitError", "template makes too much data");
  if (text) {
    std::string out;
    for (std::int64_t i = 0; unit != 0 && i < count; ++i) out += *text;
    return string(std::move(out), repeated.is_markup());
  }
  std::vector<Value> items;
  for (std::int64_t i = 0; unit != 0 && i < count; ++i)
    items.insert(items.end(), list->items.begin(), list->items.end());
  return sequence(std::move(items), list->form);
}

Value Interpreter::arithmetic(Operator op, const Value& left, const Value& right) {
  std::int64_t a = 0, b = 0;
  double x = 0, y = 0;
  left.as_double(x);
  right.as_double(y);
  const bool whole = left.as_int(a) && right.as_int(b);
  if ((op == Operator::kDivide || op == Operator::kFloorDivide || op == Operator::kModulo) && y == 0.0) {
    return fail("ZeroDivisionError", op == Operator::kDivide
                                         ? (whole ? "division by zero" : "float division by zero")
                                     : whole                   ? "integer division or modulo by zero"
                                     : op == Operator::kModulo ? "float modulo"
                                                               : "float floor division by zero");
  }
  if (op == Operator::kPower && x == 0.0 && y < 0)
    return fail("ZeroDivisionError", "0.0 cannot be raised to a negative power");
  if (whole && op != Operator::kDivide && (op != Operator::kPower || b >= 0))
    return whole_arithmetic(op, a, b);
  switch (op) {
    case Operator::kAdd:
      return x + y;
    case Operator::kSubtract:
      return x - y;
    case Operator::kMultiply:
      return x * y;
    case Operator::kDivide:
      return x / y;
    case Operator::kFloorDivide:
      return std::floor(x / y);
    case Operator::kPower:
      return std::pow(x, y);
    default: {
      const double rest = std::fmod(x, y);
      return rest != 0.0 && (rest < 0) != (y < 0) ? rest + y : rest;
    }
  }
}

Value Interpreter::whole_arithmetic(Operator op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflows = false;
  switch (op) {
    case Operator::kAdd:
      overflows = __builtin_add_overflow(a, b, &result);
      break;
    case Operator::kSubtract:
      overflows = __builtin_sub_overflow(a, b, &result);
      break;
    case Operator::kMultiply:
      overflows = __builtin_mul_overflow(a, b, &result);
      break;
    case Operator::kPower:
      result = 1;
      for (std::int64_t base = a, power = b; power > 0 && !overflows; power >>= 1) {
        if (power & 1) overflows = __builtin_mul_overflow(result, base, &result);
        if (power > 1) overflows = __builtin_mul_overflow(base, base, &base) || overflows;
      }
      break;
    case Operator::kFloorDivide:
      if (b == -1)  // INT64_MIN // -1 does not fit
        overflows = __builtin_sub_overflow(std::int64_t{0}, a, &result);
      else
        result = a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
      break;
    default:
      if (b != -1) result = a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
  }
  return overflows ? fail("LimitError", "integer is too large") : Value(result);
}

bool Interpreter::compare(Operator op, const Value& left, const Value& right) {
  const bool walks = left.type() >= Value::Type::kString && right.type() >= Value::Type::kString;
  if (!charge_steps(walks ? std::min(left.weight(), right.weight()) : 1)) return false;
  double x = 0, y = 0;
  switch (op) {
    case Operator::kEqual:
    case Operator::kUnequal:
      return left.equals(right) == (op == Operator::kEqual);
    case Operator::kIn:
      return contains(right, left);
    case Operator::kNotIn:
      return !contains(right, left);
    case Operator::kLess:
      return less(left, right, "<");
    case Operator::kGreater:
      return less(right, left, ">");
    // On what is ordered totally here, "not the other way round" is the same; NaN apart.
    case Operator::kLessEqual:
      return left.as_double(x) && right.as_double(y) ? x <= y : !less(right, left, "<=");
    default:
      return left.as_double(x) && right.as_double(y) ? x >= y : !less(left, right, ">=");
  }
}

// left < right; `op` is what the template wrote (operands of > and <= come swapped) and only names the
// complaint.
bool Interpreter::less(const Value& left, const Value& right, const char* op) {
  if (failed() || refuse_undefined(left) || refuse_undefined(right)) return false;
  std::int64_t a = 0, b = 0;
  if (left.as_int(a) && right.as_int(b)) return a < b;
  double x = 0, y = 0;
  if (left.as_double(x) && right.as_double(y)) return x < y;
  if (left.string() && right.string()) return *left.string() < *right.string();
  const Sequence* one = left.sequence();
  const Sequence* two = right.sequence();
  if (one && two && one->form == two->form && one->form <= SequenceForm::kTuple) {
    for (std::size_t i = 0; i < one->items.size() && i < two->items.size(); ++i)
      if (!one->items[i].equals(two->items[i])) return less(one->items[i], two->items[i], op);
    return one->items.size() < two->items.size();
  }
  const bool is_swapped = op[0] == '>' ? op[1] == '\0' : op[1] == '=';
  type_error(std::string("'") + op + "' not supported between instances of '" +
             type_name(is_swapped ? right : left) + "' and '" + type_name(is_swapped ? left : right) + "'");
  return false;
}

bool Interpreter::contains(const Value& container, const Value& element) {
  if (failed()) return false;
  if (container.is_undefined()) return false;
  if (const std::string* text = container.string()) {
    if (const std::string* part = element.string())
      return charge_reading(container) && find_text(*text, *part) != std::string_view::npos;
    type_error("'in <string>' requires string as left operand, not " + type_name(element));
    return false;
  }
  if (const Dict* dict = container.dict()) {
    return !refuse_unhashable(element) && charge_key(*dict, element) && dict->find(element) != nullptr;
  }
  if (const Sequence* list = container.sequence()) {
    const auto size = static_cast<std::int64_t>(list->items.size());
    const std::int64_t walked = std::min(list->weight, size * (element.weight() - 1));
    if (!charge_steps(1 + size / 16 + walked)) return false;
    if (list->form == SequenceForm::kDictKeys && refuse_unhashable(element)) return false;
    return std::any_of(list->items.begin(), list->items.end(),
                       [&](const Value& item) { return item.is_same(element) || item.equals(element); });
  }
  type_error("argument of type '" + type_name(container) + "' is not iterable");
  return false;
}

Elements Interpreter::iterate(const Value& value) {
  Elements found;
  if (failed()) return found;
  if (const Sequence* list = value.sequence()) {
    found.holder = value;
    found.items = list->items;
    return found;
  }
  if (value.is_undefined()) return found;
  if (const Dict* dict = value.dict()) {
    found.owned.reserve(dict->entries.size());
    for (const auto& entry : dict->entries) found.owned.push_back(entry.first);
  } else if (const std::string* text = value.string()) {
    if (!charge_bytes(text->size() * (sizeof(Value) + 32))) return found;
    for (const char32_t c : to_code_points(*text)) found.owned.emplace_back(to_utf8(std::u32string(1, c)));
  } else if (const Loop* loop = value.loop()) {
    found.owned.assign(loop->items.begin() + static_cast<std::ptrdiff_t>(loop->position), loop->items.end());
  } else {
    type_error("'" + type_name(value) + "' object is not iterable");
  }
  charge_bytes(found.owned.size() * sizeof(Value));
  found.items = found.owned;
  return found;
}

std::vector<Value> Interpreter::elements(const Value& value) {
  Elements found = iterate(value);
  if (found.owned.empty() && charge_bytes(found.items.size() * sizeof(Value)))
    found.owned.assign(found.items.begin(), found.items.end());
  return std::move(found.owned);
}

}  // namespace plimsoll::text::jinja
