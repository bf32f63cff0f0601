# SPDX-License-Identifier: Apache-2.0
"""huggingface_hub, the client that most models are downloaded with, finds the stand-in to be a hub.

What satisfies the reference may judge ours (hub_test.py).
"""
import os
import subprocess
import sys
import types
from pathlib import Path

import hub_certificate
import hub_faults as faults
import pytest
from hub_repo import File, safetensors
from hub_server import Hub
from huggingface_hub import HfApi, constants, errors, file_download
from huggingface_hub.utils import _http, _xet

TOKEN = "hf_" + "s" * 30


@pytest.fixture
def hub():
    with Hub() as made:
        yield made


@pytest.fixture(autouse=True)
def settings(monkeypatch, tmp_path):
    """The client reads its environment once, at import; these are the settings as it keeps them."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    # It keeps only whole chunks of what was cut; its own 10 MB would want large files here.
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 10_000)
    monkeypatch.delenv("HF_TOKEN", raising=False)


@pytest.fixture
def waits(monkeypatch):
    """The seconds that the client would have slept; it does not."""
    seconds: list[float] = []
    clock = types.SimpleNamespace(sleep=seconds.append, time=__import__("time").time)
    monkeypatch.setattr(_http, "time", clock)
    monkeypatch.setattr(file_download, "time", clock)
    return seconds


def client(hub: Hub, token: str | bool = False) -> HfApi:
    return HfApi(endpoint=hub.endpoint, token=token)


def weights(elements: int = 256) -> bytes:
    return safetensors({"a.weight": ("F32", (elements,), 4 * elements)}, {"format": "pt"})


def model() -> dict:
    return {"config.json": {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}, "README.md": "# A card\n" * 50,
            "model.safetensors": weights(), "sub/folder/notes.txt": "deep\n"}


def holds(folder: Path, repo, sha: str) -> None:
    for path, file in repo.commits[sha].items():
        assert (folder / path).read_bytes() == file.read(0, file.size)


def nobody_showed_the_token_to_the_cdn(hub: Hub) -> None:
    assert hub.seen(host="cdn")
    assert not [request for request in hub.seen(host="cdn") if "authorization" in request.headers]


# Reading. ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("uses_resolve_cache", [True, False])
def test_a_snapshot_and_its_cache(hub, tmp_path, uses_resolve_cache):
    hub.uses_resolve_cache = uses_resolve_cache
    repo = hub.repo("org/small", model())
    sha = repo.branches["main"]
    folder = Path(client(hub).snapshot_download("org/small"))
    top = tmp_path / "cache/models--org--small"
    assert folder == top / "snapshots" / sha
    holds(folder, repo, sha)
    assert (folder / "model.safetensors").readlink() == Path(f"../../blobs/{repo.commits[sha]['model.safetensors'].sha256}")
    assert {blob.name for blob in (top / "blobs").iterdir()} == {file.etag for file in repo.commits[sha].values()}
    assert (top / "refs/main").read_text() == sha
    assert (top / f"trees/{sha}.json").exists()
    # Text came compressed where the client accepts that, and is as long as the hub says all the same.
    assert any("gzip" in request.headers["accept-encoding"] for request in hub.seen("README.md", method="GET"))

    hub.forget()
    assert Path(client(hub).snapshot_download("org/small", revision=sha)) == folder
    assert hub.requests == [], "a commit that is in the cache needs no network"


def test_revisions(hub, tmp_path):
    repo = hub.repo("org/small", {"note.txt": "first"})
    first = repo.tags["v1.0"] = repo.branches["main"]
    second = repo.commit({"note.txt": "second"})
    third = repo.pulls["refs/pr/1"] = repo.commit({"note.txt": "third"}, branch="side/way")
    wanted = {"main": second, "v1.0": first, first: first, "side/way": third, "refs/pr/1": third}
    for revision, sha in wanted.items():
        path = Path(client(hub).hf_hub_download("org/small", "note.txt", revision=revision))
        assert path.parent.name == sha
        assert client(hub).model_info("org/small", revision=revision).sha == sha
    assert (tmp_path / "cache/models--org--small/refs/refs/pr/1").read_text() == third
    refs = client(hub).list_repo_refs("org/small")
    assert {branch.name: branch.target_commit for branch in refs.branches} == {"main": second, "side/way": third}
    assert [tag.ref for tag in refs.tags] == ["refs/tags/v1.0"]
    for ask in (lambda: client(hub).model_info("org/small", revision="v9"),
                lambda: client(hub).hf_hub_download("org/small", "note.txt", revision="v9")):
        with pytest.raises(errors.RevisionNotFoundError):
            ask()


def test_the_list_of_files_comes_in_pages(hub):
    files = {f"part-{number:02}.bin": b"x" * number for number in range(1, 11)} | {"sub/a/b.txt": "b", "sub/c.txt": "c"}
    sha = hub.repo("org/many", files).branches["main"]
    hub.page_entries = 5
    entries = list(client(hub).list_repo_tree("org/many", recursive=True))
    assert len(hub.seen("/tree/")) == 3
    assert {entry.path: entry.size for entry in entries if hasattr(entry, "size")} == {
        path: file.size for path, file in hub.repos["org/many"].commits[sha].items()}
    assert {entry.path for entry in entries if not hasattr(entry, "size")} == {"sub", "sub/a"}
    assert [entry.path for entry in client(hub).list_repo_tree("org/many", "sub")] == ["sub/a", "sub/c.txt"]
    (info,) = client(hub).get_paths_info("org/many", ["part-03.bin", "absent"])
    assert info.lfs.sha256 == hub.repos["org/many"].commits[sha]["part-03.bin"].sha256
    with pytest.raises(errors.RemoteEntryNotFoundError):
        list(client(hub).list_repo_tree("org/many", "absent"))


def test_what_the_hub_says_of_a_model(hub):
    hub.repo("org/small", model(), card={"license": "apache-2.0"}, gated="manual")
    info = client(hub).model_info("org/small")
    assert (info.card_data.license, info.gated, info.private) == ("apache-2.0", "manual", False)
    assert info.config["model_type"] == "llama"
    assert "license:apache-2.0" in info.tags
    assert {sibling.rfilename for sibling in info.siblings} == set(model())


def test_headers_of_safetensors_without_their_tensors(hub):
    big = safetensors({"a.weight": ("BF16", (1 << 20, 4), 8 << 20)}, {"format": "pt"})
    hub.repo("org/one", {"model.safetensors": big})
    found = client(hub).get_safetensors_metadata("org/one")
    assert found.parameter_count == {"BF16": 4 << 20}
    assert hub.sent(host="cdn") == 100_001

    hub.forget()
    hub.repo("org/long", {"model.safetensors": safetensors({"a": ("F32", (4,), 16)}, pad_header_to=200_000)})
    assert client(hub).get_safetensors_metadata("org/long").parameter_count == {"F32": 4}
    ranges = [request.headers["range"] for request in hub.seen(host="cdn")]
    assert ranges == ["bytes=0-100000", "bytes=8-200007"]


def test_headers_of_shards_one_by_one_or_in_one_call(hub):
    shards = {f"model-0000{n}-of-00003.safetensors": safetensors({f"layer.{n}": ("F16", (n, 64), 128 * n)})
              for n in (1, 2, 3)}
    index = {"metadata": {"total_size": 768}, "weight_map": {f"layer.{n}": name for n, name in enumerate(shards, 1)}}
    hub.repo("org/sharded", shards | {"model.safetensors.index.json": index})
    one_by_one = client(hub).get_safetensors_metadata("org/sharded")
    assert len(hub.seen(host="cdn", method="GET")) == 3
    hub.forget()
    at_once = client(hub).get_sharded_safetensors_metadata("org/sharded")
    assert len(hub.requests) == 1
    for found in (one_by_one, at_once):
        assert found.parameter_count == {"F16": 384}
        assert found.metadata == {"total_size": 768}
        assert found.weight_map == index["weight_map"]
    hub.repo("org/other", {"pytorch_model.bin": b"x"})
    with pytest.raises(errors.RemoteEntryNotFoundError):
        client(hub).get_sharded_safetensors_metadata("org/other")
    with pytest.raises(errors.NotASafetensorsRepoError):
        client(hub).get_safetensors_metadata("org/other")


def test_xet_is_offered_and_its_bridge_serves_plain_bytes(hub, monkeypatch):
    repo = hub.repo("org/small")
    repo.commit({"model.safetensors": File("model.safetensors", weights(), xet_hash="ab" * 32)})
    head = client(hub).get_hf_file_metadata(url=f"{hub.endpoint}/org/small/resolve/main/model.safetensors")
    assert head.xet_file_data.file_hash == "ab" * 32
    info = _xet.refresh_xet_connection_info(file_data=head.xet_file_data, headers={})
    assert info.endpoint == hub.cdn
    path = Path(client(hub).hf_hub_download("org/small", "model.safetensors"))
    assert path.read_bytes() == weights()


# Who may. ---------------------------------------------------------------------------------------------------------


def test_a_missing_file_is_remembered(hub, tmp_path):
    sha = hub.repo("org/small", model()).branches["main"]
    with pytest.raises(errors.RemoteEntryNotFoundError):
        client(hub).hf_hub_download("org/small", "chat_template.jinja")
    assert (tmp_path / f"cache/models--org--small/.no_exist/{sha}/chat_template.jinja").exists()


def test_missing_and_private_repositories_look_alike(hub):
    hub.repo("org/secret", model(), private=True)
    hub.tokens = {TOKEN: {"org/secret"}, "hf_other": set()}
    for name, token in (("org/absent", False), ("org/absent", TOKEN), ("org/secret", False), ("org/secret", "hf_other")):
        for ask in ("snapshot_download", "model_info", "auth_check"):
            with pytest.raises(errors.RepositoryNotFoundError) as caught:
                getattr(client(hub, token), ask)(name)
            assert not isinstance(caught.value, errors.GatedRepoError)
            assert caught.value.response.status_code == (404 if token else 401)
    client(hub, TOKEN).auth_check("org/secret")
    assert Path(client(hub, TOKEN).snapshot_download("org/secret")).is_dir()
    nobody_showed_the_token_to_the_cdn(hub)


def test_a_gated_repository_shows_its_list_and_not_its_files(hub):
    hub.repo("org/gated", model(), gated="manual")
    hub.tokens = {TOKEN: {"org/gated"}, "hf_other": set()}
    for token, status in ((False, 401), ("hf_other", 403)):
        assert client(hub, token).model_info("org/gated").gated == "manual"
        assert len(list(client(hub, token).list_repo_tree("org/gated"))) == 4
        for ask in (lambda: client(hub, token).hf_hub_download("org/gated", "config.json"),
                    lambda: client(hub, token).snapshot_download("org/gated"),
                    lambda: client(hub, token).auth_check("org/gated")):
            with pytest.raises(errors.GatedRepoError) as caught:
                ask()
            assert caught.value.response.status_code == status
    client(hub, TOKEN).snapshot_download("org/gated")
    nobody_showed_the_token_to_the_cdn(hub)


def test_a_token_that_nobody_knows(hub):
    hub.repo("org/small", model())
    with pytest.raises(errors.HfHubHTTPError, match="Invalid credentials") as caught:
        client(hub, "hf_unknown").model_info("org/small")
    assert type(caught.value) is errors.HfHubHTTPError


def test_a_disabled_repository(hub):
    hub.repo("org/off", model(), disabled=True)
    with pytest.raises(errors.DisabledRepoError):
        client(hub).model_info("org/off")


def test_a_renamed_repository_is_followed(hub):
    repo = hub.repo("org/old", model())
    hub.rename("org/old", "new/name")
    hub.tokens = {TOKEN: set()}
    assert client(hub, TOKEN).model_info("org/old").id == "new/name"
    path = Path(client(hub, TOKEN).hf_hub_download("org/old", "model.safetensors"))
    assert path.read_bytes() == weights() and path.parent.name == repo.branches["main"]
    holds(Path(client(hub, TOKEN).snapshot_download("org/old")), repo, repo.branches["main"])
    nobody_showed_the_token_to_the_cdn(hub)


# What goes wrong. -------------------------------------------------------------------------------------------------


def test_a_cut_download_is_resumed(hub, waits):
    hub.repo("org/small", {"model.safetensors": weights(50_000)})
    hub.fault(faults.changed(cut_after=70_000), host="cdn", method="GET", times=2)
    path = Path(client(hub).hf_hub_download("org/small", "model.safetensors"))
    assert path.read_bytes() == weights(50_000)
    assert [request.headers.get("range") for request in hub.seen(host="cdn", method="GET")] == [
        None, "bytes=70000-", "bytes=140000-"]


def test_a_server_that_ignores_ranges_sends_it_all_again(hub, waits):
    hub.repo("org/small", {"model.safetensors": weights(50_000)})
    hub.fault(faults.changed(cut_after=70_000), host="cdn", method="GET", times=1)
    hub.fault(faults.range_ignored, host="cdn")
    path = Path(client(hub).hf_hub_download("org/small", "model.safetensors"))
    assert path.read_bytes() == weights(50_000)
    assert [(request.headers.get("range"), request.status) for request in hub.seen(host="cdn")] == [
        (None, 200), ("bytes=70000-", 200)]


def test_a_size_that_lies(hub, waits):
    hub.repo("org/small", {"model.safetensors": weights()})
    hub.fault(faults.header("X-Linked-Size", "100"), method="HEAD")
    with pytest.raises(OSError, match="Consistency check failed"):
        client(hub).hf_hub_download("org/small", "model.safetensors")


def test_limits_of_the_rate(hub, waits):
    hub.repo("org/small", model())
    hub.fault(faults.status(429, RateLimit='"api";r=0;t=55', RateLimit_Policy='"fixed window";"api";q=500;w=300'),
              path="/tree/", times=1)
    assert len(list(client(hub).list_repo_tree("org/small"))) == 4
    hub.fault(faults.status(429, Retry_After="7"), host="cdn", times=1)
    client(hub).hf_hub_download("org/small", "model.safetensors")
    hub.fault(faults.status(503), path="/tree/", times=2)
    assert len(list(client(hub).list_repo_tree("org/small"))) == 4
    assert waits == [56, 8, 1, 2]


def test_what_is_no_hub(hub):
    hub.repo("org/small", model())
    hub.fault(faults.header("X-Repo-Commit", None))
    with pytest.raises(errors.LocalEntryNotFoundError, match="X-Repo-Commit"):
        client(hub).hf_hub_download("org/small", "config.json")
    hub.forget()
    hub.fault(faults.page())
    with pytest.raises(errors.LocalEntryNotFoundError):
        client(hub).hf_hub_download("org/small", "config.json")


def test_a_redirect_off_the_hub_takes_no_token_along(hub):
    hub.repo("org/small", model())
    hub.tokens = {TOKEN: set()}
    elsewhere = hub.endpoint.replace("127.0.0.1", "localhost")
    hub.fault(faults.redirect(lambda request: elsewhere + request.target), path="config.json", times=2)
    path = Path(client(hub, TOKEN).hf_hub_download("org/small", "config.json"))
    assert path.read_bytes()
    foreign = [request for request in hub.requests if request.headers["host"].startswith("localhost")]
    assert foreign and not [request for request in foreign if "authorization" in request.headers]


def test_redirects_without_end(hub):
    hub.repo("org/small", model())
    hub.fault(faults.redirect(lambda request: request.target), path="config.json")
    with pytest.raises(Exception, match="redirects"):
        client(hub).hf_hub_download("org/small", "config.json")
    assert 10 < len(hub.requests) < 30


# In a process of its own: what the client reads from its environment. ------------------------------------------------


def download(hub: Hub, home: Path, **environment: str) -> subprocess.CompletedProcess:
    settings = {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1", "HOME": str(home),
                "HF_HUB_DISABLE_PROGRESS_BARS": "1", "PATH": os.environ["PATH"]} | environment
    work = "import huggingface_hub as hf; print(hf.snapshot_download('org/small', max_workers=1))"
    return subprocess.run([sys.executable, "-c", work], env=settings, capture_output=True, text=True, timeout=60)


def test_tls_and_then_offline(tmp_path):
    authority, server = hub_certificate.make(tmp_path)
    with Hub(tls=server) as hub:
        sha = hub.repo("org/small", model()).branches["main"]
        refused = download(hub, tmp_path / "home")
        assert refused.returncode == 1 and "CERTIFICATE_VERIFY_FAILED" in refused.stderr.upper().replace(" ", "_")
        assert hub.requests == []
        done = download(hub, tmp_path / "home", SSL_CERT_FILE=authority)
        assert done.returncode == 0, done.stderr
        hub.forget()
        offline = download(hub, tmp_path / "home", HF_HUB_OFFLINE="1")
        assert offline.stdout == done.stdout and done.stdout.strip().endswith(sha)
        assert hub.requests == []
