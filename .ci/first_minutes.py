"""Runs the commands of README.md that lead from nothing to an exported policy, and times them.

python .ci/first_minutes.py              # in a fresh clone, with an installation of its own
python .ci/first_minutes.py --installed  # with the package that this Python has

The commands are those of the block behind `<!-- first minutes`, in an empty folder. Exits 1 where
one fails, a product is missing, or they take longer than `LIMIT` after the installation.
"""

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"<!-- first minutes.*?-->\s+```bash\n(.*?)```", re.DOTALL)
EXTRAS = "video,plot,export"
PRODUCTS = ("pier.py", "experiments/PPO", "pier.gif", "curve/curves.png", "pier.onnx")
LIMIT = 180.0
"""Seconds that the commands may take on two cores that do nothing else; of processor time, so that
a loaded machine is not blamed, and two cores in full use would take half of it."""


def commands(readme: str) -> list[str]:
    """The commands, without comments."""
    found = BLOCK.search(readme)
    assert found is not None, "README.md has no block of first minutes"
    lines = (line.partition(" #")[0].strip() for line in found[1].splitlines())
    return [line for line in lines if line]


def install(folder: Path) -> Path:
    """The programs of a new environment, with the package from a clone of this repository."""
    clone, environment = folder / "clone", folder / "environment"
    subprocess.run(["git", "clone", "--quiet", str(CHECKOUT), str(clone)], check=True)
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    pip = [environment / "bin" / "python", "-m", "pip", "install", "--quiet"]
    words = [*pip, "-c", clone / "constraints.txt", "-e", f"{clone}[{EXTRAS}]"]
    subprocess.run(words, check=True)
    return environment / "bin"


def run(programs: Path, folder: Path) -> None:
    """Run the commands in a folder, each with the time that it took."""
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path} | {"DISPLAY": ""}
    for line in commands((CHECKOUT / "README.md").read_text()):
        begun = time.perf_counter()
        subprocess.run(line, shell=True, check=True, cwd=folder, env=environment)
        print(f"{time.perf_counter() - begun:6.1f} s  {line}", flush=True)


def main(words: list[str]) -> int:
    """Install, run and check; the exit code."""
    with tempfile.TemporaryDirectory() as name:
        work = Path(name) / "work"
        work.mkdir()
        is_installed = words == ["--installed"]
        programs = Path(sys.executable).parent if is_installed else install(Path(name))
        before, begun = _processor_seconds(), time.perf_counter()
        run(programs, work)
        wall, spent = time.perf_counter() - begun, _processor_seconds() - before
        missing = [each for each in PRODUCTS if not (work / each).exists()]
    print(f"{wall:.0f} s of wall time after the installation, {spent:.0f} s of processor time")
    for each in missing:
        print(f"missing: {each}")
    return int(bool(missing) or spent > LIMIT)


def _processor_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
