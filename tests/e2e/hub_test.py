# SPDX-License-Identifier: Apache-2.0
"""Models on a hub: inspected by their headers alone, pulled into the cache that huggingface_hub shares, pinned."""
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import hub_certificate
import hub_faults as faults
import pytest
from hub_driver import TOKEN, TOKENIZER, Driver, listing, model_files
from hub_repo import File, safetensors
from hub_server import Hub
from huggingface_hub import HfApi, constants, snapshot_download

NAME = "org/small"


@pytest.fixture
def hub():
    with Hub() as made:
        yield made


@pytest.fixture
def ask(binary, hub, tmp_path):
    return Driver(binary, hub, tmp_path / "home")


@pytest.fixture(autouse=True)
def reference(monkeypatch, tmp_path):
    """huggingface_hub in this process: its own cache, plain HTTP, no token."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "reference"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.delenv("HF_TOKEN", raising=False)


def ids(document: dict) -> dict[str, dict]:
    return {finding["id"]: finding for finding in document["findings"]}


def facts(document: dict) -> dict:
    """What an inspection says of the model itself, wherever it lies."""
    kept = {key: document[key] for key in ("parameters", "weights", "layers", "kv_cache", "context", "tokenizer")}
    return kept | {"files": [(file["path"], file["bytes"], file["role"]) for file in document["files"]]}


# inspect: headers only. -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["llama_plain", "llama_sharded"])
@pytest.mark.parametrize("has_metadata_route", [True, False])
def test_a_hub_model_is_inspected_as_its_folder_is(ask, hub, golden, tmp_path, name, has_metadata_route):
    files = model_files(golden(f"models/{name}"))
    hub.has_metadata_route = has_metadata_route
    sha = hub.repo(NAME, files).branches["main"]
    folder = tmp_path / "home/folder"
    folder.mkdir(parents=True)
    for path, content in files.items():
        (folder / path).write_bytes(content)
    there = ask.document("inspect", NAME)
    here = ask.document("inspect", str(folder))
    assert facts(there) == facts(here)
    assert there["model"]["commit"] == sha
    assert set(ids(there)) - set(ids(here)) == {"REVISION_NOT_PINNED"}
    assert sha in ids(there)["REVISION_NOT_PINNED"]["message"] + ids(there)["REVISION_NOT_PINNED"]["fix"]
    weights = [file for path, file in hub.repos[NAME].commits[sha].items() if path.endswith(".safetensors")]
    assert not [file for file in weights if (ask.cache / "models--org--small/blobs" / file.etag).exists()]


def llama_7b(folder: Path, shards: int = 3) -> int:
    """A folder of the shapes of Llama 2 7B in sparse shards. Bytes of its weights."""
    hidden, ffn, layers, vocabulary = 4096, 11008, 32, 32000
    shapes = {"model.embed_tokens.weight": (vocabulary, hidden), "model.norm.weight": (hidden,),
              "lm_head.weight": (vocabulary, hidden)}
    for layer in range(layers):
        for part, shape in {"self_attn.q_proj": (hidden, hidden), "self_attn.k_proj": (hidden, hidden),
                            "self_attn.v_proj": (hidden, hidden), "self_attn.o_proj": (hidden, hidden),
                            "mlp.gate_proj": (ffn, hidden), "mlp.up_proj": (ffn, hidden), "mlp.down_proj": (hidden, ffn),
                            "input_layernorm": (hidden,), "post_attention_layernorm": (hidden,)}.items():
            shapes[f"model.layers.{layer}.{part}.weight"] = shape
    folder.mkdir(parents=True)
    names, weight_map, total = sorted(shapes), {}, 0
    for number in range(shards):
        shard = f"model-{number + 1:05}-of-{shards:05}.safetensors"
        own = {}
        for name in names[number::shards]:
            size = 2
            for extent in shapes[name]:
                size *= extent
            own[name] = ("BF16", shapes[name], size)
            weight_map[name] = shard
            total += size
        header = safetensors({name: (dtype, shape, 0) for name, (dtype, shape, _) in own.items()}, {"format": "pt"})
        text, end = json.loads(header[8:]), 0
        for name, (_, _, size) in own.items():
            text[name]["data_offsets"] = [end, end + size]
            end += size
        written = json.dumps(text).encode()
        written = written.ljust((len(written) + 7) // 8 * 8)  # as writers align it
        with open(folder / shard, "wb") as out:
            out.write(len(written).to_bytes(8, "little") + written)
            out.truncate(8 + len(written) + end)
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": total}, "weight_map": weight_map}))
    (folder / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": hidden, "intermediate_size": ffn,
        "num_hidden_layers": layers, "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": vocabulary,
        "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
        "bos_token_id": 1, "eos_token_id": 2, "tie_word_embeddings": False, "torch_dtype": "bfloat16"}))
    return total


@pytest.mark.parametrize("how", ["one call", "ranges", "ranges ignored"])
def test_thirteen_gigabytes_cost_some_kilobytes(ask, hub, tmp_path, how):
    folder = tmp_path / "home/big"
    total = llama_7b(folder)
    assert total == 13_476_831_232
    hub.has_metadata_route = how == "one call"
    if how == "ranges ignored":
        hub.fault(faults.range_ignored, host="cdn")
    hub.repo(NAME, {path.name: path for path in folder.iterdir()})
    document = ask.document("inspect", NAME)
    assert (document["weights"]["bytes"], document["parameters"]["total"]) == (total, total // 2)
    assert facts(document) == facts(ask.document("inspect", str(folder)))
    # Where the server insists on sending everything, the client leaves; what is in flight then is the socket's.
    assert hub.sent(host="cdn") <= {"one call": 0, "ranges": 3 * 100_100, "ranges ignored": 32 << 20}[how]
    assert hub.sent(host="hub") < 300_000


def test_a_header_longer_than_the_first_read(ask, hub, golden):
    files = model_files(golden("models/llama_plain"))
    (length,) = [int.from_bytes(files["model.safetensors"][:8], "little")]
    header, data = files["model.safetensors"][8 : 8 + length], files["model.safetensors"][8 + length :]
    files["model.safetensors"] = (300_000).to_bytes(8, "little") + header.ljust(300_000) + data
    hub.has_metadata_route = False
    hub.repo(NAME, files)
    document = ask.document("inspect", NAME)
    assert document["weights"]["num_tensors"] == len(json.loads(header)) - ("__metadata__" in json.loads(header))
    assert 300_000 < hub.sent(host="cdn") <= 400_100


def test_a_gguf_repository(ask, hub, golden):
    content = golden("gguf/llama_plain-bf16.gguf").read_bytes()
    hub.repo("org/small-gguf", {"llama_plain-bf16.gguf": content, "README.md": "# x\n"})
    document = ask.document("inspect", "org/small-gguf")
    local = ask.document("inspect", str(golden("gguf/llama_plain-bf16.gguf")))
    for key in ("parameters", "weights", "layers", "kv_cache"):
        assert document[key] == local[key]


def test_the_modules_of_an_embedding_model_come_along(ask, hub):
    folder = Path(__file__).resolve().parents[2] / "data/embeddings/qwen3_last"
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    files["1_Pooling/config.json"] = b'{"pooling_mode": "median"}'
    hub.repo("org/embedding", files)
    document = ask.document("inspect", "org/embedding")
    own = next(row for row in document["support"] if row["engine"] == "plimsoll")
    assert "median is not computed" in own["note"]


def test_revisions(ask, hub, golden):
    repo = hub.repo(NAME, model_files(golden("models/llama_plain")))
    first = repo.tags["v1.0"] = repo.branches["main"]
    second = repo.commit(model_files(golden("models/qwen2")))
    third = repo.pulls["refs/pr/1"] = repo.commit(model_files(golden("models/mistral")), branch="side/way")
    for revision, (sha, kind) in {"": (second, "qwen2"), "@main": (second, "qwen2"), "@v1.0": (first, "llama"),
                                  f"@{first}": (first, "llama"), "@side/way": (third, "mistral"),
                                  "@refs/pr/1": (third, "mistral")}.items():
        document = ask.document("inspect", NAME + revision)
        assert (document["model"]["commit"], document["model"]["model_type"]) == (sha, kind), revision
        assert ("REVISION_NOT_PINNED" in ids(document)) == (revision != f"@{first}"), revision
    ask.refused("inspect", NAME + "@v9", says=("v9", "revision"))
    ask.refused("inspect", f"{NAME}@{'0' * 40}", says=("revision", "0" * 40))


def test_a_renamed_repository_says_its_new_name(ask, hub, golden):
    sha = hub.repo("org/old", model_files(golden("models/llama_plain"))).branches["main"]
    hub.rename("org/old", "new/name")
    hub.tokens = {TOKEN: set()}
    done = ask("inspect", "org/old", "--format", "json", token=TOKEN)
    document = json.loads(done.stdout)
    assert done.returncode == 0 and document["model"]["commit"] == sha
    assert "new/name" in done.stdout + done.stderr
    done = ask("pull", "org/old", token=TOKEN)
    assert done.returncode == 0 and "new/name" in done.stdout + done.stderr
    assert hub.seen(host="cdn")


# pull: the cache that huggingface_hub shares. ---------------------------------------------------------------------


def odd_model(golden) -> dict:
    """A model with what caches stumble over: folders, empty files, odd names, two names of one content."""
    return model_files(golden("models/llama_plain")) | {
        "sub/folder/notes.txt": "deep\n", "sub/empty.txt": "", "name with space & ümlaut #1%.txt": "odd\n",
        "twin.txt": "deep\n", "original/params.json": {"dim": 64}}


def test_pull_leaves_the_cache_that_the_reference_leaves(ask, hub, golden, tmp_path):
    repo = hub.repo(NAME, odd_model(golden))
    sha = repo.branches["main"]
    done = ask("pull", NAME)
    assert done.returncode == 0, done.stderr
    assert sha in done.stdout
    snapshot_download(NAME, endpoint=hub.endpoint, token=False)
    ours, theirs = listing(ask.cache), listing(tmp_path / "reference")
    for found in (ours, theirs):
        for path in [path for path in found if path.startswith(".locks/") or path == "CACHEDIR.TAG"]:
            del found[path]
    assert ours == theirs
    assert (ask.cache / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")
    hub.forget()
    assert snapshot_download(NAME, cache_dir=ask.cache, local_files_only=True) == str(ask.snapshot(NAME, sha))
    assert hub.requests == []


def test_what_the_reference_downloaded_is_not_downloaded_again(ask, hub, golden):
    repo = hub.repo(NAME, odd_model(golden))
    sha = repo.branches["main"]
    snapshot_download(NAME, endpoint=hub.endpoint, token=False, cache_dir=ask.cache)
    before = listing(ask.cache)
    hub.forget()
    assert ask.document("inspect", NAME, HF_HUB_OFFLINE="1")["model"]["commit"] == sha
    assert ask.document("inspect", f"{NAME}@{sha}")["model"]["commit"] == sha
    assert hub.requests == [], "a pinned commit that is in the cache needs no network"
    assert ask("pull", NAME).returncode == 0
    assert not hub.seen(host="cdn", method="GET")
    assert {path: kept for path, kept in listing(ask.cache).items() if path in before} == before


def test_the_shared_store_and_its_double_links(ask, hub, golden):
    """As newer caches keep what came from content-addressed storage: blobs/{etag} is itself a link."""
    repo = hub.repo(NAME, odd_model(golden))
    sha = repo.branches["main"]
    snapshot_download(NAME, endpoint=hub.endpoint, token=False, cache_dir=ask.cache)
    blob = ask.cache / "models--org--small/blobs" / repo.commits[sha]["model.safetensors"].sha256
    store = ask.cache / "blobs/ab" / ("ab" * 32)
    store.parent.mkdir(parents=True)
    (ask.cache / "blobs/.huggingface-shared-blobs").write_text("1\n")
    blob.rename(store)
    blob.symlink_to(os.path.relpath(store, blob.parent))
    hub.forget()
    document = ask.document("inspect", f"{NAME}@{sha}", "--deep", HF_HUB_OFFLINE="1")
    assert document["verdict"] == "ok", document["findings"]
    assert ask("pull", NAME).returncode == 0
    assert not hub.seen(host="cdn", method="GET") and blob.is_symlink() and store.stat().st_size == blob.stat().st_size


def test_a_cache_that_may_not_be_written(binary, hub, golden):
    """As on a cluster's shared disk. Root may write anywhere, so that root lets another user look."""
    files = model_files(golden("models/llama_plain"))
    sha = hub.repo(NAME, files).branches["main"]
    with tempfile.TemporaryDirectory() as outer:
        for path in (Path(outer), Path(outer) / "home"):
            path.mkdir(exist_ok=True)
            path.chmod(0o755)
        snapshot_download(NAME, endpoint=hub.endpoint, token=False, cache_dir=Path(outer) / "home/hf/hub")
        shutil.copy(binary, Path(outer) / "home/plimsoll")
        ask = Driver(str(Path(outer) / "home/plimsoll"), hub, Path(outer) / "home")
        for path in (ask.cache, *ask.cache.rglob("*")):
            if not path.is_symlink():
                path.chmod(stat.S_IMODE(path.stat().st_mode) & 0o555)
        before = listing(ask.cache)
        user = 65534 if os.geteuid() == 0 else None
        for revision in ("", f"@{sha}"):
            assert ask.document("inspect", NAME + revision, user=user)["model"]["commit"] == sha
        assert ask("pull", NAME, user=user).returncode == 0
        hub.repos[NAME].commit(files | {"more.txt": "more"})
        assert ask.document("inspect", NAME, user=user)["model"]["commit"] != sha
        done = ask("pull", NAME, user=user)
        assert done.returncode != 0 and str(ask.cache) in done.stderr
        assert listing(ask.cache) == before
        for path in ask.cache.rglob("*"):
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o755)


def test_only_what_is_included(ask, hub, golden):
    sha = hub.repo(NAME, odd_model(golden)).branches["main"]
    assert ask("pull", NAME, "--include", "*.json", "--include", "sub/*").returncode == 0
    got = {path.relative_to(ask.snapshot(NAME, sha)).as_posix() for path in ask.snapshot(NAME, sha).rglob("*")
           if path.is_file()}
    assert got == {"config.json", "tokenizer.json", "original/params.json", "sub/folder/notes.txt", "sub/empty.txt"}
    assert not hub.seen(host="cdn")


def test_links_switched_off(ask, hub, golden):
    repo = hub.repo(NAME, odd_model(golden))
    sha = repo.branches["main"]
    assert ask("pull", NAME, HF_HUB_DISABLE_SYMLINKS="1").returncode == 0
    for path, file in repo.commits[sha].items():
        held = ask.snapshot(NAME, sha) / path
        assert not held.is_symlink() and held.read_bytes() == file.read(0, file.size)
    assert ask.document("inspect", NAME, HF_HUB_OFFLINE="1")["model"]["commit"] == sha


def test_a_pull_that_was_killed_goes_on_where_it_was(ask, hub, golden):
    files = model_files(golden("models/llama_plain"))
    repo = hub.repo(NAME, files)
    size = len(files["model.safetensors"])
    hub.fault(faults.changed(stall_after=300_000), host="cdn", method="GET", times=1)
    running = subprocess.Popen([ask.binary, "pull", NAME], env=ask.environment(HF_HUB_DOWNLOAD_TIMEOUT="60"),
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ask.home)
    waiting = threading.Event()
    for _ in range(600):
        if hub.sent(host="cdn") >= 300_000 and sum(
                path.stat().st_size for path in ask.cache.rglob("*.incomplete")) >= 200_000:
            break
        waiting.wait(0.05)
    else:
        pytest.fail("the download did not get to its middle")
    running.kill()
    running.wait()
    hub.forget()
    assert ask("pull", NAME).returncode == 0
    assert hub.sent(host="cdn") <= size - 200_000
    held = ask.snapshot(NAME, repo.branches["main"]) / "model.safetensors"
    assert held.read_bytes() == files["model.safetensors"]
    assert not list(ask.cache.rglob("*.incomplete"))


def test_files_come_several_at_once_and_not_all(ask, hub):
    hub.repo(NAME, {f"part-{number:03}.bin": bytes([number]) * 30_000 for number in range(60)})
    hub.fault(faults.changed(piece=10_000, pause_s=0.02), host="cdn")
    assert ask("pull", NAME).returncode == 0
    assert 1 < hub.open_at_most <= 16


def test_two_pulls_at_once(ask, hub, golden):
    repo = hub.repo(NAME, odd_model(golden))
    hub.fault(faults.changed(piece=20_000, pause_s=0.02), host="cdn")
    both = [subprocess.Popen([ask.binary, "pull", NAME], env=ask.environment(), cwd=ask.home, stderr=subprocess.PIPE,
                             stdout=subprocess.DEVNULL) for _ in range(2)]
    for running in both:
        _, complaint = running.communicate(timeout=60)
        assert running.returncode == 0, complaint
    sha = repo.branches["main"]
    for path, file in repo.commits[sha].items():
        assert (ask.snapshot(NAME, sha) / path).read_bytes() == file.read(0, file.size)


def test_other_verbs_take_the_same_names(ask, hub, golden):
    files = model_files(golden("models/llama_plain"))
    hub.repo(NAME, files)
    planned = ask.document("plan", NAME, "--gpu", "H100", expected=(0, 1))
    assert hub.sent(host="cdn") <= 100_001 and planned["rows"]
    line = '{"prompt_token_ids": [1, 5, 9], "max_tokens": 4, "temperature": 0, "ignore_eos": true}\n'
    early = ask("generate", NAME, "--jsonl", stdin=line)
    assert early.returncode == 0 or "pull" in early.stderr
    assert ask("pull", NAME).returncode == 0
    folder = ask.home / "folder"
    folder.mkdir()
    for path, content in files.items():
        (folder / path).write_bytes(content)
    there = ask("generate", NAME, "--jsonl", stdin=line, HF_HUB_OFFLINE="1")
    here = ask("generate", str(folder), "--jsonl", stdin=line)
    assert (there.returncode, there.stdout) == (0, here.stdout), there.stderr


# Pinned. ----------------------------------------------------------------------------------------------------------


def test_the_lock_record(ask, hub, golden):
    files = odd_model(golden) | {"generation_config.json": {"temperature": 0.6, "eos_token_id": 2},
                                 "chat_template.jinja": "{{ messages[0].content }}"}
    repo = hub.repo(NAME, files, card={"license": "apache-2.0"})
    sha = repo.branches["main"]
    lock = ask.home / "model.lock.json"
    assert ask("pull", NAME, "-o", str(lock)).returncode == 0
    record = json.loads(lock.read_text())
    assert record["schema"] == "plimsoll.lock/1"
    assert (record["repo"], record["commit"], record["license"]) == (NAME, sha, "apache-2.0")
    assert {file["path"]: (file["bytes"], file["sha256"]) for file in record["files"]} == {
        path: (file.size, File(path, file.content, is_large=True).sha256) for path, file in repo.commits[sha].items()}
    assert record["max_model_len"] == 1024
    assert record["generation_config"] == {"temperature": 0.6, "eos_token_id": 2}
    assert record["chat_template_sha256"] == File("", b"{{ messages[0].content }}", is_large=True).sha256
    assert record["engine"] == {"name": None, "version": None, "image_digest": None}

    repo.commit({"config.json": {"model_type": "other"}})
    hub.forget()
    for arguments in ((str(lock),), (NAME, "--lock", str(lock))):
        document = ask.document("inspect", *arguments)
        assert document["model"]["commit"] == sha
        assert "LOCK_MISMATCH" not in ids(document) and "REVISION_NOT_PINNED" not in ids(document)
    assert hub.requests == []

    blob = (ask.snapshot(NAME, sha) / "model.safetensors").resolve()
    blob.chmod(0o644)
    content = blob.read_bytes()
    blob.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert "LOCK_MISMATCH" not in ids(ask.document("inspect", str(lock)))
    document = ask.document("inspect", str(lock), "--deep", expected=1)
    assert "model.safetensors" in ids(document)["LOCK_MISMATCH"]["where"]
    blob.write_bytes(content + b"x")
    document = ask.document("inspect", str(lock), expected=(1, 3))
    assert "model.safetensors" in ids(document)["LOCK_MISMATCH"]["where"]


def test_a_lock_opens_a_model_that_is_not_in_the_cache(ask, hub, golden):
    hub.repo(NAME, model_files(golden("models/llama_sharded")))
    lock = ask.home / "model.lock.json"
    assert ask("pull", NAME, "-o", str(lock)).returncode == 0
    shutil.rmtree(ask.cache)
    hub.forget()
    document = ask.document("inspect", str(lock))
    assert document["model"]["commit"] == json.loads(lock.read_text())["commit"]
    assert "LOCK_MISMATCH" not in ids(document)
    assert hub.sent(host="cdn") == 0 or hub.sent(host="cdn") <= 6 * 100_001


# Who may, and what there is without a hub. ------------------------------------------------------------------------


def test_private_and_gated_with_the_right_token(ask, hub, golden):
    files = model_files(golden("models/llama_plain"))
    hub.repo("org/secret", files, private=True)
    hub.repo("org/gated", files, gated="manual")
    hub.tokens = {TOKEN: {"org/secret", "org/gated"}}
    for name in ("org/secret", "org/gated"):
        assert ask.document("inspect", name, token=TOKEN)["parameters"]["total"] > 0
        assert ask("pull", name, token=TOKEN).returncode == 0
    assert hub.seen(host="cdn")


@pytest.mark.parametrize("place", ["file", "old name", "token path", "not implicit"])
def test_where_the_token_may_stand(ask, hub, golden, place):
    hub.repo("org/secret", model_files(golden("models/llama_plain")), private=True)
    hub.tokens = {TOKEN: {"org/secret"}}
    (ask.home / "hf").mkdir()
    held = ask.home / ("elsewhere" if place == "token path" else "hf/token")
    if place != "old name":
        held.write_text(TOKEN + "\n")
    environment = {"file": {}, "old name": {"HUGGING_FACE_HUB_TOKEN": f" {TOKEN} "},
                   "token path": {"HF_TOKEN_PATH": str(held)}, "not implicit": {"HF_HUB_DISABLE_IMPLICIT_TOKEN": "1"}}
    if place == "not implicit":
        ask.refused("inspect", "org/secret", says=("HF_TOKEN",), **environment[place])
        assert not [request for request in hub.requests if "authorization" in request.headers]
    else:
        ask.document("inspect", "org/secret", **environment[place])


def test_where_the_cache_may_stand(ask, hub, golden):
    sha = hub.repo(NAME, model_files(golden("models/llama_plain"))).branches["main"]
    for environment, cache in (({"HF_HUB_CACHE": "~/own"}, "own"), ({"HUGGINGFACE_HUB_CACHE": str(ask.home / "old")}, "old"),
                               ({"HF_HOME": "$HOME/dir"}, "dir/hub"),
                               ({"HF_HOME": "", "XDG_CACHE_HOME": str(ask.home / "xdg")}, "xdg/huggingface/hub")):
        assert ask("pull", NAME, **environment).returncode == 0
        assert (ask.home / cache / f"models--org--small/snapshots/{sha}/config.json").exists(), environment


def test_offline(ask, hub, golden):
    hub.repo(NAME, model_files(golden("models/llama_plain")))
    for value in ("1", "on", "YES", "True"):
        ask.refused("inspect", NAME, says=("offline", "HF_HUB_OFFLINE"), HF_HUB_OFFLINE=value)
    ask.refused("pull", NAME, says=("offline",), TRANSFORMERS_OFFLINE="1")
    assert hub.requests == []
    assert ask("pull", NAME).returncode == 0
    hub.forget()
    assert ask.document("inspect", NAME, HF_HUB_OFFLINE="1")["verdict"] != "error"
    assert hub.requests == []


def test_the_hub_is_gone_and_the_cache_is_there(ask, hub, golden):
    sha = hub.repo(NAME, model_files(golden("models/llama_plain"))).branches["main"]
    assert ask("pull", NAME).returncode == 0
    assert ask.document("inspect", NAME, HF_ENDPOINT="http://127.0.0.1:9")["model"]["commit"] == sha
    hub.fault(faults.status(503))
    assert ask.document("inspect", NAME)["model"]["commit"] == sha


def test_the_catalogue_answers_where_the_hub_does_not(ask, hub):
    known = "meta-llama/Llama-3.1-8B"
    for environment in ({"HF_HUB_OFFLINE": "1"}, {"HF_ENDPOINT": "http://127.0.0.1:9"}):
        document = ask.document("inspect", known, **environment)
        assert ids(document)["CATALOGUE_USED"]["level"] == "info"
        assert document["parameters"]["total"] > 8_000_000_000
    hub.repo(known, {"config.json": {}}, gated="manual")
    assert "gated" in ids(ask.document("inspect", known))["CATALOGUE_USED"]["message"].lower()


def test_tls(binary, tmp_path, golden):
    authority, server = hub_certificate.make(tmp_path)
    files = model_files(golden("models/llama_plain"))
    (tmp_path / "inside").mkdir()
    with Hub(tls=server) as hub:
        hub.repo(NAME, files)
        hub.repo("org/secret", files, private=True)
        ask = Driver(binary, hub, tmp_path / "inside/home")
        ask.refused("inspect", NAME, says=("certificate", "SSL_CERT_FILE"), token=TOKEN)
        assert hub.requests == []
        assert ask("pull", NAME, SSL_CERT_FILE=authority).returncode == 0
        other_name = hub.endpoint.replace("127.0.0.1", "localhost")
        ask.refused("inspect", NAME, says=("certificate",), SSL_CERT_FILE=authority, HF_ENDPOINT=other_name,
                    HF_HUB_CACHE=str(ask.home / "empty"))


def test_tls_is_not_left_for_plain_http(binary, tmp_path, golden):
    authority, server = hub_certificate.make(tmp_path)
    files = model_files(golden("models/llama_plain"))
    (tmp_path / "inside").mkdir()
    with Hub(tls=server) as hub, Hub() as plain:
        hub.tokens = plain.tokens = {TOKEN: set()}
        for each in (hub, plain):
            each.repo(NAME, files)
        ask = Driver(binary, hub, tmp_path / "inside/home")
        hub.fault(faults.redirect(lambda request: plain.endpoint + request.target), path="config.json")
        ask.refused("pull", NAME, says=("http",), token=TOKEN, SSL_CERT_FILE=authority)
        assert plain.requests == []
