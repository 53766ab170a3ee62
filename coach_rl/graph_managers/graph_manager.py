"""Scheduling heat-up, training and evaluation of a graph.

graph_manager.create_graph(TaskParameters(seed=1))
for record in graph_manager.improve():          # stop, save or evaluate between any two records
    print(record.kind, record.environment_steps)
graph_manager.graph.agents["main"]
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from typing import ClassVar, Self

from coach_rl.core.activity import OnActivity, ignore_activity, waiting_for
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import ConfigurationError, require
from coach_rl.core.process_group import ONE_PROCESS, ProcessGroup
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.state import State
from coach_rl.core.steps import EnvironmentEpisodes, RunLength
from coach_rl.core.typed_values import describe_value
from coach_rl.graph_managers.callbacks import (
    Callback,
    CallbackParameters,
    Callbacks,
    require_callbacks,
)
from coach_rl.graph_managers.episode_recorder import EvaluationWatcher, TrainingRecorder
from coach_rl.graph_managers.evaluating import (
    EvaluationStopped,
    Scores,
    level_metrics,
    never,
    play,
)
from coach_rl.graph_managers.evaluator import MOST_ASKED, AskedEvaluation, Evaluator
from coach_rl.graph_managers.graph import Graph
from coach_rl.graph_managers.parameters import (
    BasicGraphParameters,
    GraphParameters,
    HACGraphParameters,
)
from coach_rl.graph_managers.progress import SOLVED, Progress
from coach_rl.graph_managers.run_warnings import (
    StandstillWatch,
    warn_of_cut_off_episodes,
    warn_of_endless_heatup,
    warn_of_restarts,
    warn_of_useless_settings,
)
from coach_rl.graph_managers.task import TaskParameters, torch_settings
from coach_rl.telemetry.records import Evaluation, LogRecord

WAIT_SECONDS = 0.1
"""Time between two looks at whether to go on waiting for an evaluation."""


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
        self._graph: Graph | None = None
        self._watcher: EvaluationWatcher | None = None
        self._recorder: TrainingRecorder | None = None
        self._progress = Progress(parameters.schedule, parameters.validation)
        self._is_settled = True
        self._standstill = StandstillWatch(parameters)
        self._asked: list[AskedEvaluation] = []
        self._evaluator: Evaluator | None = None
        self._added: list[Callback | CallbackParameters] = []
        self._callbacks = Callbacks()

    @property
    def graph(self) -> Graph:
        """Agents by their level's name, and the stacks they train and are evaluated in."""
        if self._graph is None:
            raise ConfigurationError("the graph is not built yet; call create_graph() first")
        return self._graph

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
        return self._is_settled

    @property
    def awaits_evaluations(self) -> bool:
        """True if evaluations have been asked for whose results are not there."""
        return bool(self._asked)

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
        if self._graph is not None:
            raise ConfigurationError("the graph is built; call watch_evaluations() before that")
        self._watcher = watcher

    def watch_training(self, recorder: TrainingRecorder) -> None:
        """Let a recorder film training episodes; before `create_graph`."""
        if self._graph is not None:
            raise ConfigurationError("the graph is built; call watch_training() before that")
        self._recorder = recorder

    def add_callbacks(self, *callbacks: Callback | CallbackParameters) -> None:
        """Add callbacks after those of the parameters; before `create_graph`.

        They are not recorded in a manifest: whoever resumes the run adds them again.
        """
        require_callbacks(callbacks)
        if self._graph is not None:
            raise ConfigurationError("the graph is built; call add_callbacks() before that")
        self._added += callbacks

    def create_graph(
        self,
        task: TaskParameters | None = None,
        *,
        training: bool = True,
        evaluation_envs: int | None = None,
        on_activity: OnActivity = ignore_activity,
        group: ProcessGroup = ONE_PROCESS,
    ) -> None:
        """Build agents, levels and environments; ConfigurationErrors say what doesn't fit.

        The task's threads and precision hold whenever the graph computes, and only then: between
        two records torch's settings are the process's own.

        Args:
            task: What is known only when a run starts; None takes its defaults.
            training: Whether to build environments to train in. A graph without them can be given
                agents by `load_agents`, and evaluate.
            evaluation_envs: Environments an evaluation runs in parallel; None: as many as the
                evaluations while training have episodes, up to 16.
            on_activity: Called with what takes long: compiling, evaluating.
            group: The processes that train it together, each on its share of rows and batches.
        """
        if self._graph is not None:
            raise ConfigurationError("this graph is already built; close() it to build another")
        self._graph = Graph(
            self.parameters,
            task or TaskParameters(),
            training=training,
            evaluation_envs=evaluation_envs,
            watcher=self._watcher,
            recorder=self._recorder,
            on_activity=on_activity,
            group=group,
        )
        self._progress = Progress(self.parameters.schedule, self.parameters.validation)
        self._is_settled, self._asked = True, []
        self._callbacks = Callbacks((*self.parameters.callbacks, *self._added) if training else ())

    def improve(
        self,
        *,
        is_stopped: Callable[[], bool] = never,
        is_paused: Callable[[], bool] = never,
        evaluator: Evaluator | None = None,
    ) -> Iterator[LogRecord]:
        """The experiment: heat-up, then training with evaluations in between, until all is done.

        Builds the graph with default task parameters where that has not been done. Continues from
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
        if self._graph is None:
            self.create_graph()
        self._ask_through(evaluator)
        for record in self._scheduled(is_stopped, is_paused):
            # The callbacks' state is settled as well before the first of these leaves.
            is_settled = self._is_settled
            records = self._callbacks.with_added(record, self)
            for number, each in enumerate(records, start=1):
                self._is_settled = is_settled and number == len(records)
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

    def policies(self) -> dict[str, State]:
        """The agents' knowledge, by their level's name; what `scores_of` takes."""
        return {name: agent.policy_state_dict() for name, agent in self.graph.agents.items()}

    def _scheduled(
        self, is_stopped: Callable[[], bool], is_paused: Callable[[], bool]
    ) -> Iterator[LogRecord]:
        """The records of the experiment, before the callbacks."""
        clock, progress = self.graph.training.clock, self._progress
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
            yield from self._evaluate_if_due(is_stopped)  # a run may have stopped just before
            while not (is_over() or is_left()):
                yield from self._act(
                    Phase.TRAIN,
                    lambda: (
                        is_left()
                        or progress.is_evaluation_due(clock)
                        or is_over()
                        or self._has_answer()
                    ),
                )
                yield from self._evaluate_if_due(is_stopped)
                yield from self._take_in_answers(is_left, most_left=MOST_ASKED)
            yield from self._take_in_answers(is_left, most_left=0)
        except EvaluationStopped:
            self._is_settled = True

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
        return self._progress.record("phase", self.clock, phase=Phase.TEST)

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
            seed: Seed of the episodes; None takes that of the evaluations while training, so that
                all evaluations of a run are compared on the same starts.
            sampling: Whether agents explore as they do in training now.
            is_stopped: Asked at every step whether to give up.

        Raises:
            ConfigurationError: No agent explores that should.
            EvaluationStopped: `is_stopped` said so.
        """
        scores = self._play(episodes, seed=seed, sampling=sampling, is_stopped=is_stopped)
        return self._evaluation_now(scores)

    def scores_of(
        self, asked: AskedEvaluation, *, is_stopped: Callable[[], bool] = never
    ) -> Scores:
        """Play an evaluation as those while training, of agents as they were in an equal graph.

        Args:
            asked: The agents, and the counters that their schedules are functions of.
            is_stopped: Asked at every step whether to give up.
        """
        self.clock.load_state_dict(asked.clock)
        for name, agent in self.graph.agents.items():
            if asked.policies[name]:
                agent.load_policy(asked.policies[name])
        episodes = self.parameters.schedule.evaluation_episodes
        return self._play(episodes, is_stopped=is_stopped)

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
        progress = self._progress.state_dict()
        progress["evaluations_tell_success"] = self._success_is_reported()
        state = {**self.graph.state_dict(), "progress": progress}
        if self._asked:
            state["asked_evaluations"] = [vars(each).copy() for each in self._asked]
        if callbacks := self._callbacks.state_dict():
            state["callbacks"] = callbacks
        return state

    def load_state_dict(self, state: State, *, restart_episodes: bool = False) -> None:
        """Go on from a state saved by an equally built graph; see `Graph.load_state_dict`."""
        self.graph.load_state_dict(state, restart_episodes=restart_episodes)
        if self._recorder is not None:
            self._recorder.forget()
        self._load_progress(state["progress"])
        self._asked = [AskedEvaluation(**each) for each in state.get("asked_evaluations", ())]
        self._callbacks.load_state_dict(state.get("callbacks", {}))
        self._is_settled = True

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
        if self._graph is not None:
            self._callbacks.close()
            self._graph.close()
            self._graph = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _load_progress(self, state: State) -> None:
        self._progress.load_state_dict(state)
        self.clock.wall_seconds = self._progress.wall_seconds

    def _over_after(self, length: RunLength) -> Callable[[], bool]:
        clock = self.clock
        until = length.counted(clock) + length.count
        return lambda: length.counted(clock) >= until

    def _act(self, phase: Phase, is_over: Callable[[], bool]) -> Iterator[LogRecord]:
        graph, progress, recorder = self.graph, self._progress, self._recorder
        clock = graph.clock
        if recorder is not None and not recorder.is_filming:
            recorder.begin(graph.training, is_midway=(graph.tracker.lengths > 0).tolist())
        if clock.phase is not phase or not progress.has_begun:
            clock.phase, progress.has_begun = phase, True
            yield progress.record("phase", clock)
        while not is_over():
            started = time.perf_counter()
            tick = graph.tick()
            now = time.perf_counter()
            progress.training_seconds += now - started
            clock.wall_seconds = progress.seconds_at(now)
            if recorder is not None:
                recorder.note_tick(tick.answer)
            # All of the tick's state is settled before the first record leaves.
            records: list[LogRecord] = []
            if tick.answer.faults:
                records += progress.fault_records(clock, tick.answer.faults, graph.tracker.faults)
            if tick.finished is not None:
                with_success = graph.tracker.reports_success
                records += progress.episode_records(clock, tick.finished, with_success=with_success)
            records += [
                progress.record("train", clock, metrics, level=level, agent=agent)
                for level, agent, metrics in tick.learned
            ]
            if progress.is_due(clock):
                self._standstill.look(clock, graph.tracker.lengths)
                levels = level_metrics(graph.training, "level")
                records += progress.speed_records(clock, levels, graph.training.metrics())
                records += progress.signal_records(clock, graph.training.signals.drain("signals"))
                graph.training.signals.warn_once()
            yield from self._settling(records)

    def _evaluate_if_due(self, is_stopped: Callable[[], bool]) -> Iterator[LogRecord]:
        """Evaluate at every interval and at the end of training, once each, or ask for it."""
        schedule, progress, clock = self.parameters.schedule, self._progress, self.clock
        is_over = progress.ending(clock) is not None
        interval = schedule.evaluation_interval
        if interval is None or clock.environment_steps == progress.evaluated_at:
            return
        if is_stopped():
            return
        if not is_over and not progress.is_evaluation_due(clock):
            return
        if self._evaluator is not None:
            progress.note_evaluated(clock)
            progress.announced_at = clock.environment_steps
            self._asked.append(self._asked_now())
            self._evaluator.ask(self._asked[-1])
            yield from self._settling([self.evaluation_begins()])
            return
        self._is_settled = False
        if progress.announced_at != clock.environment_steps:
            progress.announced_at = clock.environment_steps
            yield self.evaluation_begins()
        number = int(interval.counted(clock) // interval.count)
        is_watched = is_over or self._watcher is None or number % self._watcher.every == 0
        evaluation = self._evaluation_now(
            self._play(schedule.evaluation_episodes, is_stopped=is_stopped, is_watched=is_watched)
        )
        clock.wall_seconds = progress.seconds_at(time.perf_counter())
        progress.note_evaluated(clock)
        progress.note_result(evaluation)
        yield from self._settling([*evaluation.levels, evaluation])

    def _ask_through(self, evaluator: Evaluator | None) -> None:
        """Let someone make the evaluations from now on, first those that are still to be made."""
        if evaluator is None and self._asked:
            raise ConfigurationError(
                "evaluations are still to be made by an evaluator; resume with `coach` or "
                "resume_experiment, which start one"
            )
        self._evaluator = evaluator
        for each in self._asked:
            assert evaluator is not None
            evaluator.ask(each)

    def _has_answer(self) -> bool:
        """True if an evaluation is over that was asked for."""
        evaluator = self._evaluator
        return evaluator is not None and bool(self._asked) and evaluator.has_answered()

    def _take_in_answers(
        self, is_left: Callable[[], bool], *, most_left: int
    ) -> Iterator[LogRecord]:
        """The results that are there; waits for more, until no more than `most_left` are asked."""
        evaluator, is_waiting = self._evaluator, False
        while evaluator is not None and self._asked and not is_left():
            if self._progress.ending(self.clock) == SOLVED:  # what was asked later, nobody needs
                self._asked.clear()
                evaluator.forget()
                break
            wait = WAIT_SECONDS if len(self._asked) > most_left else 0.0
            if wait:
                is_waiting = True
                self.graph.on_activity(waiting_for(len(self._asked) - most_left))
            if evaluator.has_answered(wait_seconds=wait):
                scores, asked = evaluator.answer(), self._asked.pop(0)
                evaluation = self._evaluation(
                    scores,
                    asked.clock_then(self.clock),
                    success_is_reported=asked.success_is_reported,
                )
                self._progress.note_result(evaluation)
                yield from self._settling([*evaluation.levels, evaluation])
            elif not wait:
                break
        if is_waiting:
            self.graph.on_activity("")

    def _asked_now(self) -> AskedEvaluation:
        """An evaluation of the agents as they are."""
        return AskedEvaluation(
            policies=self.policies(),
            clock=self.clock.state_dict(),
            success_is_reported=self._success_is_reported(),
        )

    def _play(
        self,
        episodes: EnvironmentEpisodes,
        *,
        seed: int | None = None,
        sampling: bool = False,
        is_stopped: Callable[[], bool],
        is_watched: bool = True,
    ) -> Scores:
        """Play an evaluation; once more if a watcher looks again at the same episodes."""
        graph, stack = self.graph, self.graph.evaluation
        watcher = self._watcher if is_watched else None
        graph.sample_in_evaluations(sampling)
        before = None if watcher is None else deepcopy(stack.state_dict(with_simulators=False))

        def played() -> Scores:
            return play(
                stack,
                episodes,
                seed=graph.evaluation_seed if seed is None else seed,
                step_limit=self.parameters.schedule.evaluation_step_limit,
                watcher=watcher,
                is_stopped=is_stopped,
                on_activity=graph.on_activity,
            )

        with torch_settings(graph.task):
            scores = played()
            if watcher is not None and watcher.looks_again(scores.episodes):
                assert before is not None
                stack.load_state_dict(before, with_simulators=False)
                with suppress(EvaluationStopped):  # the evaluation itself is complete
                    played()
        return scores

    def _evaluation_now(self, scores: Scores) -> Evaluation:
        """The record of an evaluation of the agents as they are."""
        return self._evaluation(scores, self.clock, success_is_reported=self._success_is_reported())

    def _evaluation(self, scores: Scores, clock: Clock, *, success_is_reported: bool) -> Evaluation:
        """The record of an evaluation.

        Args:
            scores: Its result.
            clock: Counters of training when it was due.
            success_is_reported: Whether success was known to be reported before it.
        """
        progress = self._progress
        if scores.cut_off:
            warn_of_cut_off_episodes(self.parameters)
        progress.evaluations_tell_success |= scores.reports_success
        with_success = success_is_reported or progress.evaluations_tell_success
        record = progress.record(
            "evaluation",
            clock,
            scores.metrics(with_success=with_success),
            phase=Phase.TEST,
            arrays=scores.arrays(with_success=with_success),
        )
        levels = [
            progress.record("level", clock, metrics, phase=Phase.TEST, level=name)
            for name, metrics in scores.levels.items()
        ]
        return Evaluation(**vars(record), levels=tuple(levels))

    def _settling(self, records: Sequence[LogRecord]) -> Iterator[LogRecord]:
        """The records of one moment; the run is settled when the last has left."""
        for number, record in enumerate(records, start=1):
            self._is_settled = number == len(records)
            yield record

    def _success_is_reported(self) -> bool:
        """True if the evaluation environment is known to report success."""
        same = self.parameters.evaluation_environment is None
        reported = self._progress.evaluations_tell_success
        return reported or (same and self.graph.tracker.reports_success)


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
