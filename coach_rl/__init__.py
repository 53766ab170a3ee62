"""A preset-driven experiment engine for reinforcement learning.

Import from the rooms: `coach_rl.graph_managers`, `coach_rl.agents.ppo_agent`, `coach_rl.filters`,
`coach_rl.environments`, `coach_rl.experiment.runner`. docs/architecture.md says what is where.
Nothing is imported here, so that `coach -l` answers without waiting for torch.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
