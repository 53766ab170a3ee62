"""What `make` installs and when, and that type checkers and editors see an editable install."""

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parent.parent.parent
RUNS, TESTS = ".[video,plot,sweep,export]", ".[dev]"


@pytest.fixture
def clone(tmp_path):
    """The files that `make` looks at."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(CHECKOUT / name, tmp_path)
    return tmp_path


def planned(clone, target):
    """Commands of a target, none of which is run."""
    environment = {"PATH": os.environ["PATH"]}
    command = ["make", "--dry-run", target]
    result = subprocess.run(
        command, cwd=clone, env=environment, capture_output=True, text=True, check=True
    )
    return result.stdout.splitlines()


def installed(clone, target):
    """Extras that a target installs."""
    return [line.split('"')[1] for line in planned(clone, target) if "pip install" in line]


def touch(clone, *names, seconds=60):
    """Make files of `.venv` that are newer than the settings, or older for negative seconds."""
    then = max(path.stat().st_mtime for path in clone.iterdir() if path.is_file()) + seconds
    for name in names:
        path = clone / ".venv" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (then, then))


def test_make_in_a_fresh_clone_makes_the_environment_and_installs_what_the_target_needs(clone):
    for target, extras in (("train", RUNS), ("test", TESTS)):
        first, install, *_ = planned(clone, target)
        assert first.endswith("-m venv .venv")
        assert f'-c constraints.txt -e "{extras}"' in install
        assert " -q" not in install  # pip shows its progress


@pytest.mark.parametrize(
    ("stamps", "train", "test"),
    [
        ((), [RUNS], [TESTS]),  # the environment is there, and pip was interrupted
        (("running",), [], [TESTS]),  # after `make train`, also an interrupted one
        (("running", "installed"), [], []),  # after `make test`
    ],
)
def test_make_installs_only_what_is_missing(clone, stamps, train, test):
    touch(clone, "bin/pip", *stamps)
    assert installed(clone, "train") == train
    assert installed(clone, "test") == test
    assert not [line for line in planned(clone, "test") if line.endswith("venv .venv")]


def test_make_installs_again_after_a_change_of_the_settings(clone):
    touch(clone, "bin/pip", "running", "installed", seconds=-60)
    assert installed(clone, "train") == [RUNS]
    assert installed(clone, "test") == [TESTS]


def test_make_test_leaves_nothing_for_make_train_to_install(clone):
    (stamp,) = [line for line in planned(clone, "test") if line.startswith("touch")]
    assert stamp.split()[1:] == [".venv/running", ".venv/installed"]


CHECKERS = {
    "mypy": ["--follow-imports=skip", "--config-file=", "--python-executable"],
    "basedpyright": ["--level", "error", "--pythonpath"],  # pyright with node in its wheels
}


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize("checker", CHECKERS)
def test_editable_install_is_seen_by_type_checkers(clone, tmp_path_factory, checker):
    """They find packages by paths alone, as editors do, and not by import hooks."""
    program = Path(sys.executable).with_name(checker)
    if not program.exists():
        pytest.skip(f"{checker} is not installed; `pip install {checker}`")
    for name in ("README.md", "LICENSE"):
        shutil.copy(CHECKOUT / name, clone)
    shutil.copytree(CHECKOUT / "coach_rl", clone / "coach_rl")  # without links
    build = "import sys, setuptools.build_meta as b; print(b.build_editable(sys.argv[1]))"
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    run([sys.executable, "-c", build, elsewhere], clone)
    (wheel,) = elsewhere.glob("*.whl")
    venv.create(elsewhere / "venv", with_pip=False, symlinks=True)
    (packages,) = (elsewhere / "venv" / "lib").glob("python*/site-packages")
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(packages)
    preset = shutil.copy(CHECKOUT / "presets" / "CartPole_PPO.py", elsewhere / "my_preset.py")
    python = elsewhere / "venv" / "bin" / "python"
    run([program, *CHECKERS[checker], python, preset], elsewhere)


def run(command, folder):
    environment = {"PATH": os.environ["PATH"]}
    result = subprocess.run(
        [*map(str, command)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
