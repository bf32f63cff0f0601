# SPDX-License-Identifier: Apache-2.0
"""The flags of `inspect` that look further: --tensors, --tensor, --compare, --deep and the dtype table."""
import json
import math
import struct


def inspected(run, *arguments, statuses=(0, 1)):
    """The document; status 1 for the golden models, which have no tokenizer."""
    done = run("inspect", *map(str, arguments), "--format", "json")
    assert done.returncode in statuses, done.stderr
    return json.loads(done.stdout)


def header_of(path):
    """Name to (dtype, shape, start, end, bytes) by a reader of our own."""
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    return {
        name: (row["dtype"], row["shape"], 8 + length + row["data_offsets"][0], data[8 + length :][slice(*row["data_offsets"])])
        for name, row in header.items()
    }


def values_of(dtype, data):
    if dtype == "F32":
        return [value[0] for value in struct.iter_unpack("<f", data)]
    assert dtype == "BF16"
    return [struct.unpack("<f", b"\0\0" + data[at : at + 2])[0] for at in range(0, len(data), 2)]


def test_the_list_of_tensors_is_the_header(run, golden):
    folder = golden("models/llama_tied")
    known = header_of(folder / "model.safetensors")
    listed = inspected(run, folder, "--tensors")["tensors"]
    assert {row["name"]: (row["dtype"].upper(), row["shape"], row["offset_bytes"], row["bytes"]) for row in listed} == {
        name: (dtype, shape, start, len(data)) for name, (dtype, shape, start, data) in known.items()
    }


def test_statistics_of_a_tensor_are_those_of_its_values(run, golden):
    folder = golden("models/llama_tied")
    for name, (dtype, shape, _, data) in header_of(folder / "model.safetensors").items():
        if "layers.0" not in name:
            continue
        values = values_of(dtype, data)
        tensor = inspected(run, folder, "--tensor", name)["tensor"]
        mean = math.fsum(values) / len(values)
        spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
        assert (tensor["shape"], tensor["num_nan"], tensor["num_inf"]) == (shape, 0, 0)
        assert (tensor["min"], tensor["max"]) == (min(values), max(values))
        # Sums in another order: last digits differ.
        assert math.isclose(tensor["mean"], mean, rel_tol=1e-9, abs_tol=1e-12)
        assert math.isclose(tensor["std"], spread, rel_tol=1e-9)
        assert (tensor["first"], tensor["last"]) == (values[:8], values[-8:])
    page = run("inspect", str(folder), "--tensor", "model.norm.weight").stdout
    assert "model.norm.weight\n  stored as" in page and "  first " in page and "  last " in page


def test_an_absent_or_packed_tensor_is_told(run, golden):
    done = run("inspect", str(golden("models/llama_tied")), "--tensor", "no.such.weight")
    assert done.returncode == 2 and "no.such.weight" in done.stderr
    packed = inspected(run, golden("gguf/qwen2-Q8_0.gguf"), "--tensors")["tensors"]
    name = next(row["name"] for row in packed if row["dtype"] == "q8_0")
    assert run("inspect", str(golden("gguf/qwen2-Q8_0.gguf")), "--tensor", name).returncode == 4


def test_compare_says_whether_two_models_differ(run, golden):
    plain, tied = golden("models/llama_plain"), golden("models/llama_tied")
    same = inspected(run, plain, "--compare", plain, statuses=[0])
    assert same["schema"] == "plimsoll.inspect/1" and same["compare"]["same"] is True
    differs = inspected(run, "--compare", plain, tied, statuses=[1])["compare"]
    assert differs["same"] is False
    figures = {row["name"]: row for row in differs["figures"]}
    for side, folder in (("a", plain), ("b", tied)):
        assert figures["parameters"][side] == inspected(run, folder)["parameters"]["total"]
    names = {side: set(header_of(folder / "model.safetensors")) for side, folder in (("a", plain), ("b", tied))}
    assert {row["name"] for row in differs["tensors"]["removed"]} == names["a"] - names["b"]
    assert {row["name"] for row in differs["tensors"]["added"]} == names["b"] - names["a"]
    text = run("inspect", str(plain), "--compare", str(tied))
    assert text.returncode == 1 and "They differ" in text.stdout
    assert text.stdout == run("inspect", "--compare", str(plain), str(tied)).stdout
    assert run("inspect", str(plain), "--compare", str(plain / "absent")).returncode == 3
    assert run("inspect", str(plain), "--compare", str(plain), str(tied)).returncode == 2


def test_deep_counts_what_headers_do_not_tell(run, golden):
    folder = golden("artifacts/st_nan_weights")
    shallow = {finding["id"] for finding in inspected(run, folder)["findings"]}
    deep = run("inspect", str(folder), "--deep", "--format", "json")
    found = {finding["id"] for finding in json.loads(deep.stdout)["findings"]}
    assert found > shallow


def test_what_other_dtypes_and_lone_heads_would_cost(run, golden):
    document = inspected(run, "meta-llama/Llama-3.1-8B")
    stored = {row["dtype"]: row["bytes"] for row in document["weights"]["if_stored_as"]}
    total = document["parameters"]["total"]
    assert (stored["f32"], stored["bf16"], stored["f8_e4m3"]) == (4 * total, 2 * total, total)
    assert (stored["q8_0"], stored["q4_0"]) == (total // 32 * 34, total // 32 * 18)
    page = run("inspect", "meta-llama/Llama-3.1-8B").stdout
    assert "sharing them saves 4.0×" in page


def test_smollm2_in_full(run, smollm2):
    document = inspected(run, smollm2, "--tensors")
    assert len(document["tensors"]) == 272
    assert document["parameters"]["total"] == 134_515_008
    norm = inspected(run, smollm2, "--tensor", "output_norm.weight")["tensor"]
    assert norm["shape"] == [576] and len(norm["first"]) == len(norm["last"]) == 8
    assert norm["min"] <= norm["mean"] <= norm["max"] and norm["num_nan"] == 0
    assert inspected(run, smollm2, "--compare", smollm2, statuses=[0])["compare"]["same"] is True


def test_inspect_and_plan_count_a_folder_alike(run, tmp_path):
    """Also where a quantizer's own file declares it, or nobody the dtype."""
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 4,
        "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 128, "vocab_size": 256,
        "max_position_embeddings": 1024,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    sizes = set()
    for declared in (None, {"bits": 4, "group_size": 32}):
        if declared:
            (tmp_path / "quantize_config.json").write_text(json.dumps(declared))
        inspected_document = inspected(run, tmp_path)
        done = run("plan", str(tmp_path), "--engine", "any", "--gpu", "24GB", "--format", "json")
        assert done.returncode == 0, done.stderr
        planned = json.loads(done.stdout)
        weights = planned["rows"][0]["weights_bytes_per_gpu"]
        assert weights == inspected_document["weights"]["bytes"]
        own, other = planned["basis"]["/rows/0/weights_bytes_per_gpu"], inspected_document["basis"]["/weights/bytes"]
        assert (own["kind"], own["low"], own["high"]) == (other["kind"], other["low"], other["high"])
        sizes.add(weights)
    assert len(sizes) == 2
