#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long does jinja2 take for the good rows of golden/chat_templates, and how does plimsoll compare?

    PLIMSOLL_GOLDEN=... jinja2_renders.py [--passes 5] [--ours build/release/perf/plimsoll_template_perf]

The environment is the one that transformers compiles templates in. Parsing is timed apart; all times are CPU time.
With --ours the program is run once after each pass, so that both see the same machine. Needs transformers and jinja2.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import time

import jinja2
import transformers
from transformers.utils import chat_template_utils


def read_rows(folder):
    contexts = json.loads((folder / "contexts.json").read_text())
    sources, rows = {}, []
    for part in range(3):
        for line in (folder / f"chat_renders.{part}.jsonl").open():
            row = json.loads(line)
            if row.get("expected") is None:
                continue
            name = row["template"]
            if name not in sources:
                sources[name] = (folder / f"{name}.jinja").read_text()
            context = dict(contexts[row["case"]]["context"], bos_token=row["bos"], eos_token=row["eos"])
            rows.append((name, context, row["expected"]))
    return sources, rows


def compiled(source):
    compile_template = chat_template_utils._cached_compile_jinja_template
    getattr(compile_template, "cache_clear", lambda: None)()
    template = compile_template(source)
    template.globals["strftime_now"] = lambda form: time.strftime(
        form, time.struct_time((2026, 1, 15, 9, 30, 0, 3, 15, -1)))
    return template


def our_pass(program):
    text = subprocess.run([program, "1"], check=True, capture_output=True, text=True).stdout
    return tuple(float(re.search(rf"{key} ([0-9.]+)", text).group(1)) for key in ("render_us", "parse_us"))


def spread(values):
    return f"mean {statistics.mean(values):8.2f}  min {min(values):8.2f}  max {max(values):8.2f}"


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--passes", type=int, default=5)
    arguments.add_argument("--ours", help="plimsoll_template_perf")
    given = arguments.parse_args()
    folder = pathlib.Path(os.environ["PLIMSOLL_GOLDEN"]) / "chat_templates"
    sources, rows = read_rows(folder)
    start = time.process_time()
    templates = {name: compiled(source) for name, source in sources.items()}
    parse_us = (time.process_time() - start) / len(templates) * 1e6
    wrong = sum(templates[name].render(**context) != expected for name, context, expected in rows)
    print(f"rows {len(rows)} templates {len(sources)} wrong {wrong} jinja2 {jinja2.__version__} "
          f"transformers {transformers.__version__}")
    peer, ours = [], []
    for _ in range(given.passes):
        start = time.process_time()
        for name, context, _expected in rows:
            templates[name].render(**context)
        peer.append((time.process_time() - start) / len(rows) * 1e6)
        if given.ours:
            ours.append(our_pass(given.ours))
    print(f"jinja2   render us  {spread(peer)}   parse us {parse_us:.0f}")
    if ours:
        print(f"plimsoll render us  {spread([a for a, _ in ours])}   "
              f"parse us {statistics.mean(b for _, b in ours):.0f}")
        print(f"ratio of means {statistics.mean(peer) / statistics.mean(a for a, _ in ours):.1f}")


if __name__ == "__main__":
    main()
