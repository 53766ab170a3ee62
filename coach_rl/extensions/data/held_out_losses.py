"""Losses of held-out transitions, logged beside each evaluation: is more learned than remembered?

    BatchGraphParameters(..., held_out=0.1, callbacks=(HeldOutLossParameters(),))

Whatever an agent minimises is measured on episodes that it doesn't learn from, with the networks of
the moment: behaviour cloning's is minus the log-likelihood of the data's actions, a critic's the
square of its temporal-difference error. Nothing is learned, and no number of the run changes.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.architectures.gradient_step import Numbers, mapped
from coach_rl.architectures.update_engine import UpdateEngine
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.log_records import LogRecord
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import IntArray
from coach_rl.core.seeding import generator_state, load_generator_state
from coach_rl.extensions.data.batch_graph import DataSourceParameters, DataStack
from coach_rl.extensions.data.block_filling import (
    fill_in_blocks,
    fills_in_blocks,
    stores_without_statistics,
)
from coach_rl.extensions.data.filled_memory import FilledMemory
from coach_rl.extensions.data.reading import learning_agents, learning_levels
from coach_rl.extensions.data.recorded import Recorded, read_into
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.levels.level_manager import LevelManager


@parameter_class
class HeldOutLossParameters:
    """Losses of held-out transitions, in a note behind each evaluation: `held_out/<loss>`."""

    batches: Positive[int] = 20
    """Batches, of the size that agents learn from, over which losses are averaged; the same ones
    each time."""

    def build(self) -> "HeldOutLosses":
        """The callback."""
        return HeldOutLosses(self.batches)


class HeldOutLosses:
    """Measures losses of held-out transitions.

    Args:
        batches: Number of batches.
    """

    def __init__(self, batches: int) -> None:
        self._batches = batches
        self._memories: dict[str, FilledMemory] = {}
        """Memories of held-out transitions that no network has a part in, by level."""
        self._episodes: dict[str, tuple[Recorded, IntArray]] = {}
        """Data and numbers of held-out episodes for the others, by level."""

    def __str__(self) -> str:
        return type(self).__name__

    def begin(self, run: GraphManager) -> None:
        """Check that the run holds episodes out, of which its agents have losses.

        Raises:
            ConfigurationError: It does not, or an agent stores more than the data have.
        """
        source = run.parameters.source
        if not isinstance(source, DataSourceParameters) or not source.held_out:
            raise ConfigurationError(
                "HeldOutLossParameters measures losses of episodes that are held out of learning; "
                "give held_out, e.g. BatchGraphParameters(held_out=0.1), or leave it out"
            )
        for agent in learning_agents(run.graph.training.levels):
            if not stores_without_statistics(agent):
                raise ConfigurationError(
                    f"HeldOutLossParameters cannot measure losses of agent '{agent.name}', "
                    "which stores more with transitions than data have, such as statistics of "
                    "filters or bonuses; leave it out"
                )

    def __call__(self, record: LogRecord, run: GraphManager) -> Iterator[LogRecord]:
        """Notes with the losses of each agent, behind an evaluation."""
        if record.kind != "evaluation":
            return
        for level, memory in self._held_out(run):
            agent = _agent_of(level)
            found = self._losses(agent, memory)
            scalars = {f"held_out/{name}": value for name, value in found.items()}
            yield run.note(scalars, level=level.name, agent=agent.name)

    def _held_out(self, run: GraphManager) -> Iterator[tuple[LevelManager, FilledMemory]]:
        """Levels that learn, and their transitions of held-out episodes.

        Hidden states are stored as the networks of the moment make them, of as many episodes as the
        batches need.
        """
        stack = run.graph.training
        assert isinstance(stack, DataStack)
        learning = learning_levels(stack.levels)
        if any(level.name not in self._memories for level, _ in learning):
            for level, recorded, episodes in stack.reading.held_out(stack.levels):
                agent = _agent_of(level)
                if fills_in_blocks(agent):
                    memory = _memory_for(agent, recorded, episodes)
                    fill_in_blocks(agent, recorded, memory=memory, num_rows=1, episodes=episodes)
                    self._memories[level.name] = memory
                else:
                    self._episodes[level.name] = recorded, self._enough(agent, recorded, episodes)
        for level, agent in learning:
            if level.name in self._memories:
                yield level, self._memories[level.name]
            else:
                recorded, episodes = self._episodes[level.name]
                memory = _memory_for(agent, recorded, episodes)
                with _storing_into(agent, memory):
                    read_into(agent, recorded, num_rows=1, seed=0, episodes=episodes)
                yield level, memory

    def _enough(self, agent: OffPolicyAgent, recorded: Recorded, episodes: IntArray) -> IntArray:
        """The first of some episodes that have as many transitions as all batches together."""
        wanted = self._batches * agent.params.learning.batch
        before = np.cumsum(recorded.lengths[episodes]) - recorded.lengths[episodes]
        enough: IntArray = episodes[before < wanted]
        return enough

    def _losses(self, agent: OffPolicyAgent, memory: FilledMemory) -> dict[str, float]:
        """Means of an agent's losses and their metrics over transitions of a memory, by name."""
        engine = agent.learner.engine
        drawing = generator_state(memory.rng)
        noise = agent.noise_rng.get_state()
        steps = engine.steps
        measured = Measured(engine)
        try:
            engine.step = measured  # type: ignore[method-assign]  # for these batches alone
            for number in range(self._batches):
                engine.steps = steps + number  # by which some agents step an actor more rarely
                batch = memory.sample(agent.params.learning.batch)
                for stage in agent.stages.refreshing:
                    batch = stage.refreshed(batch)
                agent.learner.learn_from_batch(batch)
        finally:
            del engine.step
            # Batches are the same each time, and training continues as if there had been none.
            engine.steps = steps
            load_generator_state(memory.rng, drawing)
            agent.noise_rng.set_state(noise)
        return measured.means


class Measured:
    """A gradient step that only measures losses, in place of `UpdateEngine.step`.

    Args:
        engine: The engine, whose objectives are measured.
    """

    def __init__(self, engine: UpdateEngine[Any]) -> None:
        self._engine = engine
        self._values: defaultdict[str, list[float]] = defaultdict(list)

    def __call__(
        self, data: Any, index: Tensor | None = None, *, only: tuple[str, ...] | None = None
    ) -> Numbers:
        """The metrics of each sample, as of a step; see `UpdateEngine.step`."""
        batch = data if index is None else mapped(lambda column: column[index], data)
        per_sample: Numbers = {}
        for objective in (each.objective for each in self._engine.learners):
            if only is not None and objective.name not in only:
                continue
            scalars = self._engine.scalars | per_sample
            with torch.no_grad():
                loss, metrics = objective.loss(objective.network.online, batch, scalars)
            if not any(name.endswith("loss") for name in metrics):
                self._values[objective.named("loss")].append(float(loss))
            for name, value in metrics.items():
                self._values[name].append(float(value.abs().mean() if value.ndim else value))
            per_sample |= {name: value for name, value in metrics.items() if value.ndim}
        return per_sample

    @property
    def means(self) -> dict[str, float]:
        """Means of the losses, and of the metrics that come with them, by name.

        Metrics of each sample count by their mean size, such as the error of a critic.
        """
        return {name: float(np.mean(values)) for name, values in self._values.items()}


def _memory_for(agent: OffPolicyAgent, recorded: Recorded, episodes: IntArray) -> FilledMemory:
    """An empty memory of an agent's transitions with room for some episodes."""
    assert isinstance(agent.memory, FilledMemory)
    return agent.memory.another(int(recorded.lengths[episodes].sum()))


@contextmanager
def _storing_into(agent: OffPolicyAgent, memory: FilledMemory) -> Iterator[None]:
    """Let an agent store into another memory; then all of it is as it was before."""
    own = agent.memory
    assert isinstance(own, FilledMemory)
    empty = own.another(1)
    agent.memory = empty  # so that the state is without the transitions of its own
    state = agent.state_dict()
    try:
        agent.memory = memory
        yield
    finally:
        agent.memory = empty
        agent.load_state_dict(state)
        agent.memory = own


def _agent_of(level: LevelManager) -> OffPolicyAgent:
    agent = level.agent
    assert isinstance(agent, OffPolicyAgent), "runs from data have off-policy agents"
    return agent
