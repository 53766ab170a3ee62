"""Members of a group, and an agent's view of the group's records.

A group's level has N environments and R of them in a record (a request or an outcome). An agent
acts for one member, or for S members that share it. It has S rows for each environment: row n of
the level is rows n S to n S + S - 1 of the agent, a *slot* for each member.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from coach_rl.core.errors import RunError, UnknownNameError
from coach_rl.core.infos import Over, is_agent_end, is_agent_reward
from coach_rl.core.records import (
    Action,
    ActionRequest,
    Array,
    BoolArray,
    End,
    FloatArray,
    IntArray,
    Observation,
    Outcome,
    take,
)
from coach_rl.extensions.members.action_parts import WHOLE, ActionPart
from coach_rl.extensions.members.requests import GraphRequest

Index = IntArray | slice
EVERY_ROW = slice(None)


@dataclass(frozen=True, kw_only=True)
class BoundMember:
    """A member of a group: its part of the level's observations, actions, rewards and ends."""

    name: str
    """The member's name."""
    agent_name: str
    """The name of the agent that acts for it."""
    observations: Mapping[str, str] | None = None
    """The keys it sees, and the names under which its agent does; None: all as they are."""
    part: ActionPart | None = None
    """The part of the action space that the member controls; None: all of it."""
    reward: str | None = None
    """The info array that holds its own reward; None: it gets the level's reward."""
    terminated: str | None = None
    """The info array that marks terminal states of its own episode; None: the level's."""
    truncated: str | None = None
    """The info array that marks truncations of its own episode; None: the level's."""
    infos: tuple[str, ...] = ()
    """Names of the infos that its agent keeps with transitions."""
    over: Mapping[str, Over] = field(default_factory=dict)
    """Rules by which infos of steps become those of a decision, by name."""
    slot: int = 0
    """Its number among the members that share its agent."""
    slots: int = 1
    """S, the number of members that share its agent."""

    def seen(self, observation: dict[str, Any], index: Index = EVERY_ROW) -> dict[str, Any]:
        """Those of the member's keys that an observation has, by its agent's names, [D, ...] each.

        Args:
            observation: The level's, [R, ...] each.
            index: Positions of D rows in it.
        """
        if self.observations is None:
            return take(observation, index)
        seen = self.observations.items()
        return {name: observation[key][index] for key, name in seen if key in observation}

    def split(self, action: Action) -> dict[str, Array]:
        """The member's actions [D, ...] by key, [D, ...] each; by `WHOLE` as a whole."""
        if self.part is not None:
            return self.part.split(action)
        return action if isinstance(action, dict) else {WHOLE: action}

    @property
    def has_own_end(self) -> bool:
        """True if its own episode may be over before the level's."""
        return self.terminated is not None or self.truncated is not None

    def ends(self, outcome: Outcome) -> tuple[BoolArray, BoolArray]:
        """Masks of rows where its own episode was terminated, and truncated, [R] each."""
        return self._flags(outcome, self.terminated), self._flags(outcome, self.truncated)

    def rewards(self, outcome: Outcome) -> FloatArray:
        """The member's rewards, [R]."""
        key = self.reward
        if key is None:
            return outcome.reward
        if not is_agent_reward(key):
            self._require_added_up(outcome, key, "a reward", "sum")
        return self._info(outcome, key).astype(np.float64)

    def _flags(self, outcome: Outcome, key: str | None) -> BoolArray:
        """The info array of an end, [R]; false everywhere without one."""
        if key is None:
            return np.zeros(len(outcome.rows), np.bool_)
        if not is_agent_end(key):
            self._require_added_up(outcome, key, "an end", "maximum")
        return self._info(outcome, key).astype(np.bool_)

    def _require_added_up(self, outcome: Outcome, key: str, what: str, rule: Over) -> None:
        """Raise `RunError` for decisions of several steps: an info covers only the last one."""
        if self.over.get(key) != rule and (outcome.duration > 1).any():
            raise RunError(
                f"member '{self.name}' has {what} of its own, '{key}', of the last simulator "
                f"step, but its decisions last {int(outcome.duration.max())} steps; set "
                f"GraphParameters(decision_infos={{'{key}': '{rule}'}})"
            )

    def _info(self, outcome: Outcome, key: str) -> Array:
        """An info array of one number a row, [R]."""
        values = outcome.info.get(key)
        if values is None:
            raise UnknownNameError("info key", key, outcome.info, f"named by member '{self.name}'")
        if values.shape != (len(outcome.rows),):
            raise RunError(
                f"info '{key}' of member '{self.name}' has shape {values.shape}, "
                f"needed is one number for each of {len(outcome.rows)} rows"
            )
        known = outcome.info.get(f"_{key}")
        if known is not None and not known.all():
            row = int(outcome.rows[np.flatnonzero(~known)[0]])
            raise RunError(
                f"the environment left out info '{key}' of member '{self.name}' in row {row}; "
                "it must be there in every row and step"
            )
        return values


class MemberIndex(NamedTuple):
    """The rows of a record in which one member has a part."""

    number: int
    """The member's number in the group."""
    member: BoundMember
    """The member."""
    places: IntArray
    """Positions of these rows in the record, ascending, one at least."""


class AgentView:
    """A record of R rows as one agent sees it: D rows, those of each of its members in turn.

    Args:
        parts: The agent's members that have a part in the record, one at least.
        count: R.
    """

    def __init__(self, parts: list[MemberIndex], count: int) -> None:
        self.parts = parts
        self.agent = parts[0].member.agent_name
        """Name of the agent."""
        index = (
            parts[0].places if len(parts) == 1 else np.concatenate([each.places for each in parts])
        )
        is_whole = len(parts) == 1 and len(index) == count
        self.index: Index = EVERY_ROW if is_whole else index
        """Positions of the agent's rows in the record, [D]."""

    def request(
        self, request: ActionRequest, starts: BoolArray, episode_start: BoolArray, real: BoolArray
    ) -> GraphRequest:
        """The agent's request.

        Args:
            request: The group's.
            starts: Where the members' decisions continue no earlier ones, [R].
            episode_start: Where they are the first of an episode, [R].
            real: Where the agent's are the first of a real episode, [D].
        """
        index = self.index
        return GraphRequest(
            rows=self.rows(request.rows),
            observation=self.seen(request.observation),
            starts=starts[index],
            episode_start=episode_start[index],
            greedy=request.greedy[index],
            real=real,
        )

    def outcome(self, outcome: Outcome) -> tuple[Outcome, BoolArray | None]:
        """The agent's outcome, and where the own episode of a member has ended in it, [D].

        The latter is None if no member has an end of its own.
        """
        index = self.index
        ended = None
        terminated = outcome.terminated[index]
        truncated = outcome.truncated[index]
        end = outcome.end[index]
        if any(each.member.has_own_end for each in self.parts):
            by_member = [each.member.ends(outcome) for each in self.parts]
            own_terminated, own_truncated = map(self.joined, zip(*by_member, strict=True))  # [D]
            ended = own_terminated | own_truncated
            # The own end counts before the level's, and terminated before truncated.
            terminated = np.where(ended, own_terminated, terminated)
            truncated = np.where(ended, own_truncated & ~own_terminated, truncated)
            end = end | own_terminated * np.uint8(End.TERMINATED)
            end |= own_truncated * np.uint8(End.TRUNCATED)
        own = Outcome(
            rows=self.rows(outcome.rows),
            observation=self.seen(outcome.observation),
            reward=self.joined([each.member.rewards(outcome) for each in self.parts]),
            terminated=terminated,
            truncated=truncated,
            duration=outcome.duration[index],
            end=end,
            below=outcome.below[index],
            tested=outcome.tested[index],
            next_goal=self.seen(outcome.next_goal),
            info={name: values[index] for name, values in outcome.info.items()},
        )
        return own, ended

    def rows(self, rows: IntArray) -> IntArray:
        """The agent's rows [D] of the level's rows [R]: n S + slot."""
        slots = self.parts[0].member.slots
        if slots == 1:
            return rows[self.index]
        return rows[self.index] * slots + self._repeated([each.member.slot for each in self.parts])

    def flat_index(self, rows: IntArray, num_envs: int) -> IntArray:
        """Places [D] of the members in the level's rows [R] of flattened arrays [K, N].

        Args:
            rows: The level's rows, [R].
            num_envs: N.
        """
        return self._repeated([each.number for each in self.parts]) * num_envs + rows[self.index]

    def joined(self, values: Sequence[Array]) -> Array:
        """Each member's rows of its own array [R, ...], one member after the other, [D, ...]."""
        if len(values) == 1:
            return values[0][self.index]
        return np.concatenate(
            [own[each.places] for own, each in zip(values, self.parts, strict=True)]
        )

    def seen(self, observation: Observation) -> Observation:
        """The agent's view of an observation [R, ...] each, [D, ...] each."""
        if len(self.parts) == 1:
            return self.parts[0].member.seen(observation, self.index)
        by_member = [each.member.seen(observation, each.places) for each in self.parts]
        return {key: np.concatenate([own[key] for own in by_member]) for key in by_member[0]}

    def _repeated(self, numbers: list[int]) -> IntArray | int:
        """A number of each member once for each of its rows, [D]; the number itself for one."""
        if len(numbers) == 1:
            return numbers[0]
        return np.repeat(numbers, [len(each.places) for each in self.parts])
