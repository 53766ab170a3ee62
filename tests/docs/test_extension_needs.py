"""The table of extensions on the page of the architecture is that of the extensions."""

import re

from tests.configuration.test_extensions import CHECKOUT, EXTENSIONS


def test_needs_are_those_of_the_page() -> None:
    page = (CHECKOUT / "docs/architecture.md").read_text().partition("| extension | needs |")[2]
    rows = (re.findall(r"`(\w+)`", row) for row in page.partition("\n\n")[0].splitlines())
    listed = {row[0]: tuple(row[1:]) for row in rows if row}
    assert listed == {name: each.needs for name, each in EXTENSIONS.items()}
