"""Delete extensions in copies of the checkout, and see that what is left works.

    python tests/extensions/deletion.py [NAME ...]      # default: each alone, then all together
    python tests/extensions/deletion.py --tests         # the core's tests, beside what they use

An extension is deleted with its presets, its environments, and the extensions that need it. Then
all that is left is imported, but for what it offers to the deleted ones, `coach` lists its presets
and commands, the names for type checkers are written again, and golden runs of what is left have
their figures. Where all are deleted together, types are checked as well, and all golden runs that
are left are made. With `--tests` all but `USED` are deleted, and the tests outside
tests/extensions are run, but for those of pages and ceilings, which are about extensions too.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from coach_rl.configuration.extensions import own_extensions

CHECKOUT = Path(__file__).resolve().parents[2]
GOLDEN = "CartPole_PPO or Pendulum_SAC or levels"
"""Golden runs that are repeated after each deletion: of the core alone."""
USED = (
    "testing", "choices", "discrete_maps", "distributional", "episode_filters", "exploration",
    "hindsight", "image_filters", "images", "level_phases", "mixed_actions", "optimizers",
    "own_modules", "prioritised", "recurrent_layers", "scripts", "strict_subgoals", "update_modes",
)  # fmt: skip
"""Extensions that the core's tests use: contracts, and small ones with one class or two."""
KEPT = ("MUJOCO_GL", "OMP_NUM_THREADS", "OMP_WAIT_POLICY")
"""Variables of the environment that programs in a copy have."""
IMPORT_ALL = """
import importlib, pkgutil
import coach_rl
from coach_rl.configuration.extensions import own_extensions
there = {each.name for each in own_extensions()}
offers = [pair for each in own_extensions() for pair in each.offers.items()]
useless = {module for name, modules in offers if name not in there for module in modules}
names = [module.name for module in pkgutil.walk_packages(coach_rl.__path__, "coach_rl.")]
for name in names:
    if not name.startswith(("coach_rl.presets.", "coach_rl.__main__")) and name not in useless:
        importlib.import_module(name)
for name in coach_rl.__all__:
    getattr(coach_rl, name)
print(f"{len(names)} modules and {len(coach_rl.__all__)} public names imported")
"""


def with_dependants(names: Iterable[str]) -> list[str]:
    """The extensions of these names, and those that need one of them, by name."""
    found = set(names)
    while True:
        more = {each.name for each in own_extensions() if found & set(each.needs)} - found
        if not more:
            return sorted(found)
        found |= more


def delete(names: Iterable[str], checkout: Path) -> None:
    """Delete extensions from a copy of the checkout."""
    for extension in own_extensions():
        if extension.name in names:
            shutil.rmtree(checkout / "coach_rl/extensions" / extension.name)
            shutil.rmtree(checkout / "tests/extensions" / extension.name, ignore_errors=True)
            for preset in (*extension.presets, *extension.needed_by):  # those of two come twice
                (checkout / "presets" / f"{preset}.py").unlink(missing_ok=True)
                shutil.rmtree(checkout / "coach_rl/trained" / preset, ignore_errors=True)
                (checkout / "coach_rl/trained" / f"{preset}.zip").unlink(missing_ok=True)
            for helper in extension.helpers:
                (checkout / "presets" / helper).unlink(missing_ok=True)
            for path in extension.environments:
                environment = checkout / "environments" / path
                if environment.is_dir():
                    shutil.rmtree(environment)
                else:
                    environment.unlink(missing_ok=True)  # in the folder of one that it needs


def run(*command: str, folder: Path) -> None:
    """Run a program of Python in a copy; SystemExit, with its output, where it fails."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    environment = {"PYTHONPATH": str(folder), "PATH": "/usr/bin:/bin", "HOME": str(folder), **kept}
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)[:80]} failed:\n{done.stdout}{done.stderr}")


@contextmanager
def copy_without(names: Sequence[str]) -> Iterator[Path]:
    """A copy of the last commit without these extensions."""
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary, "copy")
        files = subprocess.run(
            ["git", "archive", "HEAD"], cwd=CHECKOUT, check=True, capture_output=True
        ).stdout
        copy.mkdir()
        subprocess.run(["tar", "-x"], cwd=copy, input=files, check=True)
        delete(names, copy)
        run(".ci/public_names.py", folder=copy)
        yield copy


def check_tests_of_the_core() -> None:
    """Raise SystemExit unless the core's tests pass in a copy with the extensions they use."""
    about_extensions = ("tests/extensions", "tests/docs", "tests/test_guards.py")
    left_out = [word for path in about_extensions for word in ("--ignore", path)]
    with copy_without([each.name for each in own_extensions() if each.name not in USED]) as copy:
        for words in (["init", "-q"], ["add", "-A"]):  # the measures read the files of a checkout
            subprocess.run(["git", *words], cwd=copy, check=True)
        tests = ["-m", "pytest", "-q", "-n", "2", "-m", "not slow", "tests", *left_out]
        run(*tests, folder=copy)


def check_without(names: Sequence[str]) -> None:
    """Raise SystemExit unless a copy without these extensions works."""
    with copy_without(names) as copy:
        run("-c", IMPORT_ALL, folder=copy)
        run("-m", "coach_rl", "-l", folder=copy)
        run("-m", "coach_rl", "--help", folder=copy)
        every = len(names) == len(own_extensions())
        if every:
            run("-m", "mypy", "coach_rl", folder=copy)
        golden = ["-m", "pytest", "-q", "-n", "0", "tests/golden/test_golden_runs.py"]
        kept = "test_figures_are_those_recorded" if every else GOLDEN
        gone = [
            preset
            for each in own_extensions()
            if each.name in names
            for preset in (*each.presets, *each.needed_by)
        ]
        run(*golden, "-k", " and not ".join([f"({kept})", *gone]), folder=copy)


def main() -> None:
    """Delete the extensions that are named; without names each alone, then all together."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="extensions that are deleted together")
    parser.add_argument(
        "--tests", action="store_true", help="only run the tests of the core, beside what they use"
    )
    given = parser.parse_args()
    if given.tests:
        check_tests_of_the_core()
        print("the tests of the core pass beside the extensions that they use")
        return
    named = given.names
    every = [each.name for each in own_extensions()]
    for names in [named] if named else [*([name] for name in every), every]:
        gone = with_dependants(names)
        check_without(gone)
        print(f"works without {', '.join(gone)}", flush=True)


if __name__ == "__main__":
    main()
