# SPDX-License-Identifier: Apache-2.0
"""The promises that hold for the command line as a whole."""
import json
import re
import subprocess


def test_version_is_one_line(run):
    done = run("--version")
    assert done.returncode == 0
    assert re.fullmatch(r"plimsoll \d+\.\d+\.\d+\n?", done.stdout)


def test_help_lists_the_verbs(run):
    done = run("--help")
    assert done.returncode == 0
    assert "inspect" in done.stdout


def test_an_unknown_verb_is_wrong_usage(run):
    done = run("frobnicate")
    assert done.returncode == 2
    assert done.stdout == ""
    assert 1 <= len(done.stderr.strip().splitlines()) <= 3


def test_an_absent_model_is_unreadable_and_says_so_in_json(run, tmp_path):
    done = run("inspect", str(tmp_path / "absent.gguf"), "--format", "json")
    assert done.returncode == 3
    assert json.loads(done.stdout)["schema"] in ("plimsoll.error/1", "plimsoll.inspect/1")
    assert "absent.gguf" in done.stderr


def test_output_that_cannot_be_written_is_an_error(binary, tmp_path):
    chat = tmp_path / "chat.jinja"
    chat.write_text("{{ messages[0].content }}")
    line = '{"messages":[{"role":"user","content":"hi"}]}\n'
    calls = [
        (["plan", "--accounting", "simple"], ""),
        (["tokens", "render", "--chat-template", str(chat)], line),
        (["tokens", "render", "--chat-template", str(chat), "--jsonl"], line * 3),
        (["--version"], ""),
    ]
    for arguments, given in calls:
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([binary, *arguments], input=given, stdout=full, stderr=subprocess.PIPE, text=True,
                                  timeout=120)
        assert done.returncode == 2, arguments
        assert done.stderr.count("cannot be written") == 1, arguments


def test_q_and_v_change_what_stderr_says_and_nothing_else(run, golden):
    arguments = ["inspect", str(golden("artifacts/cfg_yarn_ctx"))]
    plain, quiet, verbose = run(*arguments), run(*arguments, "-q"), run(*arguments, "-v")
    assert plain.stderr == quiet.stderr == ""
    machine = r"^debug .* plimsoll \d+\.\d+\.\d+ on .+ \(\d+ CPUs? allowed"
    assert re.search(machine, verbose.stderr, re.MULTILINE)
    assert re.search(r"^debug .* reading \S+config\.json, \d+ bytes$", verbose.stderr, re.MULTILINE)
    assert plain.stdout == quiet.stdout == verbose.stdout
    assert plain.returncode == quiet.returncode == verbose.returncode


def test_every_verb_of_a_model_takes_a_lock_record_instead(run, tmp_path):
    absent = str(tmp_path / "absent.lock")
    verbs = [["inspect"], ["plan"], ["serve"], ["generate", "--prompt", "hi"], ["tokens", "encode", "--text", "hi"],
             ["tokens", "decode", "--ids", "1"], ["tokens", "render"], ["tokens", "count", "--text", "hi"]]
    for verb in verbs:
        without = run(*verb, "--lock", absent)
        assert "absent.lock" in without.stderr, (verb, without.stderr)
        assert "MODEL is required" not in without.stderr, verb
    for verb in verbs:
        if verb[0] != "plan":
            assert run(*verb).returncode == 2, verb


def test_an_empty_value_is_wrong_usage(run, golden):
    model = str(golden("artifacts/cfg_yarn_ctx"))
    for verb in ("inspect", "plan"):
        for flag in ("--max-model-len", "--gpu"):
            done = run(verb, model, flag, "")
            assert done.returncode == 2, (verb, flag, done.stderr)
            assert flag in done.stderr
    assert run("inspect", model, "--workload", "").returncode == 2
