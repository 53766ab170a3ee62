"""Scheduling heat-up, training and evaluation over a stack of levels.

graph_manager.create_graph(TaskParameters(seed=1))
for record in graph_manager.improve():          # stop, save or evaluate between any two records
    print(record.kind, record.environment_steps)
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch

from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import CheckpointError, ConfigurationError, SpaceError
from coach_rl.core.interfaces import Agent, DrawableParameters, Environment, LevelPlace
from coach_rl.core.records import Array
from coach_rl.core.seeding import generator, integer_seed
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.state import State
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.graph_managers.description import describe_stack
from coach_rl.graph_managers.episode_recorder import EpisodeRecorder
from coach_rl.graph_managers.episode_tracker import EpisodeTracker, FinishedEpisodes
from coach_rl.graph_managers.parameters import (
    GraphDescription,
    LevelParameters,
    ScheduleParameters,
    TaskParameters,
)
from coach_rl.graph_managers.stack import Stack, build_stack
from coach_rl.graph_managers.torch_settings import torch_settings
from coach_rl.telemetry.records import Kind, LogRecord
from coach_rl.telemetry.statistics import bootstrap_interval, interquartile_mean

MAX_EVALUATION_ENVS = 16
"""Environments an evaluation runs in parallel at most."""


@dataclass(kw_only=True)
class Graph:
    """What `create_graph` builds: agents, the stack they train in, the stack they are tested in."""

    task: TaskParameters
    agents: tuple[Agent, ...]
    """One per level, top first."""
    clock: Clock
    """Phase and counters of training."""
    training: Stack | None
    """None in a graph that only evaluates."""
    evaluation: Stack
    tracker: EpisodeTracker
    """Open training episodes."""


class GraphManager:
    """Runs an experiment that `parameters` describes.

    Args:
        parameters: The experiment; frozen.
    """

    def __init__(self, parameters: GraphDescription) -> None:
        self.parameters = parameters
        self._levels = parameters.levels  # which some descriptions make anew each time
        self._graph: Graph | None = None
        self._recorder: EpisodeRecorder | None = None
        self._next_evaluation = 0
        self._evaluated_at = 0
        self._evaluations_tell_success = False
        self._next_progress = 0
        self._is_settled = True
        self._has_begun = False
        """Whether the first phase has been said."""
        self._training_seconds = 0.0
        self._wall_seconds = 0.0
        self._since = time.perf_counter()

    @property
    def clock(self) -> Clock:
        """Phase and counters of training."""
        return self._built().clock

    @property
    def is_settled(self) -> bool:
        """Whether all records of the last tick have been yielded.

        A state saved while this is false is as good, but the records that were still to come are
        not said again by the run that goes on from it.
        """
        return self._is_settled

    @property
    def training_seconds(self) -> float:
        """Seconds spent in heat-up and training ticks and updates; evaluation is not counted."""
        return self._training_seconds

    def watch_evaluations(self, recorder: EpisodeRecorder) -> None:
        """Let a recorder film evaluations from now on; before `create_graph`."""
        if self._graph is not None:
            raise ConfigurationError("the graph is built; call watch_evaluations() before that")
        self._recorder = recorder

    def create_graph(self, task: TaskParameters | None = None, *, training: bool = True) -> None:
        """Build agents, levels and environments; ConfigurationErrors say what doesn't fit.

        The task's threads and precision hold whenever the graph computes, and only then: between
        two records torch's settings are the process's own.

        Args:
            task: What is known only when a run starts; None takes its defaults.
            training: Whether to build environments to train in. A graph without them can be given
                agents by `load_agents` or `load_level`, and evaluate.
        """
        if self._graph is not None:
            raise ConfigurationError("this graph is already built; close() it to build another")
        task = task or TaskParameters()
        task = replace(task, device=resolved_device(task.device))
        with torch_settings(task):
            self._graph = graph = self._build(task, training=training)
            if graph.training is not None:
                self._check_evaluation_spaces(graph.training, graph.evaluation)
                graph.training.reset(integer_seed(task.seed, "training", "environment"))
            if self._recorder is not None:
                self._recorder.prepare(graph.evaluation, self._evaluation_seed(task))
        schedule = self.parameters.schedule
        interval = schedule.evaluation_interval
        self._next_evaluation = schedule.heatup.count + (interval.count if interval else 0)
        self._next_progress = schedule.progress_interval.count
        self._since = time.perf_counter()

    def improve(self) -> Iterator[LogRecord]:
        """The experiment: heat-up, then training with evaluations in between, until all is done.

        Builds the graph with default task parameters where that has not been done. Goes on from
        wherever the counters stand, so it also continues a restored run.
        """
        if self._graph is None:
            self.create_graph()
        clock, schedule = self._training().clock, self.parameters.schedule
        self._since = time.perf_counter() - self._wall_seconds
        if clock.environment_steps < schedule.heatup.count:
            yield from self.heatup(schedule.heatup - EnvironmentSteps(clock.environment_steps))
        yield from self._evaluate_if_due()  # a run may have stopped just before
        while clock.environment_steps < schedule.training.count:
            until = schedule.training.count
            if schedule.evaluation_interval is not None:
                until = min(until, self._next_evaluation)
            yield from self.train_and_act(EnvironmentSteps(until - clock.environment_steps))
            yield from self._evaluate_if_due()

    def run(self) -> None:
        """`improve` for those who only want it done."""
        for _ in self.improve():
            pass

    def heatup(self, steps: EnvironmentSteps) -> Iterator[LogRecord]:
        """Act at random for at least that many environment steps; nothing is trained."""
        yield from self._act(Phase.HEATUP, steps)

    def train_and_act(self, steps: EnvironmentSteps) -> Iterator[LogRecord]:
        """Act with exploration and learn for at least that many environment steps."""
        yield from self._act(Phase.TRAIN, steps)

    def evaluate(
        self, episodes: EnvironmentEpisodes, *, seed: int | None = None
    ) -> Iterator[LogRecord]:
        """Play episodes without exploring and without changing anything.

        Yields a record for each level of a hierarchy, then that of the evaluation.

        The environments and the level stack are the evaluation's own. Each row plays its fixed
        share of the episodes, so short episodes don't crowd out long ones.

        Args:
            episodes: How many.
            seed: Of the episodes; None takes the run's evaluation seed, the same at every
            evaluation,
                so that evaluations of one run are compared on the same starts.
        """
        graph = self._built()
        seed = self._evaluation_seed(graph.task) if seed is None else seed
        with torch_settings(graph.task):
            played = self._play(graph.evaluation, episodes, seed)
        scalars, arrays = _evaluation_summary(played, tells_success=self._success_is_told())
        evaluation = self._record("evaluation", scalars, phase=Phase.TEST, arrays=arrays)
        yield from self._said([*self._level_records(graph.evaluation), evaluation])

    def description(self) -> str:
        """The levels and their agents, for people."""
        levels, parameters = self._training().levels, self.parameters
        return describe_stack(levels, self._levels, self._built().agents, parameters.environment)

    def load_level(self, level: str, state: State) -> None:
        """Let a level's agent start from what one knew elsewhere; see `Agent.load_policy`.

        Args:
            level: The level's name.
            state: What that agent's `state_dict` returned.
        """
        names = [params.name for params in self._levels]
        self._built().agents[names.index(level)].load_policy(state)

    def require_savable(self) -> None:
        """Raise a `ConfigurationError` where the environments of training cannot be saved.

        Whoever is going to write checkpoints asks before hours go into a run that has none.
        """
        try:
            self._training().state_dict()
        except CheckpointError as error:
            raise ConfigurationError(
                f"a run saves checkpoints, and this experiment cannot be saved: {error}"
            ) from error

    def state_dict(self) -> State:
        """Everything that is needed to go on exactly here; valid between two records."""
        graph = self._built()
        return {
            "agents": {
                level.name: agent.state_dict()
                for level, agent in zip(self._levels, graph.agents, strict=True)
            },
            "training": self._training().state_dict(),
            "tracker": graph.tracker.state_dict(),
            "next_evaluation": self._next_evaluation,
            "evaluated_at": self._evaluated_at,
            "evaluations_tell_success": self._success_is_told(),
            "next_progress": self._next_progress,
            "has_begun": self._has_begun,
            "training_seconds": self._training_seconds,
            "wall_seconds": self._elapsed(),
        }

    def load_state_dict(self, state: State) -> None:
        """Go on from a state saved by an equally built graph."""
        training = self._training()
        self.load_agents(state)
        training.load_state_dict(state["training"])
        self._built().tracker.load_state_dict(state["tracker"])
        self._next_evaluation = state["next_evaluation"]
        self._evaluated_at = state["evaluated_at"]
        self._next_progress = state["next_progress"]
        self._has_begun = state["has_begun"]

    def load_agents(self, state: State) -> None:
        """Take over agents, with their filters, and counters of a saved state; no environments.

        Args:
            state: What the `state_dict` of an equally described graph returned.
        """
        graph = self._built()
        for level, agent in zip(self._levels, graph.agents, strict=True):
            agent.load_state_dict(state["agents"][level.name])
        graph.clock.load_state_dict(state["training"]["clock"])
        # Older checkpoints don't say whether success is told.
        self._evaluations_tell_success = state.get("evaluations_tell_success", False)
        self._training_seconds = state["training_seconds"]
        self._wall_seconds = state["wall_seconds"]
        self._since = time.perf_counter() - self._wall_seconds

    def close(self) -> None:
        """Close the environments; harmless when repeated or when nothing was built."""
        if self._graph is not None:
            if self._graph.training is not None:
                self._graph.training.close()
            self._graph.evaluation.close()
            self._graph = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _build(self, task: TaskParameters, *, training: bool) -> Graph:
        parameters, schedule = self.parameters, self.parameters.schedule
        agents: dict[int, Agent] = {}

        def made(index: int, spaces: EnvironmentSpaces) -> Agent:
            if index not in agents:
                level = self._levels[index]
                with naming(level, self._levels):
                    agents[index] = level.agent.build(
                        spaces=spaces,
                        num_envs=parameters.num_envs,
                        device=task.device,
                        seed=integer_seed(task.seed, "agent", level.name),
                        planned_steps=planned_decisions(self._levels, index, schedule),
                        place=LevelPlace(
                            level=level,
                            below=self._levels[index + 1] if index + 1 in agents else None,
                            agent_below=agents.get(index + 1),
                        ),
                    )
            return agents[index]

        def stack(purpose: str, environment: Environment, clock: Clock) -> Stack:
            return build_stack(
                self._levels,
                environment,
                agent=made,
                clock=clock,
                seed=task.seed,
                purpose=purpose,
                discount=parameters.reward_discount,
            )

        planned = schedule.training.count
        clock, trained = Clock(planned_steps=planned), None
        if training:
            environment = parameters.environment.build(num_envs=parameters.num_envs)
            trained = stack("training", environment, clock)
        testing_envs = min(schedule.evaluation_episodes.count, MAX_EVALUATION_ENVS)
        tested_in = parameters.evaluation_environment or parameters.environment
        if self._recorder is not None and isinstance(tested_in, DrawableParameters):
            tested_in = tested_in.drawable()
        evaluation = stack(
            "evaluation",
            tested_in.build(num_envs=testing_envs),
            Clock(phase=Phase.TEST, planned_steps=planned),
        )
        return Graph(
            task=task,
            agents=tuple(agents[index] for index in range(len(agents))),
            clock=clock,
            training=trained,
            evaluation=evaluation,
            tracker=EpisodeTracker(parameters.num_envs),
        )

    def _play(
        self, stack: Stack, episodes: EnvironmentEpisodes, seed: int
    ) -> list[FinishedEpisodes]:
        """Episodes of an evaluation."""
        share, rest = divmod(episodes.count, stack.num_envs)
        due = np.full(stack.num_envs, share)
        due[:rest] += 1
        stack.reset(seed)
        if self._recorder is not None:
            self._recorder.begin(stack)
        tracker = EpisodeTracker(stack.num_envs)
        played: list[FinishedEpisodes] = []
        stack.begin_counting(due > 0)
        while due.any():
            answer = stack.tick()
            finished = tracker.note(answer)
            if self._recorder is not None:
                self._recorder.note_tick(answer)
            if finished is not None:
                counted = due[finished.rows] > 0
                due[finished.rows[counted]] -= 1
                stack.count_only(due > 0)
                played.append(_selected(finished, counted))
        self._evaluations_tell_success |= tracker.tells_success
        return played

    def _success_is_told(self) -> bool:
        """Whether the environment of evaluations is known to tell of success."""
        same = self.parameters.evaluation_environment is None
        return self._evaluations_tell_success or (same and self._built().tracker.tells_success)

    def _evaluate_if_due(self) -> Iterator[LogRecord]:
        """Evaluate at every interval and at the end of training, once each."""
        schedule, now = self.parameters.schedule, self.clock.environment_steps
        interval = schedule.evaluation_interval
        if interval is None or now == self._evaluated_at:
            return
        if now >= self._next_evaluation or now >= schedule.training.count:
            self._evaluated_at = now
            while self._next_evaluation <= now:
                self._next_evaluation += interval.count
            yield from self.evaluate(schedule.evaluation_episodes)

    def _act(self, phase: Phase, steps: EnvironmentSteps) -> Iterator[LogRecord]:
        graph, training = self._built(), self._training()
        clock = graph.clock
        until = clock.environment_steps + steps.count
        if clock.phase is not phase or not self._has_begun:
            clock.phase, self._has_begun = phase, True
            yield self._record("phase", {})
        while clock.environment_steps < until:
            started = time.perf_counter()
            with torch_settings(graph.task):
                finished = graph.tracker.note(training.tick())
                if finished is not None:
                    clock.episodes += len(finished)
                learned = list(self._learn(graph)) if phase is Phase.TRAIN else []
            self._training_seconds += time.perf_counter() - started
            # All of the tick's state is settled before the first record leaves.
            due = clock.environment_steps >= self._next_progress
            while self._next_progress <= clock.environment_steps:
                self._next_progress += self.parameters.schedule.progress_interval.count
            records = [] if finished is None else list(self._episode_records(finished))
            records += [
                self._record("train", scalars, level=level, agent=agent)
                for level, agent, scalars in learned
            ]
            if due:
                records.append(self._record("progress", self._speed()))
                records += self._level_records(training)
            yield from self._said(records)

    def _said(self, records: Sequence[LogRecord]) -> Iterator[LogRecord]:
        """The records of one moment; the run is settled when the last has left."""
        for number, record in enumerate(records, start=1):
            self._is_settled = number == len(records)
            yield record

    def _learn(self, graph: Graph) -> Iterator[tuple[int, str, Mapping[str, float]]]:
        """Let every level's agent learn, the lowest first; a frozen one does not.

        Yields the level, the name of the agent or of the member of a group, and what it has to log.
        """
        for index in reversed(range(len(graph.agents))):
            if self._levels[index].frozen:
                continue
            report = graph.agents[index].train(graph.clock)
            if report is not None:
                graph.clock.training_steps += report.training_steps
                own = {self._levels[index].agent.name: report.scalars}
                for name, scalars in {**own, **report.members}.items():
                    if scalars:
                        yield index, name, scalars

    def _episode_records(self, finished: FinishedEpisodes) -> Iterator[LogRecord]:
        for episode in range(len(finished)):
            scalars = {
                "episode/reward": float(finished.reward[episode]),
                "episode/length": float(finished.length[episode]),
            }
            if self._built().tracker.tells_success:
                scalars["episode/success"] = float(finished.success[episode])
                scalars["episode/success_any"] = float(finished.success_any[episode])
            for name, reward in finished.agents.items():
                scalars[f"episode/reward/{name}"] = float(reward[episode])
            yield self._record("episode", scalars)

    def _level_records(self, stack: Stack) -> Iterator[LogRecord]:
        """How the levels' sub-episodes have gone since they were last asked."""
        if all(level.params.goal_space is None for level in stack.levels):
            return  # a single level whose sub-episodes are the episodes
        phase = stack.clock.phase
        room = "evaluation_level/" if phase is Phase.TEST else "level/"
        for index, level in enumerate(stack.levels):
            scalars = {f"{room}{name}": value for name, value in level.sub_episodes.drain().items()}
            if scalars:
                yield self._record("level", scalars, phase=phase, level=index)

    def _speed(self) -> dict[str, float]:
        speed = self.clock.environment_steps / max(self._training_seconds, 1e-9)
        return {
            "time/steps_per_second": speed,
            "time/training_seconds": self._training_seconds,
        }

    def _record(
        self,
        kind: Kind,
        scalars: Mapping[str, float],
        *,
        phase: Phase | None = None,
        level: int | None = None,
        agent: str = "",
        arrays: Mapping[str, Array] | None = None,
    ) -> LogRecord:
        clock, levels = self.clock, self._levels
        return LogRecord(
            kind=kind,
            phase=phase or clock.phase,
            environment_steps=clock.environment_steps,
            training_steps=clock.training_steps,
            episodes=clock.episodes,
            wall_seconds=self._elapsed(),
            level="" if level is None else levels[level].name,
            agent=agent,
            scalars=scalars,
            arrays=arrays or {},
        )

    @staticmethod
    def _evaluation_seed(task: TaskParameters) -> int:
        return integer_seed(task.seed, "evaluation", "environment")

    def _check_evaluation_spaces(self, training: Stack, evaluation: Stack) -> None:
        """Raise a `SpaceError` unless evaluations show and take what training does."""
        ours = training.levels[-1].environment.spaces
        theirs = evaluation.levels[-1].environment.spaces
        for what in ("observation", "action"):
            mine, other = getattr(ours, what), getattr(theirs, what)
            if mine != other:
                self.close()
                raise SpaceError(
                    f"evaluation_environment has the {what} space {other}, the environment of "
                    f"training {mine}; evaluate in one with the same"
                )

    def _elapsed(self) -> float:
        self._wall_seconds = time.perf_counter() - self._since
        return self._wall_seconds

    def _built(self) -> Graph:
        if self._graph is None:
            raise ConfigurationError("the graph is not built yet; call create_graph() first")
        return self._graph

    def _training(self) -> Stack:
        training = self._built().training
        if training is None:
            raise ConfigurationError(
                "this graph was built to evaluate only; close() it and call create_graph() "
                "without training=False"
            )
        return training


@contextmanager
def naming(level: LevelParameters, levels: Sequence[LevelParameters]) -> Iterator[None]:
    """ConfigurationErrors from inside name the level, where there is more than one."""
    try:
        yield
    except ConfigurationError as error:
        start = f"level '{level.name}': "
        if len(levels) == 1 or str(error).startswith(start):
            raise
        kind = SpaceError if isinstance(error, SpaceError) else ConfigurationError
        raise kind(f"{start}{error}") from error


def planned_decisions(
    levels: tuple[LevelParameters, ...], index: int, schedule: ScheduleParameters
) -> int:
    """Decisions that level `index` is sure to make in the whole run, over all rows."""
    per_decision = math.prod(level.horizon or 1 for level in levels[index + 1 :])
    return schedule.training.count // per_decision


def resolved_device(device: str) -> str:
    """The torch device meant by `auto`, `cpu`, `cuda` or `cuda:N`; checked to exist."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    kind, _, number = device.partition(":")
    if kind not in ("cpu", "cuda") or (number and not number.isdigit()):
        raise ConfigurationError(f"device must be auto, cpu, cuda or cuda:N, got '{device}'")
    available = torch.cuda.device_count()
    if kind == "cuda" and int(number or 0) >= available:
        raise ConfigurationError(
            f"device '{device}' asked for, but there are {available} GPUs; use cpu"
        )
    return device


def _selected(finished: FinishedEpisodes, mask: Array) -> FinishedEpisodes:
    return FinishedEpisodes(
        rows=finished.rows[mask],
        reward=finished.reward[mask],
        length=finished.length[mask],
        success=finished.success[mask],
        success_any=finished.success_any[mask],
        agents={name: reward[mask] for name, reward in finished.agents.items()},
    )


def _evaluation_summary(
    played: list[FinishedEpisodes], *, tells_success: bool
) -> tuple[dict[str, float], dict[str, Array]]:
    reward = np.concatenate([part.reward for part in played])
    length = np.concatenate([part.length for part in played])
    arrays: dict[str, Array] = {"episode/reward": reward, "episode/length": length}
    low, high = bootstrap_interval(reward, interquartile_mean, rng=generator(0, "bootstrap"))
    scalars = {
        "evaluation/episodes": float(len(reward)),
        "evaluation/reward_mean": float(reward.mean()),
        "evaluation/reward_std": float(reward.std()),
        "evaluation/reward_iqm": float(interquartile_mean(reward)),
        "evaluation/reward_iqm_low": low,
        "evaluation/reward_iqm_high": high,
        "evaluation/length_mean": float(length.mean()),
    }
    if tells_success:
        success = np.concatenate([part.success for part in played])
        success_any = np.concatenate([part.success_any for part in played])
        arrays |= {"episode/success": success, "episode/success_any": success_any}
        scalars["evaluation/success_rate"] = float(success.mean())
        scalars["evaluation/success_any_rate"] = float(success_any.mean())
    for name in played[0].agents:
        own = np.concatenate([part.agents[name] for part in played])
        arrays[f"episode/reward/{name}"] = own
        scalars[f"evaluation/reward_mean/{name}"] = float(own.mean())
    return scalars, arrays
