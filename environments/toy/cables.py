"""Cables: connect places with as little cable as possible, one cable at a time."""

from typing import Annotated

import numpy as np
from annotated_types import Ge
from gymnasium import spaces

from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import ACTION_MASK, Action, BoolArray, FloatArray, Observation
from coach_rl.core.spaces import EnvironmentSpaces, Space
from coach_rl.environments.world import WorldEnvironment, WorldState, WorldStep


@parameter_class
class CablesParameters:
    """Connect drawn places by cables; a cable between connected places is forbidden.

    Every episode draws places in the unit square. An action lays a cable between two of them, and
    its reward is minus the cable's length. The episode ends once all places are connected, directly
    or through others. A cable between places that are connected already isn't laid: it costs
    `refused` and a step.

    What is allowed is hard to read from lengths and laid cables; which of the allowed cables is
    best is easy: the shortest leads to the least total (Kruskal 1956).
    """

    places: Annotated[int, Ge(2)] = 8
    """Number of places, 2 or more; there are `places * (places - 1) / 2` actions."""
    masked: bool = True
    """If True, the observation has a mask of the allowed cables, `action_mask`."""
    refused: Positive[float] = 0.5
    """Cost of a forbidden cable; the mean distance of two places is 0.52."""
    max_episode_steps: Positive[int] | None = None
    """Length of an episode that doesn't connect all; None takes four times the cables needed."""

    @property
    def level(self) -> str:
        return f"cables_{self.places}"

    def build(self, *, num_envs: int) -> WorldEnvironment:
        limit = self.max_episode_steps or 4 * (self.places - 1)
        return WorldEnvironment(Cables(self), num_envs=num_envs, max_episode_steps=limit)


class Cables:
    """The rules of the cables."""

    step_numbers = 0

    def __init__(self, params: CablesParameters) -> None:
        self._params = params
        self.start_numbers = 2 * params.places
        self._ends = np.triu_indices(params.places, 1)
        """The two places of each action's cable."""
        actions = len(self._ends[0])
        high = np.repeat(np.array([np.sqrt(2), 1], np.float32), actions)
        parts: dict[str, Space] = {"observation": spaces.Box(np.zeros_like(high), high)}
        if params.masked:
            parts[ACTION_MASK] = spaces.MultiBinary(actions)
        self.spaces = EnvironmentSpaces(
            observation=spaces.Dict(parts), action=spaces.Discrete(actions)
        )

    def start(self, uniform: FloatArray) -> WorldState:
        rows = len(uniform)
        places = self._params.places
        position = uniform.reshape(rows, places, 2)
        one, other = self._ends
        length = np.linalg.norm(position[:, one] - position[:, other], axis=2)
        return {
            "length": length,
            "laid": np.zeros(length.shape, np.bool_),
            "network": np.tile(np.arange(places), (rows, 1)),  # the lowest place of each one's
        }

    def observe(self, state: WorldState) -> Observation:
        """Lengths and which are laid, [R, 2 * actions]; with masks also what is allowed."""
        shown = np.concatenate([state["length"], state["laid"]], axis=1, dtype=np.float32)
        observation: Observation = {"observation": shown}
        if self._params.masked:
            observation[ACTION_MASK] = self._allowed(state).astype(np.int8)
        return observation

    def step(self, state: WorldState, action: Action, uniform: FloatArray) -> WorldStep:  # noqa: ARG002 - deterministic
        cable = np.asarray(action)
        rows = np.arange(len(cable))
        allowed = self._allowed(state)[rows, cable]
        laid = state["laid"].copy()
        laid[rows, cable] |= allowed
        network = state["network"]
        one, other = (network[rows, end[cable]][:, None] for end in self._ends)
        joined = np.where(network == np.maximum(one, other), np.minimum(one, other), network)
        network = np.where(allowed[:, None], joined, network)
        reward = -np.where(allowed, state["length"][rows, cable], self._params.refused)
        connected = (network == 0).all(axis=1)
        after = {"length": state["length"], "laid": laid, "network": network}
        return WorldStep(after, reward, connected, {})

    def _allowed(self, state: WorldState) -> BoolArray:
        """The cables between places that aren't connected yet, [R, actions]."""
        one, other = self._ends
        allowed: BoolArray = state["network"][:, one] != state["network"][:, other]
        return allowed
