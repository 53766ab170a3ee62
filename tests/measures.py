"""Measures of how far optional subjects are woven into the engine; `guards.toml` has the ceilings.

    python tests/measures.py                     # all figures beside their ceilings
    python tests/measures.py --list names        # what a figure counts; or circles, tick, ...
    python tests/measures.py --lower             # figures that fell become the ceilings

Each figure is counted as follows.

- *The core* is every Python file below `ROOMS`; *running* is every other file that no subject of
  `guards.toml` has. A subject is an optional part: its files, and the names that it brings.
- *Lines*: of code are without blank lines, comments and docstrings.
- *Wrong-way imports*: import statements of the core or of running that name a module of a subject,
  in functions and for type checkers too. The list of public names in `coach_rl/__init__.py`, which
  has those of the core's options, is no import of running.
- *Wrong-way names*: identifiers of a subject outside its files, in the core or running, as a name,
  attribute, import, keyword argument or string, without docstrings.
- *Entered*: functions with a frame on Python 3.11, lambdas, comprehensions and generators included,
  their lines of code, and their calls; in one tick, in `improve()`, and from a resume to its first
  tick. Each is measured in a process of its own.
- *The loop*: files of the core with a function that is entered by ticks and a round of learning of
  flat PPO, CartPole_PPO, and their lines of code. `docs/architecture.md` lists them to be read.
- *Optionals*: comparisons with None, `isinstance`, `hasattr`, `callable`, and `getattr` with a
  default, in `OPTIONALS`.
- *Circles*: groups of files of one room that import each other.
- *Joined*: assignments of several values to several names in one statement.
"""

import argparse
import ast
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import tokenize
import tomllib
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache, cached_property
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
GUARDS = Path(__file__).with_name("guards.toml")
SOURCES = ("coach_rl", "environments", "filters", "presets")
PUBLIC_NAMES = "coach_rl/__init__.py"
"""The file that lists what `coach_rl` offers."""
ROOMS = (
    "coach_rl/core", "coach_rl/functional", "coach_rl/architectures", "coach_rl/memories",
    "coach_rl/exploration_policies", "coach_rl/agents", "coach_rl/levels",
    "coach_rl/graph_managers", "filters",
)  # fmt: skip
"""Folders of the core."""
OPTIONALS = (
    "coach_rl/levels/*", "coach_rl/agents/filtered_agent.py", "coach_rl/agents/off_policy_agent.py",
    "coach_rl/agents/ppo_agent.py",
)  # fmt: skip
"""Files whose optional parts are counted."""
CASES = ("CartPole_PPO", "Pendulum_SAC", "PointMaze_HAC")
"""Presets whose entered functions are counted."""
CHANGES = {
    "CartPole_PPO": {"num_envs": 1, "steps": 256, "agent.algorithm.rollout": 128},
    "Pendulum_SAC": {"steps": 200, "schedule.heatup": 60, "agent.learning.learning_starts": 120},
    "PointMaze_HAC": {"steps": 300, "batch": 32, "layers": (16, 16)},
}
"""Changes by which the cases learn early, and end soon."""
SHORT = {"schedule.evaluation_episodes": 1, "threads": 1}
"""Changes of all: no function is for later episodes, or for threads, which wait for each other."""


@dataclass(frozen=True)
class Subject:
    """An optional part of the engine."""

    files: tuple[str, ...]
    """Patterns of its files, from the root."""
    names: frozenset[str]
    """Whole identifiers that belong to it."""


def guards() -> dict[str, Any]:
    """The content of `guards.toml`."""
    return tomllib.loads(GUARDS.read_text())


@cache
def subjects() -> dict[str, Subject]:
    """The optional parts by name."""
    return {
        name: Subject(tuple(each["files"]), frozenset(each["names"]))
        for name, each in guards()["subjects"].items()
    }


@cache
def files() -> tuple[str, ...]:
    """Tracked Python files of the package, from the root."""
    words = ["git", "-C", str(ROOT), "ls-files", "-z", *SOURCES]
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    paths = [name for name in listed.split("\0") if name.endswith(".py")]
    return tuple(name for name in paths if (ROOT / name).is_file())


def module_of(file: str) -> str:
    """The module of a file: the given top folders are imported below `coach_rl`."""
    name = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return name if name.startswith("coach_rl") else f"coach_rl.{name}"


@cache
def owner(file: str) -> str | None:
    """The subject that a file belongs to; None for the core and running.

    A folder below `extensions` is a subject of its own, also where `guards.toml` lists no names.
    """
    if match := re.match(r"coach_rl/extensions/(\w+)/", file):
        return match[1] if match[1] in subjects() else match[1].replace("_", " ")
    for name, subject in subjects().items():
        if any(fnmatch(file, pattern) for pattern in subject.files):
            return name
    return None


def is_core(file: str) -> bool:
    """True if a file lies in a room of the core."""
    return file.startswith(tuple(f"{room}/" for room in ROOMS))


@cache
def tree(file: str) -> ast.Module:
    """The syntax of a file."""
    return ast.parse((ROOT / file).read_text())


@cache
def nodes(file: str) -> tuple[ast.AST, ...]:
    """All nodes of a file's syntax: to walk through a tree takes longer than to parse it."""
    return tuple(ast.walk(tree(file)))


@cache
def code_lines(file: str) -> frozenset[int]:
    """The numbers of a file's lines of code."""
    source = (ROOT / file).read_text()
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in (
            tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
            tokenize.ENDMARKER,
        ):  # fmt: skip
            found.update(range(token.start[0], token.end[0] + 1))
    for node in docstrings(file):
        found.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return frozenset(found)


def docstrings(file: str) -> Iterator[ast.Constant]:
    """The strings that stand alone as statements of a file."""
    for node in nodes(file):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node.value


# Counts of the source


def core_lines() -> dict[str, int]:
    """Lines of code, and all lines, of the core."""
    core = [file for file in files() if is_core(file)]
    return {
        "code": sum(len(code_lines(file)) for file in core),
        "all": sum((ROOT / file).read_text().count("\n") for file in core),
    }


@cache
def by_module() -> dict[str, str]:
    """The file of each module."""
    return {module_of(file): file for file in files()}


def imported(file: str) -> Iterator[tuple[int, str]]:
    """The modules that a file imports, each with its line; a name may be a module too."""
    known = by_module().keys()
    for node in nodes(file):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            below = {f"{node.module}.{alias.name}" for alias in node.names} & known
            yield from ((node.lineno, module) for module in sorted(below or {node.module} & known))


def wrong_imports() -> dict[str, list[str]]:
    """Imports of subjects by the core and by running."""
    found: dict[str, list[str]] = {"core": [], "running": []}
    for file in files():
        if owner(file) is not None or file == PUBLIC_NAMES:
            continue
        side = found["core" if is_core(file) else "running"]
        for line, module in imported(file):
            of = owner(by_module()[module])
            if of is not None:
                side.append(f"{file}:{line} {module} ({of})")
    return found


def wrong_names() -> dict[str, list[str]]:
    """Identifiers of each subject in the core and in running."""
    found: dict[str, list[str]] = {name: [] for name in subjects()}
    for file in files():
        if owner(file) is not None:
            continue
        for line, word in identifiers(file):
            for name, subject in subjects().items():
                if word in subject.names:
                    found[name].append(f"{file}:{line} {word}")
    return found


@cache
def identifiers(file: str) -> tuple[tuple[int, str], ...]:
    """The identifiers and strings of a file, each with its line."""
    skipped = {id(node) for node in docstrings(file)}
    found: list[tuple[int, str]] = []
    for node in nodes(file):
        match node:
            case ast.Name():
                found.append((node.lineno, node.id))
            case ast.Attribute():
                found.append((node.lineno, node.attr))
            case ast.keyword(arg=str(word)) | ast.arg(arg=word):
                found.append((node.lineno, word))
            case ast.alias():
                found += [(node.lineno, word) for word in node.name.split(".")]
            case ast.Constant(value=str(word)) if id(node) not in skipped:
                found.append((node.lineno, word))
            case ast.FunctionDef() | ast.ClassDef():
                found.append((node.lineno, node.name))
    return tuple(found)


def optionals() -> list[str]:
    """Questions for what may not be there."""
    found = []
    for file in files():
        if any(fnmatch(file, pattern) for pattern in OPTIONALS):
            found += [f"{file}:{node.lineno}" for node in nodes(file) if is_optional(node)]
    return found


def is_optional(node: ast.AST) -> bool:
    """True for a comparison with None, and calls that look for a type or an attribute."""
    match node:
        case ast.Compare(comparators=others):
            return any(isinstance(each, ast.Constant) and each.value is None for each in others)
        case ast.Call(func=ast.Name(id="isinstance" | "hasattr" | "callable")):
            return True
        case ast.Call(func=ast.Name(id="getattr"), args=[_, _, _]):
            return True
        case ast.MatchSingleton(value=None):
            return True
    return False


def circles() -> list[str]:
    """Groups of files of one room that import each other, directly or through others."""
    found = []
    for room in sorted({room_of(file) for file in files()}):
        inside = [file for file in files() if room_of(file) == room and "__init__" not in file]
        edges = {
            file: {by_module()[module] for _, module in imported(file)} & set(inside) - {file}
            for file in inside
        }
        found += [f"{room}: {', '.join(map(name_of, group))}" for group in cyclic(edges)]
    return found


def room_of(file: str) -> str:
    """The room of a file."""
    parts = file.split("/")
    return "/".join(parts[:2]) if parts[0] == "coach_rl" and len(parts) > 2 else parts[0]


def name_of(file: str) -> str:
    """The name of a file's module."""
    return Path(file).stem


def cyclic(edges: dict[str, set[str]]) -> list[list[str]]:
    """Strongly connected groups of two files or more."""
    reached = {file: reachable(file, edges) for file in edges}
    groups = {
        tuple(sorted(other for other in edges if other in reached[file] and file in reached[other]))
        for file in edges
        if file in reached[file]
    }
    return [list(group) for group in sorted(groups)]


def reachable(start: str, edges: dict[str, set[str]]) -> set[str]:
    """The files that a file imports, directly or through others."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for file in edges[waiting.pop()] - found:
            found.add(file)
            waiting.append(file)
    return found


def joined() -> dict[str, list[str]]:
    """Joined assignments of the core, and of all files."""
    everywhere = [
        f"{file}:{node.lineno}"
        for file in files()
        for node in nodes(file)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Tuple)
        and isinstance(node.value, ast.Tuple)
    ]
    return {"all": everywhere, "core": [place for place in everywhere if is_core(place)]}


# Functions that are entered


class Entered:
    """Context that records the frames of the package in this thread."""

    def __init__(self) -> None:
        self.calls: Counter[CodeType] = Counter()

    def __enter__(self) -> "Entered":
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            self.calls[frame.f_code] += 1

    def functions(self) -> dict[str, Any]:
        """Functions of the package: their names, calls, and spans (file, first line, last line)."""
        found: dict[str, Any] = {"names": [], "calls": 0, "spans": []}
        for code, count in self.calls.items():
            file = file_of(code)
            if file is None or not code.co_flags & 1:  # CO_OPTIMIZED: no module or class body
                continue
            found["names"].append(f"{file} {code.co_qualname}")
            found["calls"] += count
            found["spans"].append((file, *span(code)))
        return found


def figures(entered: dict[str, Any]) -> dict[str, Any]:
    """Functions, their lines of code, and calls; and the names of the functions."""
    lines = {
        (file, line)
        for file, first, last in entered["spans"]
        for line in range(first, last + 1)
        if line in code_lines(file)
    }
    return {"functions": len(entered["names"]), "lines": len(lines), **entered}


@cache
def file_of(code: CodeType) -> str | None:
    """The package's file that a code object is from; None for others."""
    path = Path(os.path.realpath(code.co_filename))
    if not path.is_relative_to(ROOT):
        return None
    file = str(path.relative_to(ROOT))
    return file if file.startswith(SOURCES) else None


def span(code: CodeType) -> tuple[int, int]:
    """The first and last line of a code object."""
    return code.co_firstlineno, max(line for *_, line in code.co_lines() if line is not None)


def built(preset: str) -> Any:
    """The experiment of a case, with networks that are not compiled."""
    import coach_rl

    found = coach_rl.load_preset(coach_rl.find_preset(preset))
    return found.configure(CHANGES[preset] | SHORT)


def of_tick(preset: str) -> dict[str, Any]:
    """One tick of training without an update, after 20 others."""
    import coach_rl
    from coach_rl.core.clock import Phase

    manager = built(preset)
    manager.create_graph(coach_rl.Runtime(seed=1, device="cpu"))
    manager.graph.training.reset(0)
    manager.graph.clock.phase = Phase.TRAIN
    for _ in range(20):
        manager.graph.tick()
    with Entered() as entered:
        manager.graph.tick()
    manager.close()
    return entered.functions()


def of_loop(preset: str) -> list[str]:
    """Files of the core that ticks and a round of learning enter, in order."""
    import coach_rl
    from coach_rl.core.clock import Phase

    manager = built(preset)
    manager.create_graph(coach_rl.Runtime(seed=1, device="cpu"))
    graph = manager.graph
    graph.training.reset(0)
    graph.clock.phase = Phase.TRAIN
    graph.tick()
    with Entered() as entered:
        while not graph.tick().learned:
            pass
    manager.close()
    found = [file_of(code) for code in entered.calls if code.co_flags & 1]
    return [file for file in dict.fromkeys(found) if file is not None and is_core(file)]


def of_improve(preset: str) -> dict[str, Any]:
    """A whole run without a folder."""
    manager = built(preset)
    with Entered() as entered, manager:
        for _ in manager.improve():
            pass
    return entered.functions()


def of_resume(preset: str) -> dict[str, Any]:
    """From the call that resumes a run to its first tick."""
    import coach_rl
    from coach_rl.graph_managers.graph import Graph
    from coach_rl.sessions.settings import RunSettings

    class Reached(KeyboardInterrupt):
        """The first tick is reached; a run passes interruptions on as they are."""

    first = coach_rl.run_experiment(
        built(preset), coach_rl.Runtime(seed=1, device="cpu"), name="measured",
        settings=RunSettings(tensorboard=False),
    )  # fmt: skip
    steps = coach_rl.EnvironmentSteps(first.environment_steps + 1000)
    tick = Graph.tick

    def reached(*_: object, **__: object) -> None:
        sys.setprofile(None)
        raise Reached

    Graph.tick = reached  # type: ignore[assignment] # restored below
    entered = Entered()
    try:
        with entered:
            coach_rl.resume_experiment(first.folder.path, steps=steps)
    except KeyboardInterrupt:
        pass
    finally:
        Graph.tick = tick  # type: ignore[method-assign] # as it was
    return entered.functions()


METHODS = (property, cached_property)
PARTS = {"tick": of_tick, "improve": of_improve, "resume": of_resume}
LOOP = "CartPole_PPO"
"""Preset whose loop is the reading list of `docs/architecture.md`."""


def in_own_processes(places: Sequence[tuple[str, str]]) -> list[Any]:
    """What parts of this program find of presets, each in a process and folder of its own."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        environment["XDG_STATE_HOME"] = folder
        words = [sys.executable, "-P", str(Path(__file__).resolve())]
        words += [word for place in places for word in ("--part", *place)]
        made = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
        if made.returncode:
            raise RuntimeError(f"a part failed:\n{made.stderr}")
        return [json.loads(Path(folder, f"{n}.json").read_text()) for n in range(len(places))]


def forked(places: Sequence[tuple[str, str]]) -> None:
    """Write what each part finds into the working directory, as `NUMBER.json`.

    Each process is forked from this one, which has imported torch and nothing of the package.
    """
    import torch  # noqa: F401

    for number, (part, preset) in enumerate(places):
        child = os.fork()
        if not child:
            result = Path.cwd() / f"{number}.json"
            try:
                os.chdir(tempfile.mkdtemp(dir=Path.cwd()))
                result.write_text(json.dumps((PARTS | {"loop": of_loop})[part](preset)))
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(not result.exists())
        if os.waitpid(child, 0)[1]:
            sys.exit(f"{part} of {preset} failed")


# Figures beside their ceilings


def of_source() -> dict[str, dict[str, int]]:
    """The figures that are counted without running anything, by section of `guards.toml`."""
    imports, names = wrong_imports(), wrong_names()
    lines, pairs = core_lines(), joined()
    return {
        "core": {"code lines": lines["code"], "lines": lines["all"]},
        "wrong-way imports": {side: len(found) for side, found in imports.items()},
        "wrong-way names": {name: len(found) for name, found in names.items()},
        "woven": {
            "optionals": len(optionals()),
            "circles": len(circles()),
            "joined assignments": len(pairs["all"]),
            "joined assignments of the core": len(pairs["core"]),
        },
    }


def of_runs(parts: Sequence[str] = tuple(PARTS)) -> dict[str, dict[str, int]]:
    """The figures of functions that are entered, by section of `guards.toml`."""
    places = [(part, preset) for part in parts for preset in CASES]
    found: dict[str, dict[str, int]] = {part: {} for part in parts}
    for (part, preset), entered in zip(places, in_own_processes(places), strict=True):
        units = ("functions", "lines", "calls") if part == "tick" else ("functions", "lines")
        counted = figures(entered)
        found[part] |= {f"{preset}, {unit}": counted[unit] for unit in units}
    return found


def of_loop_files() -> dict[str, int]:
    """Code lines of each file of the core that the loop of the reading list enters, in order."""
    return {file: len(code_lines(file)) for file in in_own_processes([("loop", LOOP)])[0]}


def reading(lines: dict[str, int]) -> dict[str, dict[str, int]]:
    """The files of the loop and their lines, by section of `guards.toml`."""
    return {"loop": {"files": len(lines), "code lines": sum(lines.values())}}


def of_classes() -> dict[str, dict[str, int]]:
    """The public methods and properties of central classes, inherited ones included."""
    from coach_rl import GraphManager
    from coach_rl.agents.filtered_agent import FilteredAgent
    from coach_rl.agents.ppo_agent import PPOAgent

    def count(kind: type) -> int:
        public = (getattr(kind, name) for name in dir(kind) if not name.startswith("_"))
        methods = (each for each in public if not isinstance(each, type))
        return sum(callable(each) or isinstance(each, METHODS) for each in methods)

    return {
        "methods": {kind.__name__: count(kind) for kind in (FilteredAgent, PPOAgent, GraphManager)}
    }


def above(now: dict[str, dict[str, int]]) -> list[str]:
    """A line for each figure that is above its ceiling, has none, or isn't counted any more."""
    ceilings, found = guards(), []
    for section, figures in now.items():
        recorded = ceilings.get(section, {})
        for name in figures.keys() | recorded.keys():
            figure, ceiling = figures.get(name), recorded.get(name)
            if figure is None or ceiling is None or figure > ceiling:
                found.append(f"[{section}] {name}: {figure}, at most {ceiling}")
    return sorted(found)


def lowered(text: str, now: dict[str, dict[str, int]]) -> str:
    """The text of `guards.toml` with the figures that are below their ceilings."""
    section, lines = "", []
    for line in text.splitlines():
        if line.startswith("["):
            section = line.strip("[]").strip('"')
        name, equals, old = line.rpartition(" = ")
        figure = now.get(section, {}).get(name.strip('"')) if equals else None
        lines.append(line if figure is None else f"{name} = {min(figure, int(old))}")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Parse the command line and print figures, or what they count."""
    listed = {
        "imports": wrong_imports, "names": wrong_names, "joined": joined,
        "optionals": lambda: {"": optionals()}, "circles": lambda: {"": circles()},
        "loop": lambda: {"": [f"{n:5} {file}" for file, n in of_loop_files().items()]},
    }  # fmt: skip
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--list", choices=[*listed, *PARTS], help="print what is counted")
    parser.add_argument("--lower", action="store_true", help="lower the ceilings to the figures")
    parser.add_argument("--part", nargs=2, action="append", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        forked(options.part)
    elif options.list in listed:
        for name, found in listed[options.list]().items():
            print(f"{name} {len(found)}", *found, sep="\n  ")
    elif options.list:
        places = [(options.list, preset) for preset in CASES]
        for (_, preset), entered in zip(places, in_own_processes(places), strict=True):
            print(preset, *entered["names"], sep="\n  ")
    else:
        now = of_source() | of_classes() | of_runs() | reading(of_loop_files())
        if options.lower:
            GUARDS.write_text(lowered(GUARDS.read_text(), now))
        for section, figures in now.items():
            for name, figure in figures.items():
                ceiling = guards().get(section, {}).get(name)
                print(f"{section:18} {name:42} {figure:8,}   at most {ceiling}")


if __name__ == "__main__":
    main()
