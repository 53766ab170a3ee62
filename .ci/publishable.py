"""Checks that a release can be published: no address is a placeholder, the version is the tag's.

    python .ci/publishable.py [TAG]

The address of the repository stands in pyproject.toml; the other files repeat it.
"""

import argparse
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
PLACEHOLDER = "example.org"
"""Part of an address that is to be replaced before a release."""
REPEATED = ("README.md", "docs/install.md")
"""Files that repeat the address of the repository, in the lines that install from it."""


def problems(checkout: Path, tag: str = "") -> Iterator[str]:
    """What stands in the way of a release, a line each.

    Args:
        checkout: The folder of the checkout.
        tag: The tag of the release, such as `v0.3.0`; empty: none yet.
    """
    project = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    repository = project["urls"]["Repository"]
    for name, address in project["urls"].items():
        if PLACEHOLDER in address:
            yield f"pyproject.toml: [project.urls] {name} is a placeholder, {address}"
    for name in REPEATED:
        text = " ".join((checkout / name).read_text(encoding="utf-8").split())
        for line in (f'git+{repository}"', f"git clone {repository}"):
            if line not in text:
                yield f"{name} lacks `{line}`"
    if tag and tag != f"v{project['version']}":
        yield f"the tag {tag} is not of version {project['version']}, which pyproject.toml has"


def main() -> None:
    """Print what stands in the way; the exit code is 1 where anything does."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tag", nargs="?", default="", help="the release's, such as v0.3.0")
    found = [*problems(CHECKOUT, parser.parse_args().tag)]
    print("\n".join(found) or "ready to be published")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
