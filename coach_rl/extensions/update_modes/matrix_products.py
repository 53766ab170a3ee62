"""Matrix products of compiled steps by oneDNN, on processors that MKL leaves half idle.

Those where `onednn_is_faster`. Products that are small gain nothing and stay with MKL.

Importing this file imports torch's compiler.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch._inductor import lowering
from torch._inductor.custom_graph_pass import CustomGraphPass, get_hash_for_files
from torch._inductor.ir import TensorBox
from torch._inductor.mkldnn_ir import LinearUnary
from torch.fx import Graph, Node
from torch.fx.node import Argument, map_arg

from coach_rl.architectures.onednn import LEAST_SIDE, onednn_is_faster, onednn_linear

TESTED = "2.13"
"""The version of torch whose compiler this was tried with."""
LEAST_WORK = 2_000_000
"""Multiplications of a product from which on oneDNN is faster, its own start included."""

torch.library.define("coach_rl::product", "(Tensor left, Tensor right, Tensor? bias) -> Tensor")
_product = torch.ops.coach_rl.product.default


@torch.library.register_fake("coach_rl::product")  # type: ignore[untyped-decorator]
def _shape(left: Tensor, right: Tensor, bias: Tensor | None) -> Tensor:
    del bias
    return left.new_empty(left.shape[0], right.shape[1])


@torch.library.impl("coach_rl::product", "cpu")
def _eager(left: Tensor, right: Tensor, bias: Tensor | None) -> Tensor:
    return onednn_linear(left, right.t(), bias)


@lowering.register_lowering(_product, type_promotion_kind=None)
def _lowered(left: TensorBox, right: TensorBox, bias: TensorBox | None) -> TensorBox:
    transposed = lowering.permute(right, [1, 0])
    call = LinearUnary.create(left, transposed, bias, "none", [], "")  # type: ignore[no-untyped-call]
    result: TensorBox = TensorBox.create(call)
    return result


class OneDNNProducts(CustomGraphPass):
    """Replaces the large matrix products of a compiled step, one after another."""

    def __call__(self, graph: Graph) -> None:
        """Replace them."""
        for node in list(graph.nodes):
            found = _factors(node)
            if found is not None and _gains(*found[:2]):
                with graph.inserting_before(node):
                    node.replace_all_uses_with(_replacement(graph, *found))
                graph.erase_node(node)

    def uuid(self) -> bytes:
        """Name of the pass in the compiler's cache: another for each version of this file."""
        name: bytes = get_hash_for_files((__file__,))
        return name


def gained_here() -> bool:
    """True where oneDNN is faster, and the compiler takes this pass.

    Compilers before torch 2.13's take other passes; for them, all stays with MKL.
    """
    return torch.__version__ >= TESTED and torch._C.has_mkl and onednn_is_faster()


def _factors(node: Node) -> tuple[Node, Node, Node | None] | None:
    """Left and right factor and bias of a product, of [M, K] and [K, N] or a batch of them."""
    match node.target:
        case torch.ops.aten.mm.default | torch.ops.aten.bmm.default:
            left, right = node.args
            return left, right, None  # type: ignore[return-value]  # factors are nodes
        case torch.ops.aten.addmm.default if not node.kwargs:
            bias, left, right = node.args
            is_vector = bias.meta["val"].dim() == 1  # type: ignore[union-attr]
            return (left, right, bias) if is_vector else None  # type: ignore[return-value]
    return None


def _gains(left: Node, right: Node) -> bool:
    first = left.meta["val"]
    second = right.meta["val"]
    sides = (*first.shape[-2:], second.shape[-1])
    work = sides[0] * sides[1] * sides[2]
    gains: bool = work >= LEAST_WORK and min(sides) >= LEAST_SIDE
    return gains and first.dtype == torch.float32


def _replacement(graph: Graph, left: Node, right: Node, bias: Node | None) -> Node:
    """The node that computes the same by oneDNN; a batch of products one after another."""

    def call(function: Callable[..., Tensor], *args: Argument) -> Node:
        new = graph.call_function(function, args)
        new.meta["val"] = function(*map_arg(args, lambda arg: arg.meta["val"]))
        return new

    aten = torch.ops.aten
    if left.meta["val"].dim() == 2:
        return call(_product, left, right, bias)
    products = [
        call(
            _product,
            call(aten.select.int, left, 0, number),
            call(aten.select.int, right, 0, number),
            None,
        )
        for number in range(left.meta["val"].shape[0])
    ]
    one_by_one = [call(aten.unsqueeze.default, product, 0) for product in products]
    return call(aten.cat.default, one_by_one, 0)
