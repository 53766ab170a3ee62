"""Graphs of a level in ONNX: its decisions, and the judgement of its sub-episodes.

Inputs and outputs have a first axis of R rows. Observations have the names of their keys.
"""

import io
import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import singledispatch
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from coach_rl.core.errors import ConfigurationError, SpaceError
from coach_rl.core.goals import GOAL_KEY, GoalSpace
from coach_rl.core.levels import LevelDescription, LevelSpace
from coach_rl.core.options import OptionSpace
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.extensions.exporting.coach_policy import MET, MISSED, OTHER, TERMINAL
from coach_rl.extensions.exporting.decisions import Chosen, Decision, Request, in_dtypes
from coach_rl.extensions.exporting.goals import shown_goal, target, turned, verdict
from coach_rl.extensions.exporting.numpy_functions import (
    UntraceableError,
    samples_of,
    traced,
)
from coach_rl.extensions.exporting.policies import Tensors

CHOICE = "choice"
"""Name of the action of a level whose actions are the number of one below it."""
OPSETS = range(14, 21)
"""Versions of the ONNX operator set that graphs can be written in."""
MEMBERS_OVER = "members_over"
"""Input [R, M]: where the own episode of each member of a group is over."""
_NAMES = (
    "action", "below", "chance", "ends", "episodes", "level_goal", "limit", "starts", MEMBERS_OVER,
)  # fmt: skip
"""Names of inputs and outputs that no observation may have."""
_TRACED = 2
_TRIED = (1, 3)
"""Rows that a graph is traced with, and rows that it is tried with."""


class Graph(nn.Module):
    """A function of named tensors, to be traced.

    Args:
        function: From inputs by name to outputs by name.
        inputs: What it is tried with, by name, [R, ...] each of R rows.
    """

    def __init__(
        self, function: Callable[[Tensors], Tensors], inputs: Callable[[int], Tensors]
    ) -> None:
        super().__init__()
        self._function = function
        self.examples = inputs
        self._names = [*inputs(1)]
        # Graphs cannot have numbers for names, which are the keys of a Tuple's parts.
        self._inputs = [f"observation/{each}" if each.isdigit() else each for each in self._names]
        with torch.no_grad():
            self.outputs = [*function(inputs(_TRACED))]

    def forward(self, *given: Tensor) -> tuple[Tensor, ...]:
        """The outputs in order."""
        made = self._function(dict(zip(self._names, given, strict=True)))
        return tuple(made[name] for name in self.outputs)

    def onnx(self, opset: int, notes: Mapping[str, object]) -> bytes:
        """The graph as an ONNX file, tried against torch.

        Args:
            opset: Version of the operator set, of `OPSETS`.
            notes: Are kept with it as metadata.

        Raises:
            ConfigurationError: It cannot be traced, or computes something else.
        """
        import onnx

        example = self.examples(_TRACED)
        file: Any = io.BytesIO()
        names = [*self._inputs, *self.outputs]
        try:
            with warnings.catch_warnings(), torch.no_grad(), _no_output():
                warnings.simplefilter("ignore")  # of deprecation, and of sizes that are constants
                torch.onnx.export(
                    self,
                    tuple(example.values()),
                    file,
                    input_names=self._inputs,
                    output_names=self.outputs,
                    dynamic_axes={name: {0: "rows"} for name in names},
                    opset_version=opset,
                    dynamo=False,
                )
        except Exception as error:  # of any kind, from a module of the user's
            reason = " ".join(str(error).split())[:200]
            raise ConfigurationError(
                f"a network cannot be written as a graph of opset {opset}: {reason}; use another "
                f"opset of {OPSETS.start} to {OPSETS.stop - 1}, or leave the layer out"
            ) from error
        model = onnx.load_from_string(file.getvalue())
        onnx.helper.set_model_props(model, {k: json.dumps(v) for k, v in notes.items()})
        content: bytes = model.SerializeToString()
        self._try(content)
        return content

    def program(self, notes: Mapping[str, object]) -> bytes:
        """The graph as `torch.export` saves it.

        Args:
            notes: Are kept in its file `policy.json`, with the names of its inputs and outputs.
        """
        example = self.examples(_TRACED)
        file = io.BytesIO()
        rows = tuple({0: torch.export.Dim.DYNAMIC} for _ in example)
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")  # of weights that are views of one tensor
            made = torch.export.export(self, tuple(example.values()), dynamic_shapes=(rows,))
            made.example_inputs = None  # torch would pickle them, and unpickle them when it loads
            about = {**notes, "inputs": self._inputs, "outputs": self.outputs}
            torch.export.save(made, file, extra_files={"policy.json": json.dumps(about)})
        return file.getvalue()

    def _try(self, content: bytes) -> None:
        """Raise ConfigurationError unless the graph computes what torch does."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # errors are raised
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        kept = {each.name for each in session.get_inputs()}
        for rows in _TRIED:
            example = self.examples(rows)
            with torch.no_grad():
                wanted = self(*example.values())
            given = zip(self._inputs, example.values(), strict=True)
            feeds = {name: each.numpy() for name, each in given if name in kept}
            try:
                made = session.run(self.outputs, feeds)
            except Exception as error:  # of onnxruntime, which has no base class for them
                raise _other_graph(rows, f"fails: {' '.join(str(error).split())[:200]}") from error
            for name, want, got in zip(self.outputs, wanted, made, strict=True):
                own = want.numpy()
                is_near = own.shape == got.shape and own.dtype == got.dtype
                if is_near and own.dtype.kind == "f":
                    is_near = np.allclose(own, got, rtol=1e-4, atol=1e-5)
                if not is_near:
                    raise _other_graph(rows, f"computes another '{name}' than its network")


def _other_graph(rows: int, reason: str) -> ConfigurationError:
    return ConfigurationError(
        f"the graph of {rows} rows {reason}; layers of your own must not read sizes of batches as "
        "numbers"
    )


def decision_graph(
    decision: Decision,
    shown: EnvironmentSpaces,
    level: LevelDescription,
    *,
    is_top: bool,
    below: Mapping[str, LevelSpace | None],
    samples: bool,
) -> Graph:
    """The graph of a level's decisions.

    Args:
        decision: That of its agent.
        shown: What the environment shows and takes.
        level: What the level is like.
        is_top: Whether no level is above; then its goals are part of the observation.
        below: What the levels below receive, by name; of several, the decision selects one.
            Empty: actions are for the environment.
        samples: Whether it draws actions, by noise that is an input.
    """
    space = level.goal_space

    def decide(given: Tensors) -> Tensors:
        seen = {key: given[key] for key in shown.observation.spaces}
        rows = next(iter(seen.values()))
        if space is not None:
            if is_top and isinstance(space, GoalSpace):
                goal = turned(space, seen[GOAL_KEY].flatten(1)).float()
            else:
                goal = given["level_goal"]
            own = seen | shown_goal(space, goal, seen)
        else:
            own = seen
        nothing = torch.zeros_like(rows.reshape(rows.shape[0], -1)[:, 0], dtype=torch.bool)
        request = Request(
            seen=own,
            state={name: given[f"state/{name}"] for name in decision.state},
            starts=given.get("starts", nothing),
            episodes=given.get("episodes", nothing),
            below=given.get("below", nothing.to(torch.int64)),
            normal=given.get("noise_normal"),
            uniform=given.get("noise_uniform"),
            random=given.get("noise_random"),
            over=given.get(MEMBERS_OVER),
        )
        action, after = decision(request)
        parts = _sent(below, action, seen) if below else in_dtypes(shown.action, action)
        acts = {f"action/{key}" if key else "action": part for key, part in parts.items()}
        return acts | {f"next/{name}": after[name] for name in decision.state}

    def inputs(rows: int) -> Tensors:
        given = _examples(shown.observation, rows)
        if space is not None and not is_top:
            given["level_goal"] = _goals(space, rows)
        given |= _memory(decision, rows)
        for kind, count in decision.noise.items():
            if count and (samples or kind == "random"):
                given[f"noise_{kind}"] = torch.rand((rows, count), generator=_generator())
        return given

    return Graph(decide, inputs)


def _memory(decision: Decision, rows: int) -> Tensors:
    """Memory of rows, and whose own episode is over, to try a graph with."""
    given: Tensors = {}
    if decision.state:
        given["starts"] = given["episodes"] = torch.arange(rows) % 2 == 0
        given["below"] = torch.arange(rows) % 3
    if members := decision.ending_members:
        given[MEMBERS_OVER] = torch.arange(rows * members).reshape(rows, members) % 3 == 0
    for name, (shape, dtype) in decision.state.items():
        given[f"state/{name}"] = torch.from_numpy(np.zeros((rows, *shape), dtype))
    return given


def ending_graph(
    decision: Decision, shown: EnvironmentSpaces, level: LevelDescription
) -> Graph | None:
    """The graph of the chances that a level's agent ends its option; None where it never does."""
    space = level.goal_space
    if not isinstance(space, OptionSpace):
        return None

    def inputs(rows: int) -> Tensors:
        return {**_examples(shown.observation, rows), "level_goal": _goals(space, rows)}

    def seen(rows: int) -> tuple[Tensors]:
        return (_examples(shown.observation, rows),)

    ends = {
        number: _level_function(level, f"the end of option {number}", each, seen)
        for number, each in enumerate(space.ends)
        if each is not None
    }

    def chance(given: Tensors) -> Tensors:
        option = given["level_goal"]
        likely = decision.chance_to_end(given | shown_goal(space, option, given))
        if likely is None and not ends:
            return {}
        likely = torch.zeros_like(option[:, 0]) if likely is None else likely
        after = {key: given[key] for key in shown.observation.spaces}
        for number, function in ends.items():
            likely = torch.where((option[:, number] > 0) & function(after), 1.0, likely)
        return {"chance": likely}

    graph = Graph(chance, inputs)
    return graph if graph.outputs else None


@singledispatch
def level_now(change: object, level: LevelDescription) -> LevelDescription:
    """A level without a change that follows the clock, as it is now; methods register theirs.

    Raises:
        ConfigurationError: It cannot be exported under that change.
    """
    raise changing(level.name, change)


def changing(name: str, change: object) -> ConfigurationError:
    """The error that a level cannot be exported under a change."""
    return refused_level(name, f"its {type(change).__name__} changes it while it trains")


def limit_graph(shown: EnvironmentSpaces, level: LevelDescription) -> Graph | None:
    """The graph of the horizons of a level's sub-episodes; None where all are the same."""
    function = level.horizon_of
    space = level.goal_space
    if function is None:
        return None

    def arguments(rows: int) -> tuple[Tensors, Tensor, Tensor]:
        goal = torch.zeros((rows, 0)) if space is None else _goals(space, rows)
        return _examples(shown.observation, rows), goal, torch.rand(rows, generator=_generator())

    horizon = _level_function(level, "its horizon_of", function, arguments)

    def inputs(rows: int) -> Tensors:
        seen, goal, chance = arguments(rows)
        received = {} if space is None else {"level_goal": goal}
        return {**seen, **received, "chance": chance}

    def limit(given: Tensors) -> Tensors:
        seen = {key: given[key] for key in shown.observation.spaces}
        goal = given["chance"][:, None][:, :0] if space is None else given["level_goal"]
        return {"limit": horizon(seen, goal, given["chance"]).to(torch.int64)}

    return Graph(limit, inputs)


def _level_function(
    level: LevelDescription, what: str, function: Any, examples: Callable[[int], Any]
) -> Callable[..., Any]:
    """A function of a level as one of tensors; ConfigurationError where it is none."""
    try:
        return traced(function, examples)
    except UntraceableError as error:
        named = getattr(function, "__qualname__", type(function).__name__)
        raise refused_level(level.name, f"{what}, {named}, is no graph ({error})") from error


def refused_level(name: str, reason: str) -> ConfigurationError:
    """The error that a level cannot be exported."""
    return ConfigurationError(f"level '{name}' cannot be exported: {reason}")


def judge_graph(
    shown: EnvironmentSpaces, level: LevelDescription, outer: list[GoalSpace]
) -> Graph | None:
    """The graph of the ends of sub-episodes by goals, bits [R]; None where a level has no goals.

    Args:
        shown: What the environment shows.
        level: What the level is like.
        outer: Goals of the levels above, top first.
    """
    own = level.goal_space if isinstance(level.goal_space, GoalSpace) else None
    goals = {"level_goal": own, **{f"outer_goal_{i}": each for i, each in enumerate(outer)}}
    known = {name: space for name, space in goals.items() if space is not None}

    def inputs(rows: int) -> Tensors:
        named = {name: _goals(space, rows) for name, space in known.items()}
        return {**_examples(shown.observation, rows), **named}

    def judge(given: Tensors) -> Tensors:
        is_over = torch.zeros_like(given[next(iter(known))][:, 0], dtype=torch.bool)
        ends = is_over.to(torch.int64)
        for name, space in known.items():
            met, is_final = verdict(space, given[name], given)
            if space is own:
                ends = met * MET + (is_final & ~met) * MISSED
                ends = ends + is_final * (TERMINAL * level.goal_is_terminal)
            else:
                is_over = is_over | is_final
        return {"ends": ends + is_over * OTHER}

    return Graph(judge, inputs) if known else None


def _sent(below: Mapping[str, LevelSpace | None], action: Chosen, seen: Tensors) -> Tensors:
    """Goals of the levels below by name, with the choice; the only one's is called ''."""
    taking = {name: space for name, space in below.items() if space is not None}
    if len(below) == 1 and isinstance(action, Tensor):
        (sub_goal,) = taking.values()
        return {"": target(sub_goal, action, seen)}
    if isinstance(action, Tensor):
        return {CHOICE: action}
    sent = {name: target(space, action[name], seen) for name, space in taking.items()}
    return {**action, **sent}


@contextmanager
def _no_output() -> Iterator[None]:
    """Discard standard output, where torch's compiled code prints graphs that it cannot write."""
    kept = os.dup(1)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nothing)


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def _goals(space: LevelSpace, rows: int) -> Tensor:
    """Goals or options to try a graph with, as a level keeps them, [R, S]."""
    if isinstance(space, OptionSpace):
        return torch.eye(space.count)[torch.arange(rows) % space.count]
    return torch.rand((rows, space.sent_size), generator=_generator())


def _examples(space: spaces.Dict, rows: int) -> Tensors:
    """Observations to try a graph with, [R, ...] each."""
    for key, part in space.spaces.items():
        if key in _NAMES:
            raise SpaceError(
                f"the observation '{key}' has the name of another input or output of graphs; "
                "rename it in the environment"
            )
        if not isinstance(
            part, spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary
        ):
            raise SpaceError(f"observation '{key}' of space {part} cannot be exported")
    return samples_of(space, rows)
