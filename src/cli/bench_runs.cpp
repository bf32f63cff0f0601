// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "artifact/artifact.h"
#include "base/mapped_file.h"
#include "base/printable.h"
#include "bench/compare.h"
#include "bench/page.h"
#include "bench/progress.h"
#include "bench/selftest.h"
#include "bench/sweep.h"
#include "cli/idle_flags.h"
#include "cli/model_argument.h"
#include "report/report.h"

namespace plimsoll::cli {
namespace {

// A result of 100,000 requests with all their gaps is some 300 MB.
constexpr std::int64_t kMaxResultBytes = std::int64_t{1} << 30;

Status read_metadata(const std::vector<std::string>& words, bench::Options& options) {
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == word.npos || equals == 0)
      return fail(ErrorCode::kUsage, "\"" + word + "\" is not of the form KEY=VALUE", "--metadata");
    options.metadata.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  return {};
}

Status check_search(const BenchFlags& f) {
  const auto refuse = [](const char* why, const char* flag) { return fail(ErrorCode::kUsage, why, flag); };
  if (!f.sweep.empty() && !f.search.empty())
    return refuse("a command sweeps or searches, not both", "--sweep, --search");
  if (f.options.ramp && (f.sweep.starts_with("rate=") || f.search.starts_with("rate=")))
    return refuse("a ramp has rates of its own, which nothing else can vary", "--ramp-up-strategy");
  if (!f.search.empty() && f.options.goodput.empty())
    return refuse("a search needs to know what a good request is", "--goodput");
  if (f.has_goodput_share && f.options.goodput.empty())
    return refuse("a share needs to know what a good request is", "--goodput");
  if (!(f.goodput_share > 0 && f.goodput_share <= 1))
    return refuse("the share of good requests is above 0 and at most 1", "--goodput-share");
  if (!(f.search_tolerance >= 0.001 && f.search_tolerance <= 1))
    return refuse("the tolerance is from 0.001 to 1", "--search-tolerance");
  return {};
}

Status fill_options(BenchFlags& f) {
  PLIMSOLL_TRY_VOID(bench::apply(f.text, f.options));
  PLIMSOLL_TRY_VOID(apply(f.request, f.options));
  PLIMSOLL_TRY_VOID(apply_workload_flags(f.workload, f.options));
  if (!(f.request_timeout_s > 0 && f.request_timeout_s < 1e9))
    return fail(ErrorCode::kUsage, "the time limit must be above 0 seconds", "--request-timeout");
  f.options.request_timeout = std::chrono::milliseconds(static_cast<std::int64_t>(f.request_timeout_s * 1e3));
  for (const std::string& text : f.fail_if) {
    PLIMSOLL_TRY(bench::Limit limit, bench::parse_limit(text));
    f.limits.push_back(std::move(limit));
  }
  PLIMSOLL_TRY_VOID(read_metadata(f.metadata, f.options));
  PLIMSOLL_TRY_VOID(check_search(f));
  bench::add_key_from_environment(f.options.headers);
  if (!f.tokenizer.empty()) {
    PLIMSOLL_TRY(const auto artifact,
                 artifact::open(f.tokenizer, open_options(f.common, artifact::Need::kText)));
    PLIMSOLL_TRY(f.options.tokenizer, text::load_tokenizer(*artifact));
    f.options.tokenizer_name = f.tokenizer;
  }
  return {};
}

void print_start(const bench::Options& o) {
  std::cerr << "Starting main benchmark run...\n";
  if (o.ramp)
    std::cerr << fmt::format(
        "Traffic ramp-up strategy: {}.\nWill increase RPS from {} to {} RPS over the duration of the "
        "benchmark.\n",
        to_string(o.ramp->shape), o.ramp->start_rate, o.ramp->end_rate);
  else
    std::cerr << "Traffic request rate: "
              << (std::isinf(o.request_rate) ? "inf" : format_double(o.request_rate)) << "\n";
  std::cerr << "Burstiness factor: " << (std::isinf(o.burstiness) ? "inf" : format_double(o.burstiness))
            << (o.burstiness == 1 ? " (Poisson process)" : " (Gamma distribution)")
            << "\nMaximum request concurrency: "
            << (o.max_concurrency ? std::to_string(*o.max_concurrency) : "None") << "\n";
}

volatile std::sig_atomic_t is_interrupted = 0;

/// The first SIGINT or SIGTERM ends the run with what it has; the second ends the process.
void hear_interruptions() {
  struct sigaction action{};
  action.sa_handler = [](int) { is_interrupted = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &action, nullptr);
}

Result<bench::RunResult> run_once(const BenchFlags& f, bench::Options options) {
  options.is_interrupted = [] { return is_interrupted != 0; };
  if (!f.common.quiet) print_start(options);
  report::ProgressLine line(f.common.quiet);
  bench::ProgressText text;
  bool is_over = false;  // the end is told of twice when a reading falls upon it
  return bench::run(options, [&](const bench::Progress& p) {
    if (is_over) return;
    text.note(p);
    const bool is_last = is_over = p.completed + p.failed == p.total;
    if (line.is_due() || is_last) line.show(text.text(), is_last);
  });
}

/// One object a line, as vLLM appends them.
Status append_line(const std::string& path, const std::string& text) {
  const auto before = read_file(path);
  std::ofstream file(path, std::ios::app);
  if (before && !before->empty() && !before->ends_with('\n')) file << '\n';
  file << text << '\n' << std::flush;
  if (!file) return fail(ErrorCode::kUsage, "the result cannot be appended to " + path, "--append-result");
  return {};
}

/// Errors: kUsage when a file cannot be written.
Status save(const BenchFlags& f, const bench::RunResult& result, const std::string& suffix) {
  if (f.save_result || f.save_detailed || f.append_result) {
    std::string name = f.result_filename.empty() ? bench::default_file_name(result)
                                                 : f.result_filename + (f.append_result ? "" : suffix);
    if (!f.result_dir.empty()) {
      std::error_code fault;  // which the writing below will tell of
      std::filesystem::create_directories(f.result_dir, fault);
      name = f.result_dir + "/" + name;
    }
    const std::string text = dump(bench::to_json(result, f.save_detailed));
    PLIMSOLL_TRY_VOID(f.append_result ? append_line(name, text) : write_file(name, text + "\n"));
  }
  if (!f.request_log.empty())
    PLIMSOLL_TRY_VOID(write_file(f.request_log + suffix, bench::to_request_log(result)));
  return {};
}

/// What the runs so far gave.
struct Gathered {
  Json::Array documents;
  std::string text;
  std::vector<bench::Step> steps;
  bench::Page page;
  std::string closing;  // what the steps amount to
  Json search;          // null: none
  bool is_yes = true;   // requests succeeded, the client kept up, no limit was broken
};

struct Outcome {
  bench::Summary summary;
  bool is_yes = false;
};

/// Which run it is: its load, and how files and pages name it.
struct StepName {
  std::optional<bench::LoadAxis> axis;  // nothing: the only run
  double load = 0;
  std::string suffix;
  std::string title = "run";
};

/// What came of the run is gathered before anything is done with it that can fail.
Result<Outcome> run_step(const BenchFlags& f, const bench::Options& options, const StepName& name,
                         Gathered& gathered) {
  PLIMSOLL_TRY(const bench::RunResult result, run_once(f, options));
  const Json document = bench::to_json(result, f.common.is_json());
  gathered.text += printable_page(bench::to_report(result));
  if (!f.html.empty()) gathered.page.add(result, document, name.title, name.load);
  if (f.common.is_json()) gathered.documents.push_back(document);
  if (name.axis)
    gathered.steps.push_back({*name.axis, name.load, result.summary, !f.options.goodput.empty()});
  PLIMSOLL_TRY_VOID(save(f, result, name.suffix));
  PLIMSOLL_TRY(const auto broken, bench::broken_limits(document, f.limits));
  for (const std::string& sentence : broken) std::cerr << "plimsoll: limit broken: " << sentence << "\n";
  const bool is_believable = result.summary.completed > 0 && !result.summary.client_limited;
  return Outcome{result.summary, is_believable && broken.empty() && !result.was_interrupted};
}

/// The run at `value` of a sweep or search.
Result<Outcome> run_at(const BenchFlags& f, bench::LoadAxis axis, double value, Gathered& gathered) {
  const auto index = static_cast<std::int64_t>(gathered.steps.size());
  const std::string name = bench::load_text(axis, value);
  if (!f.common.quiet) std::cerr << "Run at " << to_string(axis) << " " << name << "\n";
  return run_step(f, bench::at_load(f.options, axis, value, index),
                  {axis, value, "." + name, std::string(to_string(axis)) + " " + name}, gathered);
}

/// An asked share of good requests was missed. Without --goodput-share goodput is a measure, as in vLLM.
bool misses_share(const BenchFlags& f, const bench::Summary& summary) {
  return f.has_goodput_share && bench::good_share(summary).value_or(0) < f.goodput_share;
}

Status run_sweep(const BenchFlags& f, const bench::Sweep& sweep, Gathered& gathered) {
  for (const double value : sweep.values) {
    PLIMSOLL_TRY(const Outcome outcome, run_at(f, sweep.axis, value, gathered));
    gathered.is_yes = gathered.is_yes && outcome.is_yes && !misses_share(f, outcome.summary);
    if (is_interrupted != 0) break;
  }
  return {};
}

Status run_search(const BenchFlags& f, const bench::SearchRange& range, Gathered& gathered) {
  bench::Search search(range, f.search_tolerance);
  const auto note = [&] {
    gathered.search = Json::object({{"parameter", to_string(range.axis)},
                                    {"goodput_share", f.goodput_share},
                                    {"tolerance", f.search_tolerance},
                                    {"best", search.best()},
                                    {"first_miss", search.first_miss()}});
  };
  note();
  while (const auto value = search.next()) {
    PLIMSOLL_TRY(const Outcome outcome, run_at(f, range.axis, *value, gathered));
    if (is_interrupted != 0) break;
    // A run that cannot be believed, or that broke a limit, has not met anything.
    search.tell(outcome.is_yes && bench::good_share(outcome.summary).value_or(0) >= f.goodput_share);
    note();
  }
  gathered.is_yes = search.best().has_value();
  gathered.closing = bench::answer(range, search, f.goodput_share);
  return {};
}

/// Every step has the same figures: those of the first are asked for.
Status check_limits(const BenchFlags& f, const std::optional<bench::Sweep>& sweep,
                    const std::optional<bench::SearchRange>& range) {
  bench::Options first = f.options;
  if (sweep) first = bench::at_load(first, sweep->axis, sweep->values.front(), 0);
  if (range) first = bench::at_load(first, range->axis, range->least, 0);
  return bench::check_limits(first, f.limits);
}

/// Errors: those of the first run that failed; what the runs before it gave is in `gathered`.
Status run_all(BenchFlags& f, Gathered& gathered) {
  PLIMSOLL_TRY_VOID(fill_options(f));
  PLIMSOLL_TRY(const auto sweep, bench::parse_sweep(f.sweep));
  PLIMSOLL_TRY(const auto range, bench::parse_search(f.search));
  PLIMSOLL_TRY_VOID(check_limits(f, sweep, range));
  if (sweep) return run_sweep(f, *sweep, gathered);
  if (range) return run_search(f, *range, gathered);
  PLIMSOLL_TRY(const Outcome outcome, run_step(f, f.options, {}, gathered));
  gathered.is_yes = outcome.is_yes && !misses_share(f, outcome.summary);
  return {};
}

/// The one document of all runs.
Json document_of(Gathered& gathered) {
  if (gathered.steps.empty()) return std::move(gathered.documents.front());
  Json document = Json::object({{"schema", "plimsoll.bench/1"}});
  if (gathered.search.is_null()) return document.set("sweep", std::move(gathered.documents));
  gathered.search.set("steps", std::move(gathered.documents));
  return document.set("search", std::move(gathered.search));
}

/// Writes the page and prints.
Status show(const BenchFlags& f, Gathered& gathered) {
  std::string output = gathered.text + bench::to_table(gathered.steps) + gathered.closing;
  if (f.common.is_json()) {
    if (!f.common.quiet) std::cerr << output;
    output = dump(document_of(gathered)) + "\n";
  }
  const Status written = write_output(f.common, output);
  // A run may have taken hours: what cannot be written to its file is shown.
  if (!written && !f.common.output.empty()) std::cout << output << std::flush;
  if (!f.html.empty()) PLIMSOLL_TRY_VOID(write_file(f.html, gathered.page.html(gathered.closing)));
  return written;
}

/// The steps of --sweep are the numbers of streams, if they are given.
Result<std::vector<bench::SelftestRow>> run_selftests(const BenchFlags& f) {
  PLIMSOLL_TRY(const auto sweep, bench::parse_sweep(f.sweep));
  if (sweep && sweep->axis != bench::LoadAxis::kConcurrency)
    return fail(ErrorCode::kUsage, "a self-test sweeps its number of streams", "--sweep",
                "write concurrency=1,64,256");
  std::vector<bench::SelftestCase> cases;
  if (sweep)
    for (const double streams : sweep->values)
      cases.push_back(bench::selftest_case(static_cast<std::int64_t>(streams)));
  if (cases.empty()) cases = bench::selftest_cases();
  std::vector<bench::SelftestRow> rows;
  for (const bench::SelftestCase& given : cases) {
    if (!f.common.quiet) std::cerr << "Self-test with " << given.streams << " streams...\n";
    PLIMSOLL_TRY(rows.emplace_back(), bench::run_selftest(given));
  }
  return rows;
}

int run_selftest(const BenchFlags& f) {
  const auto rows = run_selftests(f);
  if (!rows) return report_error(f.common, rows.error());
  const std::string text = bench::selftest_text(*rows);
  if (f.common.is_json() && !f.common.quiet) std::cerr << text;
  const auto written =
      write_output(f.common, f.common.is_json() ? dump(bench::selftest_json(*rows)) + "\n" : text);
  if (!written) return report_error(f.common, written.error());
  const bool is_no = std::any_of(rows->begin(), rows->end(),
                                 [](const auto& row) { return row.client_limited || row.failed() > 0; });
  return is_no ? exit_status(ErrorCode::kNo) : 0;
}

int run_comparison(const BenchFlags& f) {
  const auto print = [&]() -> Status {
    std::vector<bench::ResultFile> files;
    for (const std::string& path : f.compare) {
      PLIMSOLL_TRY(const std::string text, read_file(path, kMaxResultBytes));
      PLIMSOLL_TRY(bench::ResultFile file, bench::read_result(text, path));
      files.push_back(std::move(file));
    }
    const bench::Compared compared = bench::compare(files[0], files[1], f.options.seed);
    return write_output(f.common, f.common.is_json()
                                      ? dump_pretty(bench::to_json(compared, files[0], files[1]))
                                      : printable_page(bench::to_text(compared, files[0], files[1])));
  };
  const Status printed = print();
  return printed ? 0 : report_error(f.common, printed.error());
}

}  // namespace

/// A self-test and a comparison send nothing to an endpoint: what shapes a run means nothing beside them.
Status check_idle_flags(const BenchFlags& f) {
  const auto except = [&](std::vector<std::string> kept) {
    kept.insert(kept.end(), {"--help", "--format", "--output", "-q", "-v"});
    return flags_except(*f.workload.verb, kept);
  };
  return refuse_idle_flags(*f.workload.verb,
                           {{!f.compare.empty(), except({"--compare", "--seed"}), "beside --compare"},
                            {f.selftest, except({"--selftest", "--sweep"}), "beside --selftest"}});
}

int run_benchmarks(BenchFlags& f) {
  const Status checked = check_idle_flags(f);
  if (!checked) return report_error(f.common, checked.error());
  if (!f.compare.empty()) return run_comparison(f);
  if (f.selftest) return run_selftest(f);
  hear_interruptions();
  Gathered gathered;
  const Status ran = run_all(f, gathered);
  if (!ran && gathered.text.empty()) return report_error(f.common, ran.error());
  const Status shown = show(f, gathered);
  if (!shown) return report_error(f.common, shown.error());
  if (ran) return gathered.is_yes ? 0 : exit_status(ErrorCode::kNo);
  std::cerr << "plimsoll: " << ran.error().describe() << "\n";
  return exit_status(ran.error().code);
}

}  // namespace plimsoll::cli
