# SPDX-License-Identifier: Apache-2.0
"""Which of a vLLM release's modules run, and what stands in for all others?

`install` makes `import vllm...` read the modules of REAL from a folder of its sources. Any other module of vLLM's, and
any package beside Python's own (torch, transformers, triton, the compiled extension), is a stand-in:
its names are classes that can be called, subclassed and used as decorators, are false in a condition, and know no
arithmetic. The one exception is torch's types: their sizes in bytes are given here.
"""
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import sys
from pathlib import Path
from types import FunctionType, ModuleType

# Modules that run; a release lacks some of them.
REAL = {
    "vllm.envs",
    "vllm.attention.backends.abstract",
    "vllm.attention.layer",
    "vllm.attention.layers.chunked_local_attention",
    "vllm.config.cache",
    "vllm.config.model",
    "vllm.config.utils",
    "vllm.config.vllm",
    "vllm.distributed.utils",
    "vllm.model_executor.layers.attention.attention",
    "vllm.model_executor.layers.attention.chunked_local_attention",
    "vllm.model_executor.layers.attention.mla_attention",
    "vllm.model_executor.layers.mamba.abstract",
    "vllm.model_executor.layers.mamba.mamba_utils",
    "vllm.model_executor.models.config",
    "vllm.model_executor.models.registry",
    "vllm.platforms.interface",
    "vllm.transformers_utils.model_arch_config_convertor",
    "vllm.utils.math_utils",
    "vllm.utils.mem_constants",
    "vllm.utils.mem_utils",
    "vllm.utils.torch_utils",
    "vllm.v1.attention.backend",
    "vllm.v1.attention.backends.flash_attn",
    "vllm.v1.attention.backends.mla.flashattn_mla",
    "vllm.v1.attention.backends.mla.flashmla_sparse",
    "vllm.v1.core.kv_cache_utils",
    "vllm.v1.core.single_type_kv_cache_manager",
    "vllm.v1.kv_cache_interface",
    "vllm.v1.kv_cache_spec_registry",
}
# Besides: the modules that hold the models' own classes.
REAL_FOLDERS = ("vllm.model_executor.models.", "vllm.models.")
MODEL_MODULES = {"deepseek_v2", "jamba", "kimi_k3", "kimi_linear", "nemotron_h", "qwen3_5", "qwen3_next"}


class Standing(type):
    """The type of stand-ins: every name of theirs is one more."""

    def __getattr__(cls, name: str) -> "Standing":
        if name.startswith("__"):
            raise AttributeError(name)
        return Standing(name, (), {"is_stand_in": True})

    def __call__(cls, *args: object, **named: object) -> object:
        if not cls.__dict__.get("is_stand_in"):
            return super().__call__(*args, **named)
        decorated = args[0] if len(args) == 1 and not named else None
        return decorated if isinstance(decorated, (type, FunctionType)) and not stands_in(decorated) else cls

    def __getitem__(cls, _: object) -> "Standing":
        return cls

    def __or__(cls, other: object) -> object:
        return super().__or__(other) if isinstance(other, type) or other is None else cls

    def __ge__(cls, _: object) -> bool:  # releases of packages, asked when modules load
        return False

    def __bool__(cls) -> bool:
        return not cls.__dict__.get("is_stand_in")

    def __enter__(cls) -> "Standing":
        return cls

    def __exit__(cls, *_: object) -> None:
        return None


def stands_in(value: object) -> bool:
    return isinstance(value, Standing) and bool(value.__dict__.get("is_stand_in"))


class StandInModule(ModuleType):
    def __getattr__(self, name: str) -> object:
        if name.startswith("__") and name != "__version__":
            raise AttributeError(name)
        made = Standing(name, (), {"is_stand_in": True})
        setattr(self, name, made)
        return made


class dtype:  # torch's own name
    """A type of torch's: its name and the bytes that one element takes."""

    def __init__(self, name: str, itemsize: int):
        self.name, self.itemsize = name, itemsize

    def __repr__(self) -> str:
        return f"torch.{self.name}"


DTYPES = {name: dtype(name, size) for name, size in
          {"float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1, "uint8": 1, "int8": 1,
           "int32": 4, "int64": 8, "bool": 1}.items()}


class Tensor:
    """An empty tensor, asked for the size of an element only."""

    def __init__(self, _: list[object], dtype: dtype):
        self.dtype = dtype

    def element_size(self) -> int:
        return self.dtype.itemsize


def torch_types(torch: ModuleType) -> None:
    for name, value in DTYPES.items():
        setattr(torch, name, value)
    torch.half, torch.float = DTYPES["float16"], DTYPES["float32"]
    torch.dtype, torch.tensor = dtype, Tensor


OWN = {"model_layers", "reference", "stand_ins"}  # modules of this folder

# Names that packages pass on from modules that run.
PASSED_ON = {"vllm.distributed": ("vllm.distributed.utils", "divide"),
             "vllm.attention": ("vllm.attention.backends.abstract", "AttentionType")}


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, sources: Path):
        self.sources = sources

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        top = name.partition(".")[0]
        if top == "vllm":
            return self.vllm_spec(name)
        if top in sys.stdlib_module_names or top in OWN:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def vllm_spec(self, name: str) -> importlib.machinery.ModuleSpec:
        place = self.sources.joinpath(*name.split("."))
        if name in REAL or name.startswith(REAL_FOLDERS) and set(name.split(".")) & MODEL_MODULES:
            if place.with_suffix(".py").is_file():
                return importlib.util.spec_from_file_location(name, place.with_suffix(".py"))
            if (package := place / "__init__.py").is_file():
                return importlib.util.spec_from_file_location(name, package, submodule_search_locations=[])
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return StandInModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        module.__path__ = []
        if module.__name__ == "torch":
            torch_types(module)


def undecorated(decorated: type | None = None, **_: object) -> object:
    return decorated or undecorated


def install(sources: Path) -> None:
    """`sources`: the folder that holds `vllm/`."""
    sys.meta_path.insert(0, Finder(sources))
    importlib.metadata.version = lambda _: "0"
    for package, (module, name) in PASSED_ON.items():
        setattr(importlib.import_module(package), name, getattr(importlib.import_module(module), name))
    importlib.import_module("pydantic.dataclasses").dataclass = undecorated
    kernels = importlib.import_module("vllm.utils.torch_utils")
    kernels.direct_register_custom_op = lambda *_, **__: None  # kernels get no names
