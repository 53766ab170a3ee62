import subprocess
import sys

import pytest
import torch

from coach_rl.architectures.ensembles import EnsembleLinear
from coach_rl.architectures.initial_weights import linear

BUILD_LAYERS = """
import sys
import torch
from coach_rl.architectures.initial_weights import linear
from coach_rl.architectures.initial_weights import convolution

options = {"rng": torch.Generator(), "gain": 1.0, "orthogonal": False}
linear(2, 3, **options)
convolution(1, 2, kernel=2, stride=1, **options)
print("sympy" in sys.modules)
"""


def test_a_network_is_built_without_importing_torchs_compiler():
    done = subprocess.run(
        [sys.executable, "-c", BUILD_LAYERS], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
@pytest.mark.parametrize("orthogonal", [False, True])
def test_layer_without_inputs_gives_its_bias(orthogonal):
    """Of an observation without elements, which Gymnasium allows."""
    options = {"rng": torch.Generator(), "gain": 1.0, "orthogonal": orthogonal}
    one, several = linear(0, 3, **options), EnsembleLinear(2, 0, 3, **options)
    assert one(torch.zeros(4, 0)).tolist() == [[0.0] * 3] * 4
    assert several(torch.zeros(2, 4, 0)).tolist() == [[[0.0] * 3] * 4] * 2
