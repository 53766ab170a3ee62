"""The size of the code: lines, files that a run enters, public methods, tests, pages.

    python benchmarks/house.py                    # the table, as Markdown
    python benchmarks/house.py --json             # all figures, with the names of entered files
    python benchmarks/house.py --list             # the names behind the counts
    python benchmarks/house.py --root PATH        # of another checkout, e.g. an earlier commit
    python benchmarks/house.py --write            # refresh the column "now" of results/house.md

How it counts:

- *Lines and files*: tracked Python files of `coach_rl`, `environments`, `filters` and `presets`,
  blank lines and docstrings included. A room is a folder of `coach_rl`; the three others are rooms
  too, and modules directly in `coach_rl` are the room `coach_rl`.
- *Entered*: files of the package with at least one function that was called (`sys.setprofile`, in
  every thread of the process that runs). Modules, class bodies, lambdas and comprehensions don't
  count. Each run has a process and a temporary folder of its own.
- *Public methods*: functions and properties of a class without a leading underscore, inherited
  ones included.
- *State by hand*: classes with a `state_dict` or `load_state_dict` of their own, without protocols.
- *Worker layers*: files that start processes, pools or actors (`STARTS`).
- *Table writers*: files that construct a table of rich or of this package or a writer of CSV, pad
  columns, or hold the markup of a row of Markdown or HTML (`TABLES`, `ROW_MARKUP`).
- *Parsing*: files that call `add_argument`, and parsers that are constructed.
- *Tests that match wording*: test functions that pass `match=` to `pytest.raises` or
  `pytest.warns`.
- *Pages*: Markdown files below `docs`; words are separated by white space, code included.
"""

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "house.md"
SOURCES = ("coach_rl", "environments", "filters", "presets")
STARTS = {
    "Process", "Popen", "ProcessPoolExecutor", "Pool", "remote",
}  # fmt: skip
"""Calls that start a worker; `subprocess.run`, which waits, and `psutil.Process` are none."""
TABLES = {"Table", "TextTable", "writer", "DictWriter", "ljust", "rjust"}
ROW_MARKUP = re.compile(r"<t[rdh]\b|^\| |\| -")
PARSERS = ("ArgumentParser", "Parser", "add_parser")
"""Calls that construct a parser: argparse's, this package's subclass, one of a group's commands."""
CLASSES = {
    "an agent (FilteredAgent, the base of those that learn)": ("coach_rl.agents", "FilteredAgent"),
    "PPOAgent, its own included": ("coach_rl.agents", "PPOAgent"),
    "GraphManager": ("coach_rl", "GraphManager"),
}
"""Classes whose public methods are counted, by their title; a public module and a name."""
LONGEST = 600
"""Lines that a file should not exceed."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """A short run of a shipped preset, whose entered files are counted."""

    preset: str
    changes: str
    """As `-cp` takes them; the number of steps among them."""
    level: str | None = None
    loop: bool = False
    """Whether a Python loop drives it instead of the command."""


RUNS = {
    "CartPole_PPO": Run(preset="CartPole_PPO", changes="steps=4096"),
    "CartPole_PPO, loop": Run(preset="CartPole_PPO", changes="steps=4096", loop=True),
    "Pendulum_SAC": Run(preset="Pendulum_SAC", changes="steps=1020"),
    "PointMaze_HAC": Run(preset="PointMaze_HAC", changes="steps=1200"),
    "Mujoco_PPO": Run(preset="Mujoco_PPO", changes="steps=2048", level="hopper"),
}
"""Runs by name; the first four are rows of the table, and all are guarded."""


# Entered files


def entered(run: Run) -> list[tuple[str, int]]:
    """The functions that a run calls in this process, as path of the file and first line."""
    seen: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            seen.add(frame.f_code)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        if run.loop:
            _loop(run)
        else:
            _command(run)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)

    import coach_rl

    package = Path(coach_rl.__file__).resolve().parent
    found = set()
    for code in seen:
        if code.co_name.startswith("<") or not code.co_flags & 1:  # CO_OPTIMIZED: no class body
            continue
        path = Path(code.co_filename).resolve()
        if path.is_relative_to(package.parent) and path.suffix == ".py":
            name = path.relative_to(package.parent).as_posix()
            if name.startswith(tuple(f"{source}/" for source in SOURCES)):
                found.add((name, code.co_firstlineno))
    return sorted(found)


def _command(run: Run) -> None:
    from coach_rl.cli.main import main

    words = ["-p", run.preset, "--seed", "1", "-cp", run.changes, "-ep", "experiments"]
    if main(words + (["-lvl", run.level] if run.level else [])):
        raise RuntimeError(f"coach {' '.join(words)} failed")


def _loop(run: Run) -> None:
    import coach_rl

    name, value = run.changes.split("=")
    preset = coach_rl.load_preset(coach_rl.find_preset(run.preset))
    with preset.build({name: int(value)}) as manager:
        for _ in manager.improve():
            pass


def public_methods() -> dict[str, list[str]]:
    """The public methods and properties of each class in `CLASSES`."""
    import importlib

    found = {}
    for title, (module, name) in CLASSES.items():
        kind = getattr(importlib.import_module(module), name)
        found[title] = [
            each
            for each in dir(kind)
            if not each.startswith("_") and not isinstance(value := getattr(kind, each), type)
            if callable(value) or isinstance(value, property | cached_property)
        ]
    return found


def in_own_process(what: str, root: Path = ROOT) -> Any:
    """Output of this script for `--part WHAT`, with the package of `root`."""
    environment = os.environ | {"PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        environment["XDG_STATE_HOME"] = folder
        words = [sys.executable, "-P", str(Path(__file__).resolve()), "--part", what]
        made = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    if made.returncode:
        raise RuntimeError(f"{what} failed:\n{made.stderr}")
    return json.loads(made.stdout.splitlines()[-1])


def all_entered(root: Path = ROOT, names: tuple[str, ...] = tuple(RUNS)) -> dict[str, Any]:
    """Each run's entered files, functions and lines of functions, two runs at a time."""
    with ThreadPoolExecutor(2) as pool:
        found = dict(
            zip(names, pool.map(lambda name: in_own_process(name, root), names), strict=True)
        )
    return {name: _summary(root, functions) for name, functions in found.items()}


def _summary(root: Path, functions: list[tuple[str, int]]) -> dict[str, Any]:
    files = sorted({path for path, _ in functions})
    lines = sum(_lengths(root / path).get(first, 0) for path, first in functions)
    return {"files": len(files), "functions": len(functions), "lines": lines, "names": files}


@cache
def _lengths(path: Path) -> dict[int, int]:
    """Lines of each function in a file without decorators, by its first line with them."""
    return {
        first: (node.end_lineno or node.lineno) - node.lineno + 1
        for node in _functions(path)
        for first in [min([node.lineno, *(each.lineno for each in node.decorator_list)])]
    }


# Figures of the source


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def tracked(root: Path, *folders: str) -> list[Path]:
    """Tracked files below some folders of a checkout."""
    words = ["git", "-C", str(root), "ls-files", "-z", *folders]
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    paths = [root / name for name in listed.split("\0") if name]
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def python_files(root: Path, *folders: str) -> list[Path]:
    """Tracked Python files below some folders of a checkout."""
    return [path for path in tracked(root, *folders) if path.suffix == ".py"]


def line_count(path: Path) -> int:
    """Lines of a file."""
    return path.read_bytes().count(b"\n")


def room_of(path: Path, root: Path) -> str:
    """The room of a source file."""
    parts = path.relative_to(root).parts
    return parts[1] if parts[0] == "coach_rl" and len(parts) > 2 else parts[0]


def rooms(root: Path = ROOT) -> dict[str, int]:
    """Lines by room."""
    counted: Counter[str] = Counter()
    for path in python_files(root, *SOURCES):
        counted[room_of(path, root)] += line_count(path)
    return dict(sorted(counted.items()))


def _called(node: ast.Call) -> str:
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return "" if function.value.id == "psutil" else name
    return name


def _calls(path: Path) -> Counter[str]:
    return Counter(_called(node) for node in ast.walk(_tree(path)) if isinstance(node, ast.Call))


def state_by_hand(path: Path) -> Iterator[str]:
    """Names of classes in a file that write or read their state themselves."""
    for node in ast.walk(_tree(path)):
        if not isinstance(node, ast.ClassDef) or any(
            "Protocol" in ast.unparse(base) for base in node.bases
        ):
            continue
        own = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
        if own & {"state_dict", "load_state_dict"}:
            yield node.name


def writes_tables(path: Path) -> bool:
    """Whether a file builds a table, or holds the markup of one."""
    return bool(_calls(path).keys() & TABLES) or any(
        ROW_MARKUP.search(node.value)
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def matches_wording(path: Path) -> Iterator[str]:
    """Test functions of a file that compare the text of an error or a warning."""
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            calls = (each for each in ast.walk(node) if isinstance(each, ast.Call))
            if any(
                _called(each) in ("raises", "warns")
                and any(keyword.arg == "match" for keyword in each.keywords)
                for each in calls
            ):
                yield node.name


def figures(root: Path) -> dict[str, Any]:
    """All figures of a checkout; lists are the names behind a count."""
    sources, tests = python_files(root, *SOURCES), python_files(root, "tests")
    name = {path: path.relative_to(root).as_posix() for path in sources + tests}
    pages = {
        path.relative_to(root).as_posix(): len(path.read_text().split())
        for path in tracked(root, "docs")
        if path.suffix == ".md"
    }
    functions = sorted(
        (
            ((node.end_lineno or 0) - node.lineno + 1, f"{name[path]} {node.name}")
            for path in sources
            for node in _functions(path)
        ),
        reverse=True,
    )
    calls = {path: _calls(path) for path in sources}
    return {
        "lines": sum(map(line_count, sources)),
        "files": len(sources),
        "rooms": rooms(root),
        "entered": all_entered(root),
        "methods": in_own_process("methods", root),
        "state by hand": [f"{name[p]} {each}" for p in sources for each in state_by_hand(p)],
        "workers": [name[p] for p in sources if calls[p].keys() & STARTS],
        "tables": [name[p] for p in sources if writes_tables(p)],
        "parsing": [name[p] for p in sources if calls[p]["add_argument"]],
        "parsers": sum(calls[p][each] for p in sources for each in PARSERS),
        "test lines": sum(map(line_count, tests)),
        "matching": [f"{name[p]} {each}" for p in tests for each in matches_wording(p)],
        "pages": pages,
        "long files": [f"{name[p]} {n}" for p in sources if (n := line_count(p)) > LONGEST],
        "longest functions": [f"{where} {length}" for length, where in functions[:5]],
    }


# Tables

AIMS = {
    "lines of coach_rl, environments, filters, presets": "55,000",
    "files of these": "270",
    "files entered by `coach train CartPole_PPO`": "90",
    "files entered by the loop": "55",
    "files entered by `PointMaze_HAC`": "110",
    "public methods of an agent (FilteredAgent, the base of those that learn)": "12",
    "public methods of GraphManager": "14",
    "classes with state by hand": "40",
    "files that start workers": "1",
    "files that write tables": "1",
    "files that declare flags": "1",
    "test lines": "50,000",
    "tests that match wording": "119",
    "docs pages": "40",
    "words of the longest page": "2,500",
    f"files over {LONGEST} lines": "0",
}


def rows(found: dict[str, Any]) -> dict[str, str]:
    """The rows of the table."""
    table = {
        "lines of coach_rl, environments, filters, presets": f"{found['lines']:,}",
        "files of these": str(found["files"]),
    }
    titles = {
        "CartPole_PPO": "`coach train CartPole_PPO`",
        "CartPole_PPO, loop": "the loop",
        "Pendulum_SAC": "`Pendulum_SAC`",
        "PointMaze_HAC": "`PointMaze_HAC`",
    }
    for run, title in titles.items():
        counts = found["entered"][run]
        table[f"files entered by {title}"] = str(counts["files"])
        table[f"functions entered by {title}; their lines"] = (
            f"{counts['functions']:,}; {counts['lines']:,}"
        )
    for title, names in found["methods"].items():
        table[f"public methods of {title}"] = str(len(names))
    pages, longest = found["pages"], max(found["pages"], key=found["pages"].__getitem__)
    table |= {
        "classes with state by hand": str(len(found["state by hand"])),
        "files that start workers": str(len(found["workers"])),
        "files that write tables": str(len(found["tables"])),
        "files that declare flags": str(len(found["parsing"])),
        "parsers constructed": str(found["parsers"]),
        "test lines": f"{found['test lines']:,}",
        "tests that match wording": str(len(found["matching"])),
        "docs pages": str(len(pages)),
        "words of the longest page": f"{pages[longest]:,} ({longest.removeprefix('docs/')})",
        f"files over {LONGEST} lines": str(len(found["long files"])),
    }
    for number, entry in enumerate(found["longest functions"], start=1):
        _, function, length = entry.split()
        table[f"longest function, no. {number}"] = f"{length} ({function})"
    return table | {f"lines of {room}": f"{n:,}" for room, n in found["rooms"].items()}


def markdown(columns: dict[str, dict[str, str]]) -> str:
    """A table with a column for each of `columns`, and a row for each name in any of them."""
    names = dict.fromkeys(name for column in columns.values() for name in column)
    lines = ["| | " + " | ".join(columns) + " |", "| --- |" + " ---: |" * len(columns)]
    for name in names:
        cells = (column.get(name, "") for column in columns.values())
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def rewrite(now: dict[str, str], before: dict[str, str] | None) -> None:
    """Write the result page: `now` as given; `before` as given, or else as the page has it."""
    text = RESULTS.read_text() if RESULTS.exists() else "# The size of the code\n\n| | before |\n"
    start = text.index("| |")
    kept = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text[start:].splitlines()]
    if before is None:
        before = {cells[0]: cells[1] for cells in kept[2:] if len(cells) == 4}
    heading = kept[0][1] if len(kept) > 2 else "before"
    RESULTS.write_text(text[:start] + markdown({heading: before, "now": now, "aim": AIMS}) + "\n")


def main() -> None:
    """Parse the command line and print or write the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout that is measured")
    parser.add_argument("--json", action="store_true", help="print all figures and names as JSON")
    parser.add_argument("--list", action="store_true", help="print the names behind the counts")
    parser.add_argument("--write", action="store_true", help="refresh benchmarks/results/house.md")
    parser.add_argument("--before", type=Path, help="with --write: JSON of the column 'before'")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part is not None:
        part = public_methods() if options.part == "methods" else entered(RUNS[options.part])
        print("\n" + json.dumps(part))
    else:
        found = figures(options.root.resolve())
        if options.write:
            before = json.loads(options.before.read_text()) if options.before else None
            rewrite(rows(found), before and rows(before))
        elif options.json:
            print(json.dumps(found, indent=1))
        elif options.list:
            for name in ("state by hand", "workers", "tables", "parsing", "matching", "long files"):
                print(f"\n{name}: {len(found[name])}", *found[name], sep="\n  ")
            for name, methods in found["methods"].items():
                print(f"\npublic methods of {name}: {len(methods)}", *methods, sep="\n  ")
        else:
            print(markdown({"now": rows(found), "aim": AIMS}))


if __name__ == "__main__":
    main()
