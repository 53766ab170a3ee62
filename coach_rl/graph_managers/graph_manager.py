"""Scheduling heat-up, training and evaluation of a graph.

graph_manager.create_graph(Runtime(seed=1))
for record in graph_manager.improve():          # stop, save or evaluate between any two records
    print(record.kind, record.environment_steps)
graph_manager.graph.agents["main"]
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import ConfigurationError, require
from coach_rl.core.profiling import TimedCall
from coach_rl.core.runtime import Runtime
from coach_rl.core.seeding import integer_seed
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.state import State
from coach_rl.core.steps import EnvironmentEpisodes, RunLength, StepUnit, require_unit
from coach_rl.core.typed_values import describe_value
from coach_rl.graph_managers.callbacks import (
    Callback,
    CallbackParameters,
    Callbacks,
    require_callbacks,
)
from coach_rl.graph_managers.episode_recorder import EvaluationWatcher, TrainingRecorder
from coach_rl.graph_managers.evaluating import EvaluationStopped, Scores, never
from coach_rl.graph_managers.evaluation_schedule import EvaluationSchedule
from coach_rl.graph_managers.evaluator import MOST_ASKED, Evaluator
from coach_rl.graph_managers.graph import Graph
from coach_rl.graph_managers.inspections import Inspections
from coach_rl.graph_managers.parameters import (
    BasicGraphParameters,
    GraphParameters,
    HACGraphParameters,
)
from coach_rl.graph_managers.phase_loop import run_phase
from coach_rl.graph_managers.progress import Progress
from coach_rl.graph_managers.run_warnings import (
    StandstillWatch,
    warn_of_endless_heatup,
    warn_of_restarts,
    warn_of_useless_settings,
)
from coach_rl.telemetry.records import Evaluation, LogRecord


@dataclass(frozen=True, kw_only=True)
class _Built:
    """Parts that `create_graph` builds."""

    graph: Graph
    evaluations: EvaluationSchedule
    callbacks: Callbacks
    inspections: Inspections


class GraphManager:
    """Runs an experiment.

    Args:
        parameters: The experiment; frozen.
    """

    described_by: ClassVar[type[GraphParameters]] = GraphParameters
    """The class of parameters that describes an experiment of this kind."""
    wants_checkpoint: bool = False
    """True if a callback has asked for a checkpoint; whoever iterates writes it, and resets it."""

    def __init__(self, parameters: GraphParameters) -> None:
        require(
            isinstance(parameters, self.described_by),
            f"{type(self).__name__} needs {self.described_by.__name__}(...), "
            f"got {describe_value(parameters)}",
        )
        self.parameters = parameters
        self._built: _Built | None = None
        self._watcher: EvaluationWatcher | None = None
        self._recorder: TrainingRecorder | None = None
        self._progress = Progress(parameters.schedule, parameters.validation)
        self._standstill = StandstillWatch(parameters)
        self._added: list[Callback | CallbackParameters] = []

    @property
    def graph(self) -> Graph:
        """Agents by their level's name, and the stacks they train and are evaluated in."""
        return self._parts.graph

    @property
    def spaces(self) -> EnvironmentSpaces:
        """The spaces of its environment."""
        return self.graph.evaluation.simulators.spaces

    @property
    def clock(self) -> Clock:
        """Phase and counters of training."""
        return self.graph.clock

    @property
    def is_settled(self) -> bool:
        """True if all records of the last tick have been yielded.

        A state saved while this is false is as good, but the records that were still to come are
        not said again by the run that continues from it.
        """
        return self._progress.is_settled

    @property
    def awaits_evaluations(self) -> bool:
        """True if evaluations have been asked for whose results are not there."""
        return self._built is not None and self._built.evaluations.is_awaited

    @property
    def training_seconds(self) -> float:
        """Seconds spent in heat-up and training ticks and updates; evaluation is not counted."""
        return self._progress.training_seconds

    @property
    def ending(self) -> str | None:
        """The reason why training is over; None if it isn't.

        `solved`, the unit that is full, such as `hours`, or what was given to `stop`.
        """
        return self._progress.ending(self.clock)

    @property
    def faults(self) -> Mapping[str, int]:
        """Number of failures of training environments so far, by their cause."""
        return self.graph.tracker.faults

    @property
    def fork_steps(self) -> int | None:
        """Simulator steps in forks of training so far; None where no level certifies there."""
        return self.graph.training.fork_steps

    @property
    def unreached_success_rates(self) -> list[str]:
        """The success rates that the schedules of levels still wait for, a line each."""
        return self.graph.phases.unreached()

    @property
    def signals(self) -> Mapping[str, float]:
        """The last report of the signals of training, as in the record of kind `signals`."""
        return self._progress.signals

    @property
    def solved_at(self) -> int | None:
        """Environment steps of the first evaluation that reached the target; None if none has.

        Evaluations while training count, not those of `evaluate`.
        """
        return self._progress.solved_at

    def watch_evaluations(self, watcher: EvaluationWatcher) -> None:
        """Let someone look at evaluations, e.g. to film them; before `create_graph`."""
        if self._built is not None:
            raise ConfigurationError("the graph is built; call watch_evaluations() before that")
        self._watcher = watcher

    def watch_training(self, recorder: TrainingRecorder) -> None:
        """Let a recorder film training episodes; before `create_graph`."""
        if self._built is not None:
            raise ConfigurationError("the graph is built; call watch_training() before that")
        self._recorder = recorder

    def add_callbacks(self, *callbacks: Callback | CallbackParameters) -> None:
        """Add callbacks after those of the parameters; before `create_graph`.

        They are not recorded in a manifest: whoever resumes the run adds them again.
        """
        require_callbacks(callbacks)
        if self._built is not None:
            raise ConfigurationError("the graph is built; call add_callbacks() before that")
        self._added += callbacks

    def create_graph(
        self,
        runtime: Runtime | None = None,
        *,
        training: bool = True,
        evaluation_envs: int | None = None,
    ) -> None:
        """Build agents, levels and environments; ConfigurationErrors say what doesn't fit.

        The runtime's threads and precision hold whenever the graph computes, and only then: between
        two records torch's settings are the process's own.

        Args:
            runtime: Seed, device and services of the run; None takes the defaults.
            training: Whether to build environments to train in. A graph without them can be given
                agents by `load_agents`, and evaluate.
            evaluation_envs: Environments an evaluation runs in parallel; None: as many as the
                evaluations while training have episodes, up to 16.
        """
        if self._built is not None:
            raise ConfigurationError("this graph is already built; close() it to build another")
        self.parameters.schedule.check_heatup()
        runtime = runtime or Runtime()
        graph = Graph(
            self.parameters,
            runtime,
            training=training,
            evaluation_envs=evaluation_envs,
            watcher=self._watcher,
            recorder=self._recorder,
        )
        self._progress = Progress(self.parameters.schedule, self.parameters.validation)
        is_inspected = training and runtime.group.rank == 0
        inspect = self.parameters.inspect if is_inspected else ()
        try:
            inspections = Inspections(inspect, graph, self._progress)
        except ConfigurationError:
            graph.close()
            raise
        self._built = _Built(
            graph=graph,
            evaluations=EvaluationSchedule(self.parameters, graph, self._progress, self._watcher),
            callbacks=Callbacks((*self.parameters.callbacks, *self._added) if training else ()),
            inspections=inspections,
        )

    def improve(
        self,
        *,
        is_stopped: Callable[[], bool] = never,
        is_paused: Callable[[], bool] = never,
        evaluator: Evaluator | None = None,
    ) -> Iterator[LogRecord]:
        """The experiment: heat-up, then training with evaluations in between, until all is done.

        Builds the graph with the default runtime where that has not been done. Continues from
        wherever the counters stand, so it also continues a restored run.

        Args:
            is_stopped: Asked at every step whether to end there; a later `improve` continues. An
                evaluation is given up, and made again then. Between two records whoever iterates
                can stop anyway.
            is_paused: The same, but not asked in evaluations.
            evaluator: Makes the evaluations while training continues; a result is yielded when it
                is there, with the counters of when it was asked for. None: they are made in
                between.
        """
        if self._built is None:
            self.create_graph()
        self.graph.require_loaded()
        self._parts.evaluations.ask_through(evaluator)
        progress, callbacks = self._progress, self._parts.callbacks
        for record in self._scheduled(is_stopped, is_paused):
            # The callbacks' state is settled as well before the first of these leaves.
            is_settled = progress.is_settled
            records = callbacks.with_added(record, self)
            for number, each in enumerate(records, start=1):
                progress.is_settled = is_settled and number == len(records)
                yield each

    def stop(self, reason: str) -> None:
        """End training once the records of this moment have left; for callbacks.

        The evaluation at the end of training is made, and the run's summary says the reason.
        """
        require(
            isinstance(reason, str) and bool(reason),
            f"stop() needs the reason, for the summary, got {reason!r}",
        )
        self._progress.stop(reason)

    def request_checkpoint(self) -> None:
        """Ask for a checkpoint of this moment, one that stays; for callbacks."""
        self.wants_checkpoint = True

    def note(
        self, scalars: Mapping[str, float], *, text: str = "", level: str = "", agent: str = ""
    ) -> LogRecord:
        """A record of one's own, with the counters of now; for callbacks.

        Args:
            scalars: Numbers by `room/quantity`.
            text: An account of it, in one line.
            level: The level it belongs to.
            agent: The agent it belongs to.
        """
        numbers = {name: float(value) for name, value in scalars.items()}
        record = self._progress.record("note", self.clock, numbers, level=level, agent=agent)
        return replace(record, text=text)

    def timed_calls(self) -> list[TimedCall]:
        """The calls whose times a profile shows: evaluations, and the filming of episodes."""
        calls = [TimedCall(self._parts.evaluations, "play", "evaluation")]
        for camera in (self._watcher, self._recorder):
            if camera is not None:
                calls += [TimedCall(camera, method, "film") for method in ("begin", "note_tick")]
        return calls

    def policies(self) -> dict[str, State]:
        """The agents' knowledge, by their level's name; what `scores_of` takes."""
        self.graph.require_loaded()
        return self._parts.evaluations.policies()

    def _scheduled(
        self, is_stopped: Callable[[], bool], is_paused: Callable[[], bool]
    ) -> Iterator[LogRecord]:
        """The records of the experiment, before the callbacks."""
        clock, progress = self.graph.training.clock, self._progress
        evaluations = self._parts.evaluations
        heatup = self.parameters.schedule.heatup

        def is_left() -> bool:
            return is_stopped() or is_paused()

        def is_over() -> bool:
            return progress.ending(clock) is not None

        progress.go_on()
        if not progress.has_begun:
            warn_of_useless_settings(self.parameters)
        if not heatup.is_reached(clock):
            yield from self._act(
                Phase.HEATUP, lambda: is_left() or heatup.is_reached(clock) or is_over()
            )
            if is_left():
                return
            if not heatup.is_reached(clock) and progress.stopped is None:
                warn_of_endless_heatup(self.parameters.schedule)
        progress.training_begins(clock)
        try:
            yield from evaluations.evaluate_if_due(is_stopped)  # a run may have stopped just before
            while not (is_over() or is_left()):
                yield from self._act(
                    Phase.TRAIN,
                    lambda: (
                        is_left()
                        or progress.is_evaluation_due(clock)
                        or is_over()
                        or evaluations.has_answer()
                    ),
                )
                yield from evaluations.evaluate_if_due(is_stopped)
                yield from evaluations.take_in_answers(is_left, most_left=MOST_ASKED)
            yield from evaluations.take_in_answers(is_left, most_left=0)
        except EvaluationStopped:
            progress.is_settled = True

    def run(self) -> None:
        """`improve` for those who only want it done."""
        for _ in self.improve():
            pass

    def heatup(self, length: RunLength) -> Iterator[LogRecord]:
        """Act at random for at least that many steps, episodes or hours; nothing is trained."""
        yield from self._act(Phase.HEATUP, self._over_after(length))

    def train_and_act(self, length: RunLength) -> Iterator[LogRecord]:
        """Act with exploration and learn for at least that many steps, episodes, updates, hours."""
        yield from self._act(Phase.TRAIN, self._over_after(length))

    def evaluation_begins(self) -> LogRecord:
        """The record that says so; `improve` yields it before an evaluation."""
        return self._parts.evaluations.begins()

    def evaluate(
        self,
        episodes: EnvironmentEpisodes,
        *,
        seed: int | None = None,
        sampling: bool = False,
        is_stopped: Callable[[], bool] = never,
    ) -> Evaluation:
        """Play episodes without changing anything, and without exploring; see `evaluating.play`.

        Args:
            episodes: How many.
            seed: Seed of the episodes, which are those of the final evaluation of a run with that
                seed; different seeds share none. None takes the starts of the evaluations while
                training, so that all evaluations of a run are compared on the same.
            sampling: Whether agents explore as they do in training now.
            is_stopped: Asked at every step whether to give up.

        Raises:
            ConfigurationError: No agent explores that should, or the seed is negative.
            EvaluationStopped: `is_stopped` said so.
        """
        if seed is not None:
            require(seed >= 0, f"a seed must be a whole number of 0 or more, got {seed}")
            seed = integer_seed(seed, "final evaluation")
        self.graph.require_loaded()
        evaluations = self._parts.evaluations
        scores = evaluations.play(episodes, seed=seed, sampling=sampling, is_stopped=is_stopped)
        return evaluations.result(scores)

    def scores_of(
        self,
        policies: Mapping[str, State],
        *,
        clock: State | None = None,
        is_stopped: Callable[[], bool] = never,
    ) -> Scores:
        """Play an evaluation as those while training, of agents as they were in an equal graph.

        Args:
            policies: See `AskedEvaluation`.
            clock: The counters then, which the schedules of certified plans are functions of; None:
                those of this graph.
            is_stopped: Asked at every step whether to give up.
        """
        if clock is not None:
            self.clock.load_state_dict(clock)
        for name, agent in self.graph.agents.items():
            if policies[name]:
                agent.load_policy(policies[name])
        episodes = self.parameters.schedule.evaluation_episodes
        return self._parts.evaluations.play(episodes, is_stopped=is_stopped)

    def description(self) -> str:
        """The levels and their agents, for people."""
        return self.graph.description()

    def warn_of_restarts(self) -> None:
        """Warn where a resumed run will begin its open episodes anew, and why.

        Whoever is going to write checkpoints asks before hours go into a run.
        """
        obstacle = self.graph.obstacle_to_restoring
        if obstacle is not None:
            warn_of_restarts(self.parameters, obstacle)

    def state_dict(self) -> State:
        """Everything that is needed to continue exactly here; valid between two records."""
        parts, progress = self._parts, self._progress.state_dict()
        progress["evaluations_tell_success"] = parts.evaluations.success_is_reported
        state = {
            **parts.graph.state_dict(),
            "progress": progress,
            **parts.evaluations.state_dict(),
        }
        if callbacks := parts.callbacks.state_dict():
            state["callbacks"] = callbacks
        if inspections := parts.inspections.state_dict():
            state["inspections"] = inspections
        return state

    def load_state_dict(self, state: State, *, restart_episodes: bool = False) -> None:
        """Go on from a state saved by an equally built graph; see `Graph.load_state_dict`."""
        self.graph.load_state_dict(state, restart_episodes=restart_episodes)
        if self._recorder is not None:
            self._recorder.forget()
        self._load_progress(state["progress"])
        self._parts.evaluations.load_state_dict(state)
        self._parts.callbacks.load_state_dict(state.get("callbacks", {}))
        self._parts.inspections.load_state_dict(state.get("inspections", {}))
        self._progress.is_settled = True

    def load_agents(self, state: State, *, elsewhere: bool = False) -> None:
        """Load agents, with their filters, and counters of a saved state; no environments.

        Args:
            state: What the `state_dict` of an equally described graph returned.
            elsewhere: Whether evaluations are in another environment than that graph's, which may
                not report success as that one did.
        """
        self.graph.load_agents(state)
        self._load_progress(state["progress"])
        self._progress.evaluations_tell_success &= not elsewhere

    def close(self) -> None:
        """Close the environments; harmless when repeated or when nothing was built."""
        if self._built is not None:
            self._built.callbacks.close()
            self._built.graph.close()
            self._built = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def _parts(self) -> _Built:
        if self._built is None:
            raise ConfigurationError("the graph is not built yet; call create_graph() first")
        return self._built

    def _load_progress(self, state: State) -> None:
        self._progress.load_state_dict(state)
        self.clock.wall_seconds = self._progress.wall_seconds

    def _over_after(self, length: RunLength) -> Callable[[], bool]:
        require_unit(length, StepUnit, "the length")
        clock = self.clock
        until = length.counted(clock) + length.count
        return lambda: length.counted(clock) >= until

    def _act(self, phase: Phase, is_over: Callable[[], bool]) -> Iterator[LogRecord]:
        self.graph.require_loaded()
        return run_phase(
            phase,
            self.graph,
            self._progress,
            is_over=is_over,
            recorder=self._recorder,
            standstill=self._standstill,
        )


class BasicRLGraphManager(GraphManager):
    """A graph manager of one level.

    BasicRLGraphManager(BasicGraphParameters(agent=..., environment=..., num_envs=8))
    """

    described_by = BasicGraphParameters
    parameters: BasicGraphParameters


class HRLGraphManager(GraphManager):
    """A graph manager of a stack of levels.

    HRLGraphManager(GraphParameters(levels=(top, low), environment=..., num_envs=8))
    """


class HACGraphManager(GraphManager):
    """A graph manager of a HAC stack.

    HACGraphManager(HACGraphParameters(stack=(top, middle, low), environment=...))
    """

    described_by = HACGraphParameters
    parameters: HACGraphParameters
