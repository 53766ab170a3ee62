"""Environments: simulators that keep the `Environment` contract, batched and exactly reproducible.

May import core only, and never filters, agents or levels. Start with `make` (a name becomes an
environment); then a small one, `toy/batch.py`; then `mujoco/` for speed and `gymnasium/` for breadth.
`bookkeeping` is what every simulator shares; `coach_rl.testing` proves that one keeps the contract.
"""

from coach_rl.environments.make import level_names, make, parameters

__all__ = ["level_names", "make", "parameters"]
