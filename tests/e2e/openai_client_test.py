# SPDX-License-Identifier: Apache-2.0
"""The official client talks to our server, with the real model and with ids alone."""
import json

import openai
import pytest


@pytest.fixture(scope="module")
def client(start_server, smollm2):
    server = start_server(smollm2, "--max-model-len", "512", "--served-model-name", "small")
    return openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0, timeout=120)


QUESTION = [{"role": "user", "content": "What is the capital of France? Answer in one short sentence."}]


def test_models_lists_the_served_name(client):
    assert [model.id for model in client.models.list()] == ["small"]


def test_a_chat_answers_and_counts(client):
    answer = client.chat.completions.create(model="small", messages=QUESTION, max_tokens=24, temperature=0)
    assert answer.choices[0].message.role == "assistant"
    assert "Paris" in answer.choices[0].message.content
    assert answer.choices[0].finish_reason in ("stop", "length")
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert 0 < answer.usage.completion_tokens <= 24


def test_a_streamed_chat_says_the_same(client):
    whole = client.chat.completions.create(model="small", messages=QUESTION, max_tokens=24, temperature=0)
    chunks = list(client.chat.completions.create(model="small", messages=QUESTION, max_tokens=24, temperature=0,
                                                 stream=True, stream_options={"include_usage": True}))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    finishes = [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices and chunk.choices[0].finish_reason]
    assert finishes == [whole.choices[0].finish_reason]
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
    assert len([chunk for chunk in chunks if chunk.choices]) > 3


def test_a_completion_streams_too(client):
    arguments = dict(model="small", prompt="The capital of France is", max_tokens=8, temperature=0)
    whole = client.completions.create(**arguments)
    pieces = [chunk.choices[0].text for chunk in client.completions.create(**arguments, stream=True) if chunk.choices]
    assert "".join(pieces) == whole.choices[0].text
    assert " Paris" in whole.choices[0].text


def test_an_unknown_model_is_an_openai_error(client):
    with pytest.raises(openai.NotFoundError) as caught:
        client.chat.completions.create(model="large", messages=QUESTION)
    assert "large" in str(caught.value)


def test_a_wrong_parameter_is_named(client):
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="small", messages=QUESTION, temperature=-1)
    assert "temperature" in str(caught.value)


@pytest.mark.parametrize("name", ["llama_plain", "llama_sharded", "qwen3"])
def test_ids_over_http_are_the_golden_ones(start_server, golden, name):
    folder = golden(f"models/{name}")
    server = start_server(folder, "--dtype", "float32", "--served-model-name", name)
    client = openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0, timeout=120)
    prompts = json.loads((folder / "expected.json").read_text())["prompts"]
    for prompt in prompts.values():
        wanted = prompt["greedy48"][:16]
        answer = client.completions.create(model=name, prompt=prompt["ids"], max_tokens=16, temperature=0,
                                           extra_body={"return_token_ids": True, "ignore_eos": True})
        assert answer.choices[0].token_ids == wanted
