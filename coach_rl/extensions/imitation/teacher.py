"""The agent of another run, which shows a student what to do and doesn't learn any more.

    DAggerAgentParameters(teacher=TeacherParameters(run="trained:Mujoco_PPO/hopper"))

It is shown what the student's level shows, before the student's filters.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import singledispatch
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from gymnasium import spaces

from coach_rl.agents.agent_rows import AgentRows
from coach_rl.agents.filtered_agent import FilteredAgent
from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.agents.ppo_agent import PPOAgent
from coach_rl.configuration.extensions import import_offers
from coach_rl.configuration.file_writing import sha256_of_file
from coach_rl.core.agents import AnyAgent, RowState
from coach_rl.core.clock import Clock
from coach_rl.core.errors import CheckpointError, CoachError, ConfigurationError, SpaceError
from coach_rl.core.parameter_classes import RecordedParameters, parameter_class
from coach_rl.core.ranges import NonEmpty
from coach_rl.core.records import (
    Action,
    ActionRequest,
    FloatArray,
    IntArray,
    Observation,
    Outcome,
    take,
)
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.extensions.imitation.policy_network import SampledActions
from coach_rl.runs.folder import TakenCheckpoint
from coach_rl.sessions.trained_agent import load_graph

_SHIPPED = "trained:"


@parameter_class
class TeacherParameters(RecordedParameters):
    """A trained agent of one level, whose greedy actions are the right ones."""

    run: NonEmpty[str]
    """A run's folder or checkpoint, or `trained:NAME`, as `load` takes it, or a policy that `coach
    export` has written, FILE.zip (required). It has to stay for as long as the student learns."""
    taken: TakenCheckpoint | None = None
    """The checkpoint that a run has begun with, as its manifest records it: the teacher stays the
    same whenever the run is resumed or forked. It counts for the `run` that it names; None takes
    the last of `run`, or the one named."""

    def recorded(self) -> "TeacherParameters":
        try:
            return replace(self, taken=self._taken())
        except (ConfigurationError, CheckpointError) as error:
            raise self._lost(error) from error

    def build(self, spaces: EnvironmentSpaces) -> "AnyTeacher":
        """The teacher.

        Args:
            spaces: What the student's level shows and takes.

        Raises:
            ConfigurationError: It is gone, has been changed, or has several levels.
            SpaceError: It observes what the level doesn't show, or acts in another space.
        """
        form = _form_of(self.run)
        if form is not None:
            return form.build(self._file(), spaces, self.run)
        try:
            graph, _ = load_graph(self._path(), device="cpu")
        except (ConfigurationError, CheckpointError) as error:
            raise self._lost(error) from error
        if len(graph.agents) > 1:
            raise ConfigurationError(
                f"the teacher {self.run} has {len(graph.agents)} levels; name a run of one agent"
            )
        own = graph.spaces
        shown = spaces.observation.spaces
        strange = [key for key, part in own.observation.items() if shown.get(key) != part]
        if strange:
            key = strange[0]
            raise SpaceError(
                f"the teacher {self.run} observes '{key}' in {own.observation[key]}, and this "
                f"level shows {spaces.observation}; let the level show it, and leave it out in the "
                "student's input_filter"
            )
        if own.action != spaces.action:
            raise SpaceError(
                f"the teacher {self.run} acts in {own.action}, and this level in {spaces.action}; "
                "name a run with the same actions"
            )
        (agent,) = graph.agents.values()
        return Teacher(agent, tuple(own.observation), graph.clock.for_evaluation(), name=self.run)

    def _taken(self) -> TakenCheckpoint:
        if self.taken is not None and self.taken.run == self.run:
            return self.taken
        form = _form_of(self.run)
        if form is not None:
            return form.taken(self.run)
        found = TakenCheckpoint.of(self.run)
        # A shipped one is unpacked to another place on another machine.
        return replace(found, checkpoint=self.run) if self.run.startswith(_SHIPPED) else found

    def _file(self) -> Path:
        """The exported policy; ConfigurationError where it isn't the one recorded."""
        taken = self._taken()
        file = Path(taken.checkpoint)
        if not file.is_file() or sha256_of_file(file) != taken.sha256:
            what = "has been changed since" if file.is_file() else "is not there any more"
            raise self._lost(
                ConfigurationError(f"the file {file}, with which the run began, {what}")
            )
        return file

    def _path(self) -> Path:
        """The checkpoint's folder; ConfigurationError where it isn't the one recorded."""
        taken = self._taken()
        if not taken.checkpoint.startswith(_SHIPPED):
            return taken.path()
        found = TakenCheckpoint.of(taken.checkpoint)
        if found.sha256 != taken.sha256:
            raise ConfigurationError(
                f"it is not the one with which the run began: its sha256 is {found.sha256[:12]}..."
                f", that in the manifest {taken.sha256[:12]}...; use that version of coach_rl"
            )
        return Path(found.checkpoint)

    def _lost(self, error: CoachError) -> ConfigurationError:
        return ConfigurationError(
            f"the teacher {self.run} cannot be loaded: {error}; if it was moved, put it back, or "
            "fork the run with agent.teacher.run=... as it is now (-cp)"
        )


class AnyTeacher(Protocol):
    """A trained policy that shows what to do: a run's agent, or of another form of file."""

    def new_rows(self, num_envs: int) -> RowState:
        """The state per row that it keeps from one observation to the next."""
        ...

    def actions(self, row_state: RowState, request: ActionRequest) -> Action:
        """Its actions [R, ...] in the level's action space for the level's observations."""
        ...

    def parameters(self, row_state: RowState, rows: IntArray) -> FloatArray:
        """Parameters [R, P] of the distribution of its newest actions; SpaceError without one."""
        ...

    def require_same_actions(self, student: FilteredAgent[Any]) -> None:
        """Raise `SpaceError` unless numbers in its action space are the student's, too."""
        ...

    def observe(self, row_state: RowState, outcome: Outcome) -> None:
        """Follow what has happened, whichever actions were taken."""
        ...


@dataclass(frozen=True, kw_only=True)
class TeacherForm:
    """A form of files that teachers are loaded from."""

    taken: Callable[[str], TakenCheckpoint]
    """The file as it is now, by its name."""
    build: Callable[[Path, EnvironmentSpaces, str], AnyTeacher]
    """The teacher of a file, for the spaces of the student's level, with its name."""


FORMS: dict[str, TeacherForm] = {}
"""Forms of files by their ending, such as .zip; offers to `imitation` add theirs."""


def _form_of(run: str) -> TeacherForm | None:
    """The form of a file; None for runs and shipped agents."""
    path = Path(run).expanduser()
    if run.startswith(_SHIPPED) or not path.suffix or path.is_dir():
        return None
    import_offers("imitation")
    return FORMS.get(path.suffix)


class Teacher:
    """An agent that acts greedily on what it is shown, and learns nothing.

    Args:
        agent: The agent.
        keys: The keys of its observations.
        clock: In TEST.
        name: For messages.
    """

    def __init__(self, agent: AnyAgent, keys: tuple[str, ...], clock: Clock, *, name: str) -> None:
        self._agent = agent
        self._keys = keys
        self._clock = clock
        self._name = name

    def new_rows(self, num_envs: int) -> RowState:
        """The state per row that the teacher keeps from one observation to the next."""
        rows: RowState = self._agent.new_rows(num_envs, 0)
        return rows

    def actions(self, row_state: RowState, request: ActionRequest) -> Action:
        """Its actions [R, ...] in the level's action space for the level's observations."""
        greedy = request.greedy | True
        seen = request.seen_as(self._seen(request.observation), greedy)
        return self._agent.act(row_state, seen, self._clock)

    def parameters(self, row_state: RowState, rows: IntArray) -> FloatArray:
        """Parameters [R, P] of the distribution of its actions in its newest decisions.

        Args:
            row_state: The state of its rows.
            rows: Where, [R].

        Raises:
            SpaceError: The teacher has no distribution of PPO's kind.
        """
        seen = take(row_state.pending, rows) if isinstance(row_state, AgentRows) else {}
        found = parameters_of(self._agent, seen)
        if found is None:
            raise SpaceError(
                f"the teacher {self._name} ({type(self._agent).__name__}) has no distribution of "
                "PPO's kind; use target='action'"
            )
        return found

    def require_same_actions(self, student: FilteredAgent[Any]) -> None:
        """Raise `SpaceError` unless numbers in its action space are the student's, too."""
        own = student.action_space
        teacher = self._agent
        is_same = isinstance(teacher, FilteredAgent) and teacher.action_space == own
        if isinstance(teacher, FilteredAgent) and is_same and isinstance(own, spaces.Box):
            low = np.where(np.isfinite(own.low), own.low, -1)
            high = np.where(np.isfinite(own.high), own.high, 1)
            corners = np.stack([low, high]).astype(np.float32)  # [2, A]
            theirs = teacher.output_filter.apply(corners)
            ours = student.output_filter.apply(corners)
            is_same = np.array_equal(np.asarray(theirs), np.asarray(ours))
        if not is_same:
            raise SpaceError(
                f"the teacher {self._name} does not count actions as the student does, in {own}; "
                "use target='action', or change the student's scale_actions or output_filter"
            )

    def observe(self, row_state: RowState, outcome: Outcome) -> None:
        """Follow what has happened, whichever actions were taken."""
        seen = replace(
            outcome,
            observation=self._seen(outcome.observation),
            next_goal={},
            info={},
        )
        self._agent.observe(row_state, seen, self._clock)

    def _seen(self, observation: Observation) -> Observation:
        return {key: observation[key] for key in self._keys}


@singledispatch
def parameters_of(
    agent: object,  # noqa: ARG001 - its class chooses the function
    observation: Observation,  # noqa: ARG001
) -> FloatArray | None:
    """Parameters [R, P] of the distribution by which an agent acts, as PPO's; None: there is none.

    Args:
        agent: The agent.
        observation: Filtered, [R, ...] each.
    """
    return None


@parameters_of.register
def _(agent: PPOAgent, observation: Observation) -> FloatArray:
    return agent.policy(observation)


@parameters_of.register
def _(agent: OffPolicyAgent, observation: Observation) -> FloatArray | None:
    acting = agent.learner.acting
    is_drawn = isinstance(getattr(acting, "exploration", None), SampledActions)
    return acting.outputs(observation) if is_drawn else None
