"""Moves the fragments of changelog.d/ into the unreleased section of CHANGELOG.md.

    python .ci/changelog.py [DATE]

With a date the section is released: "(unreleased)" gives way to it.
"""

import argparse
import re
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
SECTIONS = ("Breaking", "Added", "Changed", "Fixed", "Removed")


def entries(text: str) -> dict[str, list[str]]:
    """The entries of a fragment or of a release, by section."""
    found: dict[str, list[str]] = {}
    for heading, body in re.findall(r"^### (.*)\n((?:(?!^##).*\n?)*)", text, re.MULTILINE):
        found.setdefault(heading, []).extend(re.findall(r"^- .*$", body, re.MULTILINE))
    return found


def merged(changelog: str, fragments: list[str], date: str = "") -> str:
    """The changelog with the entries of fragments at the end of their sections."""
    if (heading := re.search(r"^## .* \(unreleased\)\n", changelog, re.MULTILINE)) is None:
        raise SystemExit("CHANGELOG.md has no section `## VERSION (unreleased)`; begin one")
    before, rest = changelog[: heading.start()], changelog[heading.end() :]
    release, later = re.split(r"^(?=## )|\Z", rest, maxsplit=1, flags=re.MULTILINE)[:2]
    introduction = release.partition("### ")[0].strip()
    lists = [entries(text) for text in (release, *fragments)]
    if unknown := {name for each in lists for name in each} - set(SECTIONS):
        raise SystemExit(f"no section is called {sorted(unknown)}; there are {SECTIONS}")
    parts = [heading[0].replace("unreleased", date or "unreleased").strip()]
    parts += [introduction] if introduction else []
    for name in SECTIONS:
        if lines := [line for each in lists for line in each.get(name, ())]:
            parts += [f"### {name}", "\n".join(lines)]
    return before + "\n\n".join([*parts, later] if later else parts).rstrip() + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("date", nargs="?", default="", help="the day of the release")
    date = parser.parse_args().date
    changelog = CHECKOUT / "CHANGELOG.md"
    files = sorted(
        set((CHECKOUT / "changelog.d").glob("*.md")) - {CHECKOUT / "changelog.d/README.md"}
    )
    changelog.write_text(merged(changelog.read_text(), [file.read_text() for file in files], date))
    for file in files:
        file.unlink()
