"""Build sdist and wheel, import all of the wheel outside the checkout, check its types.

The wheel is the same from the checkout, from the sdist, and from a checkout without symbolic links.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from zipfile import ZipFile

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
assert list((here / "extensions/studies").glob("*.jinja")), "no template of reports in the wheel"
assert list((here / "extensions").glob("*/extension.toml")), "no extensions in the wheel"
assert list((here / "trained").rglob("*.zip")), "no trained agents in the wheel"
assert len(list((here / "cli/templates").glob("*.py.txt"))) == 6, "no templates in the wheel"
print(f"wheel: {len(names)} modules imported, {len(presets)} presets shipped")
"""


def main() -> None:
    """Raise CalledProcessError at the first step that fails."""
    shutil.rmtree(CHECKOUT / "build", ignore_errors=True)  # or its leftovers go into the wheel
    with tempfile.TemporaryDirectory() as folder:
        built, installed = Path(folder, "built"), Path(folder, "installed")
        wheel = build(CHECKOUT, built, "--wheel")
        others = {
            "the sdist": build(CHECKOUT, Path(folder, "sdist")),
            "a checkout without symbolic links": build(
                without_links(Path(folder, "copy")), Path(folder, "linkless"), "--wheel"
            ),
        }
        for source, other in others.items():
            different = contents(wheel) ^ contents(other)
            assert not different, f"the wheel from {source} differs in {sorted(different)}"
        pip = ["-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps"]
        run(*pip, "--target", str(installed), str(wheel))
        run("-c", IMPORT_ALL, folder=installed)
        config = str(CHECKOUT / "pyproject.toml")
        run("-m", "mypy", "--config-file", config, "-p", "coach_rl", folder=installed)


def build(source: Path, to: Path, *kinds: str) -> Path:
    """The wheel built from a checkout; without `kinds` from its sdist, which is built first."""
    run("-m", "build", *kinds, "--no-isolation", "--outdir", str(to), str(source), folder=to.parent)
    (wheel,) = to.glob("*.whl")
    return wheel


def without_links(copy: Path) -> Path:
    """A copy of the checkout in which small text files stand for symbolic links, as on Windows."""
    copy.mkdir()
    for name in ("coach_rl", "environments", "filters", "presets"):
        shutil.copytree(CHECKOUT / name, copy / name, symlinks=True)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(CHECKOUT / name, copy)
    for link in (path for path in (copy / "coach_rl").iterdir() if path.is_symlink()):
        target = os.readlink(link)
        link.unlink()
        link.write_text(target)
    return copy


def contents(wheel: Path) -> set[tuple[str, int]]:
    """The files of a wheel, but its own list of them, each with a checksum."""
    with ZipFile(wheel) as files:
        return {(each.filename, each.CRC) for each in files.infolist() if "RECORD" not in str(each)}


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
