"""Blocks of a page that a report writes: what stands between a study's two marks.

    <!-- study: NAME -->
    <!-- runs: 12 -->
    ...
    <!-- /study -->

The second line says of how many runs the tables are, so that they aren't replaced by those of fewer
where the others are not at hand.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from coach_rl.configuration.strict_json import write_text
from coach_rl.core.errors import ConfigurationError

END = "<!-- /study -->"


def mark_of(study: str) -> str:
    """The line that begins a study's block."""
    return f"<!-- study: {study} -->"


def write_blocks(pages: Sequence[Path], study: str, text: str, *, runs: int) -> list[Path]:
    """Write a text into every block of a study, and leave the rest of the pages as it is.

    Nothing is written where one of the pages cannot be.

    Args:
        pages: Files, and folders whose `.md` files are looked at.
        study: The study's name.
        text: What goes between the marks.
        runs: Number of runs that the text is about.

    Returns:
        The pages that have such a block.

    Raises:
        ConfigurationError: There is no such page, no page has a block, or one has no end or is
            about more runs.
    """
    changed = {}
    for page in _files(pages):
        try:
            before = page.read_bytes().decode()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"cannot read the page {page}: {error}") from error
        if mark_of(study) in before:
            changed[page] = with_block(before, study, text, runs=runs, source=str(page))
    if not changed:
        looked = ", ".join(map(str, pages))
        raise ConfigurationError(
            f"no page in {looked} has a block of the study '{study}'; put the lines "
            f"{mark_of(study)} and {END} where its tables belong"
        )
    for page, content in changed.items():
        write_text(page, content)
    return list(changed)


def with_block(page: str, study: str, text: str, *, runs: int, source: str) -> str:
    """A page with a text in every block of a study.

    Args:
        page: The page's text, with whatever ends of lines it has.
        study: The study's name.
        text: What goes between the marks.
        runs: Number of runs that the text is about.
        source: The page's name, for errors.

    Raises:
        ConfigurationError: A block has no end, or is about more runs.
    """
    newline = "\r\n" if "\r\n" in page else "\n"
    block = newline.join(["", f"<!-- runs: {runs} -->", *text.strip("\n").split("\n"), ""])
    first, *rest = page.split(mark_of(study))
    parts = [first]
    for part in rest:
        inside, end, after = part.partition(END)
        if not end or "<!-- study:" in inside:
            raise ConfigurationError(
                f"the block {mark_of(study)} in {source} has no end; put {END} after it"
            )
        before = re.search(r"<!-- runs: (\d+) -->", inside)
        if before is not None and int(before[1]) > runs:
            raise ConfigurationError(
                f"the block {mark_of(study)} in {source} is about {before[1]} runs, and here are "
                f"{runs}; name the folders of the others with --runs, or delete the line "
                f"{before[0]} to have the tables of fewer"
            )
        parts.append(f"{block}{END}{after}")
    return mark_of(study).join(parts)


def _files(pages: Sequence[Path]) -> list[Path]:
    missing = [page for page in pages if not page.exists()]
    if missing:
        raise ConfigurationError(f"there is no page {missing[0]}")
    found = (sorted(page.rglob("*.md")) if page.is_dir() else [page] for page in pages)
    return [page for files in found for page in files]
