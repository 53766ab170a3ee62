"""Tests under other arithmetic: what other processors and libraries make of the same numbers.

Libraries choose instructions by the processor, and so sums have other orders and roundings. Here
environment variables choose instead, which are set before the libraries are loaded::

    python tests/arithmetic.py                                # FLOATS under every kind
    python tests/arithmetic.py oldest -- tests/golden -k PPO  # pytest's arguments
    python tests/arithmetic.py --list
"""

import argparse
import ctypes
import functools
import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

HERE = Path(__file__).resolve()
ONEDNN = "COACH_TESTS_ONEDNN"
"""Variable of ours which turns oneDNN off, since torch has none."""
VARIABLES = (
    "ATEN_CPU_CAPABILITY",
    "MKL_CBWR",
    "MKL_ENABLE_INSTRUCTIONS",
    "NPY_DISABLE_CPU_FEATURES",
    "ONEDNN_MAX_CPU_ISA",
    "OPENBLAS_CORETYPE",
    ONEDNN,
)
FLOATS = (
    "tests/golden",
    "tests/fixtures",
    "tests/core",
    "tests/functional",
    "tests/architectures",
    "tests/exploration_policies",
    "tests/filters",
    "tests/memories",
    "tests/agents",
    "tests/environments",
    "tests/extensions/exporting",
    "tests/sessions",
)
"""Tests that compare floats with recorded ones, or of one computation with those of another."""


@dataclass(frozen=True, kw_only=True)
class Arithmetic:
    """A kind of arithmetic."""

    variables: dict[str, str]
    """Environment variables by which libraries use it."""
    changes: tuple[str, ...]
    """Parts of `probe` that it gives other bits."""


def kinds() -> dict[str, Arithmetic]:
    """All kinds of arithmetic by name."""
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    wide = [each for each in found if "AVX512" in each or each == "X86_V4"]
    numpy_without_wide = {"NPY_DISABLE_CPU_FEATURES": ",".join(wide)} if wide else {}
    numpy_without_any = {"NPY_DISABLE_CPU_FEATURES": ",".join(found)} if found else {}
    aten = {"ATEN_CPU_CAPABILITY": "default"}
    mkl = {"MKL_CBWR": "COMPATIBLE"}
    openblas = {"OPENBLAS_CORETYPE": "Nehalem"}
    onednn = {"ONEDNN_MAX_CPU_ISA": "SSE41"}
    haswell = {
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
    }
    return {
        "native": Arithmetic(variables={}, changes=()),
        "avx2": Arithmetic(variables={"ATEN_CPU_CAPABILITY": "avx2"}, changes=("torch layers",)),
        "aten_default": Arithmetic(variables=aten, changes=("torch functions", "torch layers")),
        "mkl_compatible": Arithmetic(variables=mkl, changes=("torch products",)),
        "onednn_off": Arithmetic(variables={ONEDNN: "off"}, changes=("torch convolutions",)),
        "onednn_sse": Arithmetic(variables=onednn, changes=("torch convolutions",)),
        "openblas_nehalem": Arithmetic(variables=openblas, changes=("numpy products",)),
        "numpy_baseline": Arithmetic(variables=numpy_without_any, changes=("numpy functions",)),
        "haswell": Arithmetic(
            variables=haswell | numpy_without_wide,
            changes=("torch layers", "torch products", "numpy products"),
        ),
        "oldest": Arithmetic(
            variables=aten | mkl | openblas | onednn | numpy_without_any,
            changes=(
                "torch functions",
                "torch products",
                "torch convolutions",
                "numpy functions",
                "numpy products",
            ),
        ),
    }


def apply_own_variables() -> None:
    """Turn oneDNN off where our variable does."""
    if os.environ.get(ONEDNN) == "off":
        torch.backends.mkldnn.set_flags(False)


def in_force() -> str:
    """The arithmetic of this process in a line."""
    onednn = "on" if torch._C._get_mkldnn_enabled() else "off"
    given = ", ".join(f"{name}={os.environ[name]}" for name in VARIABLES if name in os.environ)
    capability = torch.backends.cpu.get_cpu_capability()
    return (
        f"torch {capability}, oneDNN {onednn}, numpy products by {openblas_core()}; "
        f"variables: {given or 'none'}"
    )


def openblas_core() -> str:
    """The core type for which numpy's OpenBLAS multiplies."""
    for library in (Path(np.__file__).parent.parent / "numpy.libs").glob("*openblas*"):
        functions = ctypes.CDLL(str(library))
        for name in ("scipy_openblas_get_corename64_", "openblas_get_corename64_"):
            if hasattr(functions, name):
                core = getattr(functions, name)
                core.restype = ctypes.c_char_p
                return str(core().decode())
    return "another library than OpenBLAS"


def probe() -> dict[str, str]:
    """Digests of the bits of some results, by part."""
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    doubles = rng.normal(size=(37, 41))
    floats = torch.from_numpy(rng.normal(size=(64, 137)).astype(np.float32))
    weights = torch.from_numpy(rng.normal(size=(150, 137)).astype(np.float32))
    images = torch.from_numpy(rng.normal(size=(4, 3, 16, 16)).astype(np.float32))
    filters = torch.from_numpy(rng.normal(size=(8, 3, 3, 3)).astype(np.float32))
    results: dict[str, list[Any]] = {
        "torch functions": [floats.sigmoid(), floats.sum(1), floats.sin()],
        "torch products": [floats @ weights.T],
        "torch layers": [floats.softmax(1), floats.log_softmax(1)],
        "torch convolutions": [torch.nn.functional.conv2d(images, filters)],
        "numpy functions": [np.exp(doubles), np.tanh(doubles.astype(np.float32))],
        "numpy products": [doubles @ doubles.T],
    }
    return {
        part: hashlib.sha256(b"".join(np.asarray(each).tobytes() for each in values)).hexdigest()
        for part, values in results.items()
    }


@functools.cache
def probed(name: str) -> tuple[str, dict[str, str]]:
    """What `in_force` and `probe` return under a kind of arithmetic."""
    command = [sys.executable, str(HERE), "--probe"]
    output = subprocess.run(command, env=environment(name), check=True, capture_output=True)
    found = json.loads(output.stdout)
    return found["in force"], found["bits"]


def environment(name: str) -> dict[str, str]:
    """The environment variables of a process under a kind of arithmetic."""
    kept = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    return kept | kinds()[name].variables


def without_effect(name: str) -> list[str]:
    """The parts of `probe` that a kind should give other bits, and does not on this machine."""
    _, plain = probed("native")
    _, found = probed(name)
    return [part for part in kinds()[name].changes if found[part] == plain[part]]


def main() -> int:
    """Run tests under kinds of arithmetic; 1 where some failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", help="default: all", metavar="KIND")
    parser.add_argument("--list", action="store_true", help="print the kinds, and run nothing")
    parser.add_argument("--probe", action="store_true", help=argparse.SUPPRESS)
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    args, given = parser.parse_args(words[:end]), words[end + 1 :]
    if args.probe:
        apply_own_variables()
        print(json.dumps({"in force": in_force(), "bits": probe()}))
        return 0
    if unknown := set(args.kinds) - set(kinds()):
        parser.error(f"no kind {', '.join(sorted(unknown))}; there are {', '.join(kinds())}")
    spread = ["-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"]
    tests = given or [*FLOATS, *spread, "-m", "not slow"]
    failed = []
    for name in args.kinds or kinds():
        print(f"{name}: {probed(name)[0]}", flush=True)
        missing = without_effect(name)
        if missing:
            print(f"{name}: the same bits as native in {', '.join(missing)}", flush=True)
        if args.list or (missing and len(missing) == len(kinds()[name].changes)):
            continue
        command = [sys.executable, "-m", "pytest", "-q", *tests]
        every = environment(name) | {"COACH_TEST_SEED": "every"}
        if subprocess.run(command, env=every, cwd=HERE.parent.parent).returncode:
            failed.append(name)
    if failed:
        print(f"failed under {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
