# SPDX-License-Identifier: Apache-2.0
"""The results as a table in Markdown."""
import statistics


def spread(values, digits=1):
    form = f"{{:,.{digits}f}}"
    middle = form.format(statistics.median(values))
    return middle if len(values) == 1 else f"{middle} ({form.format(min(values))} to {form.format(max(values))})"


def by_round(rows, engine, figure):
    return {row["round"]: row["figures"][figure] for row in rows if row["engine"] == engine and figure in row["figures"]}


def plain(results):
    lines = ["| part | model | figure | plimsoll | llama.cpp | OpenVINO | x llama.cpp | x OpenVINO | read GB/s | barrier ns | others |",
             "|" + "---|" * 11]
    keys = dict.fromkeys((row["part"], row["model"], figure) for row in results["rows"] for figure in row["figures"])
    for part, model, figure in keys:
        rows = [row for row in results["rows"] if row["part"] == part and row["model"] == model]
        columns = {engine: by_round(rows, engine, figure) for engine in ("plimsoll", "llama", "openvino")}
        cells = [spread(list(column.values())) if column else "-" for column in columns.values()]
        for engine in ("llama", "openvino"):
            ratios = [ours / columns[engine][number] for number, ours in columns["plimsoll"].items() if number in columns[engine]]
            cells.append(spread(ratios, 2) if ratios else "-")
        cells += [spread([row["limits"]["read_gbps"][-1] for row in rows]), spread([row["limits"]["barrier_ns"] for row in rows], 0),
                  spread([row["others_cores"] for row in rows], 2)]
        lines.append(f"| {part} | {model} | {figure} | {' | '.join(cells)} |")
    return "\n".join(lines)
