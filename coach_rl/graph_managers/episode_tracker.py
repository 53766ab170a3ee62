"""Reward and length of each row's real episode so far, and the simulators' failures."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from coach_rl.core.infos import agent_rewards
from coach_rl.core.records import Array, BoolArray, EnvResponse, FloatArray, IntArray, take
from coach_rl.core.saved import Saved, SavedAttribute

SUCCESS_KEYS = ("is_success", "success")
"""Keys under which environments report success in their info."""


@dataclass(frozen=True, kw_only=True)
class FinishedEpisodes:
    """Episodes that ended in one tick, [E] each."""

    rows: IntArray
    reward: FloatArray
    """Sum of raw rewards."""
    length: IntArray
    """Simulator steps."""
    success: FloatArray
    """1.0 where the last step was a success; valid if `reports_success`."""
    success_any: FloatArray
    """1.0 where any step was."""
    agents: dict[str, FloatArray] = field(default_factory=dict)
    """Sums of the raw rewards of single agents, [E] each by name, if the environment reports them
    (see `core.agent_info`)."""

    def __len__(self) -> int:
        return len(self.rows)

    def episodes_of(self, chosen: BoolArray) -> "FinishedEpisodes":
        """The episodes where `chosen` [E] is true."""
        return FinishedEpisodes(
            rows=self.rows[chosen],
            reward=self.reward[chosen],
            length=self.length[chosen],
            success=self.success[chosen],
            success_any=self.success_any[chosen],
            agents=take(self.agents, chosen),
        )


class EpisodeTracker(Saved):
    """Sums of rewards and steps per row, and success.

    Many environments report success only when there is one, so a row without a report has
    none. That an environment reports it at all is known from the first time it does.

    Args:
        num_rows: N.
    """

    SAVED = (
        "_reward",
        "_length",
        "_succeeded",
        "reports_success",
        SavedAttribute("_agents", varies=True),
        SavedAttribute("faults", varies=True),
    )

    def __init__(self, num_rows: int) -> None:
        self._reward = np.zeros(num_rows, np.float64)
        self._length = np.zeros(num_rows, np.int64)
        self._succeeded = np.zeros(num_rows, np.bool_)
        self.reports_success = False
        """True if success was ever reported."""
        self._agents: dict[str, FloatArray] = {}
        self.faults: dict[str, int] = {}
        """Number of the simulators' failures, by cause."""

    @property
    def lengths(self) -> IntArray:
        """Steps of each row's open episode so far, [N]."""
        return self._length.copy()

    def restart(self) -> None:
        """Drop the open episodes, as others begin."""
        self._end(np.arange(len(self._length)))

    def note(self, answer: EnvResponse) -> FinishedEpisodes | None:
        """Add an answer of the simulator; return the episodes it ended, None when it ended none.

        Episodes that a failure of the simulator cut short are not among them: their rewards are
        those of a part.
        """
        rows = answer.rows
        for fault in answer.faults:
            self.faults[fault.cause] = self.faults.get(fault.cause, 0) + 1
        self._reward[rows] += answer.reward
        self._length[rows] += answer.duration
        success = None
        if answer.info:
            for name, reward in agent_rewards(answer.info).items():
                total = self._agents.setdefault(name, np.zeros_like(self._reward))
                total[rows] += reward
            success = _success(answer.info)
        if success is not None:
            self.reports_success = True
            self._succeeded[rows] |= success.astype(np.bool_)
        over = answer.terminated | answer.truncated
        if not over.any():
            return None
        if answer.faults:
            lost = answer.lost
            self._end(rows[lost])
            over &= ~lost
            if not over.any():
                return None
        ended = rows[over]
        finished = FinishedEpisodes(
            rows=ended,
            reward=self._reward[ended],
            length=self._length[ended],
            success=np.zeros(len(ended)) if success is None else success[over],
            success_any=self._succeeded[ended].astype(np.float64),
            agents=take(self._agents, ended),
        )
        self._end(ended)
        return finished

    def _end(self, rows: IntArray) -> None:
        for total in (self._reward, *self._agents.values()):
            total[rows] = 0.0
        self._length[rows] = 0
        self._succeeded[rows] = False


def _success(info: Mapping[str, Array]) -> FloatArray | None:
    """Success of the rows that answered, [R]; None if none of them reported it."""
    for key in SUCCESS_KEYS:
        if key in info:
            success = info[key].astype(np.float64)
            reported = info.get(f"_{key}")
            return success if reported is None else np.where(reported, success, 0.0)
    return None
