"""A run's policy as a file: one graph, or an archive of graphs with its runtime.

export("experiments/walk/hopper_seed0_2026-05-01_10-00-00", "hopper.zip")
"""

import importlib.util
import json
import zipfile
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from gymnasium.spaces import Dict

import coach_rl
from coach_rl.configuration.extensions import import_offers
from coach_rl.configuration.file_writing import replacing
from coach_rl.configuration.parameters_json import space_to_json
from coach_rl.configuration.strict_json import FLOAT_TAG, Json
from coach_rl.core.agents import EndingAgent
from coach_rl.core.discrete_actions import choice_sizes
from coach_rl.core.errors import ConfigurationError, how_to_install
from coach_rl.core.goals import GoalSpace
from coach_rl.core.levels import LevelDescription, LevelPartParameters
from coach_rl.core.spaces import EnvironmentSpaces, Space
from coach_rl.extensions.exporting.coach_policy import FORMAT
from coach_rl.extensions.exporting.decisions import Decision, Place, checked_decision
from coach_rl.extensions.exporting.goals import is_written
from coach_rl.extensions.exporting.graphs import (
    OPSETS,
    Graph,
    decision_graph,
    ending_graph,
    judge_graph,
    level_now,
    limit_graph,
    refused_level,
)
from coach_rl.graph_managers.graph import Graph as AgentGraph
from coach_rl.graph_managers.parameters import LevelParameters
from coach_rl.sessions.acting import needs_ends, own_ends_of
from coach_rl.sessions.opening import OpenedRun, Opening, OpeningArguments
from coach_rl.sessions.trained_agent import load_graph
from coach_rl.telemetry.figures import Best

_KINDS = (".zip", ".onnx", ".pt2")


def export(
    run: str | Path | Opening,
    path: str | Path,
    *,
    checkpoint: str | int | None = None,
    opset: int = 17,
    sampling: bool = False,
    **opening: Unpack[OpeningArguments],
) -> Path:
    """Write the policy of a run to a file that acts without this package.

    Args:
        run: A run's folder, or one of its checkpoints.
        path: The new file. `.zip`: an archive of graphs, their description and a runtime, for any
            stack of levels; `.onnx` or `.pt2`: the graph of a single agent, as ONNX or as
            `torch.export` writes it.
        checkpoint: As of `load`.
        opset: Version of the ONNX operators.
        sampling: Whether a single graph draws actions by noise that is one of its inputs; an
            archive has both graphs.
        **opening: As of `load`.

    Returns:
        The file.

    Raises:
        ConfigurationError: A part of the policy cannot be exported, a package is missing, or the
            file exists.
    """
    target = Path(path)
    _check(target, opset)
    opening.setdefault("device", "cpu")
    graph, opened = load_graph(run, checkpoint=checkpoint, **opening)
    stack = Stack(graph)
    card = _card(opened, stack)
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.suffix == ".zip":
        members = _archive(stack, card, opset)
        with replacing(target) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content)
        return target
    single = stack.single(samples=sampling)
    content = single.program(card) if target.suffix == ".pt2" else single.onnx(opset, card)
    with replacing(target) as file:
        file.write_bytes(content)
    return target


def _check(target: Path, opset: int) -> None:
    """Raise ConfigurationError where nothing could be written, before anything is read."""
    if target.suffix not in _KINDS:
        raise ConfigurationError(
            f"a policy is exported to {', '.join(_KINDS)}, got {target}; .zip holds any stack of "
            "levels and its runtime"
        )
    if target.exists():
        raise ConfigurationError(f"{target} exists; delete it, or choose another name")
    if opset not in OPSETS:
        allowed = f"{OPSETS.start} to {OPSETS.stop - 1}"
        raise ConfigurationError(f"graphs are written in opset {allowed}, got {opset}")
    for package in ("onnx", "onnxruntime"):
        if target.suffix != ".pt2" and importlib.util.find_spec(package) is None:
            raise ConfigurationError(
                f"exporting needs the package {package}; {how_to_install('export')}"
            )


class Stack:
    """The levels of a run, as graphs.

    Args:
        graph: With its agents and their policies.
    """

    def __init__(self, graph: AgentGraph) -> None:
        self.spaces: EnvironmentSpaces = graph.evaluation.simulators.spaces
        import_offers("exporting")
        self.levels = [_now(each.params) for each in graph.evaluation.levels]
        self.described = graph.levels
        self.agents = [graph.agents[level.name] for level in graph.levels]
        for level in self.levels:
            _check_level(level)
        self.links = graph.arrangement.links(self.levels)
        self.preempt = getattr(graph.arrangement, "preempt", ())
        self.decisions: list[Decision] = []
        for number, agent in enumerate(self.agents):
            built = graph.evaluation.levels[number]
            goals = built.params.goal_space
            shown = {} if goals is None else goals.shown
            place = Place(
                acts_in=built.environment.spaces.action,
                sees=Dict({**self.spaces.observation.spaces, **shown}),
                params=graph.levels[number].agent,
                own=goals,
                below=tuple(self.levels[each].goal_space for each in self.links[number]),
            )
            made = checked_decision(agent, place)
            if isinstance(agent, EndingAgent) and not made.ends_by_chance:
                ends = f"its agent ends sub-episodes itself ({type(agent).__name__}.ends)"
                raise refused_level(built.name, ends)
            self.decisions.append(made)

    def single(self, *, samples: bool) -> Graph:
        """The graph of the only agent; ConfigurationError where there are several levels."""
        if len(self.levels) > 1:
            names = ", ".join(level.name for level in self.levels)
            raise ConfigurationError(
                f"one graph holds one agent, and the run has the levels {names}; export to a .zip"
            )
        if samples and not _can_sample(self.decisions[0]):
            raise ConfigurationError(
                "the agent's policy is no distribution to sample from; leave out sampling"
            )
        return self.graphs(0, samples=samples)

    def graphs(self, number: int, *, samples: bool) -> Graph:
        """The graph of a level's decisions."""
        below = self.links[number]
        return decision_graph(
            self.decisions[number],
            self.spaces,
            self.levels[number],
            is_top=number == 0,
            below={self.levels[each].name: self.levels[each].goal_space for each in below},
            samples=samples,
        )

    def outer(self, number: int) -> dict[int, GoalSpace]:
        """The goals of the levels from which a level can be reached, by number, top first."""
        above = [each for each in range(number) if number in self.links[each]]
        found = {depth: space for each in above for depth, space in self.outer(each).items()}
        own = {each: self.levels[each].goal_space for each in above}
        found |= {each: space for each, space in own.items() if isinstance(space, GoalSpace)}
        return dict(sorted(found.items()))

    def mask(self) -> dict[str, object] | None:
        """The key of the action mask and where its choices begin; None: there is none."""
        masks = {key for agent in self.agents for key in getattr(agent, "own_keys", ())}
        if len(masks) != 1:
            return None
        begins: list[int] = np.cumsum((0, *choice_sizes(self.spaces.action)[:-1])).tolist()
        return {"key": masks.pop(), "begins": begins}


def _can_sample(decision: Decision) -> bool:
    """True if decisions without `greedy` differ from greedy ones."""
    return any(count for kind, count in decision.noise.items() if kind != "random")


WRITTEN_PARTS: list[type[LevelPartParameters]] = []
"""Parts of levels that a graph holds though they may act in evaluations; offers add theirs."""


def _is_written(part: LevelPartParameters) -> bool:
    """True if a graph can hold what a part of a level does in evaluations."""
    return isinstance(part, tuple(WRITTEN_PARTS)) or not part.acts_in_evaluations


def _now(level: LevelDescription) -> LevelDescription:
    """A level as it is at the checkpoint."""
    for change in level.changes:
        level = level_now(change, level)
    return level


def _check_level(level: LevelDescription) -> None:
    """Raise ConfigurationError where a level needs what a graph cannot hold."""
    space = level.goal_space
    reason = None
    if strange := [part for part in level.parts if not _is_written(part)]:
        reason = f"its part {type(strange[0]).__name__} may act in evaluations"
    elif isinstance(space, GoalSpace) and not is_written(space):
        reason = f"its goals are a {type(space).__name__} with methods of its own"
    if reason is not None:
        raise refused_level(level.name, reason)


def _archive(stack: Stack, card: dict[str, Any], opset: int) -> dict[str, bytes | str]:
    """The content of an archive by file name."""
    members: dict[str, bytes | str] = {}
    levels = []
    for number, level in enumerate(stack.levels):
        decision = stack.decisions[number]
        outer = stack.outer(number)
        can_sample = _can_sample(decision)
        graphs: dict[str, Graph | None] = {
            "decisions": stack.graphs(number, samples=False),
            "samples": stack.graphs(number, samples=True) if can_sample else None,
            "judge": judge_graph(stack.spaces, level, [*outer.values()]),
            "ends": ending_graph(decision, stack.spaces, level),
            "limits": limit_graph(stack.spaces, level),
        }
        names: dict[str, str | None] = dict.fromkeys(graphs)
        for kind, graph in graphs.items():
            if graph is not None:
                names[kind] = f"{level.name}_{kind}.onnx"
                members[f"{level.name}_{kind}.onnx"] = graph.onnx(opset, card)
        goals = {"level_goal": level.goal_space}
        goals |= {f"outer_goal_{depth}": space for depth, space in enumerate(outer.values())}
        sizes = {name: 0 if each is None else each.sent_size for name, each in goals.items()}
        levels.append(
            {
                "name": level.name,
                **names,
                "state": {
                    name: {"shape": shape, "dtype": str(dtype)}
                    for name, (shape, dtype) in decision.state.items()
                },
                "noise": decision.noise,
                **decision.facts,
                "below": stack.links[number],
                "preempt": level.name in stack.preempt,
                "outer": [*outer],
                "horizon": level.horizon,
                "stops_on_failure": any(part.acts_in_evaluations for part in level.parts),
                "goals": sizes,
                "timed": [
                    name for name, each in goals.items() if each and each.sent_size > each.size
                ],
            }
        )
    about = {
        "format": FORMAT,
        "spaces": card["spaces"],
        "mask": stack.mask(),
        "levels": levels,
        "card": card,
    }
    members["policy.json"] = json.dumps(about, indent=1)
    members["README.md"] = _page(card, how_to_act("policy", stack.described))
    runtime = files("coach_rl.extensions.exporting").joinpath("coach_policy.py")
    members["coach_policy.py"] = runtime.read_text()
    return members


def _card(opened: OpenedRun, stack: Stack) -> dict[str, Any]:
    """Facts about a policy: spaces, task, score, seed, command, versions."""
    manifest = opened.manifest
    checkpoint = opened.require_checkpoint("export")
    best = checkpoint.notes.get("best")
    preset = manifest["preset"]
    return {
        "task": manifest["level"],
        "preset": None if preset is None else preset["name"],
        "levels": [
            {"name": level.name, "agent": type(agent).__name__}
            for level, agent in zip(stack.levels, stack.agents, strict=True)
        ],
        "checkpoint": checkpoint.path.name,
        "best_evaluation": best,
        "seed": opened.runtime.seed,
        "command": manifest["command"],
        "created": manifest["created"],
        "versions": manifest["versions"],
        "exported_by": coach_rl.__version__,
        "spaces": {
            "observation": {
                key: described(space) for key, space in stack.spaces.observation.spaces.items()
            },
            "action": described(stack.spaces.own_action),
        },
    }


def described(space: Space) -> Json:
    """A space as JSON; bounds that are not finite are null."""

    def finite(document: Json) -> Json:
        if isinstance(document, list):
            return [finite(part) for part in document]
        if not isinstance(document, dict):
            return document
        return None if FLOAT_TAG in document else {k: finite(v) for k, v in document.items()}

    return finite(space_to_json(space))


def _page(card: dict[str, Any], acts: str) -> str:
    """The card as a page in Markdown, with the lines in which the policy acts."""
    best = card["best_evaluation"]
    score = "no evaluation yet"
    if best is not None:
        score = str(Best(**best))
    levels = ", ".join(f"{each['name']} ({each['agent']})" for each in card["levels"])
    rows = {
        "task": card["task"],
        "preset": card["preset"],
        "levels": levels,
        "checkpoint": card["checkpoint"],
        "best evaluation": score,
        "seed": card["seed"],
        "command": f"`{' '.join(card['command'] or ())}`",
        "versions": ", ".join(f"{name} {version}" for name, version in card["versions"].items()),
    }
    table = "\n".join(f"| {name} | {value} |" for name, value in rows.items())
    spaces_shown = json.dumps(card["spaces"], indent=1)
    return (
        f"# {card['preset'] or 'Policy'} on {card['task']}\n\n| | |\n| --- | --- |\n{table}\n\n"
        f"Spaces:\n\n```json\n{spaces_shown}\n```\n\n"
        "Use, with numpy and onnxruntime; the archive is read as data:\n\n```python\n"
        "from coach_rl.extensions.exporting.coach_policy import Policy\n\n"
        f'policy = Policy("THIS.zip")\npolicy.reset()\n{acts}\n```\n\n'
        "Without coach_rl, write `from coach_policy import Policy`, with a copy of its file "
        "`exporting/coach_policy.py` beside your program. This archive holds a copy, too: to "
        'import that one (`sys.path.append("THIS.zip")`) is to run code of the archive\'s author.\n'
    )


def how_to_act(policy: str, levels: Sequence[LevelParameters]) -> str:
    """Lines of Python in which a policy acts, for pages about it: with `over` where it needs it."""
    if not any(map(needs_ends, levels)):
        return f"action = {policy}.act(observation)"
    over = dict.fromkeys(own_ends_of(levels), False)
    return (
        f"over = {over}  # True where the member's own episode is over\n"
        f"action = {policy}.act(observation, over=over)"
    )
