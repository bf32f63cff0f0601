# SPDX-License-Identifier: Apache-2.0
"""/v1/embeddings of `serve`, asked by the official client, against what Sentence Transformers gave."""
import concurrent.futures
import json
from pathlib import Path

import openai
import pytest

from server import Server

FOLDER = Path(__file__).resolve().parents[2] / "data/embeddings"
MODELS = ["qwen3_last", "bert_mean", "roberta_cls"]


@pytest.fixture(scope="module", params=MODELS)
def model(request, binary):
    """A served model, its client and the truth of its texts."""
    name = request.param
    with Server(binary, FOLDER / name, "--dtype", "float32", "--num-gpu-blocks-override", "256",
                "--served-model-name", name) as server:
        client = openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0, timeout=120)
        yield server, client, json.loads((FOLDER / f"{name}.json").read_text()), name


def vectors(answer):
    return [row.embedding for row in answer.data]


def test_texts_become_the_embeddings_of_the_reference(model):
    _, client, truth, name = model
    answer = client.embeddings.create(model=name, input=[row["text"] for row in truth], encoding_format="float")
    assert answer.usage.prompt_tokens == answer.usage.total_tokens == sum(len(row["ids"]) for row in truth)
    for found, row in zip(vectors(answer), truth):
        assert found == pytest.approx(row["embedding"], abs=2e-5), row["text"]


def test_text_ids_and_base64_are_one(model):
    _, client, truth, name = model
    row = truth[2]
    whole = client.embeddings.create(model=name, input=row["text"], encoding_format="float")
    ids = client.embeddings.create(model=name, input=row["ids"], encoding_format="float")
    packed = client.embeddings.create(model=name, input=[row["ids"]])  # the client asks for base64 by itself
    assert vectors(whole) == vectors(ids) == vectors(packed)


def test_many_clients_get_the_bits_of_one(model):
    server, client, truth, name = model
    texts = [row["text"] for row in truth] * 4
    alone = [client.embeddings.create(model=name, input=text).data[0].embedding for text in texts]
    before = server.metrics()["vllm:prompt_tokens_total"]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        together = list(pool.map(
            lambda text: client.embeddings.create(model=name, input=text).data[0].embedding, texts))
    assert together == alone
    tokens = 4 * sum(len(row["ids"]) for row in truth)
    assert server.metrics()["vllm:prompt_tokens_total"] - before == tokens
    assert vectors(client.embeddings.create(model=name, input=texts)) == alone


def test_the_limits_are_told(model):
    _, client, truth, name = model
    served = client.models.retrieve(name)
    limit = served.model_dump()["max_model_len"]
    with pytest.raises(openai.BadRequestError) as refused:
        client.embeddings.create(model=name, input=[5] * (limit + 1))
    assert refused.value.code == "context_length_exceeded" and str(limit) in refused.value.message
    cut = client.embeddings.create(model=name, input=[5] * (limit + 1), extra_body={"truncate_prompt_tokens": -1})
    assert cut.usage.prompt_tokens == limit
    with pytest.raises(openai.BadRequestError):
        client.embeddings.create(model=name, input="a", dimensions=4)
    with pytest.raises(openai.BadRequestError):
        client.embeddings.create(model=name, input=[])
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model=name, messages=[{"role": "user", "content": "hi"}])
    assert client.embeddings.create(model=name, input="still here").data


def test_generate_says_what_the_model_is_for(run):
    ended = run("generate", str(FOLDER / "qwen3_last"), "--prompt", "hi", "--num-gpu-blocks-override", "64")
    assert ended.returncode == 4 and "gives embeddings" in ended.stderr
