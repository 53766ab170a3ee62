"""The evaluations of a run: their schedule, their episodes, their scores and their records.

scores = play(graph.evaluation, EnvironmentEpisodes(10), seed=1)
print(scores.metrics()["evaluation/reward_mean"], scores.arrays()["episode/reward"])

An evaluation in another process is requested with all that it depends on, the agents as they are at
that moment. A checkpoint keeps the requests without an answer, and a resumed run repeats them.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol

import numpy as np

from coach_rl.core.agents import require_whole_policies
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import ConfigurationError, EnvironmentFault
from coach_rl.core.log_records import Evaluation, LogRecord
from coach_rl.core.records import Array, EnvResponse, Fault, FloatArray, IntArray
from coach_rl.core.runtime import OnActivity, ignore_activity
from coach_rl.core.seeding import generator, integer_seed
from coach_rl.core.state import State
from coach_rl.core.steps import EnvironmentEpisodes, require_unit
from coach_rl.graph_managers.episode_tracker import EpisodeTracker, FinishedEpisodes
from coach_rl.graph_managers.graph import Graph
from coach_rl.graph_managers.parameters import GraphParameters
from coach_rl.graph_managers.progress import SOLVED, Progress
from coach_rl.graph_managers.run_warnings import warn_of_cut_off_episodes
from coach_rl.graph_managers.stack import Stack
from coach_rl.graph_managers.statistics import bootstrap_interval, interquartile_mean
from coach_rl.graph_managers.torch_settings import torch_settings
from coach_rl.graph_managers.watcher import EvaluationWatcher

REPORT_EVERY = 1_000
"""Steps between two progress reports of an evaluation."""
MAX_PENDING = 8
"""Maximum number of pending evaluations; when one more is due, training waits for the first."""
WAIT_SECONDS = 0.1
"""Polling interval while waiting for an evaluation."""


class EvaluationStopped(Exception):
    """An evaluation was stopped before all of its episodes were played."""


def never() -> bool:
    """Default stop condition: never stop."""
    return False


@dataclass(frozen=True, kw_only=True)
class Scores:
    """The scores of an evaluation's episodes."""

    episodes: FinishedEpisodes
    """All of them, in the order in which they ended."""
    reports_success: bool
    """True if the environment reported success in any of them."""
    levels: Mapping[str, Mapping[str, float]]
    """Statistics of the sub-episodes of each level of a hierarchy; see `level_metrics`."""
    faults: Mapping[str, int]
    """Number of the simulators' failures, by cause."""
    cut_off: int = 0
    """Number of episodes that reached the step limit."""
    signals: Mapping[str, float] = field(default_factory=dict)
    """Statistics of the signals, as `evaluation_signals/<signal>/<statistic>`."""

    def metrics(self, *, with_success: bool = False) -> dict[str, float]:
        """The metrics of the evaluation.

        Args:
            with_success: Whether success is known to be reported, so that none means failure.
        """
        reward = self.episodes.reward
        low, high = bootstrap_interval(reward, interquartile_mean, rng=generator(0, "bootstrap"))
        metrics = {
            "evaluation/episodes": float(len(reward)),
            "evaluation/reward_mean": float(reward.mean()),
            "evaluation/reward_std": float(reward.std()),
            "evaluation/reward_iqm": float(interquartile_mean(reward)),
            "evaluation/reward_iqm_low": low,
            "evaluation/reward_iqm_high": high,
            "evaluation/length_mean": float(self.episodes.length.mean()),
        }
        if with_success or self.reports_success:
            metrics["evaluation/success_rate"] = float(self.episodes.success.mean())
            metrics["evaluation/success_any_rate"] = float(self.episodes.success_any.mean())
        if self.cut_off:
            metrics["evaluation/episodes_cut_off"] = float(self.cut_off)
        for name, own in self.episodes.agents.items():
            metrics[f"evaluation/reward_mean/{name}"] = float(own.mean())
        if self.faults:
            metrics["evaluation/faults"] = float(sum(self.faults.values()))
        return {**metrics, **self.signals}

    def arrays(self, *, with_success: bool = False) -> dict[str, Array]:
        """The figures of each episode, [E] each."""
        episodes = self.episodes
        arrays: dict[str, Array] = {
            "episode/reward": episodes.reward,
            "episode/length": episodes.length,
        }
        if with_success or self.reports_success:
            arrays["episode/success"] = episodes.success
            arrays["episode/success_any"] = episodes.success_any
        return arrays | {f"episode/reward/{name}": own for name, own in episodes.agents.items()}


def play(
    stack: Stack,
    episodes: EnvironmentEpisodes | int,
    *,
    seed: int,
    step_limit: int | None = None,
    watchers: Sequence[EvaluationWatcher] = (),
    is_stopped: Callable[[], bool] = never,
    on_activity: OnActivity = ignore_activity,
) -> Scores:
    """Play episodes in an evaluation's own stack.

    Each row plays its fixed share of the episodes, so short episodes don't crowd out long ones. An
    episode that a failure of the simulator cut short is not counted; another one is played.

    Args:
        stack: The stack, which is reset first.
        episodes: Number of episodes.
        seed: Seed of their starts.
        step_limit: Steps after which an episode is cut off and counts as truncated; None: never.
        watchers: Their watchers, up to the reset after the step limit.
        is_stopped: Polled at every step; True ends the evaluation.
        on_activity: Called with the number of episodes that are over.

    Raises:
        EvaluationStopped: `is_stopped` returned True.
        EnvironmentFault: More episodes were cut short than there are to play.
    """
    episodes = EnvironmentEpisodes(episodes) if isinstance(episodes, int) else episodes
    require_unit(episodes, EnvironmentEpisodes, "episodes")
    share, rest = divmod(episodes.count, stack.num_envs)
    due = np.full(stack.num_envs, share)  # [N] episodes that each row has still to play
    due[:rest] += 1
    stack.reset_all(seed)
    for watcher in watchers:
        watcher.begin(stack, due)
    tracker = EpisodeTracker(stack.num_envs)
    cut_short = 0
    played: list[FinishedEpisodes] = []
    stuck = np.zeros(stack.num_envs, np.bool_)  # [N] in an episode that was cut off
    ticks = cut_off = 0
    stack.begin_counting(due > 0)
    on_activity(_activity(0, episodes))
    while due.any():
        if is_stopped():
            raise EvaluationStopped
        answer = stack.tick()
        if answer.faults:
            cut_short += int(np.count_nonzero(answer.lost))
            _require_whole_episodes(answer.faults, cut_short, episodes)
        for watcher in watchers:
            watcher.note_tick(answer)
        ended = answer.terminated | answer.truncated
        if step_limit is not None:
            answer = _limited(answer, tracker.lengths, step_limit)
        finished = tracker.note(answer)
        if finished is not None:
            counted = (due[finished.rows] > 0) & ~stuck[finished.rows]
            is_over = (answer.terminated | answer.truncated) & ~answer.lost
            cut = (answer.truncated & ~ended)[is_over]
            cut_off += int(np.count_nonzero(counted & cut))
            stuck[finished.rows] = cut
            due[finished.rows[counted]] -= 1
            stack.count_only(due > 0)
            played.append(finished.episodes_of(counted))
            on_activity(_activity(episodes.count - due.sum(), episodes))
        if due.any() and stuck[due > 0].all():  # no row is left to play the rest
            seed = integer_seed(seed, "after the step limit")
            watchers = ()
            stack.reset(seed)
            tracker.restart()
            stuck[:] = False
        ticks += 1
        if ticks % REPORT_EVERY == 0:
            doing = _activity(episodes.count - due.sum(), episodes)
            on_activity(f"{doing}, step {ticks:,}")
    on_activity("")
    return Scores(
        episodes=_joined(played),
        reports_success=tracker.reports_success,
        levels=level_metrics(stack, "evaluation_level"),
        faults=tracker.faults,
        cut_off=cut_off,
        signals=stack.signals.drain("evaluation_signals"),
    )


def _activity(over: int, episodes: EnvironmentEpisodes) -> str:
    """The activity of an evaluation, in words, and how many episodes are over."""
    return f"evaluating, {over} of {episodes.count} episodes"


def level_metrics(
    stack: Stack, room: str, learns: Mapping[str, float] | None = None
) -> dict[str, dict[str, float]]:
    """Return the figures of each level since the last call, by the level's name.

    Levels without figures are left out, and so is a single level whose sub-episodes are the
    episodes.

    Args:
        stack: Whose levels.
        room: The beginning of the figures' names.
        learns: Whether each level learns now, by name; None where all always do.
    """
    found = {name: {f"{room}/learns": value} for name, value in (learns or {}).items()}
    if len(stack.levels) == 1 and stack.levels[0].params.goal_space is None:
        return found
    for level in stack.levels:
        own: dict[str, float] = {}
        for name, value in level.drain().items():
            own[f"{room}/{name}"] = value
        if own:
            found[level.name] = own | found.get(level.name, {})
    return found


def _require_whole_episodes(
    faults: Sequence[Fault], cut_short: int, episodes: EnvironmentEpisodes
) -> None:
    """Raise `EnvironmentFault` when failures have cut short more episodes than are to be played."""
    if cut_short > episodes.count:
        raise EnvironmentFault(
            f"the environment failed in {cut_short} episodes of an evaluation of {episodes.count}, "
            f"the last time: {faults[-1].message}"
        )


def _limited(answer: EnvResponse, lengths: IntArray, step_limit: int) -> EnvResponse:
    """The answer, truncated where an episode of `lengths` [N] steps before it reaches the limit."""
    reached = lengths[answer.rows] + answer.duration >= step_limit
    if not reached.any():
        return answer
    return replace(answer, truncated=answer.truncated | (reached & ~answer.terminated))


def _joined(played: list[FinishedEpisodes]) -> FinishedEpisodes:
    """The episodes of several ticks, one after the other."""
    columns: dict[str, Any] = {}
    for each in fields(FinishedEpisodes):
        if each.name != "agents":
            columns[each.name] = np.concatenate([getattr(tick, each.name) for tick in played])
    agents: dict[str, FloatArray] = {}
    for name in played[0].agents:
        agents[name] = np.concatenate([tick.agents[name] for tick in played])
    return FinishedEpisodes(**columns, agents=agents)


@dataclass(frozen=True, kw_only=True)
class EvaluationRequest:
    """An evaluation to be made by an evaluator."""

    policies: Mapping[str, State]
    """The agents' knowledge then, by their level's name: see `Agent.policy_state_dict`."""
    clock: State
    """The counters of training then."""
    success_is_reported: bool
    """True if success was known to be reported then."""

    @property
    def environment_steps(self) -> int:
        """Environment steps at the time of the request."""
        return int(self.clock["environment_steps"])

    def clock_then(self, clock: Clock) -> Clock:
        """The counters of training then, as a clock like this one."""
        then = Clock(planned=clock.planned, wall_seconds=clock.wall_seconds)
        then.load_state_dict(self.clock)
        return then


class Evaluator(Protocol):
    """A service that makes evaluations in the background, one after the other.

    evaluator.submit(request)
    if evaluator.has_answered():
        scores = evaluator.answer()
    """

    def submit(self, evaluation: EvaluationRequest) -> None:
        """Add an evaluation to those that are to be made, unless it is among them."""
        ...

    def has_answered(self, *, wait_seconds: float = 0.0) -> bool:
        """Return whether the first evaluation is over, after waiting for it that long at most."""
        ...

    def answer(self) -> Scores:
        """Take the result of the first evaluation, which is over, from the list.

        Raises:
            CoachError: It could not be made.
        """
        ...

    def forget(self) -> None:
        """Drop all pending evaluations."""
        ...


class EvaluationSchedule:
    """Evaluates a graph when it is due: between training steps, or by an evaluator meanwhile.

    Args:
        parameters: The experiment.
        graph: The graph to evaluate.
        progress: The run's; knows what is due, and makes the records.
    """

    def __init__(self, parameters: GraphParameters, graph: Graph, progress: Progress) -> None:
        self._parameters = parameters
        self._graph = graph
        self._progress = progress
        self._pending: list[EvaluationRequest] = []
        self._evaluator: Evaluator | None = None

    @property
    def is_awaited(self) -> bool:
        """True if evaluations are pending."""
        return bool(self._pending)

    @property
    def success_is_reported(self) -> bool:
        """True if the evaluation environment is known to report success."""
        same = self._parameters.evaluation_environment is None
        reported = self._progress.evaluations_report_success
        return reported or (same and self._graph.tracker.reports_success)

    def use_evaluator(self, evaluator: Evaluator | None) -> None:
        """Set the evaluator of this and later evaluations, and submit the pending ones to it.

        None makes evaluations between training steps.
        """
        if evaluator is None and self._pending:
            raise ConfigurationError(
                "evaluations are still to be made by an evaluator; resume with `coach` or "
                "resume_experiment, which start one"
            )
        if evaluator is not None:
            require_whole_policies(self._graph.agents)
        self._evaluator = evaluator
        for each in self._pending:
            assert evaluator is not None
            evaluator.submit(each)

    def begins(self) -> LogRecord:
        """The record of the beginning of an evaluation."""
        return self._progress.record("phase", phase=Phase.TEST)

    def evaluate_if_due(self, is_stopped: Callable[[], bool]) -> Iterator[LogRecord]:
        """Evaluate, or submit a request, once per interval and at the end of training."""
        schedule = self._parameters.schedule
        progress = self._progress
        clock = self._graph.clock
        is_over = progress.ending is not None
        interval = schedule.evaluation_interval
        if interval is None or progress.moment == progress.evaluated_at:
            return
        if is_stopped():
            return
        if not is_over and not progress.is_evaluation_due():
            return
        if self._evaluator is not None:
            progress.note_evaluated()
            progress.announced_at = progress.moment
            self._pending.append(self._request())
            self._evaluator.submit(self._pending[-1])
            yield from progress.settling([self.begins()])
            return
        progress.is_settled = False
        if progress.announced_at != progress.moment:
            progress.announced_at = progress.moment
            yield self.begins()
        number = 0 if is_over else int(interval.counted(clock) // interval.count)
        evaluation = self.result(
            self.play(schedule.evaluation_episodes, is_stopped=is_stopped, number=number)
        )
        clock.wall_seconds = progress.seconds_at(time.perf_counter())
        progress.note_evaluated()
        progress.note_result(evaluation)
        yield from progress.settling([*evaluation.levels, evaluation])

    def has_answer(self) -> bool:
        """Return whether the first pending evaluation is over."""
        evaluator = self._evaluator
        return evaluator is not None and bool(self._pending) and evaluator.has_answered()

    def results(self, is_left: Callable[[], bool], *, most_left: int) -> Iterator[LogRecord]:
        """Finished evaluations; waits until no more than `most_left` are pending."""
        evaluator = self._evaluator
        is_waiting = False
        while evaluator is not None and self._pending and not is_left():
            if self._progress.ending == SOLVED:
                self._pending.clear()  # evaluations after the target was reached
                evaluator.forget()
                break
            wait = WAIT_SECONDS if len(self._pending) > most_left else 0.0
            if wait:
                is_waiting = True
                count = len(self._pending) - most_left
                text = f"waiting for {count} background evaluation{'s' * (count > 1)}"
                self._graph.runtime.on_activity(text)
            if evaluator.has_answered(wait_seconds=wait):
                scores = evaluator.answer()
                request = self._pending.pop(0)
                evaluation = self.result(scores, request)
                self._progress.note_result(evaluation)
                yield from self._progress.settling([*evaluation.levels, evaluation])
            elif not wait:
                break
        if is_waiting:
            self._graph.runtime.on_activity("")

    def play(
        self,
        episodes: EnvironmentEpisodes | int,
        *,
        seed: int | None = None,
        sampling: bool = False,
        is_stopped: Callable[[], bool],
        number: int = 0,
    ) -> Scores:
        """Play an evaluation; once more for watchers that need a replay of the same episodes.

        Args:
            episodes: Number of episodes.
            seed: Seed of the episodes; None takes that of the evaluations while training.
            sampling: Whether agents explore as they do in training now.
            is_stopped: Polled at every step; True ends the evaluation.
            number: Its number among those while training, by which watchers choose; 0: all watch.
        """
        graph = self._graph
        stack = self._graph.evaluation
        watchers = list(filter(lambda each: number % each.every == 0, graph.watchers))
        graph.sample_in_evaluations(sampling)
        before = deepcopy(stack.state_dict(with_simulators=False)) if watchers else {}

        def played(watchers: Sequence[EvaluationWatcher]) -> Scores:
            return play(
                stack,
                episodes,
                seed=graph.evaluation_seed if seed is None else seed,
                step_limit=self._parameters.schedule.evaluation_step_limit,
                watchers=watchers,
                is_stopped=is_stopped,
                on_activity=graph.runtime.on_activity,
            )

        with torch_settings(graph.runtime), stack.signals.listening():
            scores = played(watchers)
            again = list(filter(lambda each: each.wants_replay(scores.episodes), watchers))
            if again:
                stack.load_state_dict(before, with_simulators=False)
                with suppress(EvaluationStopped):  # the evaluation itself is complete
                    played(again)
        return scores

    def result(self, scores: Scores, request: EvaluationRequest | None = None) -> Evaluation:
        """The record of an evaluation.

        Args:
            scores: Its scores.
            request: The request; None for an evaluation of the current agents.
        """
        progress = self._progress
        clock = self._graph.clock
        was_reported = self.success_is_reported if request is None else request.success_is_reported
        then = clock if request is None else request.clock_then(clock)
        if scores.cut_off:
            warn_of_cut_off_episodes(self._parameters)
        progress.evaluations_report_success |= scores.reports_success
        with_success = was_reported or progress.evaluations_report_success
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
    ) -> Scores:
        """Scores of agents as they were in an equal graph, in an evaluation as while training.

        Args:
            policies: See `EvaluationRequest`.
            clock: The counters then, which schedules are functions of; None: those of this graph.
        """
        graph = self._graph
        if clock is not None:
            graph.clock.load_state_dict(clock)
        for name, agent in graph.agents.items():
            if policies[name]:
                agent.load_policy(policies[name])
        return self.play(self._parameters.schedule.evaluation_episodes, is_stopped=never)

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
        self._progress.evaluations_report_success &= not elsewhere

    def state_dict(self) -> State:
        """The pending evaluations; empty if there are none."""
        if not self._pending:
            return {}
        return {"asked_evaluations": [vars(each).copy() for each in self._pending]}

    def load_state_dict(self, state: State) -> None:
        """Load the evaluations that were pending when this was saved."""
        self._pending = [EvaluationRequest(**each) for each in state.get("asked_evaluations", ())]

    def _request(self) -> EvaluationRequest:
        """A request to evaluate the current agents."""
        return EvaluationRequest(
            policies=self.policies(),
            clock=self._graph.clock.state_dict(),
            success_is_reported=self.success_is_reported,
        )
