"""The evaluations of a run: when one is due, who makes it, and its record."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy

from coach_rl.core.activity import waiting_for
from coach_rl.core.agents import require_whole_policies
from coach_rl.core.clock import Phase
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.state import State
from coach_rl.core.steps import EnvironmentEpisodes
from coach_rl.graph_managers.episode_recorder import EvaluationWatcher
from coach_rl.graph_managers.evaluating import EvaluationStopped, Scores, never, play
from coach_rl.graph_managers.evaluator import AskedEvaluation, Evaluator
from coach_rl.graph_managers.graph import Graph
from coach_rl.graph_managers.parameters import GraphParameters
from coach_rl.graph_managers.progress import SOLVED, Progress
from coach_rl.graph_managers.run_warnings import warn_of_cut_off_episodes
from coach_rl.graph_managers.torch_settings import torch_settings
from coach_rl.telemetry.records import Evaluation, LogRecord

WAIT_SECONDS = 0.1
"""Time between two looks at whether to go on waiting for an evaluation."""


class EvaluationSchedule:
    """Evaluates a graph when it is due, in between or by someone who does so while it trains.

    Args:
        parameters: The experiment.
        graph: What is evaluated.
        progress: The run's; knows what is due, and makes the records.
        watcher: What looks at evaluations; None for nothing.
    """

    def __init__(
        self,
        parameters: GraphParameters,
        graph: Graph,
        progress: Progress,
        watcher: EvaluationWatcher | None = None,
    ) -> None:
        self._parameters, self._graph = parameters, graph
        self._progress, self._watcher = progress, watcher
        self._asked: list[AskedEvaluation] = []
        self._evaluator: Evaluator | None = None

    @property
    def is_awaited(self) -> bool:
        """True if evaluations have been asked for whose results are not there."""
        return bool(self._asked)

    @property
    def success_is_reported(self) -> bool:
        """True if the evaluation environment is known to report success."""
        same = self._parameters.evaluation_environment is None
        reported = self._progress.evaluations_tell_success
        return reported or (same and self._graph.tracker.reports_success)

    def ask_through(self, evaluator: Evaluator | None) -> None:
        """Let someone make the evaluations from now on, first those that are still to be made."""
        if evaluator is None and self._asked:
            raise ConfigurationError(
                "evaluations are still to be made by an evaluator; resume with `coach` or "
                "resume_experiment, which start one"
            )
        if evaluator is not None:
            require_whole_policies(self._graph.agents)
        self._evaluator = evaluator
        for each in self._asked:
            assert evaluator is not None
            evaluator.ask(each)

    def begins(self) -> LogRecord:
        """The record that says that an evaluation begins."""
        return self._progress.record("phase", phase=Phase.TEST)

    def evaluate_if_due(self, is_stopped: Callable[[], bool]) -> Iterator[LogRecord]:
        """Evaluate at every interval and at the end of training, once each, or ask for it."""
        schedule, progress, clock = self._parameters.schedule, self._progress, self._graph.clock
        is_over = progress.ending is not None
        interval = schedule.evaluation_interval
        if interval is None or clock.environment_steps == progress.evaluated_at:
            return
        if is_stopped():
            return
        if not is_over and not progress.is_evaluation_due():
            return
        if self._evaluator is not None:
            progress.note_evaluated()
            progress.announced_at = clock.environment_steps
            self._asked.append(self._asked_now())
            self._evaluator.ask(self._asked[-1])
            yield from progress.settling([self.begins()])
            return
        progress.is_settled = False
        if progress.announced_at != clock.environment_steps:
            progress.announced_at = clock.environment_steps
            yield self.begins()
        number = int(interval.counted(clock) // interval.count)
        is_watched = is_over or self._watcher is None or number % self._watcher.every == 0
        evaluation = self.result(
            self.play(schedule.evaluation_episodes, is_stopped=is_stopped, is_watched=is_watched)
        )
        clock.wall_seconds = progress.seconds_at(time.perf_counter())
        progress.note_evaluated()
        progress.note_result(evaluation)
        yield from progress.settling([*evaluation.levels, evaluation])

    def has_answer(self) -> bool:
        """Return whether an evaluation is over that was asked for."""
        evaluator = self._evaluator
        return evaluator is not None and bool(self._asked) and evaluator.has_answered()

    def take_in_answers(
        self, is_left: Callable[[], bool], *, most_left: int
    ) -> Iterator[LogRecord]:
        """The results that are there; waits for more, until no more than `most_left` are asked."""
        evaluator, is_waiting = self._evaluator, False
        while evaluator is not None and self._asked and not is_left():
            if self._progress.ending == SOLVED:
                self._asked.clear()  # what was asked later, nobody needs
                evaluator.forget()
                break
            wait = WAIT_SECONDS if len(self._asked) > most_left else 0.0
            if wait:
                is_waiting = True
                self._graph.runtime.on_activity(waiting_for(len(self._asked) - most_left))
            if evaluator.has_answered(wait_seconds=wait):
                scores, asked = evaluator.answer(), self._asked.pop(0)
                evaluation = self.result(scores, asked)
                self._progress.note_result(evaluation)
                yield from self._progress.settling([*evaluation.levels, evaluation])
            elif not wait:
                break
        if is_waiting:
            self._graph.runtime.on_activity("")

    def play(
        self,
        episodes: EnvironmentEpisodes,
        *,
        seed: int | None = None,
        sampling: bool = False,
        is_stopped: Callable[[], bool],
        is_watched: bool = True,
    ) -> Scores:
        """Play an evaluation; once more if a watcher looks again at the same episodes.

        Args:
            episodes: How many.
            seed: Seed of the episodes; None takes that of the evaluations while training.
            sampling: Whether agents explore as they do in training now.
            is_stopped: Asked at every step whether to give up.
            is_watched: Whether the watcher looks at it.
        """
        graph, stack = self._graph, self._graph.evaluation
        watcher = self._watcher if is_watched else None
        graph.sample_in_evaluations(sampling)
        before = None if watcher is None else deepcopy(stack.state_dict(with_simulators=False))

        def played() -> Scores:
            return play(
                stack,
                episodes,
                seed=graph.evaluation_seed if seed is None else seed,
                step_limit=self._parameters.schedule.evaluation_step_limit,
                watcher=watcher,
                is_stopped=is_stopped,
                on_activity=graph.runtime.on_activity,
            )

        with torch_settings(graph.runtime):
            scores = played()
            if watcher is not None and watcher.looks_again(scores.episodes):
                assert before is not None
                stack.load_state_dict(before, with_simulators=False)
                with suppress(EvaluationStopped):  # the evaluation itself is complete
                    played()
        return scores

    def result(self, scores: Scores, asked: AskedEvaluation | None = None) -> Evaluation:
        """The record of an evaluation.

        Args:
            scores: Its scores.
            asked: How it was asked for; None: it is of the agents as they are.
        """
        progress, clock = self._progress, self._graph.clock
        was_reported = self.success_is_reported if asked is None else asked.success_is_reported
        then = clock if asked is None else asked.clock_then(clock)
        if scores.cut_off:
            warn_of_cut_off_episodes(self._parameters)
        progress.evaluations_tell_success |= scores.reports_success
        with_success = was_reported or progress.evaluations_tell_success
        record = progress.record(
            "evaluation",
            scores.metrics(with_success=with_success),
            clock=then,
            phase=Phase.TEST,
            arrays=scores.arrays(with_success=with_success),
        )
        levels = [
            progress.record("level", metrics, clock=then, phase=Phase.TEST, level=name)
            for name, metrics in scores.levels.items()
        ]
        return Evaluation(**vars(record), levels=tuple(levels))

    def scores_of(
        self,
        policies: Mapping[str, State],
        *,
        clock: State | None = None,
        is_stopped: Callable[[], bool] = never,
    ) -> Scores:
        """Scores of agents as they were in an equal graph, in an evaluation as while training.

        Args:
            policies: See `AskedEvaluation`.
            clock: The counters then, which the schedules of certified plans are functions of; None:
                those of this graph.
            is_stopped: Polled at every step; True ends the evaluation.
        """
        graph = self._graph
        if clock is not None:
            graph.clock.load_state_dict(clock)
        for name, agent in graph.agents.items():
            if policies[name]:
                agent.load_policy(policies[name])
        return self.play(self._parameters.schedule.evaluation_episodes, is_stopped=is_stopped)

    def policies(self) -> dict[str, State]:
        """The agents' policies, by their level's name; the argument of `scores_of`."""
        self._graph.require_loaded()
        require_whole_policies(self._graph.agents)
        return {name: agent.policy_state_dict() for name, agent in self._graph.agents.items()}

    def load_agents(self, state: State, *, elsewhere: bool = False) -> None:
        """Load agents, with their filters, and counters of a saved state; no environments.

        Args:
            state: The `state_dict` of an equally described graph manager.
            elsewhere: Whether evaluations are in another environment than that graph's, which may
                not report success as that one did.
        """
        self._graph.load_agents(state)
        self._progress.load_state_dict(state["progress"])
        self._graph.clock.wall_seconds = self._progress.wall_seconds
        self._progress.evaluations_tell_success &= not elsewhere

    def state_dict(self) -> State:
        """The evaluations that have been asked for; empty where there are none."""
        if not self._asked:
            return {}
        return {"asked_evaluations": [vars(each).copy() for each in self._asked]}

    def load_state_dict(self, state: State) -> None:
        """Wait for the evaluations that were asked for when this was saved."""
        self._asked = [AskedEvaluation(**each) for each in state.get("asked_evaluations", ())]

    def _asked_now(self) -> AskedEvaluation:
        """An evaluation of the agents as they are."""
        return AskedEvaluation(
            policies=self.policies(),
            clock=self._graph.clock.state_dict(),
            success_is_reported=self.success_is_reported,
        )
