"""Tasks of the DeepMind Control Suite: the environment is `coach_rl.environments.dm_control`.

Presets are `DMControl_SAC`, `DMControl_TD3` and `DMControl_PPO` from state, `DMControl_Pixels_SAC`
from pictures. The table beside this file has the names of all tasks.
"""

__all__: list[str] = []
