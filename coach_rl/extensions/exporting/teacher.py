"""Exported policies as teachers: `TeacherParameters(run="walker.zip")`."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces as gymnasium_spaces

from coach_rl.configuration.file_writing import sha256_of_file
from coach_rl.core.agents import RowState
from coach_rl.core.errors import ConfigurationError, SpaceError, how_to_install
from coach_rl.core.records import Action, ActionRequest, FloatArray, IntArray, Outcome
from coach_rl.core.seeding import generator_state, load_generator_state
from coach_rl.core.spaces import EnvironmentSpaces, Space
from coach_rl.core.state import State
from coach_rl.extensions.exporting.archive import described
from coach_rl.extensions.exporting.coach_policy import Policy
from coach_rl.extensions.imitation.teacher import FORMS, TeacherForm
from coach_rl.runs.folder import TakenCheckpoint

_PLAIN = (gymnasium_spaces.Box, gymnasium_spaces.Discrete, gymnasium_spaces.MultiDiscrete)
"""Spaces in which an exported policy acts as a level does."""


class ExportedTeacher:
    """An exported policy that acts greedily on what it is shown.

    Args:
        file: The archive.
        spaces: What the student's level shows and takes.
        name: For messages.

    Raises:
        ConfigurationError: The archive is damaged, or onnxruntime is missing.
        SpaceError: It observes what the level doesn't show, or acts in another space.
    """

    def __init__(self, file: Path, spaces: EnvironmentSpaces, *, name: str) -> None:
        self._name = name
        try:
            policy = Policy(file)
        except ValueError as error:
            raise ConfigurationError(f"the teacher {name} cannot be loaded: {error}") from error
        except ImportError as error:
            raise ConfigurationError(
                f"the teacher {name}, an exported policy, needs onnxruntime, which cannot be "
                f"imported ({error}); {how_to_install('export')}"
            ) from error
        self._new_policy = partial(Policy, file)
        shown = {key: described(space) for key, space in spaces.observation.spaces.items()}
        for key, space in policy.spaces["observation"].items():
            if shown.get(key) != space:
                raise SpaceError(
                    f"the teacher {name} observes '{key}' in {space}, and this level shows "
                    f"{spaces.observation}; let the level show it, and leave it out in the "
                    "student's input_filter"
                )
        self._keys = tuple(policy.spaces["observation"])
        self._space = _plain(spaces.action, policy.spaces["action"], name)

    def new_rows(self, num_envs: int) -> RowState:
        """The state per row that the policy keeps from one observation to the next."""
        return ExportedRows(self._new_policy, num_envs)

    def actions(self, row_state: RowState, request: ActionRequest) -> Action:
        """Its actions [R, ...] in the level's action space for the level's observations.

        Raises:
            ConfigurationError: Some rows don't decide now.
        """
        assert isinstance(row_state, ExportedRows)
        if len(request.rows) != row_state.num_envs:
            raise ConfigurationError(
                f"the teacher {self._name}, an exported policy, acts in all rows at once, and "
                f"this level decides in {len(request.rows)} of {row_state.num_envs}; name the run "
                "that it was exported from"
            )
        policy = row_state.policy
        policy.reset(request.episode_start)
        acted = policy.act({key: request.observation[key] for key in self._keys})
        return np.asarray(acted, self._space.dtype)

    def observe(self, row_state: RowState, outcome: Outcome) -> None:
        """Nothing: the next observation shows the policy what it needs."""

    def parameters(self, row_state: RowState, rows: IntArray) -> FloatArray:  # noqa: ARG002
        """Refused: an exported policy gives actions alone."""
        raise self._without_distribution()

    def require_same_actions(self, student: object) -> None:  # noqa: ARG002 - of any student
        """Refused: an exported policy gives actions alone."""
        raise self._without_distribution()

    def _without_distribution(self) -> SpaceError:
        return SpaceError(
            f"the teacher {self._name}, an exported policy, has no distribution of PPO's kind; use "
            "target='action'"
        )


def _plain(space: Space, described_space: Any, name: str) -> Space:
    """The space of a level's actions; `SpaceError` unless a policy acts in it, too."""
    if not isinstance(space, _PLAIN) or described(space) != described_space:
        raise SpaceError(
            f"the teacher {name} acts in {described_space}, and this level in {space}; name a run "
            "with the same actions"
        )
    return space


class ExportedRows:
    """An exported policy and what it remembers of its rows.

    Args:
        new_policy: Makes it.
        num_envs: N, the number of rows.
    """

    def __init__(self, new_policy: Callable[[], Policy], num_envs: int) -> None:
        self.policy = new_policy()
        self.policy._allot(num_envs)
        self.num_envs = num_envs

    def state_dict(self) -> State:
        """The arrays that its levels remember of their rows, and its generator."""
        remembered = {
            name: {key: _copied(each) for key, each in vars(part).items() if _is_kept(each)}
            for name, part in self._parts().items()
        }
        return {"remembered": remembered, "generator": generator_state(self.policy._rng)}

    def load_state_dict(self, state: State) -> None:
        """Continue where the state was saved."""
        parts = self._parts()
        for name, kept in state["remembered"].items():
            vars(parts[name]).update({key: _copied(each) for key, each in kept.items()})
        load_generator_state(self.policy._rng, state["generator"])

    def _parts(self) -> dict[str, object]:
        """The policy and its levels, by name."""
        levels = {f"level {each.number}": each for each in self.policy._levels}
        return {"policy": self.policy, **levels}


def _is_kept(value: object) -> bool:
    """Return whether an attribute is an array, or arrays by name."""
    if isinstance(value, dict):
        return bool(value) and all(isinstance(each, np.ndarray) for each in value.values())
    return isinstance(value, np.ndarray)


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: np.array(each) for name, each in value.items()}
    return np.array(value)


def _taken(run: str) -> TakenCheckpoint:
    """The archive as it is now."""
    file = Path(run).expanduser().absolute()
    if not file.is_file():
        raise ConfigurationError(f"there is no exported policy {file}; give the path of one")
    return TakenCheckpoint(run=run, checkpoint=str(file), sha256=sha256_of_file(file))


FORMS[".zip"] = TeacherForm(
    taken=_taken,
    build=lambda file, spaces, name: ExportedTeacher(file, spaces, name=name),
)
