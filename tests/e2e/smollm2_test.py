# SPDX-License-Identifier: Apache-2.0
"""The demo's real model, held to its references: token ids, arg-max at every step, and the demo itself."""
import json
import subprocess

# Below this the reference's own rounding decides between the two best tokens (see data/PROVENANCE/engine.md).
MARGIN = 0.3


def lines_through(binary, *arguments, rows):
    done = subprocess.run([binary, *arguments], input="".join(json.dumps(row) + "\n" for row in rows), capture_output=True,
                          text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json_lines(done.stdout)


def json_lines(text):
    """str.splitlines would also cut at Unicode's line separators, which stand inside the texts."""
    return [json.loads(line) for line in text.split("\n") if line]


def test_encode_and_decode_match_the_reference(binary, smollm2, golden):
    rows = json_lines(golden("tokens/smollm2.jsonl").read_text())
    texts = [row for row in rows if row["kind"] == "enc"]
    assert len(texts) > 100
    encoded = lines_through(binary, "tokens", "encode", smollm2, "--jsonl",
                            rows=[{"text": row["text"], "add_special_tokens": False} for row in texts])
    assert [out["ids"] for out in encoded] == [row["ids"] for row in texts]
    decoded = lines_through(binary, "tokens", "decode", smollm2, "--jsonl", rows=[{"ids": row["ids"]} for row in texts])
    assert [out["text"] for out in decoded] == [row.get("decoded", row["text"]) for row in texts]
    streams = [row for row in rows if row["kind"] == "stream" and "error" not in row]
    assert streams
    streamed = lines_through(binary, "tokens", "decode", smollm2, "--jsonl",
                             rows=[{"ids": row["ids"], "stream": True, "skip_special_tokens": row["skip_special"]} for row in streams])
    assert [out["chunks"] for out in streamed] == [row["chunks"] for row in streams]


def test_arg_max_equals_the_float32_reference(binary, smollm2, golden):
    """Teacher-forced: the reference's tokens are the prompt, and every position's best token is compared."""
    prompts = json.loads(golden("smollm2/expected_smollm2.json").read_text())["prompts"]
    assert len(prompts) >= 15
    requests = [{"prompt_token_ids": row["ids"] + row["llama_cpp_greedy"][:-1], "max_tokens": 1, "temperature": 0,
                 "ignore_eos": True, "prompt_logprobs": 1} for row in prompts]
    answers = lines_through(binary, "generate", smollm2, "--jsonl", "--dtype", "float32", "--max-model-len", "512", rows=requests)
    compared = 0
    wrong = []
    for row, answer in zip(prompts, answers, strict=True):
        best = [entry["top"][0][0] for entry in answer["prompt_logprobs"][len(row["ids"]):]]
        best.append(answer["choices"][0]["token_ids"][0])
        assert len(best) == len(row["hf_argmax_teacher_forced"]) == 64
        for step, (found, expected, margin) in enumerate(zip(best, row["hf_argmax_teacher_forced"], row["hf_margins"], strict=True)):
            if margin < MARGIN:
                continue
            compared += 1
            if found != expected:
                wrong.append((row["prompt"], step, found, expected, margin))
    assert compared > 500
    assert not wrong


def test_demo_predicts_what_it_measures(binary, smollm2, tmp_path):
    done = subprocess.run([binary, "demo", "--model", smollm2, "-o", str(tmp_path), "--input-tokens", "16", "--output-tokens", "4"],
                          capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "result.json").read_text())
    pairs = {pair["quantity"]: pair for pair in result["predicted_measured"]}
    assert list(pairs) == ["kv_bytes_per_token", "kv_tokens", "kv_cache_bytes", "weights_bytes", "peak_memory_bytes"]
    for quantity in ("kv_bytes_per_token", "kv_tokens", "kv_cache_bytes", "weights_bytes"):
        assert pairs[quantity]["predicted"] == pairs[quantity]["measured"], quantity
    assert pairs["kv_bytes_per_token"]["measured"] == 23_040
    assert [level["max_concurrency"] for level in result["sweep"]] == [1, 2, 4, 8, 16, 32]
    assert all(level["failed"] == 0 and level["completed"] > 0 for level in result["sweep"])
    assert "Paris" in result["answer"]["text"]
    assert "KV bytes per token   predicted" in done.stdout


def test_company_changes_no_bit(binary, smollm2):
    """33 prompts with 1, 3, 8 or 33 rows a step, chunks of 1, 16, 100 tokens or all, with and without a prefix that is
    found: the same tokens and the same logprobs to the last digit. A logprob sums over all logits, so it shows a
    changed bit of any."""
    rows = [{"prompt_token_ids": [(7 * i + 131 * j + j * j) % 40_000 + 100 for j in range(1 + i * 11 % 25)],
             "max_tokens": 3, "temperature": 0, "ignore_eos": True, "logprobs": 3} for i in range(33)]

    def run(batch, chunk, *flags, repeated=False):
        answers = lines_through(binary, "generate", smollm2, "--jsonl", "--batch", str(batch), "--max-model-len", "64",
                                "--max-num-batched-tokens", str(chunk), "--num-gpu-blocks-override", "400", *flags,
                                rows=rows * 2 if repeated else rows)
        return [answer["choices"] for answer in answers]

    alone = run(1, 2048, "--no-enable-prefix-caching")
    assert len({json.dumps(choice) for choice in alone}) == 33
    assert run(3, 1, "--no-enable-prefix-caching") == alone
    assert run(8, 16, "--no-enable-prefix-caching") == alone
    assert run(33, 100, "--no-enable-prefix-caching") == alone
    assert run(8, 100, repeated=True) == alone * 2
    assert run(33, 16, repeated=True) == alone * 2
