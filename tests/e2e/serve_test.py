# SPDX-License-Identifier: Apache-2.0
"""The OpenAI API of `serve`, spoken to by the official client."""
import json
import os
import re
import socket
import subprocess
import threading
import urllib.error
import urllib.request

import openai
import pytest

from server import Server


def client_of(server, **options):
    options.setdefault("api_key", "none")
    return openai.OpenAI(base_url=server.url + "/v1", max_retries=0, timeout=120, **options)


def post(server, path, body, raw=None, headers=None):
    """Status and JSON of a request that the client would not send."""
    data = raw if raw is not None else json.dumps(body).encode()
    request = urllib.request.Request(server.url + path, data=data, method="POST",
                                     headers={"Content-Type": "application/json", **(headers or {})})
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def until(condition, tries=2000):
    """Asks the server again and again; each try is a request, so no sleep is needed."""
    for _ in range(tries):
        if condition():
            return True
    return False


@pytest.fixture(scope="module")
def tiny(binary, golden):
    """A model without tokenizer: token ids only."""
    with Server(binary, golden("models/llama_plain"), "--dtype", "float32", "--max-model-len", "512",
                "--num-gpu-blocks-override", "256", "--served-model-name", "org/tiny",
                "--enable-request-id-headers") as server:
        yield server


@pytest.fixture(scope="module")
def real(binary, smollm2):
    with Server(binary, smollm2, "--max-model-len", "2048", "--num-gpu-blocks-override", "1024",
                "--max-num-seqs", "32", "--served-model-name", "smollm2") as server:
        yield server


def test_start_up_lines(tiny):
    memory = tiny.memory()
    assert memory["kv_tokens"] == memory["num_blocks"] * memory["block_size"]
    assert memory["kv_cache_bytes"] == memory["kv_tokens"] * memory["kv_bytes_per_token"]
    text = "\n".join(tiny.lines)
    assert "Model loading took " in text and "Available KV cache memory: " in text
    assert "CPU KV cache size: 4,096 tokens, Maximum concurrency for 512 tokens per request: 8.00x" in text


def test_models(tiny):
    client = client_of(tiny)
    models = client.models.list().data
    assert [model.id for model in models] == ["org/tiny"]
    assert client.models.retrieve("org/tiny").id == "org/tiny"
    with pytest.raises(openai.NotFoundError) as caught:
        client.models.retrieve("nope")
    assert caught.value.code == "model_not_found"


@pytest.mark.parametrize("name", ["p0", "p1", "p2"])
def test_greedy_ids_of_the_reference(tiny, golden, name):
    prompt = json.loads(golden("models/llama_plain/expected.json").read_text())["prompts"][name]
    answer = client_of(tiny).completions.create(
        model="org/tiny", prompt=prompt["ids"], max_tokens=48, temperature=0, logprobs=2,
        extra_body={"ignore_eos": True, "return_token_ids": True, "return_tokens_as_token_ids": True})
    choice = answer.choices[0]
    assert choice.token_ids == prompt["greedy48"]
    assert choice.prompt_token_ids == prompt["ids"]
    assert choice.finish_reason == "length"
    assert choice.logprobs.tokens == [f"token_id:{token}" for token in prompt["greedy48"]]
    assert answer.usage.prompt_tokens == len(prompt["ids"]) and answer.usage.completion_tokens == 48


def test_a_stream_says_the_same_as_one_object(tiny):
    body = {"model": "org/tiny", "prompt": [5, 6, 7], "max_tokens": 12, "temperature": 0}
    extra = {"ignore_eos": True, "return_token_ids": True}
    whole = client_of(tiny).completions.create(**body, extra_body=extra)
    chunks = list(client_of(tiny).completions.create(**body, extra_body=extra, stream=True,
                                                     stream_options={"include_usage": True}))
    assert [token for chunk in chunks for choice in chunk.choices for token in choice.token_ids] == \
        whole.choices[0].token_ids
    assert [len(chunk.choices) for chunk in chunks] == [1] * 12 + [0]
    assert chunks[-1].usage.completion_tokens == 12
    assert sum(chunk.choices[0].finish_reason is not None for chunk in chunks[:-1]) == 1


def test_echo_gives_the_logprobs_of_the_prompt(tiny):
    answer = client_of(tiny).completions.create(model="org/tiny", prompt=[5, 6, 7], max_tokens=0, echo=True, logprobs=1)
    logprobs = answer.choices[0].logprobs
    assert logprobs.token_logprobs[0] is None and all(value <= 0 for value in logprobs.token_logprobs[1:])
    assert len(logprobs.tokens) == len(logprobs.top_logprobs) == len(logprobs.text_offset) == 3
    assert answer.usage.completion_tokens == 0


def test_a_seed_repeats(tiny):
    def once():
        return client_of(tiny).completions.create(model="org/tiny", prompt=[5], max_tokens=16, seed=7, n=2,
                                                  extra_body={"ignore_eos": True, "return_token_ids": True})
    first, second = once(), once()
    assert [c.token_ids for c in first.choices] == [c.token_ids for c in second.choices]
    assert first.choices[0].token_ids != first.choices[1].token_ids


def test_a_repeated_prompt_is_found_in_the_cache(tiny):
    prompt = [(i * 7) % 400 + 3 for i in range(100)]
    def once():
        return client_of(tiny).completions.create(model="org/tiny", prompt=prompt, max_tokens=4, temperature=0)
    first, second = once(), once()
    cached = second.usage.prompt_tokens_details.cached_tokens
    assert cached > 0 and cached % tiny.memory()["block_size"] == 0
    assert first.usage.prompt_tokens_details.cached_tokens == 0


@pytest.mark.parametrize("body, status, param", [
    ({}, 400, "prompt"),
    ({"prompt": []}, 400, "prompt"),
    ({"prompt": [1], "temperature": -1}, 400, "temperature"),
    ({"prompt": [1], "max_tokens": -1}, 400, "max_tokens"),
    ({"prompt": [1], "frequency_penalty": 2.5}, 400, "frequency_penalty"),
    ({"prompt": [1], "stream_options": {"include_usage": True}}, 400, "stream_options"),
    ({"prompt": [1], "suffix": "b"}, 400, "suffix"),
    ({"prompt": "text without a tokenizer"}, 400, "prompt"),
    ({"prompt": [10 ** 9]}, 400, "prompt"),
    ({"prompt": [1] * 600}, 400, "prompt"),
    ({"prompt": [1], "max_tokens": 512}, 400, "prompt"),
    ({"prompt": [1], "model": "nope"}, 404, "model"),
])
def test_bad_requests(tiny, body, status, param):
    got, answer = post(tiny, "/v1/completions", body)
    assert got == status
    assert set(answer["error"]) == {"message", "type", "param", "code"}
    assert answer["error"]["param"] == param
    if len(body.get("prompt", [])) > 500 or body.get("max_tokens", 0) > 500:
        assert answer["error"]["code"] == "context_length_exceeded"
        assert "maximum context length is 512 tokens" in answer["error"]["message"]


@pytest.mark.parametrize("raw", [b"{", b"[]", b"", b"\xff\xfe", b'{"prompt":' + b"[" * 100000])
def test_bodies_that_are_no_object(tiny, raw):
    status, answer = post(tiny, "/v1/completions", None, raw=raw)
    assert status == 400 and answer["error"]["type"] == "invalid_request_error"


def test_paths_and_methods(tiny):
    for path, status in [("/v1/nope", 404), ("/v1/chat/completions", 405)]:
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(tiny.url + path, timeout=30)
        assert caught.value.code == status
    assert urllib.request.urlopen(tiny.url + "/health", timeout=30).status == 200


def test_a_closed_connection_frees_its_blocks(tiny):
    stream = client_of(tiny).completions.create(model="org/tiny", prompt=[1, 2], max_tokens=500, stream=True,
                                                extra_body={"ignore_eos": True})
    for _, chunk in zip(range(3), stream):
        assert chunk.choices
    stream.close()

    def is_idle():
        now = tiny.metrics()
        return now["vllm:num_requests_running"] == 0 and now["plimsoll:kv_blocks_used"] == 0
    assert until(is_idle)


def test_an_api_key_is_asked_for(binary, golden):
    with Server(binary, golden("models/llama_plain"), "--max-model-len", "64", "--num-gpu-blocks-override", "8",
                "--api-key", "secret") as server:
        with pytest.raises(openai.AuthenticationError) as caught:
            client_of(server, api_key="wrong").models.list()
        assert caught.value.code == "invalid_api_key"
        assert client_of(server, api_key="secret").models.list().data
        assert urllib.request.urlopen(server.url + "/health", timeout=30).status == 200
        assert "secret" not in "\n".join(server.lines)


def test_sigterm_drains(binary, golden):
    server = Server(binary, golden("models/llama_plain"), "--max-model-len", "512", "--num-gpu-blocks-override", "64")
    stream = client_of(server).completions.create(model=client_of(server).models.list().data[0].id, prompt=[1],
                                                  max_tokens=200, stream=True, extra_body={"ignore_eos": True})
    chunks = [next(stream)]
    stopper = threading.Thread(target=server.stop)
    stopper.start()
    chunks += list(stream)
    stopper.join()
    assert chunks[-1].choices[0].finish_reason == "length" and len(chunks) == 200
    assert server.process.returncode == 0


def test_a_port_in_use_is_a_network_error(run, golden):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("serve", str(golden("models/llama_plain")), "--max-model-len", "64", "--num-gpu-blocks-override",
                   "8", "--port", str(port))
    assert done.returncode == 5
    assert str(port) in done.stderr


def test_a_fault_midway_is_told(binary, golden):
    environment = {**os.environ, "PLIMSOLL_TEST_FAIL_AFTER_TOKENS": "3"}
    with Server(binary, golden("models/llama_plain"), "--max-model-len", "64", "--num-gpu-blocks-override", "8",
                "--served-model-name", "m", environment=environment) as server:
        stream = client_of(server).completions.create(model="m", prompt=[1], max_tokens=9, stream=True,
                                                      user="plimsoll-fault")
        with pytest.raises(openai.APIError):
            list(stream)
        assert client_of(server).completions.create(model="m", prompt=[1], max_tokens=2).choices


def test_measure_reads_the_pool(run, golden):
    done = run("serve", str(golden("models/llama_plain")), "--measure", "256,512", "--format", "json")
    assert done.returncode == 0, done.stderr
    first, second = json.loads(done.stdout)["measured"]
    assert second["kv_cache_bytes"] - first["kv_cache_bytes"] == 256 * first["kv_bytes_per_token"]


def test_measure_of_states_beyond_the_machine_is_refused_before_anything_is_written(run, tmp_path):
    config = {"architectures": ["Mamba2ForCausalLM"], "model_type": "mamba2", "vocab_size": 512, "num_hidden_layers": 3,
              "hidden_size": 2**20, "state_size": 2**20, "expand": 2, "head_dim": 512, "num_heads": 2**12, "n_groups": 2,
              "conv_kernel": 4, "layer_norm_epsilon": 1e-05, "tie_word_embeddings": False, "torch_dtype": "bfloat16"}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    done = run("serve", str(path), "--measure", "16", "--format", "json")
    assert done.returncode == 1, done.stderr
    assert re.search(r"takes up to [\d,.]+ GiB.* and [\d,.]+ GiB of memory is available", done.stderr), done.stderr
    assert json.loads(done.stdout)["error"]["code"] == "no"


def test_generate_answers_lines(run, golden):
    prompts = json.loads(golden("models/llama_plain/expected.json").read_text())["prompts"]
    lines = [{"prompt_token_ids": prompts[name]["ids"], "max_tokens": 48, "temperature": 0, "ignore_eos": True}
             for name in ("p0", "p1", "p2")]
    text = "".join(json.dumps(line) + "\n" for line in [*lines, {"prompt_token_ids": [-1]}])
    for batch in ("1", "4"):
        done = run("generate", str(golden("models/llama_plain")), "--jsonl", "--dtype", "float32", "--batch", batch,
                   "--max-model-len", "512", "--num-gpu-blocks-override", "256", input=text)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert [answer["choices"][0]["token_ids"] for answer in answers[:3]] == \
            [prompts[name]["greedy48"] for name in ("p0", "p1", "p2")]
        assert "error" in answers[3]
        assert done.returncode == 1


def test_an_unsupported_model_is_one_error_document(run, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["NobodyForCausalLM"], "model_type": "nobody"}))
    done = run("generate", str(tmp_path), "--jsonl", input="{}\n")
    assert done.returncode == 4
    assert json.loads(done.stdout)["error"]["code"] == "unsupported"


# With the demo's model: a tokenizer and a chat template.


def test_chat(real):
    answer = client_of(real).chat.completions.create(
        model="smollm2", messages=[{"role": "user", "content": "Say hi"}], max_tokens=8, temperature=0, logprobs=True,
        top_logprobs=3)
    choice = answer.choices[0]
    assert choice.message.role == "assistant" and choice.message.content
    assert len(choice.logprobs.content) == answer.usage.completion_tokens <= 8
    for entry in choice.logprobs.content:
        values = [top.logprob for top in entry.top_logprobs]
        assert len(values) == 3 and values == sorted(values, reverse=True) and entry.logprob <= 0
    parts = client_of(real).chat.completions.create(
        model="smollm2", messages=[{"role": "user", "content": [{"type": "text", "text": "Say hi"}]}], max_tokens=8,
        temperature=0)
    assert parts.usage.prompt_tokens == answer.usage.prompt_tokens
    assert parts.choices[0].message.content == choice.message.content
    status, counted = post(real, "/tokenize", {"messages": [{"role": "user", "content": "Say hi"}]})
    assert status == 200 and counted["count"] == answer.usage.prompt_tokens


def test_chat_stream(real):
    body = {"model": "smollm2", "messages": [{"role": "user", "content": "Name three colours"}], "max_tokens": 24,
            "temperature": 0}
    whole = client_of(real).chat.completions.create(**body)
    chunks = list(client_of(real).chat.completions.create(**body, stream=True))
    assert chunks[0].choices[0].delta.role == "assistant" and chunks[0].choices[0].delta.content == ""
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == whole.choices[0].message.content
    assert len({chunk.id for chunk in chunks}) == 1


def test_an_image_is_refused_by_name(real):
    with pytest.raises(openai.BadRequestError) as caught:
        client_of(real).chat.completions.create(model="smollm2", messages=[{"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]}])
    assert caught.value.param == "messages[0].content[0].image_url"


def test_tokenize_and_back(real):
    for text in ["Why is the sky blue?", "김치찌개 \U0001f372", " leading"]:
        _, ids = post(real, "/tokenize", {"prompt": text, "add_special_tokens": False})
        assert ids["count"] == len(ids["tokens"]) == len(ids["token_strs"])
        assert post(real, "/detokenize", {"tokens": ids["tokens"]})[1]["prompt"] == text


def test_thirty_two_streams_at_once(real):
    texts = {}

    def ask(index):
        stream = client_of(real).completions.create(model="smollm2", prompt=f"Number {index % 4}:", max_tokens=12,
                                                    temperature=0, stream=True, extra_body={"ignore_eos": True})
        chunks = list(stream)
        assert len(chunks) == 12
        texts[index] = "".join(chunk.choices[0].text for chunk in chunks)

    threads = [threading.Thread(target=ask, args=(index,)) for index in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(texts) == 32
    # Who shares a step with whom changes no answer.
    for index in range(32):
        assert texts[index] == texts[index % 4]
    assert until(lambda: real.metrics()["vllm:num_requests_running"] == 0)


def test_greedy_ids_of_smollm2(binary, smollm2, golden):
    """The reference is float32; its own margins say where a rounder engine may differ."""
    expected = json.loads(golden("smollm2/expected_smollm2.json").read_text())
    prompts = expected["prompts"]
    rows = [row for row in (prompts.values() if isinstance(prompts, dict) else prompts)][:3]
    with Server(binary, smollm2, "--dtype", "float32", "--max-model-len", "512", "--num-gpu-blocks-override", "64",
                "--served-model-name", "m") as server:
        for row in rows:
            forced = row["hf_argmax_teacher_forced"]
            taught = row["llama_cpp_greedy"]
            answer = client_of(server).completions.create(
                model="m", prompt=row["ids"], max_tokens=len(taught), temperature=0,
                extra_body={"ignore_eos": True, "return_token_ids": True})
            # Both follow the same text up to the first place where the teacher's token is not the argmax.
            same = next((i for i, pair in enumerate(zip(forced, taught)) if pair[0] != pair[1]), len(taught) - 1)
            assert answer.choices[0].token_ids[:same + 1] == forced[:same + 1]
