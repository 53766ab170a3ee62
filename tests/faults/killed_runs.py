"""Runs that are killed, stopped or out of room, resumed, and compared with runs left alone.

    PYTHONPATH=tests/golden python tests/faults/killed_runs.py --rounds 2 --write

makes short runs of every shipped preset, kills each at moments of several kinds, some twice, sends
signals, lets its disk be full, resumes it to its end, and compares what it left behind: the last
checkpoint's state, the logs, TensorBoard's entries, the summary. `--write` keeps the table in
benchmarks/results/killed_runs.md, and its sums in docs/reliability.md; with names of runs only
their rows are made again.
"""

import argparse
import csv
import json
import shutil
import signal
import sys
import tempfile
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from golden_runs import RUNS, GoldenRun, is_installed
from killed_processes import Ended, Moment, coach, moments
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from coach_rl.core.state import Appended
from coach_rl.runs.checkpoint import find_checkpoint, list_checkpoints, read_checkpoint
from coach_rl.runs.folder import RunFolder

CHECKOUT = Path(__file__).parent.parent.parent
RESULTS = CHECKOUT / "benchmarks" / "results" / "killed_runs.md"
PAGE = CHECKOUT / "docs" / "reliability.md"
MARK = "<!-- killed runs -->"
NO_ROOM, DIFFERENT = "no room on the disk", "different"
"""The last columns of the table."""

OFTEN = ("--checkpoint_steps", "20")
"""Flags for checkpoints all the time, where records come as often."""
OFTEN_RECORDS = "schedule.progress_interval=20"

TIMES = (
    *("steps_per_second", "wall_seconds", "training_seconds", "planning_seconds"),
    *("time/", "resources/", "created"),
)
"""Beginnings of names whose values are times or loads, other ones in each run."""


@dataclass(frozen=True, kw_only=True)
class KilledRun:
    """A short run of a shipped preset."""

    words: tuple[str, ...]
    """Its command line, without folders."""


@dataclass(frozen=True, kw_only=True)
class Disturbance:
    """A signal, or a full disk."""

    moment: Moment | None = None
    """The signal and its moment; None for none."""
    most_bytes: int | None = None
    """Size at which files cannot grow any more; None for none."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a run that was killed."""

    name: str
    kind: str
    kills: int
    """How often it was really killed; a moment may lie behind its end."""
    difference: str
    """Where it differs from the run left alone; empty where nothing does."""


def begin(run: KilledRun, root: Path, killed: Moment | None = None) -> Ended:
    """Start a run in a folder of its own."""
    root.mkdir(parents=True, exist_ok=True)
    return coach([*run.words, "-ep", str(root), "-e", "run"], root, killed)


def go_on(run: KilledRun, root: Path, killed: Moment | None = None) -> Ended:
    """Resume what there is, as its user would; a run that has left nothing is started again."""
    folder = made(root)
    if folder is None:
        return begin(run, root, killed)
    return coach(["-crd", str(folder), "--plain"], root, killed)


def made(root: Path) -> Path | None:
    """The run's folder; None where it was killed before there was one."""
    folders = [
        path.parent for path in root.glob("run/*/manifest.json") if path.parent.name[0] != "."
    ]
    return folders[0] if folders else None


def is_over(root: Path) -> bool:
    """Whether a run has come to its end."""
    folder = made(root)
    return folder is not None and RunFolder(folder).summary.exists()


def story(root: Path, *, checkpoints_too: bool = True) -> dict[str, object]:
    """Everything that a finished run left behind, but times.

    Args:
        root: Where it was begun.
        checkpoints_too: False leaves out when it saved itself: a signal makes it do so, too.
    """
    folder = made(root)
    assert folder is not None, f"no run in {root}"
    return story_of(folder, checkpoints_too=checkpoints_too)


def story_of(folder: Path, *, checkpoints_too: bool = True) -> dict[str, object]:
    """The same of a run's own folder."""
    whole = _story(folder)
    if checkpoints_too:
        return whole
    log, curves, summary = whole["log"], whole["tensorboard"], whole["summary"]
    return {
        "state": whole["state"],
        "log": [line for line in log if '"/kind": "checkpoint' not in line],
        "tensorboard": {tag: each for tag, each in curves.items() if "checkpoint" not in tag},
        "summary": {name: each for name, each in summary.items() if "checkpoint" not in name},
    }


def _story(folder: Path) -> dict[str, Any]:
    checkpoints = folder / "checkpoints"
    state = dict(flat(read_checkpoint(find_checkpoint(checkpoints)).state))
    return {
        "state": without_times(state),
        "checkpoints": [path.name for path in list_checkpoints(checkpoints)],
        "best": find_checkpoint(checkpoints, "best").name,
        "left over": sorted(path.name for path in checkpoints.glob(".*")),
        "log": [log_line(line) for line in (folder / "log.jsonl").read_text().splitlines()],
        "tables": {path.name: table(path) for path in sorted(folder.glob("*.csv"))},
        "tensorboard": curves(folder),
        "summary": without_times(dict(flat(json.loads((folder / "summary.json").read_text())))),
    }


def flat(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """The leaves of a tree by their path; arrays as bytes."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from flat(part, f"{path}/{name}")
    elif isinstance(value, list | tuple):
        for number, part in enumerate(value):
            yield from flat(part, f"{path}/{number}")
    elif isinstance(value, Appended):
        for row, begin, columns in value.parts():
            yield from flat(dict(columns), f"{path}/row {row} from {begin}")
    elif hasattr(value, "dtype"):
        array = np.asarray(value)
        yield path, (str(array.dtype), array.shape, array.tobytes())
    else:
        yield path, value


def is_time(name: str) -> bool:
    """Whether a figure of that name or path is a time or a load."""
    return any(name.startswith(time) or f"/{time}" in name for time in TIMES)


def without_times(tree: Mapping[str, object]) -> dict[str, object]:
    """The figures that are the same in equal runs."""
    return {name: value for name, value in tree.items() if not is_time(name)}


def log_line(line: str) -> str:
    """A line of the log without times."""
    return json.dumps(without_times(dict(flat(json.loads(line)))))


def table(path: Path) -> list[dict[str, object]]:
    """The rows of a CSV file without times."""
    with path.open() as file:
        return [without_times(row) for row in csv.DictReader(file)]


def curves(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """TensorBoard's scalars without times."""
    events = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    events.Reload()
    tags = [tag for tag in sorted(events.Tags()["scalars"]) if not is_time(tag)]
    return {tag: [(each.step, each.value) for each in events.Scalars(tag)] for tag in tags}


def difference(found: object, expected: object, path: str = "") -> str:
    """The first place where two stories differ; empty where they don't."""
    if isinstance(found, dict) and isinstance(expected, dict):
        if found.keys() != expected.keys():
            return f"{path}: only one has {sorted(found.keys() ^ expected.keys())[:5]}"
        parts = (difference(found[name], expected[name], f"{path}/{name}") for name in found)
        return next(filter(None, parts), "")
    if isinstance(found, list) and isinstance(expected, list):
        pairs = enumerate(zip(found, expected, strict=False))
        parts = (difference(one, other, f"{path}/{number}") for number, (one, other) in pairs)
        first = next(filter(None, parts), "")
        return first or (f"{path}: {len(found)} of {len(expected)}" * (len(found) != len(expected)))
    return (
        "" if found == expected else f"{path}: {str(found)[:200]} instead of {str(expected)[:200]}"
    )


def killed_and_resumed(
    name: str, run: KilledRun, kind: str, kills: list[Moment], root: Path, whole: dict[str, object]
) -> Outcome:
    """Kill a run at each of these moments in turn, resume it to its end, and compare.

    Args:
        name: The run's name.
        run: The run.
        kind: What kind of moment it is.
        kills: When it is killed; the second moment is counted from its resumption on.
        root: An empty folder.
        whole: What the run leaves behind when it is left alone.
    """
    died = 0
    for moment in kills:
        if is_over(root):
            break
        died += go_on(run, root, moment).code == -9
    if not is_over(root):
        ended = go_on(run, root)
        if ended.code:
            return Outcome(name=name, kind=kind, kills=died, difference=ended.output[-500:])
    return Outcome(name=name, kind=kind, kills=died, difference=difference(story(root), whole))


def disturbed_and_resumed(
    name: str, run: KilledRun, kind: str, disturbed: Disturbance, root: Path, whole: dict[str, Any]
) -> Outcome:
    """Send a run a signal, or let it have no room on the disk, resume it to its end, and compare.

    Args:
        name: The run's name.
        run: The run.
        kind: What disturbs it, for the table.
        disturbed: What disturbs it.
        root: An empty folder.
        whole: What the run leaves behind when it is left alone, without its checkpoints.
    """
    root.mkdir(parents=True)
    words = [*run.words, "-ep", str(root), "-e", "run"]
    ended = coach(words, root, disturbed.moment, most_bytes=disturbed.most_bytes)
    if "Traceback" in ended.output:
        return Outcome(name=name, kind=kind, kills=1, difference=ended.output[-500:])
    if not is_over(root) or ended.code:  # a run that could not save its end may be over
        ended = go_on(run, root)
    if not is_over(root) or ended.code:
        return Outcome(name=name, kind=kind, kills=1, difference=ended.output[-500:])
    found = story(root, checkpoints_too=False)
    if disturbed.most_bytes is not None:  # lines that had no room are lost, and told of
        found, whole = {"state": found["state"]}, {"state": whole["state"]}
    return Outcome(name=name, kind=kind, kills=1, difference=difference(found, whole))


def disturbances(whole: Ended, rng: np.random.Generator) -> dict[str, Disturbance]:
    """A disturbance of each kind at a random moment.

    Args:
        whole: The run when it wasn't disturbed.
        rng: Draws the moments.
    """
    found = {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
        at = [*moments(whole, rng).values()]
        moment = replace(at[int(rng.integers(len(at)))], sent=number)
        found[number.name] = Disturbance(moment=moment)
    found[NO_ROOM] = Disturbance(most_bytes=int(10 ** rng.uniform(3, 5)))
    return found


def campaign(
    runs: Mapping[str, KilledRun], *, rounds: int, seed: int, root: Path
) -> Iterator[Outcome]:
    """Kill each run at a moment of each kind, and once more while it resumes, in every round."""
    for number, (name, run) in enumerate(runs.items()):
        rng = np.random.default_rng((seed, number))
        home = root / str(number)
        ended = begin(run, home / "whole")
        assert ended.code == 0, f"{name} fails when it is left alone: {ended.output}"
        whole = story(home / "whole")
        quiet = story(home / "whole", checkpoints_too=False)
        for turn in range(rounds):
            drawn = {kind: [moment] for kind, moment in moments(ended, rng).items()}
            again = [*moments(ended, rng).values()]
            drawn["two or three times"] = [*rng.choice(np.array(again, dtype=object), size=3)]
            for kind, kills in drawn.items():
                folder = home / f"{turn}_{kind.replace(' ', '_')}"
                yield killed_and_resumed(name, run, kind, kills, folder, whole)
                shutil.rmtree(folder, ignore_errors=True)
            for kind, disturbed in disturbances(ended, rng).items():
                folder = home / f"{turn}_{kind.replace(' ', '_')}"
                yield disturbed_and_resumed(name, run, kind, disturbed, folder, quiet)
                shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(home)


def runs() -> dict[str, KilledRun]:
    """The golden runs, with checkpoints all the time; and more: other ways to run some of them."""
    available = {name: killed_run(run) for name, run in RUNS.items() if is_installed(run)}
    for name, base, change in (
        ("Atari_DQN, memory on the disk", "Atari_DQN", "storage=disk"),
        ("CartPole_PPO, worker processes", "CartPole_PPO", "environment.vectorization=subprocess"),
        ("Mujoco_PPO, compiled", "Mujoco_PPO", "agent.update_mode=compiled"),
        ("Pendulum_SAC, compiled", "Pendulum_SAC", "agent.update_mode=compiled"),
    ):
        golden = RUNS[base]
        if base in available:
            available[name] = killed_run(replace(golden, changes=f"{golden.changes}; {change}"))
    return available


def killed_run(run: GoldenRun) -> KilledRun:
    """A golden run that keeps checkpoints all the time."""
    changes = f"{run.settings}; {OFTEN_RECORDS}"
    words = ["-p", run.preset, "--seed", "7", "-cp", changes, "-c", "--plain", "--threads", "1"]
    return KilledRun(words=(*words, *(("-lvl", run.level) if run.level else ()), *OFTEN))


def markdown(outcomes: Sequence[Outcome], before: str = "") -> str:
    """A table of how often each run was killed at which moments, and of what differed.

    Args:
        outcomes: What became of runs.
        before: A table of runs, whose rows stay where these are others.
    """
    kinds = [*dict.fromkeys(outcome.kind for outcome in outcomes)]
    made: dict[str, Counter[str]] = {}
    for outcome in outcomes:
        kills = made.setdefault(outcome.name, Counter())
        kills[outcome.kind] += outcome.kills
        kills[DIFFERENT] += bool(outcome.difference)
    columns = [*kinds, DIFFERENT]
    rows = {**counted(before, columns), **made}
    ordered = {name: rows[name] for name in sorted(rows, key=[*runs(), *rows].index)}
    lines = [f"| run | {' | '.join(columns)} |", "| --- |" + " ---: |" * len(columns)]
    for name, row in {**ordered, "all": sum(rows.values(), Counter[str]())}.items():
        lines.append(f"| {name} | {' | '.join(str(row[each]) for each in columns)} |")
    return "\n".join(lines)


def counted(table: str, columns: Sequence[str]) -> dict[str, Counter[str]]:
    """The rows of such a table, by the run's name; none where it has other columns."""
    first, *rows = [line.strip("| ").split(" | ") for line in table.strip().splitlines()] or [[]]
    if first[1:] != [*columns]:
        return {}
    return {
        name: Counter(dict(zip(columns, map(int, row), strict=True)))
        for name, *row in rows[1:]  # behind the line below the names of columns
        if name != "all"
    }


def in_words(table: str) -> str:
    """The sentence of the page about a table: how many runs, and what was done to them."""
    columns, _, *rows = [line.strip("| ").split(" | ") for line in table.strip().splitlines()]
    every = dict(zip(columns[1:], map(int, rows[-1][1:]), strict=True))
    different = every.pop(DIFFERENT)
    full = every.pop(NO_ROOM)
    signals = sum(count for kind, count in every.items() if kind.startswith("SIG"))
    killed = sum(every.values()) - signals
    found = f"{different:,} were different" if different else "none was different"
    return (
        f"Of {killed + signals + full:,} such runs of {len(rows) - 1} settings, {found}: "
        f"{killed:,} were killed, {signals:,} received a signal, {full:,} had no room on the disk."
    )


def with_sentence(page: str, sentence: str) -> str:
    """A page whose paragraph about the table is this sentence, and the link to the table."""
    start = page.index("Of ", page.index("its last checkpoint is compared."))
    end = page.index("[Each preset's runs]")
    return f"{page[:start]}{textwrap.fill(sentence, 120)}\n\n{page[end:]}"


def main() -> int:
    """Kill, resume, compare, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="runs; default: all")
    parser.add_argument("--rounds", type=int, default=2, help="rounds of kills (default: 2)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the moments (default: 0)")
    parser.add_argument(
        "--write",
        action="store_true",
        help=f"write the table into {RESULTS.name}; runs that are not named keep their rows",
    )
    given = parser.parse_args()
    chosen = {name: run for name, run in runs().items() if name in (given.names or runs())}
    outcomes = []
    with tempfile.TemporaryDirectory() as root:
        for outcome in campaign(chosen, rounds=given.rounds, seed=given.seed, root=Path(root)):
            outcomes.append(outcome)
            said = outcome.difference or "equal"
            print(f"{outcome.name}, {outcome.kind}, kills: {outcome.kills}: {said}", flush=True)
    before, table, after = RESULTS.read_text().split(MARK)
    found = markdown(outcomes, table if given.names else "")
    print(found)
    if given.write:
        RESULTS.write_text(f"{before}{MARK}\n{found}\n{MARK}{after}")
        PAGE.write_text(with_sentence(PAGE.read_text(), in_words(found)))
    return int(any(outcome.difference for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
