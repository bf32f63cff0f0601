// SPDX-License-Identifier: Apache-2.0
// The functions every template sees: jinja2's globals and the two that transformers adds.
#include <chrono>
#include <ctime>

#include "text/jinja/interpreter.h"

namespace plimsoll::text::jinja {
namespace {

constexpr std::int64_t kMaxRange = 100'000;  // jinja2's sandbox

Value range(Interpreter& run, const Value&, const Arguments& given) {
  std::int64_t bounds[3] = {0, 0, 1};
  const std::size_t count = given.positional.size();
  if (count < 1 || count > 3)
    return run.type_error("range expected 1 to 3 arguments, got " + std::to_string(count));
  for (std::size_t i = 0; i < count; ++i) {
    if (!given.positional[i].as_int(bounds[count == 1 ? 1 : i]))
      return run.type_error("'" + type_name(given.positional[i]) +
                            "' object cannot be interpreted as an integer");
  }
  const auto [start, stop, step] = bounds;
  if (step == 0) return run.fail("ValueError", "range() arg 3 must not be zero");
  const double length = (static_cast<double>(stop) - static_cast<double>(start)) / static_cast<double>(step);
  if (length > static_cast<double>(kMaxRange))
    return run.fail("OverflowError",
                    "Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000).");
  std::vector<Value> items;
  std::int64_t at = start;
  // The count is bounded above; adding past the last element must not overflow.
  while (step > 0 ? at < stop : at > stop) {
    items.emplace_back(at);
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  return run.sequence(std::move(items), SequenceForm::kRange);
}

// What Python's dict() takes: a mapping or pairs, then keywords.
std::vector<Dict::Entry> dict_entries(Interpreter& run, const Arguments& given) {
  std::vector<Dict::Entry> entries;
  if (given.positional.size() > 1)
    run.type_error("dict expected at most 1 argument, got " + std::to_string(given.positional.size()));
  if (!given.positional.empty() && !run.refuse_undefined(given.positional[0])) {
    if (const Dict* dict = given.positional[0].dict()) {
      entries.assign(dict->entries.begin(), dict->entries.end());
    } else {
      std::size_t index = 0;
      for (const Value& pair : run.iterate(given.positional[0])) {
        const std::string number = "#" + std::to_string(index++);
        if (!pair.string() && !pair.sequence() && !pair.dict())
          run.type_error("cannot convert dictionary update sequence element " + number + " to a sequence");
        const std::vector<Value> parts = run.elements(pair);
        if (!run.failed() && parts.size() != 2)
          run.fail("ValueError", "dictionary update sequence element " + number + " has length " +
                                     std::to_string(parts.size()) + "; 2 is required");
        if (run.failed() || !run.charge_steps(1) || run.refuse_unhashable(parts[0])) return {};
        entries.emplace_back(parts[0], parts[1]);
      }
    }
  }
  for (const auto& [name, value] : given.named) entries.emplace_back(Value(std::string(name)), value);
  return entries;
}

Value make_dict_value(Interpreter& run, const Value&, const Arguments& given) {
  std::vector<Dict::Entry> entries = dict_entries(run, given);
  return run.failed() ? Value() : run.dict(std::move(entries));
}

Value make_namespace(Interpreter& run, const Value&, const Arguments& given) {
  const std::vector<Dict::Entry> entries = dict_entries(run, given);
  if (run.failed() || !run.charge_bytes(sizeof(Namespace))) return {};
  auto* space = new Namespace;
  const Value made(space);
  run.keeps_namespace(made);
  for (const auto& [key, value] : entries) {
    const std::string name = run.to_text(key);
    if (!run.stores(name) || !run.charge_names(space->attributes.size(), name.size()) || !run.charge_steps(1))
      return {};
    if (value.depth() >= kMaxValueDepth) return run.fail("LimitError", "values are nested too deeply");
    space->set(name, value);
  }
  return made;
}

Value raise_exception(Interpreter& run, const Value&, const Arguments& given) {
  const Value* message = given.get(0, "message");
  if (!message) return run.type_error("raise_exception() missing 1 required positional argument: 'message'");
  return run.fail("TemplateError", run.to_text(*message));
}

bool parse_time(std::string_view iso, std::tm& time) {
  const std::string text(iso);
  const int found = std::sscanf(text.c_str(), "%d-%d-%d%*1[T ]%d:%d:%d", &time.tm_year, &time.tm_mon,
                                &time.tm_mday, &time.tm_hour, &time.tm_min, &time.tm_sec);
  const auto within = [](int value, int low, int high) { return value >= low && value <= high; };
  if (found < 3 || !within(time.tm_year, 1, 9999) || !within(time.tm_mon, 1, 12) ||
      !within(time.tm_mday, 1, 31) || !within(time.tm_hour, 0, 23) || !within(time.tm_min, 0, 59) ||
      !within(time.tm_sec, 0, 60))
    return false;
  time.tm_year -= 1900;
  time.tm_mon -= 1;
  time.tm_isdst = -1;
  const std::time_t seconds = timegm(&time);  // fills the day of week and year
  return gmtime_r(&seconds, &time) != nullptr;
}

Value strftime_now(Interpreter& run, const Value&, const Arguments& given) {
  const Value* format = given.get(0, "format");
  if (!format || !format->string()) return run.type_error("strftime() argument 1 must be str");
  std::tm time{};
  if (run.now().empty()) {
    const std::time_t seconds = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    localtime_r(&seconds, &time);
  } else if (!parse_time(run.now(), time)) {
    return run.fail("ValueError", "now is no ISO 8601 time: " + std::string(run.now()));
  }
  if (format->string()->size() > 1000) return run.fail("LimitError", "time format is too long");
  std::string text(64 * 1024, '\0');
  if (!run.charge_steps(static_cast<std::int64_t>(text.size()) / 1024)) return {};
  // As C does, Python stops at a NUL. The blank tells an empty result from one that does not fit.
  const std::string pattern = format->string()->substr(0, format->string()->find('\0')) + " ";
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  text.resize(std::strftime(text.data(), text.size(), pattern.c_str(), &time));
#pragma GCC diagnostic pop
  if (text.empty()) return run.fail("LimitError", "time does not fit");
  text.pop_back();
  return run.string(std::move(text));
}

}  // namespace

const Callable* environment_function(std::string_view name) {
  const auto made = [](const char* called, Function function) {
    Callable callable;
    callable.name = called;
    callable.function = function;
    return callable;
  };
  static const Callable kFunctions[] = {
      made("range", range), made("dict", make_dict_value), made("namespace", make_namespace),
      made("raise_exception", raise_exception), made("strftime_now", strftime_now)};
  for (const Callable& callable : kFunctions)
    if (callable.name == name) return &callable;
  return nullptr;
}

}  // namespace plimsoll::text::jinja
