"""A preset whose numbers depend on the number of threads: its minibatches are large."""

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from coach_rl.agents.ppo_agent import PPOAgentParameters, PPOAlgorithmParameters
from coach_rl.architectures.actor_critic import ActorCriticParameters
from coach_rl.architectures.torso import TorsoParameters
from coach_rl.core import LogRecord
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.toy import PointMassParameters
from coach_rl.graph_managers import BasicGraphParameters, GraphManager, ScheduleParameters
from coach_rl.graph_managers.evaluations import Evaluator, never

ROUND = 40_960
"""Transitions of a minibatch: torch adds up more than 32,768 numbers on several threads."""


@dataclass(frozen=True, kw_only=True)
class StoppedGraphParameters(BasicGraphParameters):
    sigterm_at: int | None = None


class StoppedGraphManager(GraphManager):
    """Sends its own process SIGTERM when it comes to a certain step."""

    def __init__(self, parameters: StoppedGraphParameters) -> None:
        super().__init__(parameters)
        self._sigterm_at = parameters.sigterm_at

    def improve(
        self,
        *,
        is_stopped: Callable[[], bool] = never,
        is_paused: Callable[[], bool] = never,
        evaluator: Evaluator | None = None,
    ) -> Iterator[LogRecord]:
        for record in super().improve(
            is_stopped=is_stopped, is_paused=is_paused, evaluator=evaluator
        ):
            if record.kind == "train" and record.environment_steps == self._sigterm_at:
                os.kill(os.getpid(), signal.SIGTERM)
            yield record


def graph_manager(
    steps: int = 2 * ROUND, sigterm_at: int | None = None, threads: int = 1
) -> StoppedGraphManager:
    """PPO on the point mass, a gradient step over every 40,960 environment steps.

    Args:
        steps: For how long.
        threads: Threads that the preset states.
        sigterm_at: Where it stops itself.
    """
    return StoppedGraphManager(
        StoppedGraphParameters(
            agent=PPOAgentParameters(
                algorithm=PPOAlgorithmParameters(
                    rollout=EnvironmentSteps(ROUND), epochs=1, minibatch=ROUND
                ),
                network=ActorCriticParameters(torso=TorsoParameters(middleware=(8, 8))),
                update_mode="eager",
            ),
            environment=PointMassParameters(),
            num_envs=1_024,
            threads=threads,
            schedule=ScheduleParameters(
                training=EnvironmentSteps(steps),
                evaluation_interval=EnvironmentSteps(ROUND),
                evaluation_episodes=EnvironmentEpisodes(2),
            ),
            sigterm_at=sigterm_at,
        )
    )
