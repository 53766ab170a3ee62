from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.fx.experimental.proxy_tensor import make_fx

from coach_rl.architectures.gradient_step import AdamParameters, Objective
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.update_engine import UpdateEngine
from coach_rl.extensions.update_modes.matrix_products import OneDNNProducts
from tests.extensions.update_modes.test_recorded_steps import compiles

pytestmark = [
    pytest.mark.skipif(
        not torch.backends.mkldnn.is_available(), reason="this build of torch has no oneDNN"
    ),
]


class Rows(NamedTuple):
    """A batch."""

    x: Tensor


def random(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def products(graph):
    return [node for node in graph.nodes if node.target is torch.ops.coach_rl.product.default]


@pytest.mark.parametrize(
    ("product", "shapes", "replaced"),
    [
        (torch.mm, [(256, 100), (100, 200)], 1),
        (lambda a, b: torch.mm(a.t(), b), [(512, 64), (512, 128)], 1),  # a gradient of weights
        (lambda a, b, c: torch.addmm(c, a, b), [(512, 64), (64, 64), (64,)], 1),
        (lambda a, b, c: torch.addmm(c, a, b), [(512, 64), (64, 64), (512, 64)], 0),
        (torch.bmm, [(3, 128, 128), (3, 128, 128)], 3),
        (torch.bmm, [(1, 128, 128), (1, 128, 128)], 1),
        (torch.mm, [(64, 64), (64, 64)], 0),  # too little work
        (torch.mm, [(4096, 256), (256, 8)], 0),  # too narrow
        (lambda a, b: torch.mm(a.double(), b.double()), [(256, 256), (256, 256)], 0),
    ],
)
def test_large_float32_products_are_replaced_and_equal_to_rounding(product, shapes, replaced):
    factors = [random(*shape) for shape in shapes]
    module = make_fx(product, tracing_mode="fake")(*factors)
    OneDNNProducts()(module.graph)
    module.graph.lint()
    module.recompile()
    assert len(products(module.graph)) == replaced
    torch.testing.assert_close(module(*factors), product(*factors), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("mode", [pytest.param("compiled", marks=compiles)])
def test_compiled_steps_multiply_by_onednn_where_it_gains(monkeypatch, mode):
    replaced = []

    class Counted(OneDNNProducts):
        def __call__(self, graph):
            super().__call__(graph)
            replaced.append(len(products(graph)))

        def uuid(self):
            return None  # compiled again, whatever lies in the compiler's cache

    monkeypatch.setattr(
        "coach_rl.extensions.update_modes.matrix_products.gained_here", lambda: True
    )
    monkeypatch.setattr("coach_rl.extensions.update_modes.matrix_products.OneDNNProducts", Counted)

    def trained(mode):
        torch.manual_seed(0)
        layers = nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1)
        network = NetworkWrapper(nn.Sequential(*layers), device=torch.device("cpu"))

        def loss(flat, batch, scalars):
            return ((network.call(flat, batch.x) - batch.x.square().sum(1, True)) ** 2).mean(), {}

        objective = Objective(
            network=network, loss=loss, optimizer=AdamParameters(learning_rate=0.01)
        )
        engine = UpdateEngine((objective,), mode=mode, planned_updates=0)
        for _ in range(5):
            engine.step(Rows(random(512, 64)))
        return network.online

    with torch.random.fork_rng():
        torch.testing.assert_close(trained(mode), trained("eager"), rtol=1e-4, atol=1e-5)
    assert replaced == [5]  # two layers, their gradients of weights, and that of hidden values
