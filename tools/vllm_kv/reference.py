# SPDX-License-Identifier: Apache-2.0
"""Runs one vLLM release's own planning of the KV cache; started by tools/check_vllm_kv for each release.

usage: reference.py SOURCES < CASES > ANSWERS, lines of JSON both. SOURCES holds the release's `vllm/`.

What runs is the release's: the layers' get_kv_cache_spec, the classes of specs, the models' shapes and types of states,
heads per rank and widths (ModelConfig), the block beside states (HybridAttentionMambaModelConfig, Platform), stages of
layers (get_pp_indices), groups, pool, tokens, requests, refusals and lengths (kv_cache_utils).
What is chosen here, as an H100 with the engine's defaults has it: FLASH_ATTN for attention, FLASH_ATTN_MLA for latent
vectors, FLASHMLA_SPARSE beside an indexer, which keeps fp8 as fp8_ds_mla; the hybrid manager off for chunked layers, as
VllmConfig.__post_init__ turns it.
"""
import importlib
import json
import re
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import model_layers
import stand_ins


def first_module(*names: str) -> object:
    """Of a module that moved: where it is in this release."""
    modules = (importlib.import_module(name) for name in names)
    return next(module for module in modules if getattr(module, "__file__", None))


class Recorder:
    """A log that keeps what was said."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def info(self, text: str, *values: object, **_: object) -> None:
        self.lines.append(text % values)

    info_once = warning = warning_once = debug = info


class Vllm:
    """The release's modules."""

    def __init__(self, sources: Path):
        stand_ins.install(sources)
        load = importlib.import_module
        self.planning = load("vllm.v1.core.kv_cache_utils")
        self.specs = load("vllm.v1.kv_cache_interface")
        self.model_config = load("vllm.config.model").ModelConfig
        self.engine_config = load("vllm.config.vllm")
        self.model_rules = load("vllm.model_executor.models.config")
        self.stages = load("vllm.distributed.utils").get_pp_indices
        self.platform = load("vllm.platforms.interface").Platform
        self.registry = load("vllm.model_executor.models.registry")
        self.mamba = load("vllm.model_executor.layers.mamba.abstract").MambaBase
        self.indexer = load("vllm.model_executor.models.deepseek_v2").DeepseekV32IndexerCache
        self.arch = load("vllm.transformers_utils.model_arch_config_convertor")
        self.attention = first_module("vllm.model_executor.layers.attention.attention", "vllm.attention.layer")
        self.latent = first_module("vllm.model_executor.layers.attention.mla_attention", "vllm.attention.layer")
        self.chunked = first_module("vllm.model_executor.layers.attention.chunked_local_attention",
                                    "vllm.attention.layers.chunked_local_attention").ChunkedLocalAttention
        self.backend = load("vllm.v1.attention.backends.flash_attn").FlashAttentionBackend
        self.latent_backend = load("vllm.v1.attention.backends.mla.flashattn_mla").FlashAttnMLABackend
        self.sparse_backend = load("vllm.v1.attention.backends.mla.flashmla_sparse").FlashMLASparseBackend
        self.dtypes = load("vllm.utils.torch_utils").STR_DTYPE_TO_TORCH_DTYPE
        load("vllm.v1.attention.backends.flash_attn").get_kv_cache_layout = lambda: "NHD"  # the default
        self.engine_config.set_current_vllm_config = lambda *_: nullcontext()
        load("vllm.model_executor.models").ModelRegistry = SimpleNamespace(resolve_model_cls=self.resolved)
        self.model_rules.ModelRegistry = SimpleNamespace(resolve_model_cls=self.resolved)

    def knows(self, architecture: str) -> bool:
        return architecture in self.registry._VLLM_MODELS

    def resolved(self, architecture: str, **_: object) -> tuple[type, str]:
        module, name = self.registry._VLLM_MODELS[architecture][:2]
        full = module if module.startswith("vllm.") else f"vllm.model_executor.models.{module}"
        return getattr(importlib.import_module(full), name), name


def read_config(path: str) -> tuple[SimpleNamespace, SimpleNamespace]:
    """The config and its text part, as transformers' objects name the fields."""
    fields = json.loads(Path(path).read_text())
    text = fields.get("text_config")
    config = SimpleNamespace(**fields)
    if text is None:
        return config, config
    config.text_config = SimpleNamespace(**text)
    return config, config.text_config


class Engine:
    """One case's settings as the release's VllmConfig has them, and its layers."""

    def __init__(self, vllm: Vllm, case: dict):
        self.vllm, self.case = vllm, case
        self.hf, self.text = read_config(case["config"])
        self.kinds = model_layers.kinds(self.text)
        self.is_hybrid = model_layers.STATE in self.kinds
        self.is_sparse = model_layers.index_key_bytes(self.text) is not None
        self.config = self.settings()
        self.apply_model_rules()
        self.apply_latent_dtype()
        if self.is_hybrid and hasattr(vllm.platform, "_align_hybrid_block_size"):
            vllm.platform._align_hybrid_block_size(self.config, self.main_backend())

    def main_backend(self) -> type:
        if self.is_sparse:
            return self.vllm.sparse_backend
        return self.vllm.latent_backend if model_layers.LATENT in self.kinds else self.vllm.backend

    def model(self) -> object:
        vllm, architecture = self.vllm, self.hf.architectures[0]
        model = object.__new__(vllm.model_config)
        model.hf_config, model.hf_text_config = self.hf, self.text
        model._architecture = architecture
        model.dtype = vllm.dtypes[getattr(self.text, "torch_dtype", None) or getattr(self.text, "dtype", None)
                                  or getattr(self.hf, "torch_dtype", "bfloat16")]
        model.max_model_len = model.original_max_model_len = self.case["max_model_len"]
        bases = [base.__name__ for base in vllm.resolved(architecture)[0].__mro__] if self.is_hybrid else []
        model._model_info = SimpleNamespace(is_attention_free=False, is_hybrid=self.is_hybrid,
                                            supports_mamba_prefix_caching="SupportsMambaPrefixCaching" in bases)
        model.runner_type = "generate"
        if getattr(vllm.arch, "__file__", None):
            reader = vllm.arch.MODEL_ARCH_CONFIG_CONVERTORS.get(
                self.hf.model_type, vllm.arch.ModelArchConfigConvertorBase)(self.hf, self.text)
            model.model_arch_config = SimpleNamespace(
                head_size=reader.get_head_size(), total_num_kv_heads=reader.get_total_num_kv_heads(),
                is_deepseek_mla=reader.is_deepseek_mla(), num_experts=reader.get_num_experts(),
                architectures=self.hf.architectures)
        return model

    def settings(self) -> SimpleNamespace:
        case = self.case
        prefixes = case["prefixes"]
        mode = prefixes if prefixes in ("align", "all") else "none"  # which the engine replaces by its default
        cache = SimpleNamespace(
            block_size=case["block_size"], user_specified_block_size=True, cache_dtype=case["kv_cache_dtype"],
            enable_prefix_caching=prefixes != "off", mamba_cache_mode=mode, mamba_block_size=None,
            user_specified_mamba_block_size=False, mamba_page_size_padded=None, mamba_cache_dtype="auto",
            mamba_ssm_cache_dtype="auto", num_gpu_blocks_override=case["num_blocks"], calculate_kv_scales=False,
            kv_cache_dtype_skip_layers=[], skip_page_size_padded=None, use_replayssm=False)
        parallel = SimpleNamespace(
            tensor_parallel_size=case["tp"], pipeline_parallel_size=case["pp"], prefill_context_parallel_size=1,
            decode_context_parallel_size=case["dcp"])
        scheduler = SimpleNamespace(
            max_num_batched_tokens=case["max_num_batched_tokens"], async_scheduling=True, enable_chunked_prefill=True,
            disable_hybrid_kv_cache_manager=model_layers.CHUNKED in self.kinds or case["no_hybrid_manager"])
        made = self.vllm.engine_config.VllmConfig
        borrowed = {name: made.__dict__[name] for name in ("max_in_flight_tokens", "max_concurrent_batches")
                    if name in made.__dict__}
        settings = type("Settings", (SimpleNamespace,), borrowed)
        config = settings(
            model_config=self.model(), cache_config=cache, parallel_config=parallel, scheduler_config=scheduler,
            speculative_config=None, num_speculative_tokens=0, kv_transfer_config=None,
            attention_config=SimpleNamespace(backend=None),
            structured_outputs_config=SimpleNamespace(reasoning_parser=""),
            compilation_config=SimpleNamespace(cudagraph_capture_sizes=[], max_cudagraph_capture_size=1))
        is_second = getattr(made, "_is_default_v2_model_runner_model", None)
        config.use_v2_model_runner = bool(is_second and is_second(config))
        return config

    def apply_model_rules(self) -> None:
        """What VllmConfig.try_verify_and_update_config does."""
        rules = self.vllm.model_rules
        if own := rules.MODELS_CONFIG_MAP.get(self.hf.architectures[0]):
            own.verify_and_update_config(self.config)
        if self.is_hybrid:
            rules.HybridAttentionMambaModelConfig.verify_and_update_config(self.config)

    def apply_latent_dtype(self) -> None:
        """What MLAAttention.__init__ does to the type of the cache."""
        cache = self.config.cache_config
        if self.is_sparse and cache.cache_dtype.startswith("fp8"):
            cache.cache_dtype = "fp8_ds_mla"

    def cache_dtype(self) -> object:
        name = self.config.cache_config.cache_dtype
        return self.config.model_config.dtype if name == "auto" else self.vllm.dtypes[name]

    def attention(self, kind: str, layer_type: type) -> object:
        config, cache = self.config, self.config.cache_config
        layer = object.__new__(layer_type)
        layer.attn_type, layer.attn_backend = self.vllm.attention.AttentionType.DECODER, self.main_backend()
        layer.kv_cache_dtype, layer.kv_cache_torch_dtype = cache.cache_dtype, self.cache_dtype()
        layer.num_kv_heads = config.model_config.get_num_kv_heads(config.parallel_config)
        layer.head_size = layer.head_size_v = config.model_config.get_head_size()
        layer.sliding_window = self.text.sliding_window if kind == model_layers.SLIDING else None
        layer.attention_chunk_size = getattr(self.text, "attention_chunk_size", None)
        layer.non_causal_multi_token_decode = False
        return layer

    def state(self) -> object:
        """A layer of the model's own kind of state."""
        own = self.vllm.resolved(self.hf.architectures[0])[0]
        shapes = own.get_mamba_state_shape_from_config(self.config)
        dtypes = own.get_mamba_state_dtype_from_config(self.config)
        return SimpleNamespace(get_state_shape=lambda: shapes, get_state_dtype=lambda: dtypes, mamba_type="state")

    def layers(self) -> list[dict[str, object]]:
        """For each pipeline stage: the layers' specs by name."""
        vllm, config = self.vllm, self.config
        makers = {
            model_layers.FULL: lambda: vllm.attention.Attention.get_kv_cache_spec(
                self.attention(model_layers.FULL, vllm.attention.Attention), config),
            model_layers.SLIDING: lambda: vllm.attention.Attention.get_kv_cache_spec(
                self.attention(model_layers.SLIDING, vllm.attention.Attention), config),
            model_layers.CHUNKED: lambda: vllm.chunked.get_kv_cache_spec(
                self.attention(model_layers.CHUNKED, vllm.chunked), config),
            model_layers.LATENT: lambda: vllm.latent.MLAAttention.get_kv_cache_spec(
                self.attention(model_layers.LATENT, vllm.latent.MLAAttention), config),
            model_layers.STATE: lambda: vllm.mamba.get_kv_cache_spec(self.state(), config),
        }
        stages = []
        for stage in range(self.case["pp"]):
            first, end = vllm.stages(len(self.kinds), stage, self.case["pp"])
            specs: dict[str, object] = {}
            for layer in range(first, end):
                if kind := self.kinds[layer]:
                    specs[f"layers.{layer}"] = self.with_stride(makers[kind]())
                if kind == model_layers.LATENT and self.is_sparse:
                    specs[f"layers.{layer}.indexer"] = self.with_stride(self.index_spec())
            stages.append(specs)
        return stages

    def with_stride(self, spec: object) -> object:
        """What the model runner adds to the specs of attention, in releases that have the field."""
        if hasattr(spec, "indexes_kv_by_block_stride"):
            return self.vllm.specs.replace(
                spec, indexes_kv_by_block_stride=self.main_backend().indexes_kv_by_block_stride())
        return spec

    def index_spec(self) -> object:
        layer = object.__new__(self.vllm.indexer)
        layer.head_dim = model_layers.index_key_bytes(self.text)
        layer.dtype, layer.cache_config = stand_ins.DTYPES["uint8"], self.config.cache_config
        return self.vllm.indexer.get_kv_cache_spec(layer, self.config)


def needed_bytes(engine: Engine, stages: list[dict]) -> int:
    """Of one request of the longest length, as the engine asks for it in its check, on the stage that takes most."""
    planning, config, available = engine.vllm.planning, engine.config, [engine.case["available_bytes"]] * len(stages)
    check = getattr(planning, "_check_enough_kv_cache_memory", None)
    if check is None:
        return max(planning.max_memory_usage_bytes(config, specs.values()) for specs in stages)
    asked: list[int] = []
    planning._check_enough_kv_cache_memory = lambda _, needed, *__: asked.append(needed())
    try:
        planning.get_kv_cache_configs(config, stages, available)
    except ZeroDivisionError:  # a pool without a block, which the check would have refused
        pass
    finally:
        planning._check_enough_kv_cache_memory = check
    return max(asked)


def longest_length(vllm: Vllm, case: dict, upto: int) -> int:
    """The longest length that fits when one is asked for; 0 for none. Releases that fit it by themselves do so."""
    engine = Engine(vllm, case | {"max_model_len": upto})
    stages, planning, model = engine.layers(), vllm.planning, engine.config.model_config
    available = [engine.case["available_bytes"]] * len(stages)
    if not hasattr(planning, "_auto_fit_max_model_len"):
        found = []
        for specs, memory in zip(stages, available):
            model.max_model_len = upto  # 0.11 leaves its last guess there
            found.append(planning.estimate_max_model_len(engine.config, specs, memory))
        return min(found)
    model.original_max_model_len = -1
    try:
        planning.get_kv_cache_configs(engine.config, stages, available)
        return model.max_model_len
    except ValueError:
        return 0


def projected(engine: Engine, stages: list[dict]) -> list:
    """The groups of each stage."""
    planning = engine.vllm.planning
    merged = {name: spec for specs in stages for name, spec in specs.items()}
    groups = planning.get_kv_cache_groups(engine.config, merged)
    if hasattr(planning, "_project_kv_cache_groups_to_worker"):
        return [planning._project_kv_cache_groups_to_worker(groups, specs) for specs in stages]
    return [[SimpleNamespace(layer_names=[name for name in group.layer_names if name in specs],
                             kv_cache_spec=group.kv_cache_spec) for group in groups] for specs in stages]


def described(engine: Engine, groups: list) -> list[dict]:
    """The first stage's groups, a group of differing pages by its first layer."""
    rows = []
    for group in groups:
        spec = group.kv_cache_spec
        if hasattr(spec, "kv_cache_specs"):
            spec = next(iter(spec.kv_cache_specs.values()))
        rows.append({"kind": type(spec).__name__, "layers": len(group.layer_names), "block_size": spec.block_size,
                     "page_bytes": spec.page_size_bytes,
                     "blocks_per_request": -(-spec.max_memory_usage_bytes(engine.config) // spec.page_size_bytes)})
    return rows


def planned(engine: Engine, stages: list[dict]) -> dict:
    """What the engine plans and logs, or why it refuses."""
    planning, case = engine.vllm.planning, engine.case
    planning.logger = log = Recorder()
    try:
        configs = planning.get_kv_cache_configs(engine.config, stages, [case["available_bytes"]] * case["pp"])
    except ValueError as refusal:
        return {"message": str(refusal)}
    said = "\n".join(log.lines)
    return {"message": None, "num_blocks": configs[0].num_blocks,
            "bytes_per_block": [sum(tensor.size for tensor in config.kv_cache_tensors) // config.num_blocks
                                for config in configs],
            "concurrency": planning.get_max_concurrency_for_kv_cache_config(engine.config, configs[0]),
            "tokens": int(re.search(r"GPU KV cache size: ([0-9,]+) tokens", said)[1].replace(",", "")),
            "said_concurrency": re.search(r"Maximum concurrency for ([0-9,]+ tokens per request: [0-9.]+x)", said)[1]}


def answer(vllm: Vllm, case: dict) -> dict:
    vllm.planning.logger = Recorder()
    engine = Engine(vllm, case)
    stages = engine.layers()
    groups_of_stages = projected(engine, stages)
    result = {"groups": described(engine, groups_of_stages[0]),
              "required_bytes": needed_bytes(engine, stages)}
    result["block_size"] = min(group["block_size"] for group in result["groups"])
    result |= planned(engine, stages)
    upto = case["context"] if result["message"] is None else case["max_model_len"]
    return result | {"longest": longest_length(vllm, case, upto)}


def main() -> None:
    vllm = Vllm(Path(sys.argv[1]))
    for line in sys.stdin:
        case = json.loads(line)
        if not vllm.knows(read_config(case["config"])[0].architectures[0]):
            print(json.dumps({"unknown": True}))
            continue
        try:
            print(json.dumps(answer(vllm, case)))
        except (AssertionError, NotImplementedError, ValueError) as refusal:
            print(json.dumps({"unsupported": str(refusal)}))


if __name__ == "__main__":
    main()
