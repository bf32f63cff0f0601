// SPDX-License-Identifier: Apache-2.0
// How fast do chat templates parse and render? Every good row of the golden set (PLIMSOLL_GOLDEN), the
// conversation given as JSON as a server holds it, one thread. perf/peers/jinja2_renders.py measures jinja2
// on the same rows and runs this program between its passes.
//   plimsoll_template_perf [passes]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "text/text.h"

namespace plimsoll::text {
namespace {

constexpr const char* kNow = "2026-01-15T09:30:00";
constexpr int kParsePasses = 5;

// Of this thread: other work on the machine counts less than in wall time.
double cpu_microseconds() {
  std::timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

struct Row {
  const ChatTemplate* chat_template = nullptr;
  Json* context = nullptr;  // shared by the rows of one case, as jinja2's rows share their messages
  std::string bos, eos, expected;

  auto render() const {
    context->set("bos_token", bos);
    context->set("eos_token", eos);
    return chat_template->render(*context, kNow);
  }
};

struct Rows {
  std::map<std::string, Json> contexts;
  std::map<std::string, std::shared_ptr<const ChatTemplate>> templates;
  std::map<std::string, std::string> sources;
  std::vector<Row> good;
};

std::string text_of(const std::string& path) {
  auto text = read_file(path);
  if (!text) {
    std::fprintf(stderr, "%s\n", text.error().describe().c_str());
    std::exit(1);
  }
  return std::move(*text);
}

void add_row(Rows& rows, const std::string& folder, const Json& contexts, const Json& line) {
  const std::string* expected = line["expected"].as_string();
  if (!expected) return;
  const std::string& name = *line["template"].as_string();
  auto& parsed = rows.templates[name];
  if (!parsed) {
    rows.sources[name] = text_of(folder + "/" + name + ".jinja");
    auto made = ChatTemplate::parse(rows.sources[name]);
    if (!made) {
      std::fprintf(stderr, "%s: %s\n", name.c_str(), made.error().message.c_str());
      std::exit(1);
    }
    parsed = *made;
  }
  const std::string& name_of_case = *line["case"].as_string();
  Json& context = rows.contexts[name_of_case];
  if (context.is_null()) context = contexts[name_of_case]["context"];
  rows.good.push_back(
      {parsed.get(), &context, *line["bos"].as_string(), *line["eos"].as_string(), *expected});
}

Rows read_rows(const std::string& folder) {
  Rows rows;
  const auto contexts = read_json_file(folder + "/contexts.json");
  if (!contexts) return rows;
  for (const char* part : {"0", "1", "2"}) {
    const std::string text = text_of(folder + "/chat_renders." + part + ".jsonl");
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      if (const auto line = parse_json(std::string_view(text).substr(at, end - at), "row"))
        add_row(rows, folder, *contexts, *line);
      at = end + 1;
    }
  }
  return rows;
}

int measure(const std::string& folder, int passes) {
  const Rows rows = read_rows(folder);
  if (rows.good.empty()) {
    std::fprintf(stderr, "PLIMSOLL_GOLDEN names no golden/chat_templates\n");
    return 1;
  }
  std::size_t wrong = 0;
  for (const Row& row : rows.good) {
    const auto text = row.render();
    wrong += !text || *text != row.expected;
  }
  std::printf("rows %zu templates %zu wrong %zu compiler %s threads 1\n", rows.good.size(),
              rows.templates.size(), wrong, __VERSION__);
  for (int pass = 0; pass < passes; ++pass) {
    double parse_us = 0;
    if (pass < kParsePasses) {
      const double start = cpu_microseconds();
      for (const auto& [name, source] : rows.sources)
        if (!ChatTemplate::parse(source)) return 1;
      parse_us = (cpu_microseconds() - start) / static_cast<double>(rows.sources.size());
    }
    const double start = cpu_microseconds();
    std::size_t bytes = 0;
    for (const Row& row : rows.good) bytes += row.render()->size();
    const double render_us = (cpu_microseconds() - start) / static_cast<double>(rows.good.size());
    std::printf("pass %d render_us %.2f parse_us %.2f bytes %zu\n", pass, render_us, parse_us, bytes);
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace plimsoll::text

int main(int argc, char** argv) {
  const char* golden = std::getenv("PLIMSOLL_GOLDEN");
  return plimsoll::text::measure(std::string(golden ? golden : ".") + "/chat_templates",
                                 argc > 1 ? std::atoi(argv[1]) : 5);
}
