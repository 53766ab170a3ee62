"""Build the wheel, import all of it outside the checkout, check the types of what was installed."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
IMPORT_ALL = """
import importlib, pathlib, pkgutil
import coach_rl
here = pathlib.Path(coach_rl.__file__).resolve().parent
assert here.parent == pathlib.Path.cwd().resolve(), f"imported from {here}, not from the wheel"
names = [m.name for m in pkgutil.walk_packages(coach_rl.__path__, "coach_rl.")]
skipped = ("coach_rl.presets.", "coach_rl.__main__")
names = [name for name in names if not name.startswith(skipped)]
for name in names:
    importlib.import_module(name)
presets = list((here / "presets").glob("[A-Z]*_*.py"))
assert presets, "no presets in the wheel"
assert (here / "studies/report.html.jinja").is_file(), "no template of reports in the wheel"
assert len(list((here / "cli/templates").glob("*.py.txt"))) == 6, "no templates in the wheel"
print(f"wheel: {len(names)} modules imported, {len(presets)} presets shipped")
"""


def main() -> None:
    """Raise CalledProcessError at the first step that fails."""
    shutil.rmtree(CHECKOUT / "build", ignore_errors=True)  # or its leftovers go into the wheel
    with tempfile.TemporaryDirectory() as folder:
        built, installed = Path(folder, "built"), Path(folder, "installed")
        run("-m", "build", "--wheel", "--no-isolation", "--outdir", str(built), str(CHECKOUT))
        (wheel,) = built.glob("*.whl")
        pip = ["-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps"]
        run(*pip, "--target", str(installed), str(wheel))
        run("-c", IMPORT_ALL, folder=installed)
        config = str(CHECKOUT / "pyproject.toml")
        run("-m", "mypy", "--config-file", config, "-p", "coach_rl", folder=installed)


def run(*arguments: str, folder: Path | None = None) -> None:
    """Run this Python with these arguments, quietly unless it fails."""
    environment = {**os.environ}
    if folder is not None:
        environment |= {"PYTHONPATH": str(folder), "MYPYPATH": str(folder)}
    result = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder or CHECKOUT,
        env=environment,
        capture_output=folder is None,
        text=True,
        check=False,
    )
    if result.returncode:
        print(result.stdout or "", result.stderr or "", file=sys.stderr)
        sys.exit(result.returncode)


if __name__ == "__main__":
    main()
