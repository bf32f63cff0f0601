#!/usr/bin/env python3
"""Counts the parameters of data/model/inventories/*.json again with the class that each row names and writes
them back. Needs torch and the transformers version that the rows name; rows with another reference are left
as they are. usage: make_model_inventories.py [FILE...]"""
import json
import pathlib
import re
import sys

import torch
import transformers


def count(config, class_name):
    """Parameters of that class built on the meta device, shared ones once."""
    model_class = getattr(transformers, class_name)
    read = model_class.config_class.from_dict(config)
    if config["model_type"] == "dbrx":  # its own configs lack what its attention asks for
        read.attn_config.rope_theta = config["attn_config"].get("rope_theta", 10000.0)
    read._attn_implementation = "eager"
    with torch.device("meta"):
        model = model_class(read)
    model.tie_weights()
    return sum(parameter.numel() for parameter in model.parameters())


def main(paths):
    folder = pathlib.Path(__file__).resolve().parent.parent / "data/model/inventories"
    changed = 0
    for path in [pathlib.Path(p) for p in paths] or sorted(folder.glob("*.json")):
        text = path.read_text()
        row = json.loads(text)
        name = row["reference"].split()
        if name[0] != "transformers":
            continue
        if name[1] != transformers.__version__:
            sys.exit(f"{path.name} wants transformers {name[1]}, here is {transformers.__version__}")
        total = count(row["config"], name[2])
        if total != row["parameters"]:
            changed += 1
            print(f"{path.name}: {row['parameters']} -> {total}")
            path.write_text(re.sub(r'"parameters": \d+', f'"parameters": {total}', text, count=1))
    print(f"{changed} rows changed")


main(sys.argv[1:])
