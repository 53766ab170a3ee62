"""Open training episodes: saved and restored, or restarted where that is impossible."""

from coach_rl.core.errors import CheckpointError, EnvironmentFault, warn
from coach_rl.core.interfaces import (
    Environment,
    EnvironmentParameters,
    ProbedParameters,
    ReplayedEnvironment,
    UnsavedEnvironment,
)
from coach_rl.core.runtime import Runtime
from coach_rl.core.seeding import integer_seed
from coach_rl.core.state import State
from coach_rl.graph_managers.episode_tracker import EpisodeTracker
from coach_rl.graph_managers.stack import Stack


def obstacle_to_restoring(
    environment: Environment, parameters: EnvironmentParameters
) -> str | None:
    """Return what keeps open episodes from being saved and restored; None if nothing is found.

    May take a second or two, where the parameters have a way to try it.

    Args:
        environment: Tested for a state.
        parameters: The environment's.
    """
    refusal = _refusal(environment)
    if refusal is not None or not isinstance(parameters, ProbedParameters):
        return refusal
    return parameters.obstacle_to_restoring()


def _refusal(environment: Environment) -> str | None:
    """Return why an environment cannot be saved at all; None if it can."""
    try:
        environment.state_dict()
    except CheckpointError as error:
        return str(error)
    return None


class OpenEpisodes:
    """The open training episodes of a graph.

    Args:
        training: The stack that trains.
        tracker: What counts its episodes.
        environment: The parameters of its environment.
        runtime: The run's.
    """

    def __init__(
        self,
        training: Stack,
        tracker: EpisodeTracker,
        *,
        environment: EnvironmentParameters,
        runtime: Runtime,
    ) -> None:
        self._training = training
        self._tracker = tracker
        self._environment = environment
        self._runtime = runtime
        self._obstacle: str | None = None
        self._has_probed = False

    @property
    def obstacle(self) -> str | None:
        """Reason why open training episodes cannot be saved; None where nothing is found.

        Where there is something, states are saved without them, and a run that continues from such
        a state restarts them. Determined once, which may take a second or two.
        """
        if not self._has_probed:
            self._obstacle = obstacle_to_restoring(self._training.simulators, self._environment)
            self._has_probed = True
        return self._obstacle

    def state_dict(self) -> State:
        """Training environments, their levels and their episodes."""
        obstacle = self.obstacle
        return {
            "training": self._training.state_dict(with_simulators=obstacle is None),
            "tracker": self._tracker.state_dict(),
            "obstacle_to_restoring": obstacle,
        }

    def load_state_dict(self, state: State, *, restart_episodes: bool) -> None:
        """Load a saved state; open episodes that weren't saved restart, with a `CoachWarning`.

        Args:
            state: What `state_dict` returned.
            restart_episodes: Whether to restart open episodes even if they were saved.

        Raises:
            CheckpointError: The environments could not be restored.
        """
        self._obstacle = state["obstacle_to_restoring"]
        self._has_probed = True
        simulators = self._training.simulators
        if self._obstacle is None and isinstance(simulators, UnsavedEnvironment):
            self._obstacle = simulators.unsaved  # its parameters may have changed
        self._tracker.load_state_dict(state["tracker"])
        reason = self._obstacle
        if restart_episodes or reason is not None:
            self._training.load_state_dict(state["training"], with_simulators=False)
            self._restart(reason or "as requested")
        else:
            self._restore(state["training"])

    def _restore(self, state: State) -> None:
        """Restore levels and training environments."""
        steps = int(self._tracker.lengths.sum())
        simulators = self._training.simulators
        if steps and isinstance(simulators, ReplayedEnvironment) and simulators.replays_episodes:
            self._runtime.on_activity(f"replaying {steps:,} steps of open episodes")
        try:
            self._training.load_state_dict(state)
        except (CheckpointError, EnvironmentFault) as error:
            raise CheckpointError(
                f"the open training episodes cannot be restored: {error}; resume with "
                "--restart_episodes (restart_episodes=True) to restart them: agents, memories "
                "and counters continue as they were saved"
            ) from error
        finally:
            self._runtime.on_activity("")

    def _restart(self, reason: str) -> None:
        """Restart the training episodes, from seeds that belong to this point of the run."""
        steps = int(self._tracker.lengths.sum())
        count = self._training.num_envs
        warn(
            f"the {count:,} open training episodes ({steps:,} steps) restart, so the numbers "
            f"are not those of a run that never stopped: {reason}. Agents, memories, filters, "
            "exploration and counters continue exactly",
        )
        place = f"restart at {self._training.clock.environment_steps}"
        self._training.restart(integer_seed(self._runtime.seed, "training", "environment", place))
        self._tracker.restart()
