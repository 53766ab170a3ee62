"""A run's agent, ready to act anywhere: in a Gymnasium loop, a robot, a service.

agent = load("experiments/CartPole_PPO/CartPole-v1_seed0_2026-05-01_10-00-00")
observation, _ = env.reset()
agent.reset()
action = agent.act(observation)
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from inspect import signature
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from gymnasium import spaces

from coach_rl.configuration.familiar_names import names_here
from coach_rl.core.agents import require_whole_policies
from coach_rl.core.equal_spaces import loss_of_cast, nested
from coach_rl.core.errors import ConfigurationError, SpaceError, UnknownNameError, exits_as_errors
from coach_rl.core.parts import is_network, walk
from coach_rl.core.records import Action, Array, BoolArray, IntArray, Observation
from coach_rl.core.seeding import integer_seed
from coach_rl.core.spaces import EnvironmentSpaces, Space
from coach_rl.graph_managers.graph import Graph
from coach_rl.graph_managers.torch_settings import torch_settings
from coach_rl.runs.folder import RunFolder
from coach_rl.runs.shown_facts import ShowsFacts
from coach_rl.sessions.acting import Actor, needs_ends, own_ends_of
from coach_rl.sessions.opening import OpenedRun, Opening, OpeningArguments, open_run


def load(
    run: str | Path | Opening,
    *,
    checkpoint: str | int | None = None,
    **opening: Unpack[OpeningArguments],
) -> "TrainedAgent":
    """The agent of a run, to act with.

    Networks, filters and their statistics are loaded; no environment is built, and neither
    memories nor anything else of training are read.

    Args:
        run: A run's folder, or one of its checkpoints (`RUN/checkpoints/best`).
        checkpoint: The checkpoint of the run: `last`, `best` or its number of environment steps;
            None takes the one that `run` names, else the last.
        **opening: `device`, `threads`, `last_good` and `trust` of `Opening`.

    Raises:
        ConfigurationError: There is no such run or checkpoint, or its parameters name what cannot
            be found here.
        CheckpointError: The manifest or the checkpoint cannot be read.
    """
    graph, opened = load_graph(run, checkpoint=checkpoint, **opening)
    return TrainedAgent(graph, opened.folder.path)


def load_graph(
    run: str | Path | Opening,
    *,
    checkpoint: str | int | None = None,
    **opening: Unpack[OpeningArguments],
) -> tuple[Graph, OpenedRun]:
    """The agents of a run with what they have learned, and the run; see `load`."""
    how = Opening.of(run, opening)
    if checkpoint is not None:
        how = replace(how, run=Path(f"{how.run}@{checkpoint}"))
    opened = open_run(how, learns=False, has_environments=False)
    state = opened.require_checkpoint("load").state
    graph_manager = opened.graph_manager
    runtime = opened.runtime
    with torch_settings(runtime):
        graph_manager.create_graph(runtime, training=False)
        graph = graph_manager.graph
        require_whole_policies(graph.agents)
        for name, agent in graph.agents.items():
            if state["agents"].get(name) != {}:  # a script has nothing to load
                agent.load_policy(state["agents"][name])
    graph.clock.load_state_dict(state["training"]["clock"])
    return graph, opened


class TrainedAgent(ShowsFacts):
    """An agent that acts and does not learn; of a hierarchy, all levels together.

    It takes the decisions of `coach --evaluate`, through the same filters and levels.

    Args:
        graph: The agents, built on an `OutsideParameters`, with what they have learned.
        run: The folder of the run that they are from.
    """

    def __init__(self, graph: Graph, run: Path) -> None:
        self._graph = graph
        self.run = run
        """The folder of its run."""
        self._seeds: Iterator[int] = count()
        self._actor: Actor | None = None
        self._begins: BoolArray = np.ones(0, np.bool_)  # [N] with the next observation
        self._members = own_ends_of(graph.levels)
        self._needs_ends = next((each.name for each in graph.levels if needs_ends(each)), None)
        """The level whose members' ends are needed and were never given."""

    if not TYPE_CHECKING:  # to type checkers, an unknown name is an error as well

        def __getattr__(self, name: str) -> Any:
            """Raise an `AttributeError`, with what another library's name stands for."""
            meant = () if name.startswith("_") else names_here("methods").get(name, ())
            hint = f"; did you mean {' or '.join(meant)}?" if meant else ""
            raise AttributeError(f"a trained agent has no {name!r}{hint}", name=name, obj=self)

    def facts(self) -> Mapping[str, object]:
        """Its agents, their training, what it observes and its actions."""
        spaces = self.spaces
        of_run = RunFolder(self.run).facts()
        agents = self._graph.agents
        clock = self._graph.clock
        observed = (f"{key} {space}" for key, space in spaces.observation.items())
        return {
            "agent": ", ".join(f"{name}: {type(agents[name]).__name__}" for name in agents),
            **{name: of_run[name] for name in ("task", "preset", "seed") if name in of_run},
            "environment steps": f"{clock.environment_steps:,}",
            "gradient updates": f"{clock.training_steps:,}",
            "observes": ", ".join(observed),
            "acts in": spaces.action,
            "run": self.run,
        }

    @property
    def spaces(self) -> EnvironmentSpaces:
        """The spaces of its observations, by key, and of its actions, as the environment's own."""
        known = self._graph.spaces
        return replace(known, action=known.own_action)

    @property
    def network(self) -> dict[str, Any]:
        """Its networks by name, torch modules; of a hierarchy by the level's name first.

        Those of a group stand below the member's name. They are the ones it acts with: what is
        changed in them changes how it acts.
        """
        levels = {
            name: modules
            for name, agent in self._graph.agents.items()
            if (modules := modules_of(agent))
        }
        return levels if len(self._graph.levels) > 1 else next(iter(levels.values()), {})

    def reset(self, rows: BoolArray | IntArray | None = None, *, seed: int | None = None) -> None:
        """Begin an episode with the next observation.

        Sub-goals, frame stacks and other state that agents keep from step to step are reset.

        Args:
            rows: Where, of a batch: a mask [N], e.g. `terminated | truncated`, or numbers of rows;
                None: everywhere, and the next batch may be of another size.
            seed: Seed of what is drawn by `act(..., greedy=False)` from now on; None continues
                drawing. Only for all rows.
        """
        if rows is None:
            self._begins[:] = True
            if seed is not None:
                self._actor = None
                self._seeds = (integer_seed(seed, "acting", number) for number in count())
            return
        if seed is not None:
            raise ConfigurationError("reset() seeds all rows or none; leave out rows or seed")
        try:
            self._begins[np.asarray(rows)] = True
        except IndexError as error:
            raise ConfigurationError(
                f"reset(rows) takes a mask [{len(self._begins)}] or numbers of the rows that act "
                f"was given last: {error}"
            ) from error

    @exits_as_errors()
    def act(
        self,
        observation: object,
        *,
        mask: object = None,
        over: Any = None,
        greedy: bool = True,
        **others: object,
    ) -> Any:
        """Choose actions in the environment's own action space.

        Args:
            observation: One observation or a batch of N, as the environment of the run shows it:
                an array, or a dict of arrays by key.
            mask: Which actions are allowed, [M] or [N, M], where the observation doesn't contain
                it: an entry for each action, of several choices side by side or one array each.
            over: Of a group: whose own episode is over, a bool or [N] of them by the member's name,
                as the environment's infos have it. It stays over until `reset`, and members that
                are left out are as they were; None: nothing is new.
            greedy: Whether to act as evaluations do; otherwise with the exploration of training at
                the checkpoint: PPO and SAC sample from their policies, the others add noise.
            others: None; arguments of other libraries are answered with those here.

        Returns:
            One action, or a batch of N: dicts and tuples where the action space is one, with arrays
            [N, ...] in them.

        Raises:
            SpaceError: The observation is not what `spaces.observation` describes, the size of the
                batch changes in the middle of episodes, a mask is given that no agent reads, or
                `over` names no member.
            ConfigurationError: Who acts depends on whose own episode is over, and `over` was never
                given.
            UnknownNameError: There is no such argument.
        """
        for name in others:
            meant = [f"{each}=..." for each in names_here("methods").get(name, ())]
            known = [*signature(self.act).parameters][1:-1]
            raise UnknownNameError("argument", name, known, near=meant)
        if mask is not None:
            observation = self._with_allowed(observation, mask)
        batch, is_single = _batch(observation, self._graph.spaces.observation)
        ended = self._ended(over, len(next(iter(batch.values()))))
        actor = self._actor_for(len(next(iter(batch.values()))))
        with torch_settings(self._graph.runtime):
            action = actor.act(batch, begins=self._begins, greedy=greedy, over=ended)
        self._begins = np.zeros(actor.num_envs, np.bool_)
        return _as_taken(self._graph.spaces.own_action, action, is_single=is_single)

    def _ended(self, over: Any, rows: int) -> Observation:
        """Names of infos that mark own ends, and where these are given as over, bool [N] or one."""
        if over is None and self._needs_ends is not None:
            raise ConfigurationError(
                f"level '{self._needs_ends}' of {self.run} leaves out members whose own episode is "
                "over, which observations don't show: give act(observation, over={"
                f"{', '.join(f'{name!r}: False' for name in self._members)}}}), True where the "
                "member's is over, or over={} where no member ends before the others"
            )
        if not isinstance(over, Mapping | None):
            raise SpaceError(f"over is a dict by members' names, got {type(over).__name__}")
        ended: Observation = {}
        for name, given in (over or {}).items():
            if name not in self._members:
                raise UnknownNameError("member", str(name), self._members, where="in act(over=...)")
            values = np.asarray(given)
            if values.dtype != np.bool_ or values.shape not in ((), (rows,)):
                raise SpaceError(
                    f"over['{name}'] is {values.dtype} {values.shape}; give a bool, or one for "
                    f"each of {rows} observations"
                )
            ended |= dict.fromkeys(self._members[name], values)
        self._needs_ends = self._needs_ends if over is None else None
        return ended

    def _with_allowed(self, observation: object, allowed: object) -> dict[str, object]:
        """The observation by key, with a mask under the key that agents read it from."""
        agents = self._graph.agents.values()
        keys = sorted({key for agent in agents for key in getattr(agent, "own_keys", ())})
        if len(keys) != 1:
            found = f"its agents read {', '.join(keys)}: give them in the observation"
            raise SpaceError(
                "act() was given a mask, and "
                + (found if keys else "this agent has no action mask; leave it out")
            )
        others = [key for key in self.spaces.observation.spaces if key != keys[0]]
        plain = {others[0]: observation} if len(others) == 1 else {}
        parts = dict(observation) if isinstance(observation, Mapping) else plain
        if isinstance(allowed, list | tuple) and np.ndim(allowed[0]):
            allowed = np.concatenate(allowed, axis=-1)
        return {**parts, keys[0]: allowed}

    def _actor_for(self, rows: int) -> Actor:
        """Return the actor of that many rows, a new one where all of them begin an episode."""
        actor = self._actor
        if actor is None or actor.num_envs != rows:
            if not self._begins.all():
                raise SpaceError(
                    f"got {rows} observations, {len(self._begins)} before; call reset() first, "
                    "which begins new episodes"
                )
            actor = self._actor = Actor(self._graph, num_envs=rows, seed=next(self._seeds))
            self._begins = np.ones(rows, np.bool_)
        return actor


def _batch(observation: object, space: spaces.Dict) -> tuple[Observation, bool]:
    """The observations by key, [N, ...] each, and whether it was a single one."""
    given = _by_key(observation, space)
    batch = {}
    counts = {}
    for key, part in space.spaces.items():
        values = _cast(given[key], part, key)
        shape = part.shape or ()
        is_single = values.shape == shape
        if not is_single and values.shape[1:] != shape:
            raise SpaceError(
                f"observation '{key}' has shape {values.shape}, its space {shape}; "
                f"give one such array, or a batch (N, {', '.join(map(str, shape))})"
            )
        batch[key] = values[None] if is_single else values
        counts[key] = None if is_single else len(values)
    if len(set(counts.values())) > 1:
        raise SpaceError(f"the keys of an observation come in one batch, got sizes {counts}")
    if 0 in counts.values():
        raise SpaceError("got a batch of no observations; give at least one")
    return batch, None in counts.values()


def _by_key(observation: object, space: spaces.Dict) -> dict[str, object]:
    """The parts of an observation by the space's keys, those of nested dicts joined by slashes."""
    parts = observation
    if isinstance(observation, tuple) and _is_numbered(key.partition("/")[0] for key in space):
        parts = dict(enumerate(observation))
    if not isinstance(parts, Mapping):
        if len(space.spaces) > 1:
            raise SpaceError(
                f"an observation is a dict with the keys {', '.join(space.spaces)}, "
                f"got {type(observation).__name__}"
            )
        return dict.fromkeys(space.spaces, observation)
    found = dict(_flat(parts))
    for key in found:
        if key not in space.spaces:
            raise UnknownNameError("observation key", key, space.spaces)
    missing = [key for key in space.spaces if key not in found]
    if missing:
        raise SpaceError(f"the observation lacks {', '.join(missing)}; it has {', '.join(found)}")
    return found


def _flat(parts: Mapping[Any, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for key, part in parts.items():
        if isinstance(part, Mapping | tuple):
            below = part if isinstance(part, Mapping) else dict(enumerate(part))
            yield from _flat(below, f"{prefix}{key}/")
        else:
            yield f"{prefix}{key}", part


def _is_numbered(keys: Iterable[str]) -> bool:
    """Return whether keys are those of a Tuple's parts, its numbers from 0."""
    names = set(keys)
    return names == {str(number) for number in range(len(names))}


def _cast(given: object, space: Space, key: str) -> Array:
    """The values in the space's dtype, if nothing but digits of floats is lost by that."""
    if isinstance(given, tuple) and any(isinstance(part, Mapping) for part in given):
        raise SpaceError(
            "act() takes an observation alone, got a tuple as environments return it; unpack it: "
            "`observation, info = env.reset()`"
        )
    values = np.asarray(given)
    dtype = np.dtype(space.dtype)
    if values.dtype.kind in "biuf" and loss_of_cast(values[None], dtype) is None:
        return values.astype(dtype)
    raise SpaceError(
        f"observation '{key}' is {values.dtype}, its space {dtype}; "
        "convert it as the environment of the run does"
    )


def _as_taken(space: Space, action: Action, *, is_single: bool) -> object:
    """An action in the environment's own space, or a batch of them."""

    def part(name: str, space: Space) -> object:
        values = action[name] if isinstance(action, dict) else action
        values = values.astype(space.dtype, copy=False)
        if not is_single:
            return values
        return values[0] if isinstance(space, spaces.Discrete) else np.asarray(values[0])

    return nested(space, part)


def modules_of(agent: object) -> dict[str, Any]:
    """The networks of an agent by name, torch modules; of an agent in it by its name first."""
    found: dict[str, Any] = {}
    for part in walk(agent):
        if is_network(part.value):
            level = found
            for member in part.members:
                level = level.setdefault(member, {})
            level[part.name] = part.value.module
    return found
