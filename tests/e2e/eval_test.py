# SPDX-License-Identifier: Apache-2.0
"""`eval` and `generate --batch-file` as a user calls them."""
import fcntl
import json
import math


def ids_file(golden, tmp_path, model):
    expected = json.loads((golden(f"models/{model}") / "expected.json").read_text())
    path = tmp_path / "ids.json"
    path.write_text(json.dumps(expected["prompts"]["p1"]["ids"] * 4))
    return path


def test_eval_prints_one_document(run, golden, tmp_path):
    model = golden("models/llama_f32")
    done = run("eval", str(model), "--token-ids", str(ids_file(golden, tmp_path, "llama_f32")), "--kl", "--ctx-size",
               "32", "--threads", "1", "--format", "json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["schema"] == "plimsoll.eval/1"
    text = document["text"]
    assert (text["tokens"], text["ctx_size"], text["stride"], text["scored_tokens"]) == (96, 32, 16, 95)
    assert [row["dtype"] for row in text["rows"]] == ["float32", "auto"]
    float32, auto = text["rows"]
    assert float32["divergence"]["kl_max"] == 0
    assert float32["divergence"]["same_top"] == 1
    assert 0 < auto["divergence"]["kl_mean"] < 0.01
    assert math.isclose(auto["perplexity"] / float32["perplexity"], auto["divergence"]["perplexity_ratio"], rel_tol=1e-9)
    assert float32["bits_per_byte"] is None
    assert [finding["id"] for finding in document["findings"]] == ["EVAL_BYTES_UNKNOWN"]
    assert document["passkey"] is None
    assert document["basis"]["/text/rows/1/prompt_tokens_per_s"]["kind"] == "measured"


def test_eval_prints_a_page(run, golden, tmp_path):
    done = run("eval", str(golden("models/llama_f32")), "--token-ids", str(ids_file(golden, tmp_path, "llama_f32")),
               "--kl", "--threads", "1", "-q")
    assert done.returncode == 0
    assert done.stderr == ""
    assert "against float32" in done.stdout
    assert sum(line.startswith("auto ") for line in done.stdout.splitlines()) == 2


def test_eval_wants_something_to_measure(run, golden):
    model = str(golden("models/llama_f32"))
    for arguments in ([], ["--kl"], ["--passkey-lengths", "100"], ["--perplexity", ""], ["--passkey"]):
        assert run("eval", model, *arguments).returncode == 2, arguments


def test_what_is_asked_twice_is_measured_once(run, golden, tmp_path):
    done = run("eval", str(golden("models/llama_f32")), "--token-ids", str(ids_file(golden, tmp_path, "llama_f32")),
               "--dtype", "auto,float32,auto", "--kv-cache-dtype", "fp8,fp8,auto", "--threads", "1", "--format", "json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["text"]["rows"]
    assert [(row["dtype"], row["kv_cache_dtype"]) for row in rows] == \
        [("auto", "auto"), ("float32", "auto"), ("auto", "fp8")]


def test_flags_without_effect_are_refused(run, golden, tmp_path):
    model, batch = str(golden("models/llama_f32")), tmp_path / "batch.jsonl"
    batch.write_text("")
    text = ["--token-ids", str(ids_file(golden, tmp_path, "llama_f32"))]
    for verb, arguments, named in (
            ("generate", ["--batch-file", str(batch), "--max-tokens", "3", "--chat"], "--chat, --max-tokens"),
            ("generate", ["--batch-file", str(batch), "--jsonl"], "--jsonl"),
            ("generate", ["--batch-file", str(batch), "--prompt", "x"], "--prompt"),
            ("generate", ["--batch-file", str(batch), "--batch", "2"], "--batch"),
            ("generate", ["--jsonl", "--temperature", "0"], "--temperature"),
            ("generate", ["--jsonl", "--served-model-name", "x"], "--served-model-name"),
            ("generate", ["--prompt", "x", "--batch", "2"], "--batch"),
            ("generate", ["--prompt", "x", "--system", "y"], "--system"),
            ("eval", [*text, "--windows", "llama.cpp", "--stride", "8"], "--stride"),
            ("eval", [*text, "--passkey-trials", "2"], "--passkey-trials"),
            ("eval", ["--passkey", "--max-windows", "2"], "--max-windows"),
            ("eval", [*text, "--perplexity", "README.md"], "--token-ids")):
        done = run(verb, model, *arguments, input="")
        assert done.returncode == 2, arguments
        assert f"{named} would have no effect" in done.stderr, done.stderr


def test_a_batch_in_json_is_one_document(run, golden, tmp_path):
    batch = tmp_path / "batch.jsonl"
    batch.write_text("")
    done = run("generate", str(golden("models/llama_f32")), "--batch-file", str(batch), "--format", "json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["code"] == "usage"
    assert "-o FILE" in done.stderr


def test_answers_that_another_process_writes_are_left_alone(run, golden, tmp_path):
    batch, answers = tmp_path / "batch.jsonl", tmp_path / "answers.jsonl"
    batch.write_text("")
    for arguments in (["--batch-file", str(batch)], ["--jsonl"]):
        with answers.open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            held.write("kept")
            held.flush()
            done = run("generate", str(golden("models/llama_f32")), *arguments, "-o", str(answers), "--threads", "1",
                       input="")
        assert done.returncode == 2, arguments
        assert "another process is writing the file" in done.stderr
        assert answers.read_text() == "kept"


def test_ids_are_a_list(run, golden, tmp_path):
    path = tmp_path / "ids.json"
    path.write_text('{"a": 1}')
    done = run("eval", str(golden("models/llama_f32")), "--token-ids", str(path))
    assert done.returncode == 3
    assert "no list" in done.stderr


def test_a_batch_goes_on_where_it_stopped(run, golden, tmp_path):
    model = str(golden("models/llama_f32"))
    requests, answers = tmp_path / "requests.jsonl", tmp_path / "answers.jsonl"
    body = {"prompt": [5, 6, 7], "max_tokens": 4, "return_token_ids": True}
    lines = [{"custom_id": f"r{i}", "method": "POST", "url": "/v1/completions", "body": {**body, "seed": i}}
             for i in range(5)]
    requests.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def call():
        done = run("generate", model, "--batch-file", str(requests), "-o", str(answers), "--threads", "1",
                   "--max-model-len", "64", "--format", "json")
        assert done.returncode == 0, done.stderr
        found = {line["custom_id"]: line["response"]["body"]["choices"] for line in
                 map(json.loads, answers.read_text().splitlines())}
        return json.loads(done.stdout), found

    summary, first = call()
    assert (summary["requests"], summary["answered_before"], summary["failed"]) == (5, 0, 0)
    answers.write_text("\n".join(answers.read_text().splitlines()[:2]) + '\n{"id":"batch_req_')
    summary, second = call()
    assert summary["answered_before"] == 2
    assert second == first
    requests.write_text(json.dumps(lines[0]) + "\n" + json.dumps(lines[0]) + "\n")
    done = run("generate", model, "--batch-file", str(requests))
    assert done.returncode == 3
    assert "r0" in done.stderr
