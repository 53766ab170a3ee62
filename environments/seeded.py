"""An environment that knows the seed of its first reset."""

from collections.abc import Sequence

from coach_rl.core.errors import ConfigurationError
from coach_rl.core.interfaces import Environment
from coach_rl.core.records import Action, Array, Directive, EnvResponse, IntArray
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.state import State


class SeededEnvironment:
    """Another environment whose first `reset` without a seed uses this one.

    Args:
        environment: What it stands for; owned from now on.
        seed: Row i of the first reset gets `seed + i`.
    """

    def __init__(self, environment: Environment, *, seed: int) -> None:
        self.environment = environment
        self._seed: int | None = seed
        """None once a reset or a loaded state has settled the random streams."""

    @property
    def num_envs(self) -> int:
        """N."""
        return self.environment.num_envs

    @property
    def spaces(self) -> EnvironmentSpaces:
        """What one row shows and takes."""
        return self.environment.spaces

    def reset(self, seed: int | Sequence[int] | None = None) -> EnvResponse:
        """Start every row anew; see `Environment.reset`."""
        given = self._seed if seed is None else seed
        response = self.environment.reset(given)
        self._seed = None
        return response

    def send(self, directive: Directive | Action, rows: IntArray | None = None) -> None:
        """Tell some rows what to do; see `Environment.send`."""
        self.environment.send(directive, rows)

    def recv(self) -> EnvResponse:
        """The rows that have answered; see `Environment.recv`."""
        return self.environment.recv()

    def render(self, row: int = 0) -> Array:
        """A frame of a row, uint8 [height, width, 3]."""
        render = getattr(self.environment, "render", None)
        if render is None:
            raise ConfigurationError(f"a {type(self.environment).__name__} has no pictures")
        frame: Array = render(row)
        return frame

    def state_dict(self) -> State:
        """Everything mutable."""
        return {"seed": self._seed, "environment": self.environment.state_dict()}

    def load_state_dict(self, state: State) -> None:
        """Take over a state made by `state_dict`."""
        self.environment.load_state_dict(state["environment"])
        self._seed = state["seed"]

    def close(self) -> None:
        """Close the environment; harmless when repeated."""
        self.environment.close()
