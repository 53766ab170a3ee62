"""An agent on any task, as `coach_rl.train("PPO", "CartPole-v1")` makes it: a function for each.

A task that has a preset of its own, and every MuJoCo task, gets the settings of that preset. All
others get settings that are not tuned to a task: those of published benchmarks on MuJoCo for PPO,
DDPG, TD3 and SAC (Tianshou 2021), those of `LunarLander_DQN` for DQN (RL Baselines3 Zoo). PPO
normalises observations that are vectors, SAC learns its temperature.
"""

import importlib
import importlib.util
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import coach_rl as rl
from coach_rl import environments
from coach_rl.architectures.hidden_states import StatefulLayerParameters
from coach_rl.presets import (
    LunarLander_DQN,
    Mujoco_DDPG,
    Mujoco_PPO,
    Mujoco_SAC,
    Mujoco_TD3,
)
from coach_rl.presets.panels import RunPanel, flat

OWN_PRESETS = {
    ("PPO", "Acrobot-v1"): "Acrobot_PPO",
    ("PPO", "CartPole-v1"): "CartPole_PPO",
    ("PPO", "Pendulum-v1"): "Pendulum_PPO",
    ("DQN", "CartPole-v1"): "CartPole_DQN",
    ("DQN", "LunarLander-v3"): "LunarLander_DQN",
    ("DDPG", "Pendulum-v1"): "Pendulum_DDPG",
    ("SAC", "CartPole-v1"): "CartPole_SAC",
    ("SAC", "Pendulum-v1"): "Pendulum_SAC",
}
"""Presets of single tasks by algorithm and task; used where the extension that they need is."""
MUJOCO = {"PPO": Mujoco_PPO, "DDPG": Mujoco_DDPG, "TD3": Mujoco_TD3, "SAC": Mujoco_SAC}
"""Presets of MuJoCo tasks by algorithm."""
UNTUNED = "hopper"
"""A MuJoCo task without settings of its own."""
HEATUP = 1_000
"""Random steps at the start of an off-policy run, a tenth of the run at most."""


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Settings to change with -cp."""

    level: str
    """The task: any that `-lvl` of some preset takes, such as CartPole-v1 or my_module:MyEnv."""
    steps: int | None = None
    """Environment steps to train for; None: those of the task's preset, or 100,000."""
    num_envs: int | None = None
    """Environments in parallel; None: those of the task's preset, or 8 for PPO and 1 for others."""
    recurrence: StatefulLayerParameters | None = None
    """Layer with a hidden state in all networks, such as GRU(); None: they have none."""


def PPO(panel: Panel) -> rl.GraphManager:
    """PPO on any task."""
    return _with_layer(panel, _of_own_preset("PPO", panel) or _ppo(panel))


def DQN(panel: Panel) -> rl.GraphManager:
    """DQN on any task with discrete actions."""
    return _with_layer(panel, _of_own_preset("DQN", panel) or _dqn(panel))


def DDPG(panel: Panel) -> rl.GraphManager:
    """DDPG on any task with continuous actions."""
    return _off_policy("DDPG", panel)


def TD3(panel: Panel) -> rl.GraphManager:
    """TD3 on any task with continuous actions."""
    return _off_policy("TD3", panel)


def SAC(panel: Panel) -> rl.GraphManager:
    """SAC on any task."""
    return _off_policy("SAC", panel, temperature=None)


def _ppo(panel: Panel) -> rl.GraphManager:
    environment = environments.parameters(panel.level)
    agent = replace(
        _untuned("PPO"), input_filter=_normalised_vectors(environment), output_filter=None
    )
    rollout = agent.algorithm.rollout.count
    return _experiment(panel, agent, environment, num_envs=8, learns_every=rollout)


def _dqn(panel: Panel) -> rl.GraphManager:
    agent = LunarLander_DQN.graph_manager(LunarLander_DQN.Panel()).parameters.levels[0].agent
    return _experiment(panel, agent, environments.parameters(panel.level), num_envs=1)


def _off_policy(algorithm: str, panel: Panel, **settings: object) -> rl.GraphManager:
    """A flat off-policy agent with an actor."""
    own = _of_own_preset(algorithm, panel)
    if own is None:
        agent = _untuned(algorithm, **settings)
        environment = environments.parameters(panel.level)
        own = _experiment(panel, agent, environment, num_envs=1, heatup=HEATUP)
    return _with_layer(panel, own)


def _with_layer(panel: Panel, experiment: rl.GraphManager) -> rl.GraphManager:
    """The experiment, whose networks have the panel's layer if it has one."""
    if (layer := panel.recurrence) is None:
        return experiment
    parameters: Any = experiment.parameters
    agent = rl.recurrent_agent(parameters.agent, layer)
    return rl.BasicRLGraphManager(replace(parameters, agent=agent))


def _of_own_preset(algorithm: str, panel: Panel) -> rl.GraphManager | None:
    """The experiment of the task's preset; None where it has none."""
    given: dict[str, object] = {"steps": panel.steps, "num_envs": panel.num_envs}
    name = OWN_PRESETS.get((algorithm, panel.level))
    preset: Any = None
    if name is not None and importlib.util.find_spec(f"coach_rl.presets.{name}"):
        preset = importlib.import_module(f"coach_rl.presets.{name}")
    if panel.level in rl.TASKS and algorithm in MUJOCO:
        preset = MUJOCO[algorithm]
        given["level"] = panel.level
    if preset is None:
        return None
    found: rl.GraphManager = preset.graph_manager(
        preset.Panel(**{name: value for name, value in given.items() if value is not None})
    )
    return found


def _untuned(algorithm: str, **settings: object) -> Any:
    """The agent of a MuJoCo preset, without settings that belong to a task."""
    preset = MUJOCO[algorithm]
    return preset.graph_manager(preset.Panel(level=UNTUNED, **settings)).parameters.agent


def _normalised_vectors(environment: rl.EnvironmentParameters) -> rl.InputFilter | None:
    """The filter that normalises those observations of an environment that are vectors."""
    with closing(environment.build(num_envs=1)) as built:
        observed = built.spaces.observation
    vectors = [
        key
        for key, space in observed.items()
        if len(space.shape or ()) == 1 and np.issubdtype(space.dtype, np.floating)
    ]
    normalised = (rl.ObservationNormalizationFilter(clip=10.0),)
    return rl.InputFilter(observation=dict.fromkeys(vectors, normalised)) if vectors else None


def _experiment(
    panel: Panel,
    agent: rl.AgentParameters,
    environment: rl.EnvironmentParameters,
    *,
    num_envs: int,
    heatup: int = 0,
    learns_every: int = 1,
) -> rl.GraphManager:
    """The experiment of a task without a preset: without a target, and with twenty evaluations.

    Fewer where it learns more seldom, every so many steps.
    """
    steps = 100_000 if panel.steps is None else panel.steps
    run = RunPanel(steps=steps, num_envs=panel.num_envs or num_envs)
    schedule = run.schedule(max(learns_every, steps // 20), heatup=min(heatup, steps // 10))
    # Episodes that never end take no longer than a short run.
    schedule = replace(schedule, evaluation_step_limit=min(100_000, max(10_000, steps)))
    return flat(run, agent, environment, schedule, validation=None, threads=1 + bool(heatup))
