"""Runtime of an exported policy. It needs numpy and onnxruntime, and nothing else.

sys.path.insert(0, "walker.zip")        # or unpack coach_policy.py
from coach_policy import Policy

policy = Policy("walker.zip")
policy.reset()                          # an episode begins with the next observation
action = policy.act(observation)        # one observation, or a batch [N, ...]
"""

import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Observation = dict[str, Array]
GOAL = "desired_goal"
"""The observation key of the environment's goals."""
MET, MISSED, FAILED, OTHER, TERMINAL = 1, 2, 4, 8, 16
"""Bits of the end of a sub-episode: its goal is met, its horizon used up, the level below failed,
it ended otherwise; and, beside the first two, nothing is left to do for its goal."""


class Policy:
    """The policy of a run, greedy or sampled; `spaces` and `card` describe it.

    Args:
        path: The archive.
        seed: Seed of what is drawn where actions are sampled, or options end by chance.
        threads: Threads of each network.
    """

    def __init__(self, path: str | Path, *, seed: int = 0, threads: int = 1) -> None:
        try:
            import onnxruntime
        except ImportError as error:
            raise ImportError("a policy needs onnxruntime; `pip install onnxruntime`") from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        with zipfile.ZipFile(path) as archive:
            about = json.loads(archive.read("policy.json"))

            def session(name: str | None) -> Any:
                if name is None:
                    return None
                kinds = ["CPUExecutionProvider"]
                return onnxruntime.InferenceSession(archive.read(name), options, providers=kinds)

            self._levels = [Level(each, session) for each in about["levels"]]
        self.card, self.spaces, self._mask = about["card"], about["spaces"], about["mask"]
        self._keys = {
            key: (np.dtype(space["dtype"]), tuple(space["shape"]))
            for key, space in self.spaces["observation"].items()
        }
        for above, below in zip(self._levels, self._levels[1:], strict=False):
            above.below = below
        only, (key, *others) = self._levels[0], self._keys
        remembers = others or only.state or only.has_goal or only.below or len(only.outputs) > 1
        self._plain = None if remembers else (only.greedy, key, *self._keys[key])
        self.reset(seed=seed)

    def reset(self, rows: Any = None, *, seed: int | None = None) -> None:
        """Begin an episode with the next observation.

        Args:
            rows: Where, of a batch: a mask [N] or numbers of rows; None: everywhere.
            seed: Seed of what is drawn from now on; None continues drawing.
        """
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        if rows is None:
            self._begins = np.ones(0, np.bool_)
        elif len(self._begins):
            self._begins[np.asarray(rows)] = True

    def act(self, observation: Any, *, mask: Any = None, greedy: bool = True) -> Any:
        """Choose actions as the environment takes them.

        Args:
            observation: One observation or a batch of N: an array, or a dict of arrays by key.
            mask: Which actions are allowed, [M] or [N, M], where the observation lacks it.
            greedy: False to sample, from policies that are distributions (PPO, SAC).
        """
        if self._plain is not None and greedy and isinstance(observation, np.ndarray):
            session, key, dtype, shape = self._plain  # the most common case, the shortest way
            if observation.dtype == dtype and observation.shape == shape and mask is None:
                return session.run(["action"], {key: observation[None]})[0][0]
        batch, is_single = self._batch(observation, mask)
        count = len(next(iter(batch.values())))
        if not len(self._begins):
            self._begins = np.ones(count, np.bool_)
            for level in self._levels:
                level.allot(count)
        if len(self._begins) != count:
            raise ValueError(f"got {count} observations, {len(self._begins)} before; call reset()")
        (begins,), (rows,) = self._begins.nonzero(), (~self._begins).nonzero()
        ends, steps = np.zeros(len(rows), np.int64), np.ones(len(rows), np.int64)
        for level in reversed(self._levels):
            rows, ends, steps = level.process(rows, batch, ends, steps, self._rng)
            level.begin_episodes(begins)
        for level in self._levels:
            actions = level.decide(batch, None if greedy else self._rng)
        self._begins[:] = False
        return _taken(actions, is_single=is_single)

    def _batch(self, observation: Any, mask: Any) -> tuple[Observation, bool]:
        """The observations by key, [N, ...] each, and whether there was a single one."""
        own = None if mask is None or self._mask is None else self._mask["key"]
        names = [key for key in self._keys if key != own]
        given = {names[0]: observation} if len(names) == 1 else {}
        if isinstance(observation, Mapping | tuple):
            given = dict(_flat(observation))
        if mask is not None:
            ragged = isinstance(mask, list | tuple) and np.ndim(mask[0])
            given[own or "mask"] = np.concatenate(mask, axis=-1) if ragged else mask
        if given.keys() != self._keys.keys():
            found = ", ".join(given) or type(observation).__name__
            raise ValueError(f"observations have the keys {', '.join(self._keys)}; got {found}")
        batch, counts = {}, set()
        for key, (dtype, shape) in self._keys.items():
            values = np.asarray(given[key])
            axes = values.ndim - len(shape)
            if (
                values.dtype.kind not in "biuf"
                or axes not in (0, 1)
                or values.shape[axes:] != shape
            ):
                found = f"{values.dtype} {values.shape}"
                raise ValueError(f"observation '{key}' is {dtype} {shape}, or a batch; got {found}")
            cast = values.astype(dtype)
            if not values.dtype.kind == dtype.kind == "f" and (cast != values).any():
                raise ValueError(
                    f"observation '{key}' is {dtype}, which cannot hold what was given"
                )
            batch[key] = cast if axes else cast[None]
            counts.add(len(values) if axes else None)
        if len(counts) > 1 or 0 in counts:
            raise ValueError(f"the keys of an observation come in one batch, got sizes {counts}")
        if self._mask is not None:
            allowed = batch[self._mask["key"]].reshape(len(next(iter(batch.values()))), -1) > 0
            if not np.logical_or.reduceat(allowed, self._mask["begins"], axis=1).all():
                raise ValueError(f"'{self._mask['key']}' leaves a choice without any action")
        return batch, None in counts


class Level:
    """One level: its graphs, its clocks and what its rows remember."""

    below: "Level | None" = None

    def __init__(self, about: dict[str, Any], session: Any) -> None:
        self.greedy, self._sampling = session(about["decisions"]), session(about["samples"])
        self._judge, self._ends = session(about["judge"]), session(about["ends"])
        self.state, self._noise, self._is_top = about["state"], about["noise"], about["is_top"]
        self._horizon, self._stops_on_failure = about["horizon"], about["stops_on_failure"]
        self._sizes, self._timed, self._hands_on = about["goals"], about["timed"], about["hands_on"]
        self.outputs = [each.name for each in self.greedy.get_outputs()]
        self.has_goal = self._sizes["level_goal"] > 0
        self._inputs = {
            each: {kept.name for kept in each.get_inputs()}
            for each in (self.greedy, self._sampling, self._judge, self._ends)
            if each is not None
        }

    def allot(self, count: int) -> None:
        """Reserve memory for that many rows."""
        kept = {name: np.zeros((count, *e["shape"]), e["dtype"]) for name, e in self.state.items()}
        self._kept: Observation = {f"state/{name}": values for name, values in kept.items()}
        self._goals = {n: np.zeros((count, size), np.float32) for n, size in self._sizes.items()}
        self._waiting, self._starts, self._episodes = np.zeros((3, count), np.bool_)
        self._decisions, self._steps, self._below = np.zeros((3, count), np.int64)

    def begin_episodes(self, rows: Array) -> None:
        """Begin real episodes in these rows."""
        self._starts[rows] = self._episodes[rows] = True
        self._waiting[rows] = self._is_top
        self._decisions[rows] = self._steps[rows] = 0

    def receive(self, rows: Array, goal: Array, outer: list[Array]) -> None:
        """Begin sub-episodes with goals or options of the level above, whose own are `outer`."""
        for kept, given in zip(self._goals.values(), [goal, *outer], strict=True):
            kept[rows] = given
        self._waiting[rows] = self._starts[rows] = True
        self._decisions[rows] = self._steps[rows] = 0

    def decide(self, batch: Observation, chance: np.random.Generator | None) -> Observation:
        """Decide in the rows that wait and pass that on; actions [R, ...] by output.

        Args:
            batch: What all rows observe, [N, ...] each.
            chance: Draws samples; None: decisions are greedy.
        """
        (rows,) = self._waiting.nonzero()
        if not len(rows):
            return {}
        if self._is_top and self.has_goal:
            self._goals["level_goal"][rows] = batch[GOAL][rows].reshape(len(rows), -1)
        session, more = self.greedy, {**self._kept, "starts": self._starts}
        more |= {"episodes": self._episodes, "below": self._below}
        if chance is not None and self._sampling is not None:
            session = self._sampling
            for kind, count in self._noise.items():
                draw = chance.standard_normal if kind == "normal" else chance.random
                more[f"noise_{kind}"] = draw((len(self._starts), count), np.float32)
        made = self._run(session, self.outputs, rows, batch, more)
        actions = dict(zip(self.outputs, made, strict=True))
        for name, kept in self._kept.items():
            kept[rows] = actions.pop(name.replace("state/", "next/", 1))
        self._waiting[rows] = False
        if self.below is not None:
            own, *outer = (goal[rows] for goal in self._goals.values())
            self.below.receive(rows, actions["action"], [*outer, own] if self._hands_on else outer)
        return actions

    def process(
        self, rows: Array, batch: Observation, below: Array, steps: Array, chance: Any
    ) -> tuple[Array, Array, Array]:
        """Judge what the decisions of rows have led to.

        Args:
            rows: Where the level below, or the environment, answers, [R].
            batch: What all rows observe now, [N, ...] each.
            below: Why the sub-episodes below are over, bits [R].
            steps: Steps of the environment that they took, [R].
            chance: Draws where options end.

        Returns:
            Rows whose sub-episodes are over, why, and how many steps these took.
        """
        if not len(rows):
            return rows, below, steps
        self._below[rows], self._decisions[rows] = below, self._decisions[rows] + 1
        self._steps[rows] += steps
        for name in self._timed:
            self._goals[name][rows, -1] -= steps.astype(np.float32)
        ends = np.zeros(len(rows), np.int64)
        if self._judge is not None:
            (ends,) = self._run(self._judge, ["ends"], rows, batch)
        if self._horizon is not None:
            ends |= MISSED * (self._decisions[rows] >= self._horizon)
        if self._ends is not None:
            (likely,) = self._run(self._ends, ["chance"], rows, batch)
            ends |= OTHER * (chance.random(len(rows), np.float32) < likely)
        if self._stops_on_failure:
            own_fault = (below != 0) & (below & ~(MISSED | FAILED) == 0)
            ends |= FAILED * (own_fault & (ends & (MET | TERMINAL) == 0))
        ends &= ~TERMINAL
        is_over = ends != 0
        over = rows[is_over]
        self._starts[rows], self._episodes[rows] = is_over, False
        self._waiting[rows] = self._is_top | ~is_over
        answer = over, ends[is_over], self._steps[over]
        if self._is_top:
            self._decisions[over] = self._steps[over] = 0
        return answer

    def _run(
        self, session: Any, outputs: list[str], rows: Array, batch: Observation, more: Any = ()
    ) -> Any:
        """Outputs of a graph for some rows."""
        known = {**{f"observation/{key}": values for key, values in batch.items()}, **batch}
        known |= {**self._goals, **dict(more)}
        return session.run(outputs, {name: known[name][rows] for name in self._inputs[session]})


def _flat(parts: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of nested dicts and tuples, their keys joined by slashes."""
    for key, part in parts.items() if isinstance(parts, Mapping) else enumerate(parts):
        if isinstance(part, Mapping | tuple):
            yield from _flat(part, f"{prefix}{key}/")
        else:
            yield f"{prefix}{key}", part


def _taken(actions: Observation, *, is_single: bool) -> Any:
    """The action as the environment takes it, dicts and tuples nested as its space."""
    if "action" in actions:
        return actions["action"][0] if is_single else actions["action"]
    nested: dict[str, Any] = {}
    for key, values in actions.items():
        _, *path, name = key.split("/")
        inner = nested
        for step in path:
            inner = inner.setdefault(step, {})
        inner[name] = values[0] if is_single else values
    return _with_tuples(nested)


def _with_tuples(parts: Any) -> Any:
    if not isinstance(parts, dict):
        return parts
    taken, numbers = {k: _with_tuples(part) for k, part in parts.items()}, range(len(parts))
    return tuple(taken[str(n)] for n in numbers) if {*taken} == {*map(str, numbers)} else taken
