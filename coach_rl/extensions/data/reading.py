"""Reading a run's data set into its agents' memories, and again from a checkpoint that names it."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.records import IntArray
from coach_rl.core.runtime import Runtime
from coach_rl.core.seeding import integer_seed
from coach_rl.core.state import State
from coach_rl.extensions.data.block_filling import (
    fill_in_blocks,
    fills_in_blocks,
    learns_in_blocks,
)
from coach_rl.extensions.data.files import SAMPLE, content_key, path_of, read_data
from coach_rl.extensions.data.filled_memory import FilledMemory
from coach_rl.extensions.data.held_out import split_episodes
from coach_rl.extensions.data.level_data import data_of_level
from coach_rl.extensions.data.recorded import (
    Recorded,
    read_into,
)
from coach_rl.levels.level_manager import LevelManager

_NOT_FOR_STORING = {"engine", "memory"}
"""Keys of an agent's state that what it stores does not depend on."""


@dataclass(frozen=True, kw_only=True)
class DataIdentity:
    """The data that a run learns from."""

    path: str
    """The file's or the folder's absolute path; a sample's name, which is where coach_rl is."""
    sha256: str
    """Checksum of the file, or of all files in the folder with their names."""
    episodes: int
    """Episodes that are learned from."""
    of_episodes: int
    """Episodes of the data set."""


def learning_levels(levels: Sequence[LevelManager]) -> list[tuple[LevelManager, OffPolicyAgent]]:
    """The levels that learn from data, with their agents; others use what these keep."""
    agents = [(level, level.agent) for level in levels]
    return [(level, agent) for level, agent in agents if isinstance(agent, OffPolicyAgent)]


def learning_agents(levels: Sequence[LevelManager]) -> list[OffPolicyAgent]:
    """The agents of levels that learn from data."""
    return [agent for _, agent in learning_levels(levels)]


def _waiting(levels: Sequence[LevelManager]) -> Iterator[tuple[LevelManager, OffPolicyAgent]]:
    """Levels, and their agents, whose memories await the data that a state has left out."""
    for level, agent in learning_levels(levels):
        memory = agent.memory
        if isinstance(memory, FilledMemory) and memory.awaits_data:
            yield level, agent


def _seen_by(
    levels: Sequence[LevelManager], read: Recorded
) -> Iterator[tuple[LevelManager, Recorded]]:
    """Levels that learn from data, top first, and a simulator's data as each sees them."""
    learning = {level.name for level, _ in learning_levels(levels)}
    descriptions = [level.params for level in levels]
    for level, below in zip(levels, [*descriptions[1:], None], strict=True):
        if level.name in learning:
            yield level, data_of_level(read, level.params, below, is_top=level is levels[0])


def _storing_state(agent: OffPolicyAgent) -> State:
    """The state of an agent that storing depends on, such as its filters'."""
    state = agent.state_dict()
    unneeded = set(_NOT_FOR_STORING)
    if not agent.stages.needed:  # none such as hidden states, which the networks make
        unneeded.add("networks")
    return {name: part for name, part in state.items() if name not in unneeded}


class DataReading:
    """Reads a data set for the agents of a run.

    Args:
        source: The data set.
        runtime: The run's settings and services.
        held_out: Share of the episodes that are not learned from.
        split_seed: Seed that chooses them.
    """

    def __init__(self, source: str, runtime: Runtime, *, held_out: float, split_seed: int) -> None:
        self._source = source
        self._runtime = runtime
        self._held_out = held_out
        self._split_seed = split_seed
        self.identity: DataIdentity | None = None
        """The data that were read; None before."""
        self._before: dict[str, State] = {}
        """State of each level's agent before it read, by which it stores what it reads."""

    def fill(self, levels: Sequence[LevelManager], *, is_again: bool = False) -> None:
        """Fill the agents' memories.

        Args:
            levels: Their levels.
            is_again: Whether only the memories count, as all else is loaded afterwards.

        Raises:
            ConfigurationError: The data can't be read, or are not those of the checkpoint.
            SpaceError: They have other spaces.
        """
        path = self._located()
        self._runtime.on_activity(f"reading the data set {self._source}")
        found = content_key(path) if path.exists() else ""  # reading raises the error
        known = self.identity
        if known is not None and found != known.sha256:
            raise ConfigurationError(
                f"the data set {path} has changed since this run has learned from it: its sha256 "
                f"is {found[:12]}..., that of the checkpoint {known.sha256[:12]}...; put the data "
                "back, or start a new run"
            )
        read = self.read(levels[-1], path)
        learned, _ = split_episodes(len(read.begins), self._held_out, self._split_seed)
        for level, recorded in _seen_by(levels, read):
            agent = level.agent
            assert isinstance(agent, OffPolicyAgent)
            self._before.setdefault(level.name, _storing_state(agent))
            seed = integer_seed(self._runtime.seed, "data", level.name)
            count = recorded.lengths[learned].sum()
            mapped = "" if recorded.folder is None else f", mapped from {recorded.folder}"
            self._runtime.on_activity(
                f"filling the memory with {count:,} transitions of {self._source}{mapped}"
            )
            num_rows = level.num_envs
            if fills_in_blocks(agent) and (is_again or learns_in_blocks(agent, num_rows)):
                fill_in_blocks(
                    agent, recorded, num_rows=num_rows, episodes=learned, learn=not is_again
                )
            else:
                read_into(agent, recorded, num_rows=num_rows, seed=seed, episodes=learned)
            if isinstance(agent.memory, FilledMemory):
                agent.memory.note_filled()
            self.identity = DataIdentity(
                path=self._source if self._source.startswith(SAMPLE) else str(path),
                sha256=found,
                episodes=len(learned),
                of_episodes=len(recorded.begins),
            )
        self._runtime.on_activity("")

    def held_out(
        self, levels: Sequence[LevelManager]
    ) -> Iterator[tuple[LevelManager, Recorded, IntArray]]:
        """Levels, the data as each sees them, and the numbers of episodes that are held out."""
        read = self.read(levels[-1], self._located())
        _, numbers = split_episodes(len(read.begins), self._held_out, self._split_seed)
        for level, recorded in _seen_by(levels, read):
            yield level, recorded, numbers

    def refill(self, levels: Sequence[LevelManager]) -> None:
        """Fill memories again whose saved states have left the data out; all else stays.

        Raises:
            ConfigurationError: The data are gone, or differ from those of the checkpoint.
        """
        waiting = {level.name: agent for level, agent in _waiting(levels)}
        if not waiting:
            return
        loaded = {name: agent.state_dict() for name, agent in waiting.items()}
        for name, agent in waiting.items():
            agent.load_state_dict({**loaded[name], **self._before[name]})
        self.fill(levels, is_again=True)
        for name, agent in waiting.items():
            agent.load_state_dict(loaded[name])

    def read(self, lowest: LevelManager, path: Path) -> Recorded:
        """The data in the spaces of the simulator below a level; ConfigurationError for none."""
        spaces = lowest.environment.spaces
        recorded = read_data(
            self._named(path), observation_space=spaces.observation, action_space=spaces.action
        )
        if not len(recorded):
            raise ConfigurationError(
                f"the data set '{self._source}' has no transitions; choose another one"
            )
        return recorded

    def state_dict(self) -> State:
        """The identity of the data that were read, and what is needed to read them again."""
        if self.identity is None:
            return {}
        return {"identity": asdict(self.identity), "before": self._before}

    def load_state_dict(self, state: State) -> None:
        """Note which data a saved run has read."""
        self.identity = DataIdentity(**state["identity"]) if state else None
        self._before = state.get("before", {})

    def _located(self) -> Path:
        """The data's path: where they are named, or else where they were at the checkpoint.

        Raises:
            ConfigurationError: There is nothing.
        """
        path = path_of(self._source)
        if self.identity is None or path.exists():
            return path
        before = Path(self.identity.path)
        if not before.exists():
            raise ConfigurationError(
                f"the data set '{self._source}', which this run learns from, is gone from "
                f"{before}; put it back (sha256 {self.identity.sha256})"
            )
        return before

    def _named(self, path: Path) -> str:
        """The name by which the data are read: the one given, unless they are elsewhere."""
        return self._source if path == path_of(self._source) else str(path)
