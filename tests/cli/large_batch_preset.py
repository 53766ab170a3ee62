"""A preset whose numbers depend on the number of threads: its minibatches are large."""

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import coach_rl as rl
from coach_rl.core import LogRecord
from coach_rl.graph_managers.evaluations import Evaluator, never

ROUND = 40_960
"""Transitions of a minibatch: torch adds up more than 32,768 numbers on several threads."""


@dataclass(frozen=True, kw_only=True)
class StoppedGraphParameters(rl.BasicGraphParameters):
    sigterm_at: int | None = None


class StoppedGraphManager(rl.GraphManager):
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
            agent=rl.PPOAgentParameters(
                algorithm=rl.PPOAlgorithmParameters(
                    rollout=rl.EnvironmentSteps(ROUND), epochs=1, minibatch=ROUND
                ),
                network=rl.ActorCriticParameters(torso=rl.TorsoParameters(middleware=(8, 8))),
                update_mode="eager",
            ),
            environment=rl.PointMassParameters(),
            num_envs=1_024,
            threads=threads,
            schedule=rl.ScheduleParameters(
                training=rl.EnvironmentSteps(steps),
                evaluation_interval=rl.EnvironmentSteps(ROUND),
                evaluation_episodes=rl.EnvironmentEpisodes(2),
            ),
            sigterm_at=sigterm_at,
        )
    )
