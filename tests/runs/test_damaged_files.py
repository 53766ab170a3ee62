"""Damage anywhere in a run's folder is named in one plain line; nothing hangs, nothing is lost."""

import hashlib
import json
import os
import re
import shutil
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coach_rl as rl
from coach_rl.configuration.strict_json import require_types, sealed
from coach_rl.core.errors import CheckpointError
from coach_rl.core.state import Appended
from coach_rl.runs.checkpoint import (
    find_checkpoint,
    list_checkpoints,
    read_checkpoint,
    write_checkpoint,
)
from coach_rl.runs.folder import create_run_folder
from coach_rl.runs.manifest import Origin
from tests.small_runs import QUIET, preset

PRESET = preset()
OFTEN = rl.RunSettings(
    checkpoints=rl.CheckpointParameters(every_seconds=1e-9),
    final_episodes=rl.EnvironmentEpisodes(1),
)
SECONDS = 240
"""What takes longer hangs."""

Damage = Callable[[Path], object]


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A run with ten checkpoints, the best of which is not the last."""
    result = rl.run_experiment(
        PRESET.build(),
        rl.Runtime(seed=3, device="cpu"),
        name="walk",
        root=tmp_path_factory.mktemp("runs"),
        origin=Origin(preset=PRESET),
        settings=OFTEN,
    )
    assert result.best is not None
    assert result.best.environment_steps < 100
    return result.folder.path


@pytest.fixture
def run(original, tmp_path):
    """A copy of it to damage; what hangs is interrupted."""

    def hangs(*arguments: object) -> None:
        raise AssertionError(f"it hangs for more than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(SECONDS)
    yield Path(shutil.copytree(original, tmp_path / "walk" / original.name))
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def resume(run: Path, **more: Any) -> None:
    rl.resume_experiment(run, steps=rl.EnvironmentSteps(110), settings=QUIET, **more)


def evaluate(run: Path, **more: Any) -> None:
    rl.evaluate_run(run, episodes=rl.EnvironmentEpisodes(1), **more)


def fork(run: Path, **more: Any) -> None:
    rl.fork_experiment(run, name="fork", steps=rl.EnvironmentSteps(110), settings=QUIET, **more)


def answer(use: Callable[..., None], run: Path) -> str:
    """The line with which a damaged run is refused."""
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*") if path.is_file()}
    before.pop(run / ".lock", None)
    with pytest.raises(rl.CoachError) as caught:
        use(run)
    line = str(caught.value)
    assert "\n" not in line
    assert not re.search(r"[A-Z]\w+(Error|Exception)\b|Errno|object at 0x|NoneType", line), line
    after = {path: path.stat().st_mtime_ns for path in run.rglob("*") if path.is_file()}
    after.pop(run / ".lock", None)
    assert before == after
    return line


def flipped(path: Path, where: float) -> None:
    content = bytearray(path.read_bytes())
    content[int(where * (len(content) - 1))] ^= 4
    path.write_bytes(content)


def replaced(path: Path, make: Damage) -> None:
    path.unlink(missing_ok=True)
    make(path)


def flip(where: float) -> tuple[str, Damage]:
    return f"bit flipped at {where}", lambda path: flipped(path, where)


def text(name: str, content: str) -> tuple[str, Damage]:
    return name, lambda path: path.write_text(content)


TRUNCATED = (
    "truncated",
    lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
)
EMPTY = text("empty", "")
JUNK = "junk", lambda path: path.write_bytes(bytes(range(256)) * 8)
FOLDER = "folder", lambda path: replaced(path, Path.mkdir)
PIPE = "pipe", lambda path: replaced(path, os.mkfifo)
DANGLING = "dangling", lambda path: replaced(path, lambda link: link.symlink_to("/nowhere/at/all"))
REMOVED = "removed", Path.unlink
NESTED = text("nested deeply", "[" * 100_000)
OTHER = [text(content, content) for content in ("null", "[]", "{}", "7", '"text"')]
BYTES = (TRUNCATED, EMPTY, flip(0.0), flip(0.5), flip(0.9), JUNK, FOLDER, PIPE, REMOVED)
JSON = (
    *(*BYTES, DANGLING, NESTED, *OTHER),
    text("nested deeply and whole", '{"a":' * 50_000 + "1" + "}" * 50_000),
    text("number too long", '{"schema_version": ' + "9" * 6000 + "}"),
    text("key twice", '{"schema_version": 1, "schema_version": 2}'),
    text("NaN", '{"schema_version": NaN}'),
)


def uses(damage: Damage) -> list[Callable[..., None]]:
    """All uses of a run for one kind of damage; they read its files alike."""
    return [resume, evaluate, fork] if damage is EMPTY[1] else [resume]


def damages(kinds: Sequence[tuple[str, Damage]]) -> pytest.MarkDecorator:
    names, calls = zip(*kinds, strict=True)
    return pytest.mark.parametrize("damage", calls, ids=names)


@pytest.mark.drawn(one_of=2)
@damages(JSON)
def test_damaged_manifest_is_named(run, damage):
    damage(run / "manifest.json")
    is_gone = not os.path.lexists(run / "manifest.json")
    for use in uses(damage):
        line = answer(use, run)
        assert "neither a run's folder" in line if is_gone else "manifest.json" in line


@pytest.mark.drawn(one_of=3, each="name")
@pytest.mark.parametrize("name", ["checkpoint.json", "state.json"])
@damages(JSON)
def test_damaged_checkpoint_is_named_and_a_good_one_offered(run, name, damage):
    check_offer(run, name, damage)


@pytest.mark.drawn(one_of=3)
@damages(BYTES)
def test_damaged_tensors_are_named_and_a_good_checkpoint_offered(run, damage):
    check_offer(run, "tensors.safetensors", damage)


def check_offer(run: Path, name: str, damage: Damage) -> None:
    *_, good, last = list_checkpoints(run / "checkpoints")
    damage(last / name)
    damaged = {path.name: path.is_file() and path.read_bytes() for path in last.iterdir()}
    for use in uses(damage):
        line = answer(use, run)
        assert name in line
        assert f"the newest good checkpoint of the run is {good.name}" in line
        assert "--last_good" in line
    if damage is EMPTY[1]:
        evaluate(run, last_good=True)
        fork(run, last_good=True)
    resume(run, last_good=True)
    assert find_checkpoint(run / "checkpoints").name.startswith("step_110")
    aside = last.with_name(f"damaged_{last.name}")
    if not (last / name).is_fifo() and damage is not PIPE[1]:
        assert damaged == {
            path.name: path.is_file() and path.read_bytes() for path in aside.iterdir()
        }


@pytest.mark.drawn(one_of=3)
@damages((TRUNCATED, EMPTY, flip(0.0), flip(0.6), JUNK, FOLDER, PIPE, NESTED, *OTHER))
def test_damaged_pointer_is_named_and_not_needed(run, damage):
    last = list_checkpoints(run / "checkpoints")[-1]
    damage(run / "checkpoints" / "best")
    evaluate(run)  # which does not look at it
    best = run / "checkpoints" / "best"
    line = answer(evaluate, best)
    assert "best" in line
    assert f"{last.name}: take it with --last_good" in line
    evaluate(best, last_good=True)
    damage(run / "checkpoints" / "last")
    assert "checkpoints/last" in answer(resume, run)
    evaluate(last)
    if not (run / "checkpoints" / "last").is_dir():
        resume(run, last_good=True)
        evaluate(run)


def test_pointer_to_a_missing_checkpoint_is_named(run):
    shutil.rmtree(find_checkpoint(run / "checkpoints", "best"))
    *_, last = list_checkpoints(run / "checkpoints")
    line = answer(evaluate, Path(f"{run}@best"))
    assert re.search(rf"best points to step_\w+, which is not there; .* {last.name}: take it", line)
    (run / "checkpoints" / "last").unlink()
    resume(run)


@damages((TRUNCATED, EMPTY, flip(0.1), flip(0.9), JUNK, FOLDER, PIPE, REMOVED))
def test_damaged_copy_of_the_preset_is_named(run, damage):
    damage(run / "preset.py")
    for use in uses(damage):
        assert "preset.py" in answer(use, run)


@pytest.mark.drawn(one_of=3, each="name")
@pytest.mark.parametrize("name", ["log.jsonl", "episodes.csv", "evaluations.csv", "events"])
@damages((TRUNCATED, EMPTY, flip(0.05), flip(0.3), JUNK, FOLDER, PIPE))
def test_damaged_log_is_named_and_not_needed(run, name, damage):
    path = next(run.glob("events.out.tfevents.*")) if name == "events" else run / name
    damage(path)
    line = answer(resume, run)
    assert path.name in line
    if damage is EMPTY[1]:
        evaluate(run)  # neither needs the logs
        fork(run)
    if not path.is_fifo() and not path.is_dir():
        assert "move it out of the run's folder" in line
        path.rename(run.parent / "moved")
        with pytest.warns(rl.CoachWarning):
            resume(run)


@damages((EMPTY, JUNK, FOLDER, PIPE, DANGLING))
def test_damaged_lock_is_used_if_it_is_a_file(run, damage):
    damage(run / ".lock")
    if damage in (EMPTY[1], JUNK[1]):
        return resume(run)
    assert ".lock" in answer(resume, run)
    evaluate(run)
    return None


@damages((TRUNCATED, JUNK, REMOVED, FOLDER))
def test_damaged_summary_is_not_needed(run, damage):
    damage(run / "summary.json")
    evaluate(run)
    fork(run)


def edit(path: Path, change: dict[str, Any], *, seal: bool) -> None:
    document = json.loads(path.read_text())
    document.pop("checksum")
    document |= change
    path.write_text(json.dumps(sealed(document) if seal else document))


WRONG: tuple[Any, ...] = (None, [], {}, 7, "text", 1e300, [[[]]], {"$type": 5}, True)


@pytest.mark.drawn(one_of=3, each="key")
@pytest.mark.parametrize(
    "key",
    [
        "schema_version", "name", "created", "preset", "graph_manager", "parameters", "task",
        "versions", "hardware", "resumes",
    ],
)  # fmt: skip
@pytest.mark.parametrize("value", WRONG, ids=repr)
def test_manifest_of_another_shape_error_is_one_line(run, key, value):
    original = json.loads((run / "manifest.json").read_text())
    edit(run / "manifest.json", {key: value}, seal=True)
    if (key, value) == ("preset", None):
        return  # an experiment without a preset
    fits = type(value) is type(original[key]) and (key, value) not in (
        ("schema_version", 7),
        ("graph_manager", "text"),
    )
    if fits and key in ("name", "created", "resumes", "versions", "hardware"):
        if key == "resumes" and value:
            assert "manifest.json" in answer(resume, run)
        return
    line = answer(resume, run)
    assert key in line or "manifest.json" in line


@pytest.mark.drawn(one_of=3, each="key")
@pytest.mark.parametrize("key", ["sha256", "notes", "schema_version"])
@pytest.mark.parametrize("value", WRONG, ids=repr)
def test_notes_of_another_shape_error_is_one_line(run, key, value):
    last = find_checkpoint(run / "checkpoints")
    edit(last / "checkpoint.json", {key: value}, seal=True)
    assert last.name in answer(resume, run)


@pytest.mark.parametrize(
    ("value", "types", "text"),
    [
        (7, str, "'key' is 7; allowed is a text"),
        ([], (dict, type(None)), "'key' is []; allowed is an object or null"),
        (None, list, "'key' is null; allowed is a list"),
        ("yes", bool, "'key' is 'yes'; allowed is true or false"),
    ],
)
def test_require_types_another_type_names_key_value_and_what_is_allowed(value, types, text):
    with pytest.raises(CheckpointError, match=re.escape(f"run/manifest.json is damaged: {text}")):
        require_types({"key": value}, {"key": types}, source="run/manifest.json")


def reseal(checkpoint: Path, state: str) -> None:
    """Replace the state of a checkpoint, with a checksum that fits."""
    (checkpoint / "state.json").write_text(state)
    digest = hashlib.sha256(state.encode()).hexdigest()
    sums = json.loads((checkpoint / "checkpoint.json").read_text())["sha256"]
    edit(checkpoint / "checkpoint.json", {"sha256": sums | {"state.json": digest}}, seal=True)


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ("-512", "'environment_steps' is no whole number"),
        ("1.5", "'environment_steps' is no whole number"),
        ("1" + "0" * 30, "'environment_steps' is no whole number"),
        ("9" * 4000, "a number of 4,000 digits is too long"),
        ("1e999", "1e999 is larger than any number"),
    ],
    ids=["negative", "fraction", "large", "digits", "infinite"],
)
def test_resume_resealed_counter_that_cannot_be_is_refused_in_one_line(run, steps, reason):
    last = find_checkpoint(run / "checkpoints")
    text = (last / "state.json").read_text()
    changed = re.sub(r'"environment_steps": \d+', f'"environment_steps": {steps}', text)
    assert changed != text
    reseal(last, changed)
    assert reason in answer(resume, run)


@pytest.mark.parametrize(
    ("part", "name", "value", "reason"),
    [
        ("task", "threads", 10**9, "threads must be int in [1, 1024] | None, got 1000000000"),
        ("parameters", "threads", 0, "threads must be int in [1, 1024], got 0"),
        ("parameters", "num_envs", 10**6, "has num_envs 1,000,000, but"),
        ("parameters", "num_envs", 10**12, "num_envs must be from 1 to 1,000,000"),
    ],
)
def test_manifest_with_values_that_no_machine_has_room_for_is_refused_in_one_line(
    run, part, name, value, reason, monkeypatch
):
    monkeypatch.setattr(
        rl.GraphManager, "create_graph", lambda *_, **__: pytest.fail("it is built")
    )
    document = json.loads((run / "manifest.json").read_text())[part]
    edit(run / "manifest.json", {part: document | {name: value}}, seal=True)
    assert reason in answer(resume, run)


@pytest.mark.parametrize(
    "change", [{"capacity": -5}, {"capacity": 10**15}, {"generation": "x"}, {"generation": True}]
)
def test_checkpoint_whose_memory_cannot_be_is_refused_in_one_line(tmp_path, change):
    entries = Appended(
        dtype=np.dtype([("reward", "f4")]),
        first=np.zeros(1, np.int64),
        ends=np.full(1, 3),
        capacity=8,
        read=lambda _, begin, end: {"reward": np.arange(begin, end, dtype=np.float32)},
    )
    path = tmp_path / "step_3"
    write_checkpoint(path, {"memory": entries}, {})
    assert read_checkpoint(path).state["memory"].capacity == 8
    state = json.loads((path / "state.json").read_text())
    state["memory"]["$appended"] |= change
    reseal(path, json.dumps(state))
    ((name, value),) = change.items()
    reason = f"{name} must be from 0 to 1,000,000,000,000, got {value!r}"
    with pytest.raises(CheckpointError, match=re.escape(reason)):
        read_checkpoint(path)


@pytest.mark.parametrize("best", [7, "text", [], {"reward": 1.0}, {"reward": 1.0, "more": 2}])
def test_best_evaluation_of_another_shape_error_is_one_line(run, best):
    path = find_checkpoint(run / "checkpoints") / "checkpoint.json"
    notes = json.loads(path.read_text())["notes"]
    edit(path, {"notes": notes | {"best": best}}, seal=True)
    assert "best evaluation" in answer(resume, run)


def test_unknown_keys_are_ignored(run):
    edit(find_checkpoint(run / "checkpoints") / "checkpoint.json", {"more": 1}, seal=True)
    edit(run / "manifest.json", {"more": None}, seal=True)
    resume(run)


def test_edited_manifest_without_a_checksum_is_used(run):
    edit(run / "manifest.json", {"name": "mine"}, seal=False)
    resume(run)
    assert json.loads((run / "manifest.json").read_text())["name"] == "mine"
    flipped(run / "manifest.json", 0.5)
    assert "manifest.json" in answer(resume, run)  # sealed again by the resume


@pytest.mark.parametrize("newer", [True, False])
def test_other_schema_versions_say_what_reads_them(run, newer):
    version, versions = (99, {"coach-rl": "7.1"}) if newer else (0, {"coach-rl": "0.0.1"})
    edit(
        run / "manifest.json",
        {"schema_version": version, "versions": versions},
        seal=True,
    )
    advice = "upgrade to coach_rl 7.1 or later" if newer else "use coach_rl 0.0.1"
    assert answer(evaluate, run).endswith(f"reads 2; {advice}")


def test_resume_removes_leftovers_of_dead_processes(run):
    gone = [run / "checkpoints" / name for name in (".step_5.new-1", ".step_5.old-999999")]
    for path in gone:
        path.mkdir()
        (path / "half").write_text("")
    resume(run)
    assert not any(path.exists() for path in gone)


def test_create_run_folder_removes_unfinished_ones(tmp_path, monkeypatch):
    made: list[Path] = []

    def die(path: object, target: object) -> None:
        made.append(Path(str(path)))
        raise SystemExit

    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
    monkeypatch.setattr(os, "rename", die)
    document = {"level": "x", "task": {"seed": 0}}
    with pytest.raises(SystemExit):
        create_run_folder(tmp_path, "walk", document, None)
    monkeypatch.undo()
    dead = made[0].with_name(made[0].name.replace(f"-{os.getpid()}-", "-4194305-"))
    made[0].rename(dead)
    alive = dead.with_name(dead.name.replace("-4194305-", f"-{os.getpid()}-"))
    elsewhere = dead.with_name(".new-another.host-4194305-x")
    alive.mkdir()
    elsewhere.mkdir()
    create_run_folder(tmp_path, "walk", document, None)
    assert not dead.exists()
    assert alive.exists()
    assert elsewhere.exists()


def test_resume_without_any_good_checkpoint_offers_none(run):
    for checkpoint in list_checkpoints(run / "checkpoints"):
        (checkpoint / "state.json").write_bytes(b"")
    assert "take it" not in answer(resume, run)
    with pytest.raises(CheckpointError):
        resume(run, last_good=True)
