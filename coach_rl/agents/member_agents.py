"""Several agents as one: their parts of an action, and their joint learning, saving and state."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from gymnasium import spaces

from coach_rl.core.agents import (
    AnyAgent,
    EndingAgent,
    PacedAgent,
    RowState,
    TrainingReport,
    following,
)
from coach_rl.core.clock import Clock
from coach_rl.core.errors import ConfigurationError, SpaceError
from coach_rl.core.records import Action, Array
from coach_rl.core.saved import Saved, SavedAttribute, SavedNames
from coach_rl.core.spaces import Space
from coach_rl.core.state import State

DISCRETE = (spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)


class ActionPart:
    """Some keys of a Dict action space as the space one agent acts in.

    One key is the agent's space unchanged. Several keys become one space that any agent can
    act in, with the elements of the keys in a row: Boxes of floats a flat Box; Discrete,
    MultiDiscrete and MultiBinary a flat MultiDiscrete. Keys of both kinds stay a Dict, which is
    for agents that can act in one.

    Args:
        keys: Which, in this order; one at least.
        whole: The space they belong to.
    """

    def __init__(self, keys: tuple[str, ...], whole: spaces.Dict) -> None:
        self.keys = keys
        self.spaces: dict[str, Space] = {key: whole[key] for key in keys}
        """Their spaces."""
        self.space, self._split = self._joined()

    def split(self, action: Action) -> dict[str, Array]:
        """The agent's actions [R, ...] by key, [R, ...] each."""
        return self._split(action)

    def _joined(self) -> tuple[Space, Callable[[Action], dict[str, Array]]]:
        parts = list(self.spaces.values())
        if len(parts) == 1:
            return parts[0], self._split_one
        if all(isinstance(part, DISCRETE) for part in parts):
            return _joined_discrete(parts), self._split_flat
        boxes = [part for part in parts if isinstance(part, spaces.Box)]
        if len(boxes) == len(parts) and all(np.issubdtype(box.dtype, np.floating) for box in boxes):
            return _joined_boxes(boxes), self._split_flat
        return spaces.Dict(self.spaces), self._split_dict

    def _split_one(self, action: Action) -> dict[str, Array]:
        assert not isinstance(action, dict)
        return {self.keys[0]: action}

    def _split_dict(self, action: Action) -> dict[str, Array]:
        assert isinstance(action, dict)
        return action

    def _split_flat(self, action: Action) -> dict[str, Array]:
        assert not isinstance(action, dict)
        found: dict[str, Array] = {}
        begin = 0
        for key, part in self.spaces.items():
            shape = part.shape or ()
            end = begin + int(np.prod(shape))
            values = action[:, begin:end].reshape(len(action), *shape)
            found[key] = values.astype(part.dtype, copy=False)
            begin = end
        return found


def _joined_boxes(boxes: list[spaces.Box]) -> spaces.Box:
    return spaces.Box(
        np.concatenate([box.low.reshape(-1) for box in boxes]),
        np.concatenate([box.high.reshape(-1) for box in boxes]),
        dtype=np.result_type(*[box.dtype for box in boxes]).type,
    )


def _joined_discrete(parts: list[Space]) -> spaces.MultiDiscrete:
    counts, starts = zip(*[_choices(part) for part in parts], strict=True)
    return spaces.MultiDiscrete(
        np.concatenate(counts).astype(np.int64), start=np.concatenate(starts).astype(np.int64)
    )


def _choices(space: Space) -> tuple[Array, Array]:
    """Return how many choices each element of a discrete space has, and its first one, [A] each."""
    match space:
        case spaces.Discrete():
            return np.array([space.n]), np.array([space.start])
        case spaces.MultiDiscrete():
            return space.nvec.reshape(-1), space.start.reshape(-1)
    size = int(np.prod(space.shape or ()))
    return np.full(size, 2), np.zeros(size, np.int64)


@dataclass(kw_only=True)
class MemberRows(Saved):
    """The state that agents keep together per row of one stack."""

    SAVED: ClassVar[SavedNames] = ("members",)

    members: dict[str, RowState]
    """Each member's own row state."""

    def decisions(self) -> State:
        return {name: following(rows, name).decisions() for name, rows in self.members.items()}

    def follow(self, decisions: State) -> None:
        for name, rows in self.members.items():
            following(rows, name).follow(decisions[name])


class MemberAgents(Saved):
    """The shared half of an agent made of others; `AgentGroup` and `SkillAgents` choose who acts.

    Args:
        members: The agents by name.
    """

    SAVED: ClassVar[SavedNames] = (SavedAttribute("members", inline=True),)

    def __init__(self, members: Mapping[str, AnyAgent]) -> None:
        self.members = dict(members)
        for name, agent in self.members.items():
            if isinstance(agent, EndingAgent):
                raise ConfigurationError(
                    f"member '{name}' ends its own options ({type(agent).__name__}.ends), which "
                    "is for an agent that has its level alone; choose another agent"
                )

    @property
    def is_on_policy(self) -> bool:
        """True if any member is."""
        agents = self.members.values()
        return any(isinstance(agent, PacedAgent) and agent.is_on_policy for agent in agents)

    def parts(self) -> dict[str, AnyAgent]:
        return self.members

    def decisions_until_training(self) -> int:
        return min(
            agent.decisions_until_training() if isinstance(agent, PacedAgent) else 1
            for agent in self.members.values()
        )

    def train(self, clock: Clock) -> TrainingReport | None:
        reports = {name: agent.train(clock) for name, agent in self.members.items()}
        learned = {name: report for name, report in reports.items() if report is not None}
        if not learned:
            return None
        return TrainingReport(
            training_steps=sum(report.training_steps for report in learned.values()),
            metrics={},
            members={name: report.metrics for name, report in learned.items()},
        )

    def policy_state_dict(self) -> State:
        return {name: agent.policy_state_dict() for name, agent in self.members.items()}

    def load_policy(self, state: State) -> None:
        for name, agent in self.members.items():
            if name not in state:
                raise SpaceError(
                    f"the saved policy has no member '{name}'; it has {', '.join(sorted(state))}"
                )
            agent.load_policy(state[name])
