"""A preset whose experiment is a random walk; everything in it is defined in this file."""

import os
import signal
import time
from dataclasses import dataclass

import numpy as np
from gymnasium import spaces

from coach_rl.core.agents import AgentContext
from coach_rl.core.clock import Clock
from coach_rl.core.errors import ConfigurationError, DivergedError, NonFiniteError, require
from coach_rl.core.records import Action, ActionRequest, FloatArray, Observation
from coach_rl.core.runtime import DivergenceParameters
from coach_rl.core.saved import SavedAttribute
from coach_rl.core.seeding import generator
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.state import State
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.world import WorldEnvironment, WorldState, WorldStep
from coach_rl.extensions.scripts.scripted_agent import ActingOnly, ScriptedRows
from coach_rl.graph_managers.graph_manager import BasicRLGraphManager
from coach_rl.graph_managers.parameters import (
    BasicGraphParameters,
    ScheduleParameters,
)


@dataclass(frozen=True, kw_only=True)
class WalkEnvironment:
    level: str = "line"

    def build(self, *, num_envs: int) -> WorldEnvironment:
        if self.level == "moon":
            raise ConfigurationError("unknown level 'moon'")
        return WorldEnvironment(Line(), num_envs=num_envs, max_episode_steps=10)


class Line:
    """The rules: a step's reward is its length."""

    start_numbers, step_numbers = 1, 0
    spaces = EnvironmentSpaces(
        observation=spaces.Dict({"observation": spaces.Box(-np.inf, np.inf, (1,))}),
        action=spaces.Box(-1e6, 1e6, (1,)),
    )

    def start(self, uniform: FloatArray) -> WorldState:
        return {"place": uniform.astype(np.float32)}

    def observe(self, state: WorldState) -> Observation:
        return {"observation": state["place"].copy()}

    def step(self, state: WorldState, action: Action, uniform: FloatArray) -> WorldStep:
        step = np.asarray(action, np.float32)
        place = {"place": state["place"] + step}
        return WorldStep(place, step[:, 0].astype(np.float64), np.zeros(len(step), np.bool_), {})


@dataclass(frozen=True, kw_only=True)
class WalkAgent:
    name: str = "main"
    learning_rate: float = 0.1
    layers: tuple[int, ...] = (4, 4)
    signal_at: int | None = None
    fail_at: int | None = None
    diverge_at: int | None = None
    seconds_per_step: float = 0.0
    waits_at: int | None = None
    waits_for: str = ""

    def __post_init__(self) -> None:
        require(self.learning_rate > 0, f"learning_rate must be above 0, got {self.learning_rate}")

    def build(self, context: AgentContext) -> "Walker":
        return Walker(self, context.seed)


class Walker(ActingOnly):
    """Walks by the sum of its weights, which it moves at random after every step."""

    SAVED = ("rng", "weights", SavedAttribute("history", varies=True))

    def __init__(self, params: WalkAgent, seed: int) -> None:
        super().__init__(params.name)
        self.params, self.rng = params, generator(seed, "walk")
        self.weights, self.history = np.zeros(3, np.float32), np.zeros(0)

    def new_rows(self, num_envs: int, seed: int) -> ScriptedRows:
        return ScriptedRows()

    def act(self, row_state: ScriptedRows, request: ActionRequest, clock: Clock) -> Action:
        return np.full((len(request.rows), 1), self.weights.sum() / 10, np.float32)

    def train(self, clock: Clock) -> None:
        params, now = self.params, clock.environment_steps
        time.sleep(params.seconds_per_step)
        while now == params.waits_at and not os.path.exists(params.waits_for):
            time.sleep(0.01)
        step = self.rng.normal(size=3)
        self.weights += (params.learning_rate * step).astype(np.float32)
        self.history = np.append(self.history, step[0])
        if now == params.signal_at:
            os.kill(os.getpid(), signal.SIGTERM)
        if now == params.fail_at:
            raise NonFiniteError("the loss is NaN")
        if now == params.diverge_at and not clock.roll_backs:
            raise DivergedError("the walk has diverged")

    def policy_state_dict(self) -> State:
        return {"weights": self.weights}

    def load_policy(self, state: State) -> None:
        self.weights = state["weights"].copy()

    def description(self) -> str:
        return "walk with 3 weights"


def graph_manager(
    level: str = "line",
    steps: int = 100,
    learning_rate: float = 0.1,
    signal_at: int | None = None,
    fail_at: int | None = None,
    diverge_at: int | None = None,
    response: str = "stop",
    seconds_per_step: float = 0.0,
) -> BasicRLGraphManager:
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
    return BasicRLGraphManager(
        BasicGraphParameters(
            agent=WalkAgent(
                learning_rate=learning_rate,
                signal_at=signal_at,
                fail_at=fail_at,
                diverge_at=diverge_at,
                seconds_per_step=seconds_per_step,
            ),
            environment=WalkEnvironment(level=level),
            schedule=ScheduleParameters(
                training=EnvironmentSteps(steps),
                evaluation_interval=EnvironmentSteps(20),
                evaluation_episodes=EnvironmentEpisodes(2),
                progress_interval=EnvironmentSteps(10),
            ),
            divergence=DivergenceParameters(response=response),
        )
    )


def needs(level: str) -> BasicRLGraphManager:
    return graph_manager(level=level)


ready_made = graph_manager(learning_rate=0.5)
