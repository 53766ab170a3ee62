"""PPO learns tic-tac-toe against itself: both players are members that share an agent."""

from dataclasses import dataclass, replace
from typing import Literal

import coach_rl as rl
from coach_rl.presets.panels import FlatPanel, flat, ppo_optimizer

PLAYERS = {"tictactoe": ("player_1", "player_2"), "connect_four": ("player_0", "player_1")}
"""The players' names in each game."""


@dataclass(frozen=True, kw_only=True)
class Panel(FlatPanel):
    """Settings to change with -cp."""

    game: Literal["tictactoe", "connect_four"] = "tictactoe"
    """The game, one of PettingZoo's."""
    num_envs: int = 64
    steps: int = 400_000
    learning_rate: float = 1e-3
    discount: float = 1.0
    entropy: float = 0.15
    """Weight of the entropy bonus. A large one lets it play against many kinds of moves of its own;
    with 0.02 it learns one line of play, and loses to a player that leaves it."""


def graph_manager(panel: Panel) -> rl.GraphManager:
    """One policy plays both sides of a game, each in its turn.

    Needs the extra `pettingzoo`.
    """
    agent = rl.PPOAgentParameters(
        algorithm=rl.PPOAlgorithmParameters(
            rollout=rl.EnvironmentSteps(2_048),
            epochs=4,
            minibatch=256,
            discount=panel.discount,
            entropy_coefficient=panel.entropy,
            learning_rate_schedule=rl.LinearSchedule(start=1.0, end=0.0),
        ),
        network=rl.ActorCriticParameters(
            torso=rl.TorsoParameters(middleware=(128, 128), images="flat")
        ),
        optimizer=ppo_optimizer(panel.learning_rate),
    )
    members = tuple(
        replace(rl.GroupMember.of(replace(agent, name=name)), shares="player")
        for name in PLAYERS[panel.game]
    )
    return flat(
        panel,
        rl.AgentGroupParameters(members=members, arbiter=rl.EnvironmentTurns()),
        rl.PettingZooParameters(
            # raw_env: without checks of moves, which masks make, and which take half of the time
            level=f"pettingzoo.classic.{panel.game}.{panel.game}:raw_env"
        ),
        panel.schedule(50_000, evaluation_episodes=20, progress_interval=10_000),
        validation=None,
    )
