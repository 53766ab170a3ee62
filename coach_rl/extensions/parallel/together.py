"""Agents of several processes that learn at the same time, and equally often."""

from typing import Any

import numpy as np

from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.agents.ppo_agent import PPOAgent
from coach_rl.core.agents import TrainingReport
from coach_rl.core.clock import Clock
from coach_rl.core.errors import RunError
from coach_rl.core.records import IntArray
from coach_rl.extensions.parallel.ranks import Numbers, Ranks
from coach_rl.extensions.parallel.statistics import SharedStatistics
from coach_rl.extensions.parallel.stopping import JointStop

TRAIN = "train"
DRAIN = "drain_metrics"
SET = "set_scalars"


class Together:
    """Stands in for the `train` of an agent: it learns when that of every rank does.

    Args:
        agent: The agent.
        number: Its number among the run's.
        ranks: The processes.
        stop: The requests to stop, which are exchanged as well.
    """

    def __init__(self, agent: Any, number: int, ranks: Ranks, stop: JointStop) -> None:
        self.agent = agent
        self.number = number
        self.ranks = ranks
        self.stop = stop
        self.statistics = SharedStatistics(agent)
        self.train = agent.train
        setattr(agent, TRAIN, self.learn)

    def learn(self, clock: Clock) -> TrainingReport | None:
        """Learn as the agent does, together with the other ranks."""
        raise NotImplementedError

    def agree(self, clock: Clock, count: int) -> list[int]:
        """The counts of all ranks; merges statistics, and stops all where one is to stop.

        Raises:
            RunError: The ranks are not at the same point.
        """
        place = [self.number, clock.environment_steps, self.agent.training_steps]
        own = np.array([*place, count, self.stop.requested or 0], np.float64)
        rows = self.ranks.gather(np.concatenate([own, self.statistics.numbers()]))
        if (rows[:, :3] != rows[0, :3]).any():
            raise RunError(
                "the ranks would learn at different moments (agent, environment steps, updates of "
                f"each: {rows[:, :3].astype(int).tolist()}); failures of simulators, and members "
                "of a group that end before others, may cause that"
            )
        self.statistics.merge(rows[:, len(own) :])
        self.stop.follow(int(rows[:, 4].max()))
        return [int(each) for each in rows[:, 3]]


class TogetherFromReplay(Together):
    """An off-policy agent: decisions count for updates once every rank has made as many."""

    agent: OffPolicyAgent

    def learn(self, clock: Clock) -> TrainingReport | None:
        own = self.agent.earned
        self.agent.earned = min(self.agree(clock, own))
        try:
            return self.train(clock)  # type: ignore[no-any-return]  # the agent's own
        finally:
            self.agent.earned = own


class TogetherFromRollouts(Together):
    """A PPO agent: the scalars of rank 0, as many minibatches as all have, the same last epoch."""

    agent: PPOAgent

    def __init__(self, agent: PPOAgent, number: int, ranks: Ranks, stop: JointStop) -> None:
        super().__init__(agent, number, ranks, stop)
        order: Any = AgreedOrder(agent.order, ranks)
        agent.order = order
        self.set = agent.engine.set_scalars
        setattr(agent.engine, SET, self.set_scalars)
        if agent.params.algorithm.stop_at_kl is not None:
            self.drain = agent.engine.drain_metrics
            setattr(agent.engine, DRAIN, self.drain_means)

    def learn(self, clock: Clock) -> TrainingReport | None:
        if len(self.agent.memory) < self.agent.params.algorithm.rollout.count:
            return None
        self.agree(clock, 0)
        report: TrainingReport = self.train(clock)
        self.statistics.merge(self.ranks.gather(self.statistics.numbers()))  # those of returns
        return report

    def set_scalars(self, **values: float) -> None:
        """Set the scalars of rank 0: each has a rollout of its own, on which schedules depend."""
        first = self.ranks.gather(np.array(list(values.values())))[0]
        self.set(**dict(zip(values, first.tolist(), strict=True)))

    def drain_means(self) -> dict[str, float]:
        """The metrics of an epoch, means over the ranks, so that all of them stop after it."""
        own = self.drain()
        means: Numbers = self.ranks.gather(np.array(list(own.values()))).mean(axis=0)
        return dict(zip(own, means.tolist(), strict=True))


class AgreedOrder:
    """An order of learning, cut to the number of minibatches that every rank has.

    Args:
        order: The agent's own.
        ranks: The processes.
    """

    def __init__(self, order: Any, ranks: Ranks) -> None:
        self._order = order
        self._ranks = ranks
        self._size = 0

    def order(self, rollout: Any, grid: Any, count: int) -> IntArray:
        """The first entries of the agent's order, so many minibatches."""
        whole: IntArray = self._order.order(rollout, grid, count)
        self._size = self._order.size(whole, count)
        agreed = int(self._ranks.gather(np.array([len(whole) // self._size], np.float64)).min())
        return whole[: agreed * self._size]

    def size(self, _order: IntArray, _count: int) -> int:
        """Entries of a minibatch, of the order before it was cut."""
        return self._size

    def __getattr__(self, name: str) -> Any:
        return getattr(self._order, name)
