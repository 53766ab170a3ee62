"""Losses of held-out transitions, logged beside each evaluation: is more learned than remembered?

    BatchGraphParameters(..., held_out=0.1, callbacks=(HeldOutLossParameters(),))

Whatever an agent minimises is measured on episodes that it doesn't learn from, with the networks of
the moment: behaviour cloning's is minus the log-likelihood of the data's actions, a critic's the
square of its temporal-difference error. Nothing is learned, and no number of the run changes.
"""

from collections import defaultdict
from collections.abc import Iterator
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
from coach_rl.core.seeding import generator_state, load_generator_state
from coach_rl.extensions.data.batch_graph import DataSourceParameters, DataStack
from coach_rl.extensions.data.block_filling import fill_in_blocks, fills_in_blocks
from coach_rl.extensions.data.filled_memory import FilledMemory
from coach_rl.extensions.data.reading import learning_agents, learning_levels
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
        """Memories of held-out transitions, by level."""

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
            if not fills_in_blocks(agent):
                raise ConfigurationError(
                    f"HeldOutLossParameters cannot measure losses of agent '{agent.name}', "
                    "which stores more with transitions than data have, such as hidden states, "
                    "statistics of filters or bonuses; leave it out"
                )

    def __call__(self, record: LogRecord, run: GraphManager) -> Iterator[LogRecord]:
        """Notes with the losses of each agent, behind an evaluation."""
        if record.kind != "evaluation":
            return
        levels = run.graph.training.levels
        if not self._memories:
            self._fill(run)
        for level, agent in learning_levels(levels):
            found = self._losses(agent, self._memories[level.name])
            scalars = {f"held_out/{name}": value for name, value in found.items()}
            yield run.note(scalars, level=level.name, agent=agent.name)

    def _fill(self, run: GraphManager) -> None:
        """Fill a memory for each level with the held-out episodes."""
        stack = run.graph.training
        assert isinstance(stack, DataStack)
        for level, recorded, episodes in stack.reading.held_out(stack.levels):
            agent = _agent_of(level)
            assert isinstance(agent.memory, FilledMemory)
            memory = agent.memory.another(int(recorded.lengths[episodes].sum()))
            fill_in_blocks(agent, recorded, memory=memory, num_rows=1, episodes=episodes)
            self._memories[level.name] = memory

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


def _agent_of(level: LevelManager) -> OffPolicyAgent:
    agent = level.agent
    assert isinstance(agent, OffPolicyAgent), "runs from data have off-policy agents"
    return agent
