"""MiniGrid and BabyAI: the environments are those of `coach_rl.environments.minigrid`.

May import what levels may. The preset is `MiniGrid_PPO`.
"""

__all__: list[str] = []
