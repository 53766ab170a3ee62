"""The promises of docs/reliability.md, and the tests that keep them.

    python tests/faults/promises.py --write

runs the tests, slow ones included, and writes how many cases passed into the page.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

CHECKOUT = Path(__file__).parent.parent.parent
PAGE = CHECKOUT / "docs" / "reliability.md"
MARK = "<!-- promises -->"

PROMISES = {
    "Damage anywhere in a run's folder is named in one line, or does no harm; `--last_good` takes "
    "the newest good checkpoint": [
        "tests/runs/test_damaged_files.py",
        "tests/runs/test_errors.py",
    ],
    "Nothing in a run's folder is written through a symbolic or hard link; files and folders have "
    "the modes of the umask": ["tests/runs/test_hostile_links.py"],
    "A stranger's runs and archives are refused in one line, or shown without control characters; "
    "other runs are shown as ever": ["tests/extensions/studies/test_hostile_records.py"],
    "A run is locked before it is read": ["tests/sessions/test_resuming.py"],
    "A stranger's run folder runs no code": ["tests/configuration/test_trust.py"],
    "A stranger's export is read as data, and refused in one line where it cannot be used": [
        "tests/extensions/exporting/test_hostile_archives.py"
    ],
    "A row whose environment raises, dies, hangs or returns nonsense is restarted, or stops the "
    "run with a diagnosis; other rows keep their numbers": [
        "tests/environments/test_faults.py",
        "tests/environments/test_gymnasium_faults.py",
        "tests/graph_managers/test_faulty_runs.py",
    ],
    "What cannot be saved restarts its episodes, and all else is exact": [
        "tests/graph_managers/test_restarts.py",
        "tests/sessions/test_restarted_episodes.py",
        "tests/environments/test_gymnasium_saving.py",
    ],
    "Updates that are not finite are caught in their own step, and stop, are skipped or rolled "
    "back": ["tests/agents/test_divergence.py", "tests/sessions/test_roll_back.py"],
    "Signals save in every phase, within seconds": ["tests/cli/test_signals.py"],
    "Files that cannot be written don't end a run; two processes never share a folder": [
        "tests/runs/test_sinks.py",
        "tests/runs/test_lock.py",
        "tests/telemetry/test_log_files.py",
    ],
    "Checkpoints are kept and deleted by their policy, and written whole or not at all": [
        "tests/runs/test_keeper.py",
        "tests/runs/test_checkpoint.py",
        "tests/runs/test_appended_entries.py",
    ],
    "A fork starts from the state it names, and leaves its parent alone": [
        "tests/sessions/test_fork.py"
    ],
    "A trained agent acts from Python as in its evaluations, without its environment": [
        "tests/sessions/test_trained_agent.py"
    ],
    "Numbers don't depend on how a run is started, watched or saved": [
        "tests/faults/test_same_numbers.py"
    ],
}


def cases(files: Sequence[str]) -> tuple[int, int]:
    """Cases of these tests that passed, and those that failed, in a process of their own."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        words = ["-q", "-p", "no:cacheprovider", f"--junitxml={report}", *files]
        subprocess.run([sys.executable, "-m", "pytest", *words], cwd=CHECKOUT, check=False)
        (suite,) = ElementTree.parse(report).getroot()
    count = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
    failed = count["failures"] + count["errors"]
    return count["tests"] - failed - count["skipped"], failed


def table() -> tuple[str, bool]:
    """The table of promises, and whether all of them are kept."""
    lines, kept = ["| promise | tests | cases | failed |", "| --- | --- | ---: | ---: |"], True
    for promise, files in PROMISES.items():
        passed, failed = cases(files)
        kept &= failed == 0 and passed > 0
        names = ", ".join(f"`{file}`" for file in files)
        lines.append(f"| {promise} | {names} | {passed} | {failed} |")
    return "\n".join(lines), kept


def main() -> int:
    """Run the tests, and print the table or write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the table into the page")
    given = parser.parse_args()
    found, kept = table()
    print(found)
    if given.write:
        parts = re.split(re.escape(MARK), PAGE.read_text())
        PAGE.write_text(f"{parts[0]}{MARK}\n{found}\n{MARK}{parts[2]}")
    return int(not kept)


if __name__ == "__main__":
    sys.exit(main())
