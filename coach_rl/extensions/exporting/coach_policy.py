"""Runtime of an exported policy. It needs numpy and onnxruntime, and nothing else.

from coach_policy import Policy         # a copy of this file: of an archive, it reads data alone

policy = Policy("walker.zip")
policy.reset()                          # an episode begins with the next observation
action = policy.act(observation)        # one observation, or a batch [N, ...]
"""

import json
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Observation = dict[str, Array]
FORMAT = 4
"""Version of archives; raised when an earlier runtime could misread them."""
MOST_BYTES = MOST_NUMBERS = 1 << 26
"""Bytes that an archive unpacks to beside 20 times its own, and elements of its arrays, at most."""
GOAL = "desired_goal"
"""The observation key of the environment's goals."""
MET = 1
MISSED = 2
FAILED = 4
OTHER = 8
TERMINAL = 16
"""Bits of the end of a sub-episode: its goal is met, its horizon used up, the level below failed,
it ended otherwise; and, beside the first two, nothing is left to do for its goal."""


class Policy:
    """The policy of a run, greedy or sampled; `spaces` and `card` describe it.

    Args:
        path: The archive.
        seed: Seed of what is drawn where actions are sampled, or options end by chance.
        threads: Threads of each network.

    Raises:
        ValueError: It is damaged, or of another format.
    """

    def __init__(self, path: str | Path, *, seed: int = 0, threads: int = 1) -> None:
        try:
            import onnxruntime
        except ImportError as error:
            raise ImportError("a policy needs onnxruntime; `pip install onnxruntime`") from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        Path(path).stat()  # FileNotFoundError names it
        self._named = Named(Path(path))
        with self._named:
            parts = _parts(Path(path))
            about = json.loads(parts["policy.json"])
            _check(about)

            def graph(name: str | None) -> "Graph | None":
                if name is None:
                    return None
                content = parts.pop(name)
                kinds = ["CPUExecutionProvider"]
                session = onnxruntime.InferenceSession(content, options, providers=kinds)
                return Graph(session, name)

            self._levels = [Level(*each, graph) for each in enumerate(about["levels"])]
            self.card = about["card"]
            self.spaces = about["spaces"]
            self._mask = about["mask"]
            self._keys = {
                key: (np.dtype(space["dtype"]), tuple(space["shape"]))
                for key, space in self.spaces["observation"].items()
            }
            for level in self._levels:
                level.below = [self._levels[number] for number in level.numbers_below]
                for below in level.below:
                    below.above.append(level)
            self._members = dict.fromkeys(name for level in self._levels for name in level.members)
            self._needs_ends = next((each.name for each in self._levels if each.needs_ends), None)
            """The level whose members' ends are needed and were never given."""
            only, (key, *others) = self._levels[0], self._keys
            remembers = others or only.state or only.has_goal or only.below or only.may_end
            remembers = remembers or only.noise.get("random")
            takes = self.spaces["action"]
            wide = ("uint16", "uint32", "uint64")
            is_number = takes["kind"] == "Box" and not takes["shape"]
            converts = only.outputs != ["action"] or is_number or takes.get("dtype") in wide
            self._plain = None if remembers or converts else (only.greedy, key, *self._keys[key])
            self._shape = tuple(takes.get("shape", ()))
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

    def act(
        self, observation: Any, *, mask: Any = None, over: Any = None, greedy: bool = True
    ) -> Any:
        """Choose actions in the environment's own action space.

        Args:
            observation: One observation or a batch of N: an array, or a dict of arrays by key.
            mask: Which actions are allowed, [M] or [N, M], where the observation lacks it.
            over: Of a group: whose own episode is over, a bool or [N] of them by the member's name;
                it stays over until `reset`. None: nothing is new.
            greedy: False to sample, from policies that are distributions (PPO, SAC).
        """
        if self._plain is not None and greedy and isinstance(observation, np.ndarray):
            graph, key, dtype, shape = self._plain  # the most common case, the shortest way
            is_alone = mask is None and over is None
            fits = observation.dtype == dtype and observation.shape == shape
            if fits and is_alone and np.isfinite(observation.sum()):
                with self._named:
                    (made,) = graph.run(["action"], {key: observation[None]}, 1)
                if made.shape[1:] == self._shape:
                    return made[0]
        batch, is_single = self._batch(observation, mask)
        count = len(next(iter(batch.values())))
        ended = self._ended(over, count)
        if len(self._begins) not in (0, count):
            raise ValueError(f"got {count} observations, {len(self._begins)} before; call reset()")
        with self._named:
            if not len(self._begins):
                self._allot(count)
            (begins,), (rows,) = self._begins.nonzero(), (~self._begins).nonzero()
            for name, values in self._over.items():
                values[begins] = False
                values |= ended.get(name, False)
            for level in reversed(self._levels):
                if not level.below:
                    own = rows[self._acted[rows] == level.number]
                    level.answers.append((own, np.zeros(len(own), np.int64), np.ones_like(own)))
                level.process(batch, self._over, self._rng)
                level.begin_episodes(begins)
            actions = self._decide(batch, greedy)
            self._begins[:] = False
            part = partial(_part, actions, is_single)
            return _formed(self.spaces["action"], "action", part)

    def _allot(self, count: int) -> None:
        """Reserve memory for that many rows."""
        self._begins = np.ones(count, np.bool_)
        self._acted = np.zeros(count, np.int64)
        self._over = {name: np.zeros(count, np.bool_) for name in self._members}
        for level in self._levels:
            level.allot(count)

    def _ended(self, over: Any, count: int) -> Observation:
        """Members' names and where their own episodes are over, bool [N] or one for all rows."""
        if over is None and self._needs_ends is not None:
            raise ValueError(
                f"level '{self._needs_ends}' leaves out members whose own episode is over, which "
                "observations don't show: give act(observation, over={"
                f"{', '.join(f'{name!r}: False' for name in self._members)}}}), True where the "
                "member's is over, or over={} where no member ends before the others"
            )
        if not isinstance(over, Mapping | None):
            raise ValueError(f"over is a dict by members' names, got {type(over).__name__}")
        ended = {name: np.asarray(values) for name, values in (over or {}).items()}
        for name, values in ended.items():
            fits = values.dtype == np.bool_ and values.shape in ((), (count,))
            if name not in self._members or not fits:
                known = ", ".join(self._members) or "none"
                raise ValueError(
                    f"over has a bool, or {count} of them, by the names of members ({known}); got "
                    f"'{name}': {values.dtype} {values.shape}"
                )
        self._needs_ends = self._needs_ends if over is None else None
        return ended

    def _decide(self, batch: Observation, greedy: bool) -> Observation:
        """Actions of the lowest levels, [N, ...] by output, each from the level that acts."""
        actions: Observation = {}
        for level in self._levels:
            rows, made = level.decide(batch, self._rng, greedy)
            if level.below or not len(rows):
                continue
            self._acted[rows] = level.number
            if len(rows) == len(self._acted):
                return made
            for name, values in made.items():
                whole = np.zeros((len(self._acted), *values.shape[1:]), values.dtype)
                actions.setdefault(name, whole)[rows] = values
        return actions

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
            advice = "" if mask is not None or self._mask is None else "; allowed actions: mask="
            wanted = ", ".join(self._keys)
            raise ValueError(f"observations have the keys {wanted}; got {found}{advice}")
        batch = {}
        counts = set()
        for key, (dtype, shape) in self._keys.items():
            values = np.asarray(given[key])
            axes = values.ndim - len(shape)
            fits = axes in (0, 1) and values.shape[axes:] == shape
            if not fits or values.dtype.kind not in "biuf":
                found = f"{values.dtype} {values.shape}"
                raise ValueError(f"observation '{key}' is {dtype} {shape}, or a batch; got {found}")
            cast = values.astype(dtype)
            if not _is_held(values, cast):
                raise ValueError(f"observation '{key}' is {dtype}, which does not hold its numbers")
            batch[key] = cast if axes else cast[None]
            counts.add(len(values) if axes else None)
        if len(counts) > 1 or 0 in counts:
            raise ValueError(f"the keys of an observation come in one batch, got sizes {counts}")
        if self._mask is not None:
            allowed = batch[self._mask["key"]].reshape(len(next(iter(batch.values()))), -1) > 0
            if not np.logical_or.reduceat(allowed, self._mask["begins"], axis=1).all():
                raise ValueError(f"'{self._mask['key']}' leaves a choice without any action")
        return batch, None in counts


def _is_held(values: Array, cast: Array) -> bool:
    """True if numbers are finite, and are the same as `cast`, but for digits of floats."""
    is_rounded = values.dtype.kind == cast.dtype.kind == "f"
    return bool((np.isfinite(cast) if is_rounded else cast == values).all())


class Named:
    """Context in which any error is a ValueError with the name of the archive."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        """Nothing is to be done."""

    def __exit__(self, kind: Any, error: object, trace: object) -> None:
        """Raise the error with the name."""
        if isinstance(error, Exception):
            shown = f"{kind.__name__}: {error}"[:500].removeprefix("ValueError: ")
            reason = " ".join("".join(c if c.isprintable() else " " for c in shown).split())
            what = f"{self._path} is damaged, or no archive of `coach export`"
            raise ValueError(f"{what}: {reason}") from error


class Graph:
    """A network of an archive.

    Args:
        session: Its session of onnxruntime.
        name: Its name in the archive, for errors.
    """

    def __init__(self, session: Any, name: str) -> None:
        self._session = session
        self._name = name
        self.inputs = [each.name for each in session.get_inputs()]
        self.outputs = [each.name for each in session.get_outputs()]

    def run(self, outputs: list[str], given: Observation, count: int) -> Any:
        """Outputs, [R, ...] of R = count rows each; ValueError where they cannot be used."""
        made = self._session.run(outputs, given)
        for name, values in zip(outputs, made, strict=True):
            is_free = values.dtype.kind != "f" or name.startswith("next/")
            if len(values) != count or not (is_free or np.isfinite(values).all()):
                raise ValueError(f"'{name}' of {self._name} is not finite, or not of {count} rows")
        return made


class Level:
    """One level: its graphs, its clocks and what its rows remember."""

    def __init__(self, number: int, about: dict[str, Any], graph: Any) -> None:
        self.number = number
        self.numbers_below = about["below"]
        self._preempts = about["preempt"]
        self.above: list[Level] = []
        self.below: list[Level] = []
        self.answers: list[tuple[Array, Array, Array]] = []
        """Rows [R] in which the level below, or the environment, answers its decisions, why the
        sub-episodes there are over (bits, 0 where they continue), and the steps that they took."""
        self.name = about["name"]
        self._outer = {each: f"outer_goal_{depth}" for depth, each in enumerate(about["outer"])}
        """Names of the goals of the levels above that are known here, by the levels' numbers."""
        self.greedy, self._sampling = graph(about["decisions"]), graph(about["samples"])
        self._judge, self._ends = graph(about["judge"]), graph(about["ends"])
        self._limits = graph(about["limits"])
        self.state = about["state"]
        self.noise = about["noise"]
        self._is_top = number == 0
        self._horizon = about["horizon"]
        self._stops_on_failure = about["stops_on_failure"]
        self.members = [*about["members"]]
        self.needs_ends = about["needs_ends"]
        self.may_end = [
            number for number, name in enumerate(self.members) if about["members"][name]
        ]
        """Numbers of the members that have ends of their own."""
        self._sizes = about["goals"]
        self._timed = about["timed"]
        self.outputs = self.greedy.outputs
        self.has_goal = self._sizes["level_goal"] > 0

    def allot(self, count: int) -> None:
        """Reserve memory for that many rows."""
        kept = {name: np.zeros((count, *e["shape"]), e["dtype"]) for name, e in self.state.items()}
        self._kept: Observation = {f"state/{name}": values for name, values in kept.items()}
        self._goals = {n: np.zeros((count, size), np.float32) for n, size in self._sizes.items()}
        self._waiting, self._starts, self._episodes, self._open, self._seen = np.zeros(
            (5, count), np.bool_
        )
        self._decisions, self._steps, self._below, self._sender = np.zeros((4, count), np.int64)
        self._over = np.zeros((count, len(self.members)), np.bool_)
        self._limit = np.full(count, self._horizon or 0)

    def begin_episodes(self, rows: Array) -> None:
        """Begin real episodes in these rows."""
        self._starts[rows] = self._episodes[rows] = True
        self._over[rows] = False
        self._waiting[rows] = self._is_top
        self._open[rows] = False
        self._decisions[rows] = self._steps[rows] = 0

    def receive(self, rows: Array, goal: Array, sender: "Level") -> None:
        """Begin sub-episodes with goals or options of a level above, or continue with equal ones.

        Args:
            rows: Where, [R].
            goal: [R, G]; G is 0 where the level takes none.
            sender: The level above.
        """
        known = {**sender._outer, sender.number: "level_goal"}
        for number, name in self._outer.items():  # of another path: NaN, which nothing reaches
            given = sender._goals[known[number]][rows] if number in known else np.nan
            self._goals[name][rows] = given
        same = self._open[rows] & (self._goals["level_goal"][rows] == goal).all(axis=1)
        rows = rows[~same]
        goal = goal[~same]
        self.switch(rows, sender)
        self._goals["level_goal"][rows] = goal
        self._sender[rows] = sender.number
        self._open[rows] = self._waiting[rows] = self._starts[rows] = True
        resumed = rows[~self._seen[rows]]  # others have acted since
        if "state/place" in self._kept:  # a fixed order of members continues
            self._kept["state/latest"][resumed] = 0
        else:
            self._episodes[resumed] = True
        self._decisions[rows] = self._steps[rows] = 0

    def switch(self, rows: Array, sender: "Level") -> None:
        """End what the level does for a level above in rows, if anything."""
        rows = rows[self._open[rows] & (self._sender[rows] == sender.number)]
        self._open[rows] = False
        self._waiting[rows] = False
        self._starts[rows] = True
        for each in self.below if len(rows) else ():
            each.switch(rows, self)

    def decide(self, batch: Observation, chance: Any, greedy: bool) -> tuple[Array, Observation]:
        """Decide in the rows that wait and pass that on; the rows [R], and actions by output.

        Args:
            batch: What all rows observe, [N, ...] each.
            chance: Draws samples, horizons, and actions at random.
            greedy: Whether decisions are no samples.
        """
        (rows,) = self._waiting.nonzero()
        if not len(rows):
            return rows, {}
        if self._is_top and self.has_goal:
            self._goals["level_goal"][rows] = batch[GOAL][rows].reshape(len(rows), -1)
        begun = rows[self._starts[rows]]
        if self._limits is not None and len(begun):
            drawn = {"chance": chance.random(len(self._starts), np.float32)}
            (limits,) = self._run(self._limits, ["limit"], begun, batch, drawn)
            self._limit[begun] = limits
        more = {**self._kept, "starts": self._starts}
        more |= {"episodes": self._episodes, "below": self._below, "members_over": self._over}
        samples = not greedy and self._sampling is not None
        graph = self._sampling if samples else self.greedy
        for kind, count in self.noise.items():
            if count and (samples or kind == "random"):
                draw = chance.standard_normal if kind == "normal" else chance.random
                more[f"noise_{kind}"] = draw((len(self._starts), count), np.float32)
        made = self._run(graph, self.outputs, rows, batch, more)
        actions = dict(zip(self.outputs, made, strict=True))
        for name, kept in self._kept.items():
            kept[rows] = actions.pop(name.replace("state/", "next/", 1))
        self._waiting[rows] = False
        choice = actions.get("action/choice", np.zeros(len(rows)))
        if self._preempts:
            for place, each in enumerate(self.below):
                each.switch(rows[choice != place], self)
        for place, each in enumerate(self.below):
            goal = actions.get(f"action/{each.name}", actions.get("action"))
            here = choice == place
            goal = np.zeros((len(rows), 0)) if goal is None else goal
            each.receive(rows[here], goal[here], self)
        return rows, actions

    def process(self, batch: Observation, ended: Observation, chance: Any) -> None:
        """Judge what the decisions that are answered have led to, and answer the levels above.

        Args:
            batch: What all rows observe now, [N, ...] each.
            ended: Where members' own episodes are over, [N] each by name.
            chance: Draws where options end.
        """
        parts = [each for each in self.answers if len(each[0])]
        self.answers = []
        self._seen[:] = False
        if not parts:
            return
        rows, below, steps = (np.concatenate(each) for each in zip(*parts, strict=True))
        self._seen[rows] = True
        self._below[rows] = below
        for number in self.may_end:
            self._over[rows, number] |= ended[self.members[number]][rows]
        self._decisions[rows] += 1
        self._steps[rows] += steps
        for name in self._timed:
            self._goals[name][rows, -1] -= steps.astype(np.float32)
        ends = self._judged(rows, batch, below, chance)
        is_over = ends != 0
        over = rows[is_over]
        self._starts[rows] = is_over
        self._episodes[rows] = False
        self._waiting[rows] = self._is_top | ~is_over
        self._open[over] = False
        if self._preempts:
            for each in self.below:
                each.switch(over, self)
        for above in self.above:
            mine = (is_over | above._preempts) & (self._sender[rows] == above.number)
            took = steps if above._preempts else self._steps[rows]
            above.answers.append((rows[mine], ends[mine], took[mine]))
        if self._is_top:
            self._decisions[over] = self._steps[over] = 0

    def _judged(self, rows: Array, batch: Observation, below: Array, chance: Any) -> Array:
        """Reasons why sub-episodes are over, bits [R]; 0 where they continue."""
        ends = np.zeros(len(rows), np.int64)
        if self._judge is not None:
            (ends,) = self._run(self._judge, ["ends"], rows, batch)
        if self._horizon is not None:
            ends |= MISSED * (self._decisions[rows] >= self._limit[rows])
        if self._ends is not None:
            (likely,) = self._run(self._ends, ["chance"], rows, batch)
            ends |= OTHER * (chance.random(len(rows), np.float32) < likely)
        if self._stops_on_failure:
            own_fault = (below != 0) & (below & ~(MISSED | FAILED) == 0)
            ends |= FAILED * (own_fault & (ends & (MET | TERMINAL) == 0))
        return ends & ~TERMINAL

    def _run(
        self, graph: Graph, outputs: list[str], rows: Array, batch: Observation, more: Any = ()
    ) -> Any:
        """Outputs of a graph for some rows."""
        known = {**{f"observation/{key}": values for key, values in batch.items()}, **batch}
        known |= {**self._goals, **dict(more)}
        return graph.run(outputs, {name: known[name][rows] for name in graph.inputs}, len(rows))


def _parts(path: Path) -> dict[str, bytes]:
    """The files in an archive by name."""
    if not path.is_file():  # a pipe would be waited for
        raise ValueError("it is no file")
    with zipfile.ZipFile(path) as archive:
        files = archive.infolist()
        size = sum(each.file_size for each in files)
        most = MOST_BYTES + 20 * path.stat().st_size
        if size > most or {each.compress_type for each in files} - {0, zipfile.ZIP_DEFLATED}:
            raise ValueError(f"it unpacks to {size:,} bytes, or is compressed in an unknown way")
        # A file may be larger than its header has it: no more than that is unpacked.
        return {each.filename: archive.open(each).read(each.file_size) for each in files}


def _check(about: Any) -> None:
    """Raise ValueError where a description is of another format, or leads to wrong decisions."""
    if about["format"] != FORMAT:
        what = f"its format is {about['format']!r:.40}, and this runtime reads {FORMAT}"
        raise ValueError(f"{what}; use the runtime of the version that wrote it")
    levels = about["levels"]
    mask = about["mask"]
    observed = about["spaces"]["observation"]
    if not levels or len({each["name"] for each in levels}) < len(levels):
        raise ValueError("it has no levels, or two of one name")
    arrays = [*observed.values(), *(each for level in levels for each in level["state"].values())]
    _formed(about["spaces"]["action"], "action", lambda _, each: arrays.append(each))
    shapes = [each["shape"] for each in arrays]
    for number, level in enumerate(levels):
        goals = level["goals"]
        horizon = level["horizon"]
        shapes += [[size] for size in (*goals.values(), *level["noise"].values())]
        known = {"level_goal", *(f"outer_goal_{depth}" for depth in range(len(level["outer"])))}
        checks = {
            "below": all(each in range(number + 1, len(levels)) for each in level["below"]),
            "outer": all(each in range(number) for each in level["outer"]),
            "horizon": horizon is None or (isinstance(horizon, int) and horizon > 0),
            "goals": known == goals.keys(),
            "timed": known >= {*level["timed"]},
            "members": {type(may_end) for may_end in level["members"].values()} <= {bool},
            "needs_ends": isinstance(level["needs_ends"], bool),
        }
        for name, is_right in checks.items():
            if not is_right:
                raise ValueError(f"'{name}' of level '{level['name']}' is {level[name]!r:.80}")
    names = [*observed, *(name for each in levels for name in (each["name"], *each["members"]))]
    if not all(map(str.isprintable, names)):
        raise ValueError("a name has characters that are not printable")
    is_small = all(0 <= np.prod(shape, dtype=np.float64) <= MOST_NUMBERS for shape in shapes)
    if not is_small or {np.dtype(each["dtype"]).kind for each in arrays} - {*"biuf"}:
        raise ValueError(f"an array has more than {MOST_NUMBERS:,} elements, or no numbers")
    if mask is not None:  # an error where it is no observation, or has no such choices
        size = int(np.prod(observed[mask["key"]]["shape"]))
        np.logical_or.reduceat(np.ones(size, np.bool_), mask["begins"])


def _flat(parts: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of nested dicts and tuples, their keys joined by slashes."""
    for key, part in parts.items() if isinstance(parts, Mapping) else enumerate(parts):
        if isinstance(part, Mapping | tuple):
            yield from _flat(part, f"{prefix}{key}/")
        else:
            yield f"{prefix}{key}", part


def _part(actions: Observation, is_single: bool, name: str, space: dict[str, Any]) -> Any:
    """A part of the action, from the output of its name."""
    values = actions[name].astype(space["dtype"], copy=False)
    if values.shape[1:] != tuple(space["shape"]):
        raise ValueError(f"'{name}' has the shape {values.shape}, its space {space['shape']}")
    if not is_single:
        return values
    return values[0] if space["kind"] == "Discrete" else np.asarray(values[0])


def _formed(space: dict[str, Any], name: str, part: Callable[[str, dict[str, Any]], Any]) -> Any:
    """A value in the form of a space of `policy.json`, from its parts by name and space."""
    if "spaces" not in space:
        return part(name, space)
    below = space["spaces"].items()
    parts = [_formed(each, f"{name}/{key}", part) for key, each in below]
    if space["kind"] == "Tuple":
        return tuple(parts)
    return dict(zip(space.get("keys", space["spaces"]), parts, strict=True))
