"""A callback that joins a run to those of other processes: equal networks, own environments.

Each rank is an ordinary run. All begin with the parameters of rank 0, and every gradient is
averaged over the ranks before it is clipped, so that networks and optimisers stay equal. Running
statistics are merged whenever agents learn. Rank 0 evaluates; the others get its scores.
"""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.agents.ppo_agent import PPOAgent
from coach_rl.architectures.gradient_transforms import GradientTransform
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.update_engine import UpdateEngine
from coach_rl.core.errors import ConfigurationError, require_no_problems
from coach_rl.core.log_records import LogRecord
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.parts import walk
from coach_rl.core.ranges import Positive
from coach_rl.core.steps import EnvironmentSteps, TrainingSteps
from coach_rl.extensions.parallel.ranks import Ranks
from coach_rl.extensions.parallel.stopping import JointStop
from coach_rl.extensions.parallel.together import (
    Together,
    TogetherFromReplay,
    TogetherFromRollouts,
)
from coach_rl.graph_managers.graph import Graph
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.parameters import GraphParameters, SourceParameters

PLAY = "play"


@parameter_class
class ParallelParameters:
    """One of several runs that average their gradients; see docs/parallel.md."""

    ranks: Positive[int]
    """The number of runs, each in a process of torchrun."""

    def build(self) -> "Parallel":
        return Parallel(self.ranks)


class MeanOverRanks(GradientTransform):
    """The mean of a gradient over all ranks."""

    traceable = False

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks

    def __call__(self, gradient: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        self._ranks.average(gradient)
        return gradient, {}


class Parallel:
    """Joins a run to those of the other ranks, from its beginning to its end.

    Args:
        size: The number of ranks.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._together: list[Together] = []

    def begin(self, run: GraphManager) -> None:
        """Join it, once its graph is built.

        Raises:
            ConfigurationError: torchrun has not started it, or it can't be trained in this way.
        """
        ranks = self._ranks = Ranks()
        problems = [*_problems(run.parameters), *_uneven_rollouts(run.graph)]
        if self._size != ranks.size:
            problems.append(f"it has {self._size} ranks, and torchrun has started {ranks.size}")
        require_no_problems(
            ConfigurationError(f"--parallel cannot train this run: {each}") for each in problems
        )
        self._stop = JointStop()
        for agent in run.graph.agents.values():
            self._join(agent)
        evaluate = run.evaluations.play

        def play(*args: Any, **kwargs: Any) -> Any:
            scores = evaluate(*args, **kwargs) if ranks.rank == 0 else None
            return ranks.everyone(scores)[0]

        setattr(run.evaluations, PLAY, play)

    def _join(self, whole: object) -> None:
        """Let an agent, or those that it consists of, learn together with those of other ranks."""
        for part in walk(whole):
            match part.value:
                case NetworkWrapper() as network:
                    network.load_state_dict(self._ranks.everyone(network.state_dict())[0])
                case UpdateEngine() as engine:
                    _require_known(part.agent)
                    engine.insert(lambda _: MeanOverRanks(self._ranks))
                case OffPolicyAgent() as agent:
                    self._learn_together(TogetherFromReplay, agent)
                case PPOAgent() as agent:
                    self._learn_together(TogetherFromRollouts, agent)

    def _learn_together(self, kind: type[Together], agent: object) -> None:
        self._together.append(kind(agent, len(self._together), self._ranks, self._stop))

    def __call__(self, record: LogRecord, run: GraphManager) -> None:
        """Add no record."""

    def close(self) -> None:
        """Leave the signals to the program."""
        if self._together:
            self._stop.close()


def _require_known(agent: Any) -> None:
    """Raise `ConfigurationError` for an agent whose moments of learning are unknown."""
    name = getattr(agent, "name", type(agent).__name__)
    if not isinstance(agent, OffPolicyAgent | PPOAgent):
        what = f"the moments at which agent '{name}' ({type(agent).__name__}) learns are unknown"
        raise ConfigurationError(f"--parallel cannot train this run: {what}")
    others = [*getattr(agent, "actor_terms", ())]
    others += ["goals"] if getattr(agent, "goals", None) is not None else []
    if others:
        what = f"the {' and '.join(others)} of agent '{name}' learn at moments of their own"
        raise ConfigurationError(f"--parallel cannot train this run: {what}")


def _uneven_rollouts(graph: Graph) -> Iterator[str]:
    """Reasons why rollouts of PPO would be full at different steps in each rank."""
    links = graph.arrangement.links(graph.levels)
    selected = {below for ways in links if len(ways) > 1 for below in ways}
    for index, level in enumerate(graph.levels):
        for part in walk(graph.agents[level.name]):
            agent = part.value
            if not isinstance(agent, PPOAgent):
                continue
            if links[index] or index in selected or agent.place.lasting:
                yield (
                    f"{agent.place.owner(agent.name)} is a PPO agent whose decisions take different"
                    " times in each; give it an off-policy agent, or a level that decides each step"
                )


def _problems(parameters: GraphParameters) -> Iterator[str]:
    """Reasons why ranks would not do the same at the same moments."""
    schedule = parameters.schedule
    lengths = {"training": schedule.training, "heatup": schedule.heatup}
    lengths |= {"evaluation_interval": schedule.evaluation_interval or EnvironmentSteps(1)}
    for name, length in lengths.items():
        if not isinstance(length, EnvironmentSteps | TrainingSteps):
            yield f"schedule.{name} counts {length.noun}, which differ; give environment steps"
    if schedule.stop_after is not None:
        yield "schedule.stop_after (--hours) ends each run by its own time; give --steps"
    for name in ("every_seconds", "lost_at_most_seconds"):
        if getattr(parameters.checkpoints, name) is not None:
            yield f"checkpoints.{name} is the time of each; give None, and every_steps instead"
    if parameters.divergence.response != "stop":
        yield f"divergence.response='{parameters.divergence.response}' is decided in each; use stop"
    if type(parameters.source) is not SourceParameters:
        yield "its environments are stepped by workers; leave out --workers"
