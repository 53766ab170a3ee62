"""The table of extensions on the page of the architecture is that of the extensions."""

import re

from tests.configuration.test_extensions import CHECKOUT, EXTENSIONS


def test_needs_are_those_of_the_page() -> None:
    page = (CHECKOUT / "docs/architecture.md").read_text().partition("| extension | needs |")[2]
    listed = {}
    for row in page.partition("\n\n")[0].splitlines():
        names, needs = (re.findall(r"`(\w+)`", cell) for cell in f"{row}||".split("|")[1:3])
        listed |= dict.fromkeys(names, tuple(needs))
    assert listed == {name: each.needs for name, each in EXTENSIONS.items()}
