"""The stage of an agent that keeps infos of the environment with its transitions."""

import warnings

import numpy as np

from coach_rl.agents.shown_numbers import LARGEST
from coach_rl.agents.stages.stage import Stage, StageKind
from coach_rl.core.errors import CoachWarning, NonFiniteError, SpaceError
from coach_rl.core.records import Array, Observation, Outcome
from coach_rl.memories.batches import INFOS


class InfoColumns(Stage):
    """Keeps infos of the environment with transitions.

    Args:
        names: Their names.
        agent: The agent's name, for messages.
    """

    def __init__(self, names: tuple[str, ...], *, agent: str) -> None:
        self._names = names
        self._agent = agent
        self._missing: set[str] = set()
        self.extras = tuple(f"{INFOS}{name}" for name in names)

    def store(self, observation: Observation, extras: dict[str, Array], outcome: Outcome) -> None:
        extras |= self.of(outcome)

    def of(self, outcome: Outcome) -> dict[str, Array]:
        """The extras of an outcome, float32 [R] each.

        Args:
            outcome: With the environment's infos.

        Raises:
            SpaceError: An info is not one number a row.

        Warns:
            CoachWarning: The environment does not report an info; warns once.
        """
        columns = {}
        for name, extra in zip(self._names, self.extras, strict=True):
            values = outcome.info.get(name)
            if values is None:
                self._warn_of(name, outcome)
                values = np.zeros(len(outcome.rows), np.float32)
            elif values.ndim != 1 or values.dtype.kind not in "biuf":
                raise SpaceError(
                    f"agent '{self._agent}' is to keep the info '{name}', which is {values.dtype} "
                    f"of shape {values.shape[1:]} and not one number a row; leave it out of `infos`"
                )
            elif np.count_nonzero((np.abs(values) > LARGEST) & np.isfinite(values)):
                raise NonFiniteError(
                    f"agent '{self._agent}' is to keep the info '{name}', which has numbers that "
                    "float32 makes infinite; scale it in the environment"
                )
            columns[extra] = values.astype(np.float32)
        return columns

    def _warn_of(self, name: str, outcome: Outcome) -> None:
        if name in self._missing:
            return
        self._missing.add(name)
        there = [other for other in outcome.info if not other.startswith("_")]
        warnings.warn(
            f"agent '{self._agent}' is to keep the info '{name}', which the environment does not "
            f"report now; 0 is kept until it does. It reports {', '.join(there) or 'none'}",
            CoachWarning,
            stacklevel=2,
        )


KIND = StageKind(
    order=40, option="infos", build=lambda at: InfoColumns(at.params.infos, agent=at.name)
)
