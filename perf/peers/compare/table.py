# SPDX-License-Identifier: Apache-2.0
"""The results as a page in Markdown: which script made it, on which machine, and every ratio with its spread."""
import dataclasses
import hashlib
import re
import statistics
from pathlib import Path

from figures import FIGURES, TITLES, verdict
from machine import QUIET_CORES

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BEGIN, END = "<!-- made by perf/peers/run: begin -->", "<!-- made by perf/peers/run: end -->"
WRITERS = {"figures.py", "table.py"}  # what they hold changes how results are shown, not what was measured
SHOWN = ("llama", "openvino")


def digest(writers, root=ROOT):
    """sha256 over names and contents of the files that measure, or of those that write."""
    folder = root / "perf/peers"
    chosen = [path for path in sorted((folder / "compare").glob("*.py")) if (path.name in WRITERS) == writers]
    if not writers:
        chosen += [folder / "run", root / "perf/limits.cpp"]
    found = hashlib.sha256()
    for path in chosen:
        content = path.read_bytes()
        found.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode() + content)
    return found.hexdigest()


def digests(root=ROOT):
    return {"measured_by": digest(False, root), "written_by": digest(True, root)}


def digests_of_page(text):
    """What the page's table says it was made by; empty without a table."""
    inside = text.partition(BEGIN)[2].partition(END)[0]
    return dict(re.findall(r"\b(measured_by|written_by) `([0-9a-f]{64})`", inside))


def judged(rows):
    """Turns that others did not disturb; a ratio needs both of its two."""
    return [row for row in rows if row["others_cores"] <= QUIET_CORES]


@dataclasses.dataclass
class View:
    """What was measured for one row of the table, under one instruction set."""
    figure: object
    rows: list
    model: dict

    def column(self, engine):
        """Round -> value."""
        return {row["round"]: row["figures"][self.figure.name] for row in self.rows
                if row["engine"] == engine and self.figure.name in row["figures"]}

    def limit(self, read):
        """Round -> value of plimsoll's turn."""
        return {row["round"]: read(row["limits"]) for row in self.rows if row["engine"] == "plimsoll"}

    def shares(self, of):
        """Round -> part of the bandwidth that reading all weights for each token takes, or of the multiplication peak: bf16's for bf16
        weights where there is one, else f32's; the integers' for quantized ones."""
        if of == "bandwidth":
            could = self.limit(lambda limits: max(limits["read_gbps"]) * 1e9 / self.model["weights_bytes"])
        else:
            ops = 2 * self.model["parameters"] + self.model["attention_ops"] * self.figure.prompt / 2
            name = "int8_gops" if "bf16" not in self.model["name"] else "bf16_gflops"
            could = self.limit(lambda limits: (limits[name] or limits["f32_gflops"] or 0) * 1e9 / ops)
        ours = self.column("plimsoll")
        return {number: ours[number] / could[number] for number in ours if could.get(number)}


def spread(values, digits):
    if not values:
        return "-"
    form = f"{{:,.{digits}f}}"
    middle = form.format(statistics.median(values))
    return middle if len(values) == 1 else f"{middle} ({form.format(min(values))} to {form.format(max(values))})"


def share_cell(view):
    figure = view.figure
    of = "bandwidth" if figure.shows_bandwidth else "peak" if figure.prompt else None
    values = list(view.shares(of).values()) if of and view.model else []
    return f"{statistics.median(values) * 100:.0f} % of {of}" if values else ""


def ratio_cells(view):
    ours = view.column("plimsoll")
    for engine in SHOWN:
        theirs = view.column(engine)
        yield spread([ours[number] / theirs[number] for number in ours if number in theirs], 2)


def row_of(view):
    figure = view.figure
    quiet = dataclasses.replace(view, rows=judged(view.rows))
    cells = [figure.title, figure.model, *(spread(list(view.column(engine).values()), figure.digits) for engine in TITLES),
             *ratio_cells(view), share_cell(view), *(verdict(groups, quiet, bool(view.rows)) for groups in (figure.must, figure.goal)),
             spread([max(row["limits"]["read_gbps"]) for row in view.rows], 0),
             spread([row["limits"]["barrier_ns"] for row in view.rows if row["limits"]["barrier_ns"]], 0),
             spread([row["others_cores"] for row in view.rows], 1)]
    return f"| {' | '.join(cells)} |"


def table(results, isa, everything):
    """`everything`: rows without a measurement too, as "-"."""
    lines = ["| figure | model | " + " | ".join(TITLES.values()) + " | "
             + " | ".join(f"by {TITLES[engine]}" for engine in SHOWN) + " | share | must | goal | read, GB/s | barrier, ns | others, cores |",
             "|" + "---|" * (7 + len(TITLES) + len(SHOWN) + 1)]
    for figure in FIGURES:
        rows = [row for row in results["rows"] if (row["part"], row["model"], row["isa"]) == (figure.part, figure.model, isa)
                and figure.name in row["figures"]]
        if rows or everything:
            lines.append(row_of(View(figure, rows, results["models"].get(figure.model, {}))))
    return "\n".join(lines)


def about(results):
    machine = results["machine"]
    dates = sorted(row["at"] for row in results["rows"])
    peaks = [row["limits"] for row in results["rows"]]
    best = {name: max((limits[name] or 0) for limits in peaks) for name in ("f32_gflops", "int8_gops", "bf16_gflops")}
    program = results["plimsoll"]
    return (f"plimsoll at {program['commit'] or 'an unknown commit'} (sha256 {program['sha256'][:12]}); {machine['processor']}, {machine['cores']} cores with {', '.join(machine['instructions'])}; {machine['threads']} threads each; "
            f"nice {machine['nice']} for all; {machine['compiler']}; Linux {machine['kernel']}; {dates[0]} to {dates[-1]} UTC; "
            f"{len({row['round'] for row in results['rows']})} rounds. Peers: {', '.join(f'{k} {v}' for k, v in results['peers'].items())}. "
            f"Best peaks seen: {best['f32_gflops']:,.0f} GFLOP/s f32, {best['int8_gops']:,.0f} GOP/s int8, "
            + (f"{best['bf16_gflops']:,.0f} GFLOP/s bf16." if best["bf16_gflops"] else "no bf16 instructions."))


def text(results, everything=True):
    """Everything between the page's two marks."""
    parts = ["measured_by `{measured_by}`, written_by `{written_by}`".format(measured_by=results["measured_by"],
                                                                           written_by=digest(True)), about(results),
             table(results, None, everything)]
    for isa in dict.fromkeys(row["isa"] for row in results["rows"] if row["isa"]):
        parts += [f"Restricted to {isa}, llama.cpp built for the same set:", table(results, isa, False)]
    return "\n\n".join(parts)


def write(results, page):
    """Puts the table between the page's marks."""
    before, mark, rest = Path(page).read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not mark or not end:
        raise SystemExit(f"{page} lacks the line `{BEGIN}` or `{END}`")
    Path(page).write_text(f"{before}{BEGIN}\n\n{text(results)}\n\n{END}{after}")
