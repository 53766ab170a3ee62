"""Matrix products by oneDNN, and the processors on which it is the fastest library."""

from typing import Literal

import torch
from torch import Tensor

LEAST_SIDE = 16
"""Rows, columns or inner size of a product below which oneDNN gains nothing, as in a network's last
layer."""


def onednn_is_faster() -> bool:
    """True where oneDNN's instructions are wider than those of MKL and OpenBLAS.

    torch multiplies float32 matrices by MKL, which uses no AVX-512 instructions on AMD's
    processors; oneDNN, which torch carries as well, does. It multiplies [512, 256] by [256, 256]
    2.2 times as fast as MKL or numpy's OpenBLAS (Zen 5), in the same precision. Zen 4 does such
    instructions in two halves, and the three libraries are equally fast there, to within 8 %.
    """
    processor = torch.cpu.get_capabilities()
    is_amd = str(processor.get("cpu_name", "")).startswith("AMD")
    has_onednn: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return has_onednn and is_amd and bool(processor.get("avx512_f"))


def onednn_linear(
    values: Tensor, weight: Tensor, bias: Tensor | None, then: Literal["none", "relu"] = "none"
) -> Tensor:
    """Values [R, K] by a weight [N, K], plus a bias [N], then an activation, by oneDNN: [R, N]."""
    result: Tensor = torch.ops.mkldnn._linear_pointwise(values, weight, bias, then, [], "")
    return result
