"""A preset whose experiment is a random walk; everything in it is defined in this file."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from gymnasium import spaces

from coach_rl.core.clock import Clock, Phase
from coach_rl.core.divergence import STOP, DivergenceParameters
from coach_rl.core.errors import ConfigurationError, DivergedError, NonFiniteError, require
from coach_rl.core.runtime import Runtime
from coach_rl.core.seeding import generator, generator_state, load_generator_state
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.state import State
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.graph_managers.evaluations import Evaluator, never
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.parameters import (
    CheckpointParameters,
    ScheduleParameters,
    ValidationParameters,
)
from coach_rl.telemetry.records import Evaluation, LogRecord


@dataclass(frozen=True, kw_only=True)
class WalkEnvironment:
    level: str = "line"


@dataclass(frozen=True, kw_only=True)
class WalkAgent:
    learning_rate: float = 0.1
    layers: tuple[int, ...] = (4, 4)

    def __post_init__(self) -> None:
        require(self.learning_rate > 0, f"learning_rate must be above 0, got {self.learning_rate}")


@dataclass(frozen=True, kw_only=True)
class WalkParameters:
    agent: WalkAgent = field(default_factory=WalkAgent)
    environment: WalkEnvironment = field(default_factory=WalkEnvironment)
    schedule: ScheduleParameters = field(default_factory=ScheduleParameters)
    num_envs: int = 1
    threads: int = 1
    divergence: DivergenceParameters = STOP
    validation: ValidationParameters | None = None
    checkpoints: CheckpointParameters = field(default_factory=CheckpointParameters)
    sinks: tuple[()] = ()
    signal_at: int | None = None
    fail_at: int | None = None
    diverge_at: int | None = None
    seconds_per_step: float = 0.0

    @property
    def levels(self) -> tuple[()]:
        return ()


class WalkGraphManager(GraphManager):
    def __init__(self, parameters: WalkParameters) -> None:
        self.parameters: Any = parameters
        self.closed = False
        self._clock = Clock(phase=Phase.HEATUP)
        self._evaluated = 0
        self.evaluation_seeds: list[int | None] = []

    @property
    def graph(self) -> Any:
        place = spaces.Dict({"observation": spaces.Box(-1, 1)})
        own = EnvironmentSpaces(observation=place, action=spaces.Discrete(2))
        simulators = SimpleNamespace(spaces=own, recv=None)
        return SimpleNamespace(
            training=SimpleNamespace(simulators=simulators, fork_steps=None),
            spaces=own,
            clock=self._clock,
            agents={},
            updates={},
            cameras=(),
            obstacle_to_restoring=None,
            tracker=SimpleNamespace(faults={}),
            phases=SimpleNamespace(unreached=list),
            description=lambda: "level main: walk\n  3 weights",
        )

    @property
    def progress(self) -> Any:
        training = self.parameters.schedule.training
        return SimpleNamespace(
            ending=training.noun if training.is_reached(self._clock) else None,
            solved_at=None,
            is_settled=True,
            wants_checkpoint=False,
            signals={},
            training_seconds=1.0,
        )

    @property
    def evaluations(self) -> Any:
        return SimpleNamespace(
            is_awaited=False,
            begins=lambda: self._record("phase", {}),
            load_agents=lambda state, elsewhere=False: self.load_state_dict(state),
        )

    def create_graph(
        self,
        runtime: Runtime | None = None,
        *,
        training: bool = True,
        evaluation_envs: int | None = None,
        **_seen_by: object,
    ) -> None:
        runtime = runtime or Runtime()
        if self.parameters.environment.level == "moon":
            raise ConfigurationError("unknown level 'moon'")
        self._rng = generator(runtime.seed, "walk")
        self._weights = torch.zeros(3)
        self._history = np.zeros(0)

    def improve(
        self,
        *,
        is_stopped: Callable[[], bool] = never,
        is_paused: Callable[[], bool] = never,
        evaluator: Evaluator | None = None,
    ) -> Iterator[LogRecord]:
        p, clock = self.parameters, self._clock
        while True:
            due = clock.environment_steps // p.schedule.evaluation_interval.count
            if self._evaluated < due:
                self._evaluated = due
                yield self.evaluate(p.schedule.evaluation_episodes)
            if clock.environment_steps >= p.schedule.training.count or is_stopped() or is_paused():
                return
            yield from self._tick()

    def _tick(self) -> Iterator[LogRecord]:
        p, clock = self.parameters, self._clock
        clock.environment_steps += p.num_envs
        time.sleep(p.seconds_per_step)
        step = self._rng.normal(size=3)
        self._weights += p.agent.learning_rate * torch.from_numpy(step).float()
        self._history = np.append(self._history, step[0])
        if clock.environment_steps == p.signal_at:
            os.kill(os.getpid(), signal.SIGTERM)
        if clock.environment_steps == p.fail_at:
            raise NonFiniteError("the loss is NaN")
        if clock.environment_steps == p.diverge_at and not clock.roll_backs:
            raise DivergedError("the walk has diverged")
        if clock.environment_steps % 10 == 0:
            clock.episodes += 1
            yield self._record("episode", {"episode/reward": float(self._weights.sum())})

    def evaluate(
        self,
        episodes: EnvironmentEpisodes,
        *,
        seed: int | None = None,
        sampling: bool = False,
        is_stopped: Callable[[], bool] = never,
    ) -> Evaluation:
        self.evaluation_seeds.append(seed)
        reward = np.full(episodes.count, float(self._weights.sum()))
        scalars = {
            "evaluation/episodes": float(episodes.count),
            "evaluation/reward_mean": float(reward.mean()),
            "evaluation/reward_std": 0.0,
            "evaluation/length_mean": 1.0,
            "evaluation/reward_iqm": float(reward.mean()),
            "evaluation/reward_iqm_low": float(reward.mean()),
            "evaluation/reward_iqm_high": float(reward.mean()),
        }
        record = replace(self._record("evaluation", scalars), arrays={"episode/reward": reward})
        return Evaluation(**vars(record))

    def state_dict(self) -> State:
        return {
            "clock": self._clock.state_dict(),
            "rng": generator_state(self._rng),
            "weights": self._weights.clone(),
            "history": self._history.copy(),
            "evaluated": self._evaluated,
        }

    def load_state_dict(self, state: State, *, restart_episodes: bool = False) -> None:
        self._clock.load_state_dict(state["clock"])
        load_generator_state(self._rng, state["rng"])
        self._weights = state["weights"].clone()
        self._history = state["history"].copy()
        self._evaluated = state["evaluated"]

    def close(self) -> None:
        self.closed = True

    def _record(self, kind: Any, scalars: dict[str, float]) -> LogRecord:
        clock = self._clock
        return LogRecord(
            kind=kind,
            phase=clock.phase,
            environment_steps=clock.environment_steps,
            training_steps=clock.training_steps,
            episodes=clock.episodes,
            wall_seconds=0.1 * clock.environment_steps,
            scalars=scalars,
        )


def graph_manager(
    level: str = "line",
    steps: int = 100,
    learning_rate: float = 0.1,
    signal_at: int | None = None,
    fail_at: int | None = None,
    diverge_at: int | None = None,
    response: str = "stop",
    seconds_per_step: float = 0.0,
) -> WalkGraphManager:
    """A random walk that pretends to learn.

    Args:
        level: Where it walks.
        steps: For how long.
        learning_rate: How fast.
        signal_at: Step at which it sends itself SIGTERM.
        fail_at: Step at which it breaks.
        diverge_at: Step at which it diverges, unless it has been rolled back.
        response: What it does then.
        seconds_per_step: How slow.
    """
    return WalkGraphManager(
        WalkParameters(
            agent=WalkAgent(learning_rate=learning_rate),
            environment=WalkEnvironment(level=level),
            schedule=ScheduleParameters(
                training=EnvironmentSteps(steps),
                evaluation_interval=EnvironmentSteps(20),
                evaluation_episodes=EnvironmentEpisodes(2),
            ),
            signal_at=signal_at,
            fail_at=fail_at,
            diverge_at=diverge_at,
            divergence=DivergenceParameters(response=response),
            seconds_per_step=seconds_per_step,
        )
    )


def needs(level: str) -> WalkGraphManager:
    return graph_manager(level=level)


ready_made = graph_manager(learning_rate=0.5)
