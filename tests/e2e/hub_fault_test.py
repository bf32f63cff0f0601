# SPDX-License-Identifier: Apache-2.0
"""A hub that is slow, broken, in the wrong place or hostile: what is recovered, what is refused, and with which advice.

Whatever happens, no file with wrong content gets its name in the cache, nothing is written beside the cache, and the
token stays with the hub (Driver holds every run to the last two).
"""
import gzip
import json
import re

import hub_faults as faults
import pytest
from hub_driver import TOKEN, Driver, model_files
from hub_faults import Answer, json_answer, replaced
from hub_server import Hub

NAME = "org/small"
FOREIGN = "http://localhost"  # the same machine by another name: another host to everybody who compares names


@pytest.fixture
def hub(golden):
    with Hub() as made:
        made.repo(NAME, model_files(golden("models/llama_sharded")) | {"README.md": "# A card\n" * 100})
        made.tokens = {TOKEN: {NAME}}
        yield made


@pytest.fixture
def ask(binary, hub, tmp_path):
    driver = Driver(binary, hub, tmp_path / "home")
    yield driver
    repo = hub.repos[NAME]
    for sha, files in repo.commits.items():
        folder = driver.snapshot(NAME, sha)
        for path in folder.rglob("*"):
            if path.is_file():
                file = files[path.relative_to(folder).as_posix()]
                assert path.read_bytes() == file.read(0, file.size), f"{path} does not hold what the hub has"
    assert driver.around.read_text() == "untouched"


def is_complete(ask, hub) -> bool:
    repo = hub.repos[NAME]
    sha = repo.branches["main"]
    return all((ask.snapshot(NAME, sha) / path).is_file() for path in repo.commits[sha])


# What is recovered. -----------------------------------------------------------------------------------------------

RECOVERED = {
    "cut in the middle": (faults.changed(cut_after=40_000), {"host": "cdn", "method": "GET", "times": 4}),
    "small file cut": (faults.changed(cut_after=100), {"path": "resolve.*/config.json", "method": "GET", "times": 2}),
    "closed without an answer": (faults.changed(hang_up=True), {"times": 1}),
    "closed by the other host": (faults.changed(hang_up=True), {"host": "cdn", "times": 2}),
    "list unavailable": (faults.status(503), {"path": "/api/models", "times": 1}),
    "file unavailable": (faults.status(500, "oops"), {"path": "/resolve/", "times": 1}),
    "other host unavailable": (faults.status(502), {"host": "cdn", "times": 1}),
    "unavailable, and far from the limit": (faults.status(503, RateLimit='"api";r=499;t=299'), {"times": 1}),
    "gateway times out": (faults.status(504), {"times": 1}),
    "come back now": (faults.status(429, Retry_After="0"), {"times": 1}),
    "rate limit that is over": (faults.status(429, RateLimit='"api";r=0;t=0'), {"path": "/api/", "times": 1}),
    "other host limits": (faults.status(429, Retry_After="0"), {"host": "cdn", "times": 1}),
    "slow": (faults.changed(piece=20_000, pause_s=0.01), {"host": "cdn"}),
    "one byte at a time": (faults.changed(piece=1), {"path": "config.json"}),
    "addresses of the other host expired": (faults.status(403, "<Error>expired</Error>"), {"host": "cdn", "times": 1}),
    "size not told": (faults.header("X-Linked-Size", None), {}),
    "weak tags": (lambda _, a: faults.header("ETag", "W/" + a.headers["ETag"])(_, a)
                  if a.headers.get("ETag", "W")[0] == '"' else a, {}),
    "absolute redirect to itself": (
        lambda r, a: faults.header("Location", f"http://{r.headers['host']}{a.headers['Location']}")(r, a)
        if a.headers.get("Location", "").startswith("/") else a, {}),
    "one call route broken": (faults.status(500), {"path": "safetensors-metadata"}),
    "one call route is a page": (faults.page(), {"path": "safetensors-metadata"}),
    "one call route is garbage": (replaced(json_answer({"headers": [1, None], "index": "x"})),
                                  {"path": "safetensors-metadata"}),
    "one call route cut": (faults.changed(cut_after=50), {"path": "safetensors-metadata"}),
    "unknown headers": (faults.header("X-Something-New", "x" * 4000), {}),
}


@pytest.mark.parametrize("name", [name for name in RECOVERED if "one call" not in name])
def test_recovered(ask, hub, name):
    change, where = RECOVERED[name]
    fault = hub.fault(change, **where)
    done = ask("pull", NAME, token=TOKEN)
    assert done.returncode == 0, done.stderr
    assert is_complete(ask, hub) and fault.acted


# What a pull does not do: parts of shards, and all headers in one answer.
OF_HEADERS = [name for name in RECOVERED if re.match("one call|.*other host|cut|slow|size not told", name)]


@pytest.mark.parametrize("name", OF_HEADERS)
def test_recovered_where_only_headers_are_read(ask, hub, name):
    change, where = RECOVERED[name]
    hub.has_metadata_route = "one call" in name
    fault = hub.fault(change, **where)
    assert ask.document("inspect", NAME, token=TOKEN)["weights"]["num_files"] == 6
    assert fault.acted


def test_a_cut_file_goes_on_where_it_was(ask, hub):
    hub.fault(faults.changed(cut_after=40_000), path="path=model-00002-", host="cdn", method="GET", times=2)
    assert ask("pull", NAME).returncode == 0
    ranges = [request.headers.get("range") for request in hub.seen("path=model-00002-", method="GET")]
    assert ranges == [None, "bytes=40000-", "bytes=80000-"]


@pytest.mark.parametrize("second", [faults.range_ignored, faults.range_shifted(-7), faults.range_shifted(11),
                                    replaced(Answer(416, {"Content-Range": "bytes */10"})),
                                    faults.header("Content-Range", "bytes x-y/z"), faults.header("Content-Range", None),
                                    faults.header("Content-Range", "bytes 40000-83231/99999999")])
def test_a_part_that_is_not_the_part_asked_for(ask, hub, second):
    """Taken whole again, or refused; never joined to what is there (the fixture looks at every file)."""
    hub.fault(faults.changed(cut_after=40_000), path="path=model-00002-", host="cdn", method="GET", times=1)
    fault = hub.fault(lambda request, answer: second(request, answer) if "range" in request.headers else answer,
                      host="cdn")
    done = ask("pull", NAME)
    assert fault.acted
    assert done.returncode in (0, 5) and is_complete(ask, hub) == (done.returncode == 0), done.stderr


# What is refused. -------------------------------------------------------------------------------------------------

OTHER = "f" * 64


def renamed_in_tree(name: str):
    """The list of files with one of them under another name."""

    def change(_, answer):
        entries = json.loads(answer.body)
        entries[0] |= {"path": name}
        return json_answer(entries)

    return change


def with_field(field: str, value):
    def change(_, answer):
        entries = json.loads(answer.body)
        for entry in entries:
            entry[field] = value
        return json_answer(entries)

    return change


TREE, INFO = {"path": "/tree/"}, {"path": "/api/models/[^/]+/[^/]+(/revision/[^/]+)?$"}
REFUSED = {
    # name: (fault, where it acts, what the advice has to hold)
    "a byte of a shard is wrong": (faults.changed(flipped=50_000), {"host": "cdn"}, ("digest|sha256", "model-0000")),
    "a byte of a small file is wrong": (faults.changed(flipped=20), {"path": "cache/.*config.json"}, ("config.json",)),
    "another tag of the shard": (faults.header("X-Linked-Etag", f'"{OTHER}"'), {"path": "/resolve/.*model-00003"},
                                 ("model-00003",)),
    "a size that lies": (faults.header("X-Linked-Size", "1000"), {"path": "/resolve/.*model-00003"}, ("model-00003",)),
    "a length that lies": (faults.changed(declared_bytes=1000), {"host": "cdn"}, ("model-0000",)),
    "always cut at once": (faults.changed(cut_after=0), {"host": "cdn"}, ("model-0000",)),
    "other host says no": (faults.status(403, "<Error>expired</Error>"), {"host": "cdn"}, ("403",)),
    "always unavailable": (faults.status(503), {}, ("503",)),
    "come back in an hour": (faults.status(429, RateLimit='"api";r=0;t=3600'), {}, ("rate|429", "3600|hour|60 min")),
    "come back tomorrow": (faults.status(429, Retry_After="86400"), {}, ("rate|429", "86400|24 h|day")),
    "come back at a date": (faults.status(429, Retry_After="Wed, 21 Oct 2099 07:28:00 GMT"), {}, ("rate|429",)),
    "no commit": (faults.header("X-Repo-Commit", None), {"path": "resolve"}, ("X-Repo-Commit", "HF_ENDPOINT")),
    "a commit that is none": (faults.header("X-Repo-Commit", "../../../evil"), {"path": "resolve"}, ()),
    "another commit": (faults.header("X-Repo-Commit", "e" * 40), {"path": "resolve"}, ()),
    "no tag": (lambda r, a: faults.header("ETag", None)(r, faults.header("X-Linked-Etag", None)(r, a)),
               {"path": "resolve"}, ("ETag",)),
    "a tag that is a path": (lambda r, a: faults.header("ETag", '"../../x"')(r, faults.header(
        "X-Linked-Etag", '"../../x"')(r, a)), {"path": "resolve"}, ()),
    "a guest network's page": (faults.page(), {}, ("HF_ENDPOINT",)),
    "a page where the list is": (faults.page(), TREE, ("HF_ENDPOINT|JSON",)),
    "an empty answer": (replaced(Answer(200)), {"path": "/api/"}, ()),
    "JSON of another kind": (replaced(json_answer({"files": 3})), TREE, ()),
    "null": (replaced(json_answer(None)), INFO, ()),
    "no sha": (replaced(json_answer({"id": NAME})), INFO, ("sha|commit",)),
    "sha that is a path": (replaced(json_answer({"id": NAME, "sha": "../../../../x"})), INFO, ()),
    "JSON cut": (faults.changed(cut_after=60), TREE, ()),
    "JSON cut that says it is whole": (lambda _, a: Answer(200, a.headers, a.body[:60]), TREE, ()),
    "JSON without a floor": (replaced(Answer(200, {}, b"[" * 200_000)), {"path": "/api/"}, ()),
    "compressed though not asked": (lambda _, a: Answer(
        a.status, a.headers | {"Content-Encoding": "gzip"}, gzip.compress(a.body) if a.status == 200 else a.body),
        TREE, ()),
    "path upwards": (renamed_in_tree("../../../outside.txt"), TREE, ("outside.txt",)),
    "path upwards within": (renamed_in_tree("a/../../x"), TREE, ()),
    "absolute path": (renamed_in_tree("/tmp/plimsoll-hostile"), TREE, ("plimsoll-hostile",)),
    "dot": (renamed_in_tree("."), TREE, ()),
    "empty part": (renamed_in_tree("a//b"), TREE, ()),
    "no name": (renamed_in_tree(""), TREE, ()),
    "NUL": (renamed_in_tree("a\0b"), TREE, ()),
    "line end": (renamed_in_tree("a\nb"), TREE, ()),
    "escape sequence": (renamed_in_tree("a\x1b[2Jb"), TREE, ()),
    "long part": (renamed_in_tree("x" * 300), TREE, ()),
    "long path": (renamed_in_tree("/".join(["abcdefgh"] * 1000)), TREE, ()),
    "name of two kinds": (renamed_in_tree("model.safetensors.index.json/below"), TREE, ()),
    "negative size": (with_field("size", -1), TREE, ()),
    "size beyond 64 bits": (with_field("size", 2**64), TREE, ()),
    "size in words": (with_field("size", "large"), TREE, ()),
    "oid that is a path": (with_field("oid", "../../x"), TREE, ()),
    "lfs of another kind": (with_field("lfs", [1]), TREE, ()),
    "redirect to itself": (faults.redirect(lambda request: request.target), {}, ("redirect",)),
    "redirect without end": (faults.redirect(lambda request: request.target + "x"), {"path": "resolve"}, ("redirect",)),
    "redirect to a file": (faults.redirect("file:///etc/passwd"), {"path": "/resolve/"}, ("redirect",)),
    "redirect to another scheme": (faults.redirect("ftp://127.0.0.1/x"), {"path": "/resolve/"}, ("redirect",)),
    "redirect to nowhere": (faults.redirect(""), {"path": "/resolve/"}, ()),
    "redirect with a password": (faults.redirect("http://a:b@127.0.0.1:9/x"), {"path": "/resolve/"}, ()),
    "redirect to a closed door": (faults.redirect("http://127.0.0.1:9/x"), {"path": "/resolve/"}, ("127.0.0.1:9",)),
    "list sent elsewhere": (faults.redirect(lambda request: FOREIGN + ":9" + request.target), {"path": "/api/"}, ()),
    "next page elsewhere": (faults.header("Link", f'<{FOREIGN}:9/api/x>; rel="next"'), TREE, ()),
    "a page that follows itself": (lambda r, a: faults.header("Link", f'<http://{r.headers["host"]}{r.target}>; '
                                                              'rel="next"')(r, a), TREE, ()),
}
NO_ANSWER_AT_ALL = {"always unavailable", "a guest network's page", "redirect to itself", "come back in an hour",
                    "come back tomorrow", "come back at a date", "JSON without a floor", "an empty answer"}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(ask, hub, name):
    change, where, says = REFUSED[name]
    hub.fault(change, **where)
    told = ask.refused("pull", NAME, token=TOKEN, says=says)
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", told) and len(told) < 2000
    assert not is_complete(ask, hub)
    assert len(hub.requests) < 3000


@pytest.mark.parametrize("name", sorted(NO_ANSWER_AT_ALL))
def test_refused_where_only_headers_are_read(ask, hub, name):
    change, where, says = REFUSED[name]
    hub.fault(change, **where)
    ask.refused("inspect", NAME, token=TOKEN, says=says)


def test_silence_ends(ask, hub):
    hub.fault(faults.changed(stall_after=0), host="cdn")
    ask.refused("pull", NAME, says=("HF_HUB_DOWNLOAD_TIMEOUT|time",), HF_HUB_DOWNLOAD_TIMEOUT="1")


def test_an_answer_without_end(ask, hub):
    hub.fault(replaced(Answer(200, {"Content-Type": "application/json"}, b"[" + b" " * 65535, chunked=True,
                              repeats=1 << 20)), path="/api/")
    ask.refused("inspect", NAME)
    assert hub.sent() < 1 << 30


def test_a_million_files(ask, hub):
    entry = {"type": "file", "oid": "a" * 40, "size": 1}
    entries = json.dumps([entry | {"path": f"f/{number}"} for number in range(1_000_000)]).encode()
    hub.fault(replaced(Answer(200, {"Content-Type": "application/json"}, entries)), path="/tree/")
    done = ask("inspect", NAME)
    assert done.returncode in (3, 5), done.stderr


def test_headers_without_end(ask, hub):
    def change(_, answer):
        answer.headers |= {f"X-Padding-{number}": "y" * 1000 for number in range(3000)}
        return answer

    hub.fault(change)
    ask.refused("inspect", NAME)


def test_what_a_server_says_is_shown_without_its_tricks(ask, hub):
    """A message in an answer may hold the token that was sent, escape sequences, or no end."""
    for message in (f"bad header Bearer {TOKEN}", "red \x1b[31malert\x1b[0m \x07", "long " * 5000):
        hub.forget()
        hub.fault(replaced(Answer(403, {"X-Error-Message": message.replace("\x07", "")[:20_000]}, b"{}")))
        told = ask.refused("pull", NAME, token=TOKEN)
        assert "\x1b" not in told and len(told) < 2000
        body = json.dumps({"error": message}).encode()
        hub.forget()
        hub.fault(replaced(Answer(400, {"Content-Type": "application/json"}, body)))
        told = ask.refused("pull", NAME, token=TOKEN)
        assert "\x1b" not in told and len(told) < 2000


def test_a_redirect_off_the_hub_takes_no_token_along(ask, hub):
    hub.tokens = {TOKEN: set()}
    elsewhere = FOREIGN + ":" + hub.endpoint.rsplit(":", 1)[1]
    hub.fault(faults.redirect(lambda request: elsewhere + request.target), path="/resolve/.*config.json", times=2)
    done = ask("pull", NAME, token=TOKEN)
    assert [request for request in hub.requests if request.headers["host"].startswith("localhost")]
    assert (done.returncode == 0) == is_complete(ask, hub)


def test_hosts_that_only_look_like_the_hub(ask, hub):
    """A host is compared whole: neither a prefix nor a suffix of it is the hub."""
    port = hub.endpoint.rsplit(":", 1)[1]
    for target in (f"http://127.0.0.1:{port}@localhost:{port}", f"http://localhost:{port}/127.0.0.1",
                   f"http://127.0.0.1.localhost:{port}", f"http://127.0.0.1:{port}.localhost", f"//localhost:{port}",
                   f"http:\\\\localhost:{port}", f"http://127.1:{port}"):
        hub.forget()
        hub.fault(faults.redirect(lambda request, to=target: to + request.target), path="/resolve/", times=3)
        done = ask("pull", NAME, token=TOKEN)
        assert done.returncode in (0, 5)


# What is said to those who may not. -------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["inspect", "pull"])
def test_who_may_not(ask, hub, golden, verb):
    files = model_files(golden("models/llama_plain"))
    hub.repo("org/gated", files, gated="manual")
    hub.repo("org/secret", files, private=True)
    hub.repo("org/off", files, disabled=True)
    page = f"{hub.endpoint}/org/gated"
    ask.refused(verb, "org/absent", says=("org/absent", "private|HF_TOKEN"))
    ask.refused(verb, "org/absent", token=TOKEN, says=("org/absent", "private"))
    ask.refused(verb, "org/secret", token=TOKEN, says=("org/secret", "private"))
    ask.refused(verb, "org/gated", says=("gated", "terms|accept", "HF_TOKEN", re.escape(page)))
    ask.refused(verb, "org/gated", token=TOKEN, says=("gated", "terms|accept|access", re.escape(page)))
    ask.refused(verb, "org/off", says=("disabled",))
    hub.tokens = {}
    ask.refused(verb, NAME, token=TOKEN, says=("token", "HF_TOKEN"))
    ask.refused(verb, NAME, HF_ENDPOINT="http://127.0.0.1:9", says=("127.0.0.1:9", "HF_ENDPOINT|HF_HUB_OFFLINE"))
    ask.refused(verb, NAME, HF_ENDPOINT="http://no-such-host.invalid", says=("no-such-host.invalid",))


@pytest.mark.parametrize("name", ["org/../x", "../x/y", "org/na me", "org/x@", "org/x@../../y", "org/x@a\nb", "org/-x",
                                  "org/x..y", "org/" + "x" * 200])
def test_names_that_are_no_names(ask, hub, name):
    done = ask("pull", name)
    assert done.returncode in (2, 3, 5), done.stderr
    assert not [request for request in hub.requests if ".." in request.path]
