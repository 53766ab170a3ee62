"""A graph: the agents of all levels, the stack they train in, and the stack they are evaluated in.

graph = Graph(parameters, TaskParameters(seed=1))
graph.training.tick()                           # one step of all environments
for level, agent, metrics in graph.learn():     # what was due has learned
    print(level, agent, metrics)
graph.agents["main"]                            # by the level's name
graph.close()
"""

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from coach_rl.core.activity import OnActivity, ignore_activity
from coach_rl.core.agents import AgentContext, AnyAgent, LevelPlace
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import CoachWarning, ConfigurationError, SpaceError
from coach_rl.core.interfaces import DrawableParameters, EnvironmentParameters
from coach_rl.core.levels import LevelDescription
from coach_rl.core.roles import LearnerParameters
from coach_rl.core.seeding import integer_seed
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.state import State
from coach_rl.core.steps import EnvironmentSteps, Hours, RunLength
from coach_rl.graph_managers.description import describe_stack
from coach_rl.graph_managers.episode_recorder import EpisodeRecorder
from coach_rl.graph_managers.episode_tracker import EpisodeTracker
from coach_rl.graph_managers.parameters import GraphParameters, LevelParameters
from coach_rl.graph_managers.stack import Stack, build_stack
from coach_rl.graph_managers.task import TaskParameters, resolved_device, torch_settings

_NO_END = 1 << 60
"""Environment steps of a run whose length is counted in something else."""
MAX_EVALUATION_ENVS = 16
"""Environments an evaluation runs in parallel at most."""


class Graph:
    """The agents and stacks that a graph manager runs.

    Args:
        parameters: The experiment.
        task: What is known only now.
        training: Whether there are environments to train in; without them it can only evaluate.
        recorder: What films evaluations; None for nothing.
        on_activity: Called with what takes long: compiling, evaluating.

    Raises:
        ConfigurationError: Something does not fit; what was opened is closed again.
    """

    def __init__(
        self,
        parameters: GraphParameters,
        task: TaskParameters,
        *,
        training: bool = True,
        recorder: EpisodeRecorder | None = None,
        on_activity: OnActivity = ignore_activity,
    ) -> None:
        self.task = replace(task, device=resolved_device(task.device))
        """The task, with the device that `auto` stands for."""
        planned = parameters.schedule.training
        self.clock = Clock(planned=planned)
        """Phase and counters of training."""
        self.tracker = EpisodeTracker(parameters.num_envs)
        """Open training episodes."""
        self.recorder = recorder
        self.on_activity = on_activity
        self._parameters = parameters
        self._agents: dict[str, AnyAgent] = {}
        self._training: Stack | None = None
        with ExitStack() as opened, torch_settings(self.task):
            if training:
                environment = parameters.environment
                self._training = self._stack(
                    "training", environment, parameters.num_envs, self.clock, opened
                )
            self.evaluation = self._stack(
                "evaluation",
                self._evaluated_in(),
                min(parameters.schedule.evaluation_episodes.count, MAX_EVALUATION_ENVS),
                Clock(phase=Phase.TEST, planned=planned),
                opened,
            )
            if self._training is not None:
                _check_same_spaces(self._training, self.evaluation)
                self._training.reset(integer_seed(task.seed, "training", "environment"))
            if recorder is not None:
                recorder.prepare(self.evaluation, self.evaluation_seed)
            self._opened = opened.pop_all()

    @property
    def levels(self) -> tuple[LevelParameters, ...]:
        """The levels' parameters, top first."""
        return self._parameters.levels

    @property
    def agents(self) -> Mapping[str, AnyAgent]:
        """The agents by their level's name, top first."""
        return {level.name: self._agents[level.name] for level in self.levels}

    @property
    def training(self) -> Stack:
        """The stack of levels that trains; ConfigurationError in a graph that only evaluates."""
        if self._training is None:
            raise ConfigurationError(
                "this graph was built to evaluate only; close() it and call create_graph() "
                "without training=False"
            )
        return self._training

    @property
    def evaluation_seed(self) -> int:
        """Seed of the episodes of all evaluations while training."""
        return integer_seed(self.task.seed, "evaluation", "environment")

    def learn(self) -> Iterator[tuple[str, str, Mapping[str, float]]]:
        """Let every level's agent learn, the lowest first; a frozen one does not.

        Yields the level, the name of the agent or of the member of a group, and its metrics.
        """
        for level in reversed(self.levels):
            report = None if level.frozen else self._agents[level.name].train(self.clock)
            if report is None:
                continue
            self.clock.training_steps += report.training_steps
            for name, metrics in {level.agent.name: report.metrics, **report.members}.items():
                self.clock.skipped_updates += int(metrics.get("train/skipped_updates", 0))
                if metrics:
                    yield level.name, name, metrics

    def description(self) -> str:
        """The levels and their agents, for people."""
        agents = tuple(self.agents.values())
        stack, environment = self.training.levels, self._parameters.environment
        return describe_stack(stack, self.levels, agents, environment)

    def state_dict(self) -> State:
        """Agents, training environments, counters and open episodes."""
        return {
            "agents": {name: agent.state_dict() for name, agent in self.agents.items()},
            "training": self.training.state_dict(),
            "tracker": self.tracker.state_dict(),
        }

    def load_state_dict(self, state: State) -> None:
        """Go on from a state of an equally built graph."""
        training = self.training
        self.load_agents(state)
        training.load_state_dict(state["training"])
        self.tracker.load_state_dict(state["tracker"])

    def load_agents(self, state: State) -> None:
        """Load agents, with their filters, and counters of a saved state; no environments."""
        for name, agent in self.agents.items():
            agent.load_state_dict(state["agents"][name])
        self.clock.load_state_dict(state["training"]["clock"])

    def close(self) -> None:
        """Close the environments; harmless when repeated."""
        self._opened.close()

    def _stack(
        self,
        purpose: str,
        environment: EnvironmentParameters,
        num_envs: int,
        clock: Clock,
        opened: ExitStack,
    ) -> Stack:
        """All levels on new environments, which are closed with `opened`."""
        simulators = environment.build(num_envs=num_envs)
        opened.callback(simulators.close)
        return build_stack(
            self.levels,
            simulators,
            agent=self._agent,
            clock=clock,
            seed=self.task.seed,
            purpose=purpose,
            discount=self._parameters.reward_discount,
        )

    def _agent(self, index: int, spaces: EnvironmentSpaces) -> AnyAgent:
        """A level's agent, built when it is first asked for: one agent trains and is evaluated."""
        levels, task = self.levels, self.task
        level, below = levels[index], levels[index + 1 : index + 2]
        if level.name not in self._agents:
            with _naming(level, levels):
                place = LevelPlace(
                    level=level,
                    below=below[0] if below else None,
                    agent_below=self._agents[below[0].name] if below else None,
                )
                context = AgentContext(
                    spaces=spaces,
                    num_envs=self._parameters.num_envs,
                    device=task.device,
                    seed=integer_seed(task.seed, "agent", level.name),
                    planned_steps=_planned_decisions(levels, index, self.clock.planned),
                    place=place,
                    divergence=self._parameters.divergence,
                    on_activity=self.on_activity,
                )
                self._agents[level.name] = level.agent.build(context)
        return self._agents[level.name]

    def _evaluated_in(self) -> EnvironmentParameters:
        environment = self._parameters.evaluation_environment or self._parameters.environment
        if self.recorder is not None and isinstance(environment, DrawableParameters):
            return environment.drawable()
        return environment


def _planned_decisions(levels: Sequence[LevelDescription], index: int, length: RunLength) -> int:
    """Decisions that level `index` can be expected to make at least, over all rows.

    An episode, and a gradient update, counts as one environment step, a second as a hundred.
    """
    steps = int(length.count * 3600 * 100) if isinstance(length, Hours) else length.count
    return steps // math.prod(level.horizon or 1 for level in levels[index + 1 :])


def warn_of_idle_learners(parameters: GraphParameters) -> None:
    """Warn where an agent would not learn anything in the whole run, or nothing of use."""
    levels, schedule = parameters.levels, parameters.schedule
    for level in levels:
        if level.frozen or not isinstance(level.agent, LearnerParameters):
            continue
        training, heatup = schedule.training, schedule.heatup
        obstacle = level.agent.obstacle_to_learning(
            num_envs=parameters.num_envs,
            steps=training.count if isinstance(training, EnvironmentSteps) else _NO_END,
            heatup=heatup.count if isinstance(heatup, EnvironmentSteps) else 0,
        )
        if obstacle is not None:
            of = "" if len(levels) == 1 else f"level '{level.name}': "
            warnings.warn(f"{of}{obstacle}", CoachWarning, stacklevel=3)


@contextmanager
def _naming(level: LevelDescription, levels: Sequence[LevelDescription]) -> Iterator[None]:
    """ConfigurationErrors from inside name the level, where there is more than one."""
    try:
        yield
    except ConfigurationError as error:
        start = f"level '{level.name}': "
        if len(levels) == 1 or str(error).startswith(start):
            raise
        kind = SpaceError if isinstance(error, SpaceError) else ConfigurationError
        raise kind(f"{start}{error}") from error


def _check_same_spaces(training: Stack, evaluation: Stack) -> None:
    """Raise a `SpaceError` unless evaluations show and take what training does."""
    ours = training.simulators.spaces
    theirs = evaluation.simulators.spaces
    for what in ("observation", "action"):
        mine, other = getattr(ours, what), getattr(theirs, what)
        if mine != other:
            raise SpaceError(
                f"evaluation_environment has the {what} space {other}, the environment of "
                f"training {mine}; evaluate in one with the same"
            )
