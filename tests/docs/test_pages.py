"""The pages of the documentation: their order, length and number, and where moved ones are."""

import re
import runpy
from pathlib import Path

import pytest

from coach_rl.configuration.extensions import own_extensions

CHECKOUT = Path(__file__).parent.parent.parent
DOCS = CHECKOUT / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
MOST_WORDS = 2_500
"""Ten minutes of reading; a longer page has two subjects, or repeats what another one has. Words
are separated by white space, as `benchmarks/house.py` counts them: code and bars of tables too."""
LATER = {
    *("atari", "dm_control"),
    *("curiosity", "minigrid"),
    *("data", "evaluation_from_data", "goals_from_data", "imitation", "offline"),
}
"""Extensions since the cut to `MOST_WORDS_OF_ALL` words. A page of theirs counts for itself."""
MOST_WORDS_OF_A_LATER_PAGE = 1_500
LATER_PAGES = sorted(page for each in own_extensions() if each.name in LATER for page in each.pages)
MOST_WORDS_OF_ALL = 90_000
MOST_PAGES = 60
"""The subjects of 90,000 words: 20 guides for runs and presets, 10 pages on algorithms, and one for
each way to extend the engine."""
SITE = runpy.run_path(str(CHECKOUT / ".ci" / "docs_site.py"))


def navigation():
    """Pages in the order of the site's navigation."""
    section = (CHECKOUT / "mkdocs.yml").read_text().partition("\nnav:")[2].partition("\nhooks:")[0]
    return re.findall(r"- ([\w/]+\.md)$", section, re.MULTILINE)


def index():
    """Pages in the order of the lists of docs/README.md."""
    entries = re.findall(r"^- \[.*(?:\n  .*)*", (DOCS / "README.md").read_text(), re.MULTILINE)
    links = [link for entry in entries for link in re.findall(r"\]\(([^)#]+\.md)\)", entry)]
    return [link.removeprefix("../") for link in links]


def test_index_and_navigation_have_the_same_order():
    assert ["README.md", *index()] == navigation()


def test_navigation_has_every_page_once():
    outside = {"CHANGELOG.md", "CONTRIBUTING.md"}
    assert sorted(set(navigation()) - outside) == PAGES
    assert len(navigation()) == len(set(navigation()))


def test_pages_of_an_extension_are_a_section_of_the_navigation():
    section = (CHECKOUT / "mkdocs.yml").read_text().partition("\nnav:")[2].partition("\nhooks:")[0]
    parts = re.findall(r"^      - .* \((\w+)\):\n((?:          - .*\n)+)", section, re.MULTILINE)
    found = {name: sorted(re.findall(r"- (\S+\.md)", pages)) for name, pages in parts}
    assert found == {each.name: sorted(each.pages) for each in own_extensions() if each.pages}


@pytest.mark.parametrize("page", PAGES)
def test_page_length_is_limited(page):
    words = len((DOCS / page).read_text().split())
    assert words <= MOST_WORDS, f"{page} has {words} words"


def test_words_of_all_pages_are_limited():
    counted = sorted(set(PAGES) - set(LATER_PAGES))
    words = sum(len((DOCS / page).read_text().split()) for page in counted)
    assert words <= MOST_WORDS_OF_ALL, f"the pages have {words} words"


@pytest.mark.parametrize("page", LATER_PAGES)
def test_later_page_length_is_limited(page):
    words = len((DOCS / page).read_text().split())
    assert words <= MOST_WORDS_OF_A_LATER_PAGE, f"{page} has {words} words"


def test_page_count_is_limited():
    assert len(PAGES) - len(LATER_PAGES) <= MOST_PAGES


@pytest.mark.parametrize("old", SITE["MOVED"])
def test_moved_page_has_a_target(old):
    page, _, anchor = SITE["MOVED"][old].partition("#")
    assert f"{old}.md" not in PAGES
    headings = re.findall(r"^#+ (.*)$", (DOCS / f"{page}.md").read_text(), re.MULTILINE)
    assert anchor in {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


def test_pages_that_the_code_names_exist():
    folders = ("coach_rl", "environments", "filters", "presets", "benchmarks", "tests")
    missing = {
        (name, file.relative_to(CHECKOUT).as_posix())
        for folder in folders
        for file in (CHECKOUT / folder).rglob("*.py")
        for name in re.findall(r"docs/[\w/]+\.md", file.read_text())
        if not (CHECKOUT / name).exists()
    }
    assert not missing


def test_api_page_has_every_public_name():
    import coach_rl

    page = SITE["public_names_page"]()
    assert "::: coach_rl\n" in page
    assert set(re.findall(r"^- \[?`(\w+)`", page, re.MULTILINE)) == set(coach_rl.__all__)


def test_tutorial_notebook_equals_the_page():
    """After a change: `python .ci/tutorial_notebook.py`."""
    made = runpy.run_path(str(CHECKOUT / ".ci" / "tutorial_notebook.py"))["notebook"]
    page = (DOCS / "tutorial.md").read_text()
    assert (DOCS / "tutorial.ipynb").read_text() == made(page)
