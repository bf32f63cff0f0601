// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

#include "base/printable.h"

namespace plimsoll {
namespace {

spdlog::logger& logger() {
  static const auto instance = [] {
    auto made =
        std::make_shared<spdlog::logger>("plimsoll", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%l %m-%d %H:%M:%S %v");
    made->flush_on(spdlog::level::trace);
    return made;
  }();
  return *instance;
}

}  // namespace

void set_log_level(LogLevel level) {
  switch (level) {
    case LogLevel::kQuiet:
      logger().set_level(spdlog::level::warn);
      break;
    case LogLevel::kNormal:
      logger().set_level(spdlog::level::info);
      break;
    case LogLevel::kVerbose:
      logger().set_level(spdlog::level::debug);
      break;
  }
}

void log_info(std::string_view line) {
  logger().info("{}", printable(line));
}
void log_warning(std::string_view line) {
  logger().warn("{}", printable(line));
}
void log_warning(const Error& error) {
  std::string line = error.message;
  if (!error.where.empty()) line += " (" + error.where + ")";
  if (!error.fix.empty()) line += ": " + error.fix;
  log_warning(line);
}
void log_debug(std::string_view line) {
  logger().debug("{}", printable(line));
}

}  // namespace plimsoll
