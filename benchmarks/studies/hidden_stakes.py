"""A game of two agents in which each one's reward depends mostly on what the other alone sees.

The preset of a variant of `central_critics.py`. At each step both see a cue of their own, and get 1
if they name it: 20 in an episode of 10 steps, 5 by chance. To this is added a stake of each, which
it sees and the other does not, and which no action changes; stakes of an episode add up to 0.
Every step is a game of its own (discount 0).
"""

from dataclasses import dataclass, replace

import numpy as np
from gymnasium import spaces

import coach_rl as rl
from coach_rl.core.records import Action, FloatArray, Observation
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.environments import WorldEnvironment, WorldStep
from coach_rl.presets.panels import FlatPanel, flat, ppo_optimizer

CUES, LENGTH, STAKE = 4, 10, 200.0
AGENTS = ("a", "b")
State = dict[str, np.ndarray]


class HiddenStakes:
    """The game, for N environments at once."""

    start_numbers = step_numbers = 4
    spaces = EnvironmentSpaces(
        observation=spaces.Dict(
            {
                f"{agent}/{key}": space
                for agent in AGENTS
                for key, space in {
                    "cue": spaces.Discrete(CUES),
                    "stake": spaces.Box(-1, 1, (1,), np.float32),
                }.items()
            }
        ),
        action=spaces.Dict({agent: spaces.Discrete(CUES) for agent in AGENTS}),
    )

    def start(self, uniform: FloatArray) -> State:
        """States of new episodes."""
        return {
            "cue": (uniform[:, :2] * CUES).astype(np.int64),
            "stake": 2 * uniform[:, 2:] - 1,
            "time": np.zeros(len(uniform), np.int64),
        }

    def observe(self, state: State) -> Observation:
        """Each agent's cue and stake."""
        seen: Observation = {}
        for number, agent in enumerate(AGENTS):
            seen[f"{agent}/cue"] = state["cue"][:, number]
            seen[f"{agent}/stake"] = state["stake"][:, [number]].astype(np.float32)
        return seen

    def step(self, state: State, action: Action, uniform: FloatArray) -> WorldStep:
        """Pay both agents the same; the next stake takes back every other one."""
        assert isinstance(action, dict)
        named = np.stack([action[agent] for agent in AGENTS], axis=1) == state["cue"]
        reward = named.sum(axis=1) + STAKE * state["stake"].sum(axis=1)
        takes_back = (state["time"] % 2 == 0)[:, None]
        new = self.start(uniform)
        new["stake"] = np.where(takes_back, -state["stake"], new["stake"])
        new["time"] = state["time"] + 1
        return WorldStep(new, reward.astype(np.float64), np.zeros(len(reward), np.bool_), {})


@dataclass(frozen=True, kw_only=True)
class HiddenStakesParameters:
    """The game's environment."""

    level: str = "hidden_stakes"
    """The task's name."""

    def build(self, *, num_envs: int) -> WorldEnvironment:
        """N games."""
        return WorldEnvironment(HiddenStakes(), num_envs=num_envs, max_episode_steps=LENGTH)


@dataclass(frozen=True, kw_only=True)
class Panel(FlatPanel):
    """Settings to change with -cp."""

    central: bool = True
    """Whether critics see what both agents see."""
    num_envs: int = 16
    steps: int = 40_000
    learning_rate: float = 1e-3
    discount: float = 0.0


def graph_manager(panel: Panel) -> rl.GraphManager:
    """Two PPO agents with central critics, or with critics of their own."""
    agent = rl.PPOAgentParameters(
        algorithm=rl.PPOAlgorithmParameters(
            rollout=rl.EnvironmentSteps(1_600),
            epochs=10,
            minibatch=400,
            discount=panel.discount,
            scale_returns=True,
            entropy_coefficient=0.01,
        ),
        optimizer=ppo_optimizer(panel.learning_rate),
    )
    members = tuple(
        rl.GroupMember(
            agent=replace(agent, name=name),
            actions=name,
            observations=(name,),
            critic_observations=(other,) if panel.central else (),
        )
        for name, other in (AGENTS, AGENTS[::-1])
    )
    return flat(
        panel,
        rl.AgentGroupParameters(members=members),
        HiddenStakesParameters(),
        panel.schedule(20_000, evaluation_episodes=100, progress_interval=10_000),
        validation=None,
    )
