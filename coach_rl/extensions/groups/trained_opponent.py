"""An opponent in games: the trained agent of another run, which doesn't learn any more.

environment = ConnectFourParameters(opponent=TrainedOpponent(run="experiments/.../@200000"))
"""

from dataclasses import replace

import numpy as np

from coach_rl.core.errors import CheckpointError, CoachError, ConfigurationError, SpaceError
from coach_rl.core.parameter_classes import RecordedParameters, parameter_class
from coach_rl.core.random_actions import allowed_choice
from coach_rl.core.ranges import UnitInterval
from coach_rl.core.records import ACTION_MASK, FloatArray, IntArray, Observation
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.runs.folder import TakenCheckpoint
from coach_rl.sessions.trained_agent import TrainedAgent, load


@parameter_class
class TrainedOpponent(RecordedParameters):
    """The agent of a run plays greedily, and some moves at random.

    It has no memory: every move begins an episode for it. Random moves make games differ between
    two players that are deterministic; they are drawn by the environment's own streams.
    """

    run: str
    """A run's folder or checkpoint, as `load` takes it. The checkpoint has to stay: a run that is
    trained further deletes all but its best and last one, and those that `--keep` keeps."""
    random_moves: UnitInterval = 0.3
    """Share of moves drawn among the allowed columns."""
    taken: TakenCheckpoint | None = None
    """The checkpoint that a run has begun with, as its manifest records it: it plays against the
    same whenever it is resumed, evaluated or forked. It counts for the `run` that it names; None
    takes the last of `run`, or the one named."""

    def recorded(self) -> "TrainedOpponent":
        return replace(self, taken=self._taken())

    def _taken(self) -> TakenCheckpoint:
        if self.taken is not None and self.taken.run == self.run:
            return self.taken
        try:
            return TakenCheckpoint.of(self.run)
        except (ConfigurationError, CheckpointError) as error:
            raise self._lost(error) from error

    def _lost(self, error: CoachError) -> ConfigurationError:
        return ConfigurationError(
            f"the opponent {self.run} cannot be loaded: {error}; if it was moved, put it back, "
            "or fork the run with environment.opponent.run=... as it is now (to evaluate, give it "
            "with -cp)"
        )

    def opponent(self, spaces: EnvironmentSpaces) -> "TrainedPlayer":
        taken = self._taken()
        try:
            agent = load(taken.path(), device="cpu")
        except (ConfigurationError, CheckpointError) as error:
            raise self._lost(error) from error
        if agent.spaces != replace(spaces, action=spaces.own_action):
            own, game = (
                f"{each.own_action} by {', '.join(each.observation.spaces)}"
                for each in (agent.spaces, spaces)
            )
            raise SpaceError(
                f"the opponent {self.run} was trained for another game ({own}) than this one "
                f"({game}); name a run of this game"
            )
        return TrainedPlayer(agent, random_moves=self.random_moves)


class TrainedPlayer:
    """A trained agent as an opponent."""

    def __init__(self, agent: TrainedAgent, *, random_moves: float) -> None:
        self._agent = agent
        self._random_moves = random_moves

    def columns(self, observation: Observation, uniform: FloatArray) -> IntArray:
        """Greedy actions, [R]; random ones where `uniform` is below their share."""
        self._agent.reset()
        greedy = np.asarray(self._agent.act(observation, over={}))  # none is where they begin
        random = uniform < self._random_moves
        share = uniform[random] / self._random_moves
        greedy[random] = allowed_choice(observation[ACTION_MASK][random] > 0, share)
        return greedy
