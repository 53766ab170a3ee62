"""Archives and programs of strangers: data that is refused where it cannot be used, never code."""

import json
import math
import os
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coach_rl as rl
from tests.extensions.exporting.test_export import environment_of, unpacked
from tests.refusals import check_refused

onnx = pytest.importorskip("onnx", reason="needs the extra `export`")
pytest.importorskip("onnxruntime", reason="needs the extra `export`")

from coach_rl.extensions.exporting.coach_policy import MOST_BYTES, Policy  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default::coach_rl.core.errors.CoachWarning")

Parts = dict[str, bytes]
LOW = "low_decisions.onnx"


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Parts, Any]:
    """The files in an archive of two levels with goals, and observations for it."""
    folder = tmp_path_factory.mktemp("exported")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = unpacked("PointMaze_HAC", folder / "run")
        seen = environment_of(run).reset(5).first_observation
        with zipfile.ZipFile(rl.export(run, folder / "policy.zip")) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
    return parts, seen


@pytest.fixture(scope="module")
def flat(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    """The files in an archive of one level, which acts in the shortest way."""
    file = rl.export("trained:Pendulum_SAC", tmp_path_factory.mktemp("flat") / "policy.zip")
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(parts: Parts, file: Path, compression: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return file


def edited(edit: Callable[[dict[str, Any]], object]) -> Callable[[Parts], Parts]:
    """Let a function change `policy.json`."""

    def change(parts: Parts) -> Parts:
        about = json.loads(parts["policy.json"])
        edit(about)
        return {**parts, "policy.json": json.dumps(about).encode()}

    return change


def described(**changes: Any) -> Callable[[Parts], Parts]:
    """Change `policy.json`, or its lower level where it has no such entry."""

    def edit(about: dict[str, Any]) -> None:
        for name, value in changes.items():
            (about if name in about else about["levels"][1])[name] = value

    return edited(edit)


def of_top(**changes: Any) -> Callable[[Parts], Parts]:
    return edited(lambda about: about["levels"][0].update(changes))


def of_spaces(of: str = "observation", **changes: Any) -> Callable[[Parts], Parts]:
    def edit(about: dict[str, Any]) -> None:
        spaces = about["spaces"][of]
        (next(iter(spaces.values())) if of == "observation" else spaces).update(changes)

    return edited(edit)


def with_node(
    kind: str, operand: Any, *, graph: str = LOW, **attributes: Any
) -> Callable[[Parts], Parts]:
    """Let a graph, the lower level's, compute another action from its own."""

    def change(parts: Parts) -> Parts:
        model = onnx.load_from_string(parts[graph])
        (last,) = (each for each in model.graph.node if "action" in each.output)
        last.output[[*last.output].index("action")] = "usual"
        constant = onnx.numpy_helper.from_array(operand, "operand")
        model.graph.initializer.append(constant)
        model.graph.node.append(
            onnx.helper.make_node(kind, ["usual", "operand"], ["action"], **attributes)
        )
        return {**parts, graph: model.SerializeToString()}

    return change


def with_external_data(parts: Parts) -> Parts:
    model = onnx.load_from_string(with_node("Mul", np.float32(1.0))(parts)[LOW])
    (tensor,) = (each for each in model.graph.initializer if each.name == "operand")
    onnx.external_data_helper.set_external_data(tensor, location="/etc/passwd")
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    return {**parts, LOW: model.SerializeToString()}


def without(name: str) -> Callable[[Parts], Parts]:
    return lambda parts: {each: content for each, content in parts.items() if each != name}


def replaced(name: str, content: bytes) -> Callable[[Parts], Parts]:
    return lambda parts: {**parts, name: content}


DAMAGE: dict[str, Callable[[Parts], Parts]] = {
    "an earlier format": described(format=1),
    "a later format": described(format=999),
    "a format that is text": described(format="x"),
    "no format": described(format=None),
    "no level": described(levels=[]),
    "levels that are no list": described(levels=3),
    "levels of one name": of_top(name="low"),
    "a level below that counts backwards": of_top(below=[-1]),
    "a level below itself": of_top(below=[0]),
    "a level below that is missing": of_top(below=[7]),
    "a level below that is text": of_top(below=["low"]),
    "a level below that is no whole number": of_top(below=[1.5]),
    "outer goals of levels that are missing": described(outer=[5]),
    "a horizon that is NaN": of_top(horizon=math.nan),
    "a horizon below 1": described(horizon=-3),
    "a horizon that is text": described(horizon="ten"),
    "no goals": described(goals={}),
    "goals of another size": described(goals={"level_goal": 7, "outer_goal_0": 2}),
    "goals of any size": described(goals={"level_goal": 10**12, "outer_goal_0": 2}),
    "times that are missing": described(timed=["level_goal", "other"]),
    "a state that fills the memory": described(state={"a": {"shape": [9**9, 9], "dtype": "int8"}}),
    "a state of large texts": described(state={"a": {"shape": [1], "dtype": "U1000000000"}}),
    "a state that no graph has": described(state={"a": {"shape": [1], "dtype": "int8"}}),
    "a mask that is missing": described(mask={"key": "nothing", "begins": [0]}),
    "choices beyond their mask": described(mask={"key": "observation", "begins": [0, 10**6]}),
    "choices before their mask": described(mask={"key": "observation", "begins": [-3]}),
    "members that are no names": of_top(members=3),
    "members that may be anything": of_top(members={"a": "no"}),
    "ends that may be needed": of_top(needs_ends="no"),
    "a name that controls a terminal": of_top(name="\x1b[2J"),
    "a name of a member that does": of_top(members={"\x1b[2J": True}),
    "an action of another shape": of_spaces("action", shape=[7]),
    "an action that is no space": of_spaces("action", kind="Tuple", spaces=3),
    "an observation of large texts": of_spaces(dtype="U1000000000"),
    "an observation that is no array": of_spaces(shape=None),
    "a level without its graph": described(decisions=None),
    "a graph that is missing": described(decisions="nothing.onnx"),
    "a graph that is the page": described(decisions="README.md"),
    "a graph that is read twice": described(decisions="top_decisions.onnx"),
    "a graph that is empty": replaced(LOW, b""),
    "a graph that was cut": lambda parts: {**parts, LOW: parts[LOW][:500]},
    "a graph with weights in another file": with_external_data,
    "a graph that returns NaN": with_node("Mul", np.float32(np.nan)),
    "a graph that returns another shape": with_node("Gather", np.array(0), axis=1),
    "a graph that returns one row for two": with_node("Gather", np.array([0]), axis=0),
    "no description": without("policy.json"),
    "a description that is no JSON": replaced("policy.json", b"{"),
    "a description that is a list": replaced("policy.json", b"[]"),
    "a description of bytes": replaced("policy.json", b"\xff\xfe"),
    "a description that is nested deeply": replaced("policy.json", b"[" * 100_000),
    "a number of 5,000 digits": replaced("policy.json", b"9" * 5000),
    "a description that fills the memory": replaced("policy.json", bytes(2 * MOST_BYTES)),
    "a graph that fills the memory": replaced(LOW, bytes(2 * MOST_BYTES)),
}


@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE)
def test_policy_damaged_archive_is_refused_with_its_name(
    change: Callable[[Parts], Parts], exported: tuple[Parts, Any], tmp_path: Path
) -> None:
    parts, seen = exported
    file = written(change(parts), tmp_path / "strange.zip")
    message = "strange.zip is damaged, or no archive of `coach export`"
    check_refused(lambda: Policy(file).act(seen), ValueError, message)


@pytest.mark.parametrize(
    "changes",
    [
        {"spaces": 3},
        {"kind": "Dict", "spaces": {"a": {"kind": "Tuple", "spaces": {"0": {}}}}},
        {"kind": "Dict", "spaces": {}, "keys": ["a"]},
        {"dtype": "U1000000000"},
        {"shape": [10**6, 10**6]},
    ],
)
def test_policy_space_of_actions_that_is_none_is_refused_before_it_acts(
    changes: dict[str, Any], flat: Parts, tmp_path: Path
) -> None:
    file = written(of_spaces("action", **changes)(flat), tmp_path / "strange.zip")
    check_refused(lambda: Policy(file), ValueError, "strange.zip is damaged")


def test_policy_archive_as_it_was_written_acts(exported: tuple[Parts, Any], tmp_path: Path) -> None:
    parts, seen = exported
    action = Policy(written(described()(parts), tmp_path / "policy.zip")).act(seen)
    assert np.isfinite(action).all()


@pytest.mark.parametrize(
    "change",
    [
        with_node("Mul", np.float32(np.nan), graph="main_decisions.onnx"),
        with_node("Gather", np.array(0), graph="main_decisions.onnx", axis=1),
        with_node("Reshape", np.array([7, 1]), graph="main_decisions.onnx"),
    ],
    ids=["NaN", "another shape", "fails"],
)
@pytest.mark.parametrize("count", [None, 2])
def test_policy_flat_graph_that_cannot_be_used_is_refused_with_its_name(
    change: Callable[[Parts], Parts], count: int | None, flat: Parts, tmp_path: Path
) -> None:
    file = written(change(flat), tmp_path / "strange.zip")
    seen = np.zeros((3,) if count is None else (count, 3), np.float32)
    check_refused(lambda: Policy(file).act(seen), ValueError, "strange.zip is damaged")


def no_archive(file: Path) -> None:
    file.write_bytes(b"PK" + bytes(1000))


def pipe(file: Path) -> None:
    os.mkfifo(file)


@pytest.mark.parametrize("make", [no_archive, Path.touch, Path.mkdir, pipe])
def test_policy_file_that_is_no_archive_is_refused_with_its_name(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    make(tmp_path / "strange.zip")
    check_refused(lambda: Policy(tmp_path / "strange.zip"), ValueError, "strange.zip is damaged")


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_policy_archive_compressed_without_a_bound_is_refused(
    compression: int, exported: tuple[Parts, Any], tmp_path: Path
) -> None:
    file = written(exported[0], tmp_path / "strange.zip", compression)
    check_refused(lambda: Policy(file), ValueError, "compressed in an unknown way")


def test_policy_missing_file_error(tmp_path: Path) -> None:
    check_refused(lambda: Policy(tmp_path / "no.zip"), FileNotFoundError, "no.zip")


def test_shown_way_of_loading_runs_no_code_of_the_archive(
    exported: tuple[Parts, Any], tmp_path: Path
) -> None:
    note = f"open({str(tmp_path / 'ran')!r}, 'w').close()\n".encode()
    code = dict.fromkeys(("coach_policy.py", "numpy.py", "gymnasium.py", "json.py"), note)
    written({**exported[0], **code}, tmp_path / "strange.zip")
    runtime = Path(rl.__file__).parent / "extensions/exporting/coach_policy.py"
    (tmp_path / "coach_policy.py").write_text(runtime.read_text())
    for module in ("coach_policy", "coach_rl.extensions.exporting.coach_policy"):
        program = f"from {module} import Policy; Policy('strange.zip')"
        subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path)
    assert not (tmp_path / "ran").exists()


def test_program_of_torch_holds_no_pickle(tmp_path: Path) -> None:
    with zipfile.ZipFile(rl.export("trained:CartPole_PPO", tmp_path / "policy.pt2")) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    assert not [name for name, content in parts.items() if content[:2] in (b"PK", b"\x80\x02")]
    tables = [json.loads(text)["config"] for name, text in parts.items() if "_config" in name]
    assert not any(entry["use_pickle"] for table in tables for entry in table.values())
