"""Published figures in the tables of result pages are those of the studies that made them.

A table whose runs are gone cannot be made again, so that a corrected figure would not reach it.
"""

import re
from pathlib import Path

import pytest

from coach_rl.extensions.studies.study import load_study

CHECKOUT = Path(__file__).parents[3]
FILES = [
    path
    for path in sorted((CHECKOUT / "benchmarks" / "studies").glob("*.py"))
    if path.stem not in ("one_walker", "workshop")  # their studies need the runs of others
]
STUDIES = [
    f"{path.name}:{name}"
    for path in FILES
    for name in re.findall(r"^def (\w+)\(\) -> Study:", path.read_text(), re.MULTILINE)
]


def published_cells(block):
    """(variant, cell) of the column `published`, for the rows of a block that have one."""
    published = None
    for line in block.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            published = None
        elif "published" in cells:
            published = cells.index("published")
        elif published is not None and not cells[0].startswith("---"):
            yield cells[0], cells[published]


@pytest.mark.parametrize("name", STUDIES)
def test_result_page_published_cells_equal_the_study(name):
    study = load_study(str(CHECKOUT / "benchmarks" / "studies" / name))
    published = {variant.name: variant.published for variant in study.variants}
    for page in map(Path, study.pages):
        pattern = rf"<!-- study: {study.name} -->\n(.*?)<!-- /study -->"
        for block in re.findall(pattern, page.read_text(), re.DOTALL):
            for variant, cell in published_cells(block):
                expected = published[variant]
                figure, _, source = cell.partition(" (")
                assert source == ("" if expected is None else f"{expected.source})")
                if expected is not None:
                    number = float(figure.removesuffix(" %").replace(",", ""))
                    percent = figure.endswith("%")
                    assert number == pytest.approx(expected.score * 100**percent, rel=1e-3)
