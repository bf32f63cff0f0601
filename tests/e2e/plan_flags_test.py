# SPDX-License-Identifier: Apache-2.0
"""Flags of plan: engines that are not named, searches, upgrades, tables, and what this machine has."""
import json
import os

MODEL = "Qwen/Qwen3-8B"


def document(run, *arguments, status=0, **kwargs):
    done = run("plan", *arguments, "--format", "json", **kwargs)
    assert status is None or done.returncode == status, done.stderr
    return json.loads(done.stdout)


def test_gpus_are_planned_for_the_newest_vllm(run):
    engine = document(run, MODEL, "--gpu", "H100")["engine"]
    assert engine["name"] == "vllm" and engine["default"] is True and engine["asked"] is None
    assert document(run, MODEL, "--gpu", "H100", "--engine", "vllm")["engine"] == {**engine, "default": False}
    pool = document(run, MODEL, "--kv-cache-memory-bytes", "16GiB")
    assert pool["engine"]["name"] == "vllm" and pool["rows"][0]["gpu"]["name"] is None
    assert "(the newest known)" in run("plan", MODEL, "--gpu", "H100").stdout


def test_what_no_flag_says_is_the_engines_default(run):
    pool = ("--kv-cache-memory-bytes", "20GB", "--max-model-len", "8192")

    def group(model, *flags):
        return document(run, model, *pool, *flags, status=None)["rows"][0]["kv_groups"][0]

    states = "Qwen/Qwen3-Next-80B-A3B-Instruct"  # prefixes are cached by default: two states a request
    assert [group(states, *flags)["blocks_per_request"] for flags in ((), ["--no-enable-prefix-caching"])] == [2, 1]
    chunks = "meta-llama/Llama-4-Scout-17B-16E-Instruct"  # the hybrid manager is off by default
    assert [group(chunks, *flags)["kind"] for flags in ((), ["--no-disable-hybrid-kv-cache-manager"])] == [
        "FullAttentionSpec", "ChunkedLocalAttentionSpec"]


def test_a_search_lists_layouts_and_reasons(run):
    found = document(run, MODEL, "--gpu", "H100:4", "--search", "--max-model-len", "8192")
    assert found["search"]["layouts"] == len(found["rows"]) + len(found["rejected"])
    assert found["search"]["cost_basis"] == "gpu_memory_gib"
    costs = [row["cost"] for row in found["rows"]]
    assert costs == sorted(costs)
    assert {"tensor_parallel", "pipeline_parallel", "data_parallel", "reason"} <= set(found["rejected"][0])
    priced = document(run, MODEL, "--search", "--max-model-len", "8192", "--gpu-price", "H100=3", "--gpu-price", "L40S=1")
    assert priced["search"]["cost_basis"] == "price_per_hour" and priced["rows"][0]["gpu"]["name"] == "L40S"
    assert run("plan", "--search").returncode == 2
    assert run("plan", MODEL, "--search", "--engine", "plimsoll").returncode == 2


def test_nothing_fits_is_a_no(run):
    found = document(run, "meta-llama/Llama-3.1-405B", "--gpu", "T4:2", "--search", status=1)
    assert found["rows"] == [] and found["rejected"]


def test_an_upgrade_names_the_release(run):
    held = document(run, MODEL, "--gpu", "L40S", "--engine", "vllm@0.19.1", "--against", "vllm@0.33.0")
    changes = {change["field"]: change for change in held["against"]["changes"]}
    assert changes["gpu_memory_utilization"]["releases"] == ["0.20.0"]
    assert changes["kv_tokens"]["difference"] == changes["kv_tokens"]["after"] - changes["kv_tokens"]["before"]
    assert held["against"]["rows"][0]["kv_tokens"] == changes["kv_tokens"]["after"]


def test_models_and_gpus_make_one_table(run):
    rows = document(run, MODEL, "Qwen/Qwen3-32B", "--gpu", "H100", "--gpu", "L40S:2")["rows"]
    assert [(row["model"], row["gpu"]["name"], row["gpu"]["count"]) for row in rows] == [
        (MODEL, "H100-SXM5-80GB", 1), (MODEL, "L40S", 2),
        ("Qwen/Qwen3-32B", "H100-SXM5-80GB", 1), ("Qwen/Qwen3-32B", "L40S", 2)]
    # --gpu takes one word: what follows is a model.
    assert document(run, "--gpu", "H100", MODEL)["rows"][0]["model"] == MODEL


def test_this_machine_is_its_gpus_or_its_memory(run, tmp_path):
    here = document(run, "--here", "--max-model-len", "2048")
    if here["engine"]["name"] == "plimsoll":  # no GPU where the test runs
        assert all(row["form"] for row in here["rows"])
        fits = [row["fits"] for row in here["rows"]]
        assert fits == sorted(fits, reverse=True)
    driver = tmp_path / "nvidia-smi"
    driver.write_text("#!/bin/sh\necho 'NVIDIA L40S, 46068 MiB, 580.65.06, 8.9'\n")
    driver.chmod(0o755)
    path = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    gpus = document(run, MODEL, "--here", "--max-model-len", "8192", env=path)
    assert gpus["engine"]["name"] == "vllm"
    assert gpus["rows"][0]["gpu"] == {"name": "L40S", "count": 1, "memory_bytes": 46068 * 2**20}
    own = document(run, MODEL, "--here", "--engine", "plimsoll", "--max-model-len", "64", env=path, status=None)
    assert own["engine"]["name"] == "plimsoll"
