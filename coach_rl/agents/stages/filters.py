"""The stages of an agent's filters, and of the bounds of its actions."""

import numpy as np
from gymnasium import spaces

from coach_rl.agents.agent_rows import AnyAgentRows, Filtering
from coach_rl.agents.own_filters import UnfilteredInput, UnfilteredOutput
from coach_rl.agents.stages.stage import Stage
from coach_rl.core.box_ranges import clipped_to_space
from coach_rl.core.records import (
    Action,
    Array,
    BoolArray,
    FloatArray,
    IntArray,
    Observation,
    Outcome,
)
from coach_rl.core.spaces import Space


class FilteredInput(Stage):
    """Passes observations and rewards through the InputFilter.

    What stages further outside have added beside its observation space passes by.

    Args:
        agent: The owner of the filter, which may be replaced.
        space: The observation space that the filter was built for.
    """

    def __init__(self, agent: Filtering, space: spaces.Dict) -> None:
        self._agent = agent
        self._keys = space.spaces.keys()
        if agent.input_filter.new_rows(1):
            self.is_stateless = False
        if any(path.startswith("observation/") for path in agent.input_filter.new_rows(1)):
            self.remembers = (
                "a filter of its InputFilter remembers earlier ones (a stack?); leave one of them "
                "out"
            )

    def shown(self, space: spaces.Dict) -> spaces.Dict:
        return self._agent.input_filter.observation_space

    def new_rows(self, num_rows: int) -> dict[str, Array]:
        return self._agent.input_filter.new_rows(num_rows)

    def enter(
        self,
        memory: dict[str, Array],
        rows: IntArray,
        observation: Observation,
        *,
        starts: BoolArray,
        learn: bool,
    ) -> Observation:
        own = observation
        beside = {}
        if not observation.keys() <= self._keys:
            own = {key: values for key, values in observation.items() if key in self._keys}
            beside = {key: values for key, values in observation.items() if key not in self._keys}
        filters = self._agent.input_filter
        filtered = filters.observation(memory, rows, own, starts=starts, learn=learn)
        return {**filtered, **beside} if beside else filtered

    def reward(
        self, row_state: AnyAgentRows, outcome: Outcome, reward: FloatArray, *, learn: bool
    ) -> FloatArray:
        ends = outcome.terminated | outcome.truncated
        filters = self._agent.input_filter
        return filters.reward(row_state.filters, outcome.rows, reward, ends=ends, learn=learn)

    def cut_off(self, row_state: AnyAgentRows, rows: IntArray) -> None:
        ends = np.ones(len(rows), np.bool_)
        nothing = np.zeros(len(rows), np.float64)
        self._agent.input_filter.reward(row_state.filters, rows, nothing, ends=ends, learn=False)


class FilteredOutput(Stage):
    """Passes actions through the OutputFilter.

    Args:
        agent: The owner of the filter.
    """

    def __init__(self, agent: Filtering) -> None:
        self._agent = agent

    def leave(
        self, row_state: AnyAgentRows, rows: IntArray, action: Action, observation: Observation
    ) -> Action:
        return self._agent.output_filter.apply(action)


class ActionBounds(Stage):
    """Clips the policy's actions to the bounds of the Boxes among them.

    Args:
        space: Where the policy acts.
    """

    def __init__(self, space: Space) -> None:
        self._space = space

    def leave(
        self, row_state: AnyAgentRows, rows: IntArray, action: Action, observation: Observation
    ) -> Action:
        return clipped_to_space(self._space, action)


def filter_stages(agent: Filtering, shown: spaces.Dict, acts_in: Space) -> list[Stage]:
    """The stages of an agent's filters, outermost first, where there are any.

    Args:
        agent: The owner of the filters.
        shown: The observation space that its InputFilter was built for.
        acts_in: Where the policy acts.
    """
    found: list[Stage] = []
    if not isinstance(agent.output_filter, UnfilteredOutput):
        found.append(FilteredOutput(agent))
    if not isinstance(agent.input_filter, UnfilteredInput):
        found.append(FilteredInput(agent, shown))
    parts = acts_in.spaces.values() if isinstance(acts_in, spaces.Dict) else (acts_in,)
    for part in parts:
        if isinstance(part, spaces.Box):
            found.append(ActionBounds(acts_in))
            break
    return found
