import subprocess
import sys

BUILD_LAYERS = """
import sys
import torch
from coach_rl.architectures.layers import convolution, linear

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
