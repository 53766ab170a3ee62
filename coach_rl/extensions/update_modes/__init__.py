"""Faster ways to run gradient steps: compiled for the CPU, captured as a CUDA graph.

May import architectures and core. Start with `recorded_steps`; `matrix_products` is about products
of compiled steps.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.update_modes.recorded_steps import Captured, Compiled
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["Captured", "Compiled"]
