"""Add a release's presets to coach_rl/configuration/released_presets.json, by their checksums.

    python .ci/released_presets.py c7db0938          # the commit of that release

Runs of shipped presets stay trusted after an upgrade, though the text of the preset has changed.
"""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
TABLE = CHECKOUT / "coach_rl" / "configuration" / "released_presets.json"


def git(*arguments: str) -> str:
    """The output of a git command."""
    command = ["git", *arguments]
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout


def main() -> None:
    """Write the table."""
    table = json.loads(TABLE.read_text())
    for path in git("ls-tree", "--name-only", sys.argv[1], "presets/").split():
        name = path.removeprefix("presets/")
        if name[:1].isupper() and name.endswith(".py"):
            source = git("show", f"{sys.argv[1]}:{path}")
            table[hashlib.sha256(source.encode()).hexdigest()] = name
    TABLE.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
