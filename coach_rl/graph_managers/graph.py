"""A graph: the agents of all levels, the stack they train in, and the stack they are evaluated in.

graph = Graph(parameters, Runtime(seed=1))
tick = graph.tick()                             # one step of all environments, and of learning
for level, agent, metrics in tick.learned:
    print(level, agent, metrics)
graph.agents["main"]                            # by the level's name
graph.close()
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property

from coach_rl.core.agents import AgentContext, AnyAgent
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.parameter_classes import with_values
from coach_rl.core.records import EnvResponse
from coach_rl.core.runtime import Runtime, update_modes
from coach_rl.core.seeding import integer_seed
from coach_rl.core.signals import Signals
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.state import State
from coach_rl.graph_managers.episode_tracker import EpisodeTracker, FinishedEpisodes
from coach_rl.graph_managers.graph_checks import check_exploring, check_same_spaces
from coach_rl.graph_managers.level_agents import LevelAgents
from coach_rl.graph_managers.level_timing import LevelTimings
from coach_rl.graph_managers.parameters import GraphParameters
from coach_rl.graph_managers.restoring import OpenEpisodes
from coach_rl.graph_managers.stack import Stack
from coach_rl.graph_managers.stacking import StackBuilder
from coach_rl.graph_managers.torch_settings import resolved, torch_settings
from coach_rl.graph_managers.unbuilt import unbuilt
from coach_rl.graph_managers.watcher import EvaluationWatcher

MAX_EVALUATION_ENVS = 16
"""Environments an evaluation runs in parallel at most."""


@dataclass(frozen=True, kw_only=True)
class Tick:
    """The result of a tick."""

    answer: EnvResponse
    """The simulators' answers."""
    finished: FinishedEpisodes | None
    """The episodes that ended; None where none did."""
    learned: Sequence[tuple[str, str, Mapping[str, float]]]
    """Level, agent and metrics of those that report what they have learned."""


class Graph:
    """The agents and stacks that a graph manager runs.

    Args:
        parameters: The experiment.
        runtime: The run's settings and services.
        training: Whether there are environments to train in; without them it can only evaluate.
        evaluation_envs: Environments an evaluation runs in parallel; None: as many as the
            evaluations while training have episodes, up to `MAX_EVALUATION_ENVS`.
        watchers: Watchers of evaluations.
        begins: Whether training episodes begin; False where `load_state_dict` follows.

    Raises:
        ConfigurationError: Something does not fit; what was opened is closed again.
    """

    training: Stack = unbuilt(
        "this graph was built to evaluate only; close() it and call create_graph() without "
        "training=False"
    )
    """The stack of levels that trains; ConfigurationError in a graph that only evaluates."""

    def __init__(
        self,
        parameters: GraphParameters,
        runtime: Runtime,
        *,
        training: bool = True,
        evaluation_envs: int | None = None,
        watchers: Sequence[EvaluationWatcher] = (),
        begins: bool = True,
    ) -> None:
        runtime = resolved(runtime, parameters.threads, parameters.divergence)
        self.runtime = with_values(runtime, signals=Signals())
        """The run's settings and services: its device, its threads, its channel of signals."""
        self.levels = parameters.levels
        """The levels' parameters, top first."""
        self.arrangement = parameters.arrangement
        """The way in which levels act through each other."""
        planned = parameters.schedule.training
        self.clock = Clock(planned=planned)
        """Phase and counters of training."""
        self.tracker = EpisodeTracker(parameters.num_envs)
        """Open training episodes."""
        self.timings = LevelTimings(parameters.levels)
        """Changes of single levels while it trains: their phases, and stages of schedules."""
        self.unloaded = {each.name for each in parameters.levels if each.load is not None}
        """Names of the levels whose agents are still to be loaded from another run."""
        self.watchers = tuple(watchers)
        """Watchers of evaluations."""
        self._parameters = parameters
        self._agents = LevelAgents(parameters, self.runtime, self.clock)
        is_drawn = False
        for watcher in watchers:
            is_drawn |= watcher.draws
        with ExitStack() as opened, torch_settings(self.runtime):
            builder = StackBuilder(parameters, self.runtime, agents=self._agents, opened=opened)
            if training:
                self.training = parameters.source.build(builder, self.clock)
                opened.enter_context(self.training.signals.listening())
            self.evaluation = builder.evaluation(
                Clock(phase=Phase.TEST, planned=planned),
                evaluation_envs
                or min(parameters.schedule.evaluation_episodes.count, MAX_EVALUATION_ENVS),
                is_drawn=is_drawn,
            )
            self.stacks: tuple[Stack, ...] = (self.evaluation,)
            """The stack that trains, where there is one, and that of evaluations."""
            if training:
                self.stacks = (self.training, self.evaluation)
                if parameters.evaluation_environment is not None:
                    check_same_spaces(self.training, self.evaluation)
                self.timings.watch(self.training.levels)
                if begins:
                    self.training.reset(integer_seed(runtime.seed, "training", "environment"))
            for watcher in watchers:
                self.evaluation.reset(self.evaluation_seed)  # an evaluation resets it once more
                watcher.prepare(self.evaluation)
            self._opened = opened.pop_all()

    @property
    def agents(self) -> Mapping[str, AnyAgent]:
        """The agents by their level's name, top first."""
        return {level.name: self._agents.built[level.name] for level in self.levels}

    @property
    def contexts(self) -> Mapping[str, AgentContext]:
        """The contexts that the agents were built with, by their level's name."""
        return self._agents.contexts

    @cached_property
    def _episodes(self) -> OpenEpisodes:
        return OpenEpisodes(
            self.training,
            self.tracker,
            environment=self._parameters.environment,
            runtime=self.runtime,
        )

    @property
    def spaces(self) -> EnvironmentSpaces:
        """The spaces of its environment."""
        return self.evaluation.simulators.spaces

    @property
    def evaluation_seed(self) -> int:
        """Seed of the episodes of all evaluations while training."""
        return integer_seed(self.runtime.seed, "evaluation", "environment")

    def sample_in_evaluations(self, sampling: bool) -> None:
        """Let agents explore in evaluations as they do in training now, or act greedily again.

        Raises:
            ConfigurationError: No agent explores.

        Warns:
            CoachWarning: Some agents do not.
        """
        if sampling:
            check_exploring(self.levels, self.agents, self.clock)
        self.evaluation.clock.follow(self.clock)
        self.evaluation.clock.samples = sampling

    def tick(self) -> Tick:
        """One step of all training environments, in the clock's phase; what is due is learned.

        Torch's settings are those of the process: `_run_phase` sets the run's for many ticks.
        """
        clock = self.clock
        answer = self.training.tick()
        finished = self.tracker.note(answer)
        if finished is not None:
            clock.episodes += len(finished.rows)
        learned = self.learn() if clock.phase is Phase.TRAIN else ()
        return Tick(answer=answer, finished=finished, learned=learned)

    def learn(self) -> Sequence[tuple[str, str, Mapping[str, float]]]:
        """Let every level's agent learn, the lowest first; not those in a phase of their own.

        Returns:
            The level, the name of the agent or of one that it consists of, and its metrics, of
            those that have some.
        """
        learned: list[tuple[str, str, Mapping[str, float]]] = []
        for level in reversed(self.levels):
            if level.frozen or level.name in self.clock.levels:
                continue
            report = self._agents.built[level.name].train(self.clock)
            if report is None:
                continue
            self.clock.training_steps += report.training_steps
            for name, metrics in {level.agent.name: report.metrics, **report.members}.items():
                self.clock.skipped_updates += int(metrics.get("train/skipped_updates", 0))
                if metrics:
                    learned.append((level.name, name, metrics))
        return learned

    def require_loaded(self) -> None:
        """Raise `ConfigurationError` where a level is still to be loaded from another run."""
        for level in self.levels:
            if level.name in self.unloaded:
                raise ConfigurationError(
                    f"level '{level.name}' is to be loaded from {level.load} first; use "
                    "run_experiment(), which does that, or call create_graph() and "
                    "coach_rl.load_levels(graph_manager) before anything else"
                )

    @property
    def updates(self) -> dict[str, str]:
        """Modes of gradient steps, by `level/agent`; see `core.runtime.update_modes`."""
        return {
            f"{level}/{name}": mode
            for level, agent in self.agents.items()
            for name, mode in update_modes(agent).items()
        }

    @property
    def obstacle_to_restoring(self) -> str | None:
        """See `OpenEpisodes.obstacle`."""
        return self._episodes.obstacle

    def state_dict(self) -> State:
        """Agents, training environments, counters and open episodes."""
        return {
            "agents": {name: agent.state_dict() for name, agent in self.agents.items()},
            **self._episodes.state_dict(),
            **({"timings": timings} if (timings := self.timings.state_dict()) else {}),
        }

    def load_state_dict(self, state: State, *, restart_episodes: bool = False) -> None:
        """Load a state of an equally built graph; see `OpenEpisodes.load_state_dict`."""
        self.load_agents(state)
        self.timings.load_state_dict(state.get("timings", {}))
        self._episodes.load_state_dict(state, restart_episodes=restart_episodes)

    def load_agents(self, state: State) -> None:
        """Load agents, with their filters, and counters of a saved state; no environments.

        A state with `only_policies` has no more of the agents than acting needs.
        """
        for name, agent in self.agents.items():
            saved = state["agents"][name]
            if not state.get("only_policies"):
                agent.load_state_dict(saved)
            elif saved:  # a script has nothing to load
                agent.load_policy(saved)
        self.unloaded.clear()
        self.clock.load_state_dict(state["training"]["clock"])

    def close(self) -> None:
        """Close the environments; harmless when repeated."""
        self._opened.close()
