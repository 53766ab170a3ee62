"""Scheduling heat-up, training and evaluation of a graph.

graph_manager.create_graph(Runtime(seed=1))
for record in graph_manager.improve():          # stop, save or evaluate between any two records
    print(record.kind, record.environment_steps)
graph_manager.graph.agents["main"]
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Self

from coach_rl.core.clock import Phase
from coach_rl.core.errors import ConfigurationError, ParameterError, exits_as_errors, require
from coach_rl.core.log_records import Evaluation, LogRecord
from coach_rl.core.records import Array
from coach_rl.core.runtime import USUAL, Runtime
from coach_rl.core.seeding import integer_seed
from coach_rl.core.shown_text import printable
from coach_rl.core.state import State
from coach_rl.core.steps import EnvironmentEpisodes, RunLength, StepUnit, require_unit
from coach_rl.core.typed_values import describe_value
from coach_rl.graph_managers.callbacks import (
    Callback,
    CallbackParameters,
    Callbacks,
    require_callbacks,
)
from coach_rl.graph_managers.evaluations import (
    MAX_PENDING,
    EvaluationSchedule,
    EvaluationStopped,
    Evaluator,
    level_metrics,
    never,
)
from coach_rl.graph_managers.graph import Graph
from coach_rl.graph_managers.parameters import BasicGraphParameters, GraphParameters
from coach_rl.graph_managers.progress import Progress
from coach_rl.graph_managers.run_warnings import (
    StandstillWatch,
    warn_of_endless_heatup,
    warn_of_useless_settings,
)
from coach_rl.graph_managers.statistics import histogram, require_image
from coach_rl.graph_managers.torch_settings import torch_settings
from coach_rl.graph_managers.unbuilt import unbuilt
from coach_rl.graph_managers.watcher import EvaluationWatcher

_NOT_BUILT = "the graph is not built yet; call create_graph() first"


class GraphManager:
    """Runs an experiment.

    Args:
        parameters: The experiment; frozen.
    """

    described_by: ClassVar[type[GraphParameters]] = GraphParameters
    """The class of parameters that describes an experiment of this kind."""
    graph: Graph = unbuilt(_NOT_BUILT)
    """Agents by their level's name, the stacks they train and are evaluated in, the clock."""
    progress: Progress = unbuilt(_NOT_BUILT)
    """State of the run beyond the counters of its clock: its ending, times, signals."""
    evaluations: EvaluationSchedule = unbuilt(_NOT_BUILT)
    """The evaluations while training, and those of other policies."""
    _callbacks: Callbacks

    def __init__(self, parameters: GraphParameters) -> None:
        if not isinstance(parameters, self.described_by):
            raise ParameterError(
                f"{type(self).__name__} needs {self.described_by.__name__}(...), "
                f"got {describe_value(parameters)}"
            )
        self.parameters = parameters
        self._is_built = False
        self._standstill = StandstillWatch(parameters.schedule, parameters.environment.level)

    def create_graph(
        self,
        runtime: Runtime | None = None,
        *,
        training: bool = True,
        evaluation_envs: int | None = None,
        callbacks: Sequence[Callback | CallbackParameters] = (),
        watchers: Sequence[EvaluationWatcher] = (),
        begins: bool = True,
    ) -> None:
        """Build agents, levels and environments; ConfigurationErrors name what doesn't fit.

        The runtime's threads and precision hold whenever the graph computes, and only then: between
        two records torch's settings are the process's own.

        Args:
            runtime: Seed, device and services of the run; None takes the defaults.
            training: Whether to build environments to train in. A graph without them can be given
                agents by `evaluations.load_agents`, and evaluate.
            evaluation_envs: Environments an evaluation runs in parallel; None: as many as the
                evaluations while training have episodes, up to 16.
            callbacks: Callbacks after those of the parameters. They are not recorded in a manifest:
                pass them again to resume the run.
            watchers: Watchers of evaluations.
            begins: Whether training episodes begin; False where `load_state_dict` follows.
        """
        if self._is_built:
            raise ConfigurationError("this graph is already built; close() it to build another")
        require_callbacks(callbacks)
        parameters = self.parameters
        runtime = runtime or USUAL
        parameters.schedule.check_heatup()
        self.graph = Graph(
            parameters,
            runtime,
            training=training,
            evaluation_envs=evaluation_envs,
            watchers=watchers,
            begins=begins,
        )
        self.progress = Progress(parameters.schedule, self.graph.clock, parameters.validation)
        self.evaluations = EvaluationSchedule(parameters, self.graph, self.progress)
        self._callbacks = Callbacks((*parameters.callbacks, *callbacks) if training else ())
        self._is_built = True
        try:
            self._callbacks.begin(self)
        except BaseException:
            self.close()
            raise

    def improve(
        self,
        *,
        is_stopped: Callable[[], bool] = never,
        is_paused: Callable[[], bool] = never,
        evaluator: Evaluator | None = None,
    ) -> Iterator[LogRecord]:
        """The experiment: heat-up, then training with evaluations in between, until all is done.

        Builds the graph with the default runtime where that has not been done. Continues from
        the current counters, so it also continues a restored run.

        Args:
            is_stopped: Polled at every step; True ends the iteration, and a later `improve`
                continues. An open evaluation is dropped, and repeated then. Between two records the
                caller can stop in any case.
            is_paused: The same, but not polled in evaluations.
            evaluator: Makes the evaluations while training continues; a result is yielded when it
                is there, with the counters at its request. None: they are made in between.
        """
        if not self._is_built:
            self.create_graph()
        self.graph.require_loaded()
        self.evaluations.use_evaluator(evaluator)
        progress = self.progress
        callbacks = self._callbacks
        with exits_as_errors():
            for record in self._scheduled(is_stopped, is_paused):
                # The callbacks' state is settled as well before the first of these is yielded.
                is_settled = progress.is_settled
                records = callbacks.with_added(record, self)
                for number, each in enumerate(records, start=1):
                    progress.is_settled = is_settled and number == len(records)
                    try:
                        yield each
                    except GeneratorExit:  # it is iterated no further
                        return

    def stop(self, reason: str) -> None:
        """End training once the records of this moment have left; for callbacks.

        The evaluation at the end of training is made, and the run's summary shows the reason.
        """
        require(
            isinstance(reason, str) and bool(reason),
            f"stop() needs the reason, for the summary, got {reason!r}",
        )
        self.progress.stop(reason)

    def note(
        self,
        scalars: Mapping[str, float] | None = None,
        *,
        text: str = "",
        level: str = "",
        agent: str = "",
        arrays: Mapping[str, Array] | None = None,
        images: Mapping[str, Array] | None = None,
    ) -> LogRecord:
        """A record of kind `note`, with the current counters; for callbacks.

        Args:
            scalars: Numbers by `room/quantity`.
            text: An account of it, in one line.
            level: The level it belongs to.
            agent: The agent it belongs to.
            arrays: Arrays of numbers by `room/quantity`, shown as histograms.
            images: Pictures by `room/quantity`, uint8 [H, W] or [H, W, 3].
        """
        numbers = {printable(name): float(value) for name, value in (scalars or {}).items()}
        record = self.progress.record(
            "note", numbers, level=printable(level), agent=printable(agent)
        )
        drawn = {printable(name): histogram(values) for name, values in (arrays or {}).items()}
        shown = {
            printable(name): require_image(name, each) for name, each in (images or {}).items()
        }
        return replace(record, text=text, arrays=drawn, images=shown)

    def _scheduled(
        self, is_stopped: Callable[[], bool], is_paused: Callable[[], bool]
    ) -> Iterator[LogRecord]:
        """The records of the experiment, before the callbacks."""
        clock = self.graph.training.clock
        progress = self.progress
        evaluations = self.evaluations
        heatup = self.parameters.schedule.heatup

        def is_left() -> bool:
            return is_stopped() or is_paused()

        progress.start_timer()
        if not progress.has_begun:
            warn_of_useless_settings(self.parameters)
        if not heatup.is_reached(clock):
            yield from self._run_phase(
                Phase.HEATUP,
                lambda: is_left() or heatup.is_reached(clock) or progress.ending is not None,
            )
            if is_left():
                return
            if not heatup.is_reached(clock) and progress.stopped is None:
                warn_of_endless_heatup(self.parameters.schedule)
        progress.begin_training()
        try:
            yield from evaluations.evaluate_if_due(is_stopped)  # a run may have stopped just before
            while progress.ending is None and not is_left():
                yield from self._run_phase(
                    Phase.TRAIN,
                    lambda: (
                        is_left()
                        or progress.is_evaluation_due()
                        or progress.ending is not None
                        or evaluations.has_answer()
                    ),
                )
                yield from evaluations.evaluate_if_due(is_stopped)
                yield from evaluations.results(is_left, most_left=MAX_PENDING)
            yield from evaluations.results(is_left, most_left=0)
        except EvaluationStopped:
            progress.is_settled = True

    def run(self) -> None:
        """Run `improve` to its end, dropping the records."""
        for _ in self.improve():
            pass

    def heatup(self, length: RunLength) -> Iterator[LogRecord]:
        """Act at random for at least that many steps, episodes or hours; nothing is trained."""
        yield from self._run_phase(Phase.HEATUP, self._over_after(length))

    def train_and_act(self, length: RunLength) -> Iterator[LogRecord]:
        """Act with exploration and learn for at least that many steps, episodes, updates, hours."""
        yield from self._run_phase(Phase.TRAIN, self._over_after(length))

    @exits_as_errors()
    def evaluate(
        self,
        episodes: EnvironmentEpisodes | int,
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
            is_stopped: Polled at every step; True ends the evaluation.

        Raises:
            ConfigurationError: No agent explores that should, or the seed is negative.
            EvaluationStopped: `is_stopped` returned True.
        """
        if seed is not None:
            require(seed >= 0, f"a seed must be a whole number of 0 or more, got {seed}")
            seed = integer_seed(seed, "final evaluation")
        self.graph.require_loaded()
        scores = self.evaluations.play(
            episodes, seed=seed, sampling=sampling, is_stopped=is_stopped
        )
        return self.evaluations.result(scores)

    def state_dict(self) -> State:
        """Everything that is needed to continue exactly here; valid between two records."""
        progress = self.progress.state_dict()
        progress["evaluations_tell_success"] = self.evaluations.success_is_reported
        state = {
            **self.graph.state_dict(),
            "progress": progress,
            **self.evaluations.state_dict(),
        }
        if callbacks := self._callbacks.state_dict():
            state["callbacks"] = callbacks
        return state

    def load_state_dict(self, state: State, *, restart_episodes: bool = False) -> None:
        """Continue from the state of an equally built graph; see `Graph.load_state_dict`."""
        self.graph.load_state_dict(state, restart_episodes=restart_episodes)
        self.progress.load_state_dict(state["progress"])
        self.graph.clock.wall_seconds = self.progress.wall_seconds
        self.evaluations.load_state_dict(state)
        self._callbacks.load_state_dict(state.get("callbacks", {}))
        self.progress.is_settled = True

    def close(self) -> None:
        """Close the environments; harmless when repeated or when nothing was built."""
        if self._is_built:
            self._callbacks.close()
            self.graph.close()
            del self.graph, self.progress, self.evaluations, self._callbacks
            self._is_built = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _over_after(self, length: RunLength) -> Callable[[], bool]:
        require_unit(length, StepUnit, "the length")
        clock = self.graph.clock
        until = length.counted(clock) + length.count
        return lambda: length.counted(clock) >= until

    def _run_phase(self, phase: Phase, is_over: Callable[[], bool]) -> Iterator[LogRecord]:
        """Tick in a phase until it is over.

        Args:
            phase: Heat-up or training; the graph's clock takes it.
            is_over: Polled before every tick.
        """
        graph = self.graph
        progress = self.progress
        graph.require_loaded()
        clock = graph.clock
        if clock.phase is not phase or not progress.has_begun:
            clock.phase = phase
            progress.has_begun = True
            yield progress.record("phase")
        while not is_over():
            with torch_settings(graph.runtime):
                records = _next_records(graph, progress, is_over, self._standstill)
            yield from progress.settling(records)


HRLGraphManager = GraphManager
"""A graph manager of a stack of levels:
`HRLGraphManager(GraphParameters(levels=(top, low), environment=..., num_envs=8))`."""


class BasicRLGraphManager(GraphManager):
    """A graph manager of one level.

    BasicRLGraphManager(BasicGraphParameters(agent=..., environment=..., num_envs=8))
    """

    described_by = BasicGraphParameters
    parameters: BasicGraphParameters


def _next_records(
    graph: Graph, progress: Progress, is_over: Callable[[], bool], standstill: StandstillWatch
) -> list[LogRecord]:
    """Tick until there are records, which are returned, or the phase is over."""
    clock = graph.clock
    training = graph.training
    records: list[LogRecord] = []
    while not records and not is_over():
        if changed := graph.timings.update(clock, training.levels):
            return [*progress.level_phase_records(changed)]
        started = time.perf_counter()
        tick = graph.tick()
        now = time.perf_counter()
        progress.training_seconds += now - started
        clock.wall_seconds = progress.seconds_at(now)
        # All of the tick's state is settled before the first record is yielded.
        if progress.added:
            records += progress.take_added()
        if tick.answer.faults:
            records += progress.fault_records(tick.answer.faults, graph.tracker.faults)
        if tick.finished is not None:
            with_success = graph.tracker.reports_success
            records += progress.episode_records(tick.finished, with_success=with_success)
        records += [
            progress.record("train", metrics, level=level, agent=agent)
            for level, agent, metrics in tick.learned
        ]
        if progress.is_due():
            standstill.check(clock, graph.tracker.lengths)
            levels = level_metrics(training, "level", graph.timings.metrics(clock))
            records += progress.speed_records(levels, training.source.metrics())
            records += progress.signal_records(training.signals.drain("signals"))
            training.signals.warn_once()
    return records
