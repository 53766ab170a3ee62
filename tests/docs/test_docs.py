"""The programs of the pages run, commands parse, and links, metrics and tables are right.

Every ```python block of a page is run from top to bottom in one namespace; every `coach` and `make`
line of a ```bash block is checked against the command line and the Makefile.
"""

import re
import runpy
import shlex
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest
import torch

import coach_rl as rl
from coach_rl.cli.commands import COMMANDS, parse_arguments
from coach_rl.cli.settings import overrides_of
from coach_rl.configuration.presets import shipped_presets
from coach_rl.environments.faults import Cause
from tests.notebooks import stand_in_for_ipython

CHECKOUT = Path(__file__).parent.parent.parent
DOCS = CHECKOUT / "docs"
PAGES = sorted([*CHECKOUT.glob("*.md"), *DOCS.rglob("*.md")])
METRICS = runpy.run_path(str(CHECKOUT / ".ci" / "metrics_page.py"))
DESCRIBED = {
    name: re.compile(re.sub(r"<\w+>", ".+", name))
    for table, entries in METRICS["descriptions"]().items()
    if table != METRICS["KINDS"]
    for names in entries
    for name in names.split(", ")
}
"""Patterns of the metrics that the rooms describe, by their names."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    line: int  # of its first line of text, from 1
    text: str
    file: str  # that the text is to be saved as; empty for most


def blocks(markdown, language):
    found, opened = [], None
    lines = markdown.splitlines()
    for number, line in enumerate(lines, start=1):
        if not line.startswith("```"):
            continue
        if opened is None:
            opened = (line.removeprefix("```").strip(), number + 1)
        else:
            (name, _, file), first = opened[0].partition(" title="), opened[1]
            text = "\n".join(lines[first - 1 : number - 1]) + "\n"
            found.append(Block(name, first, text, file.strip('"')))
            opened = None
    assert opened is None, f"the block opened before line {opened[1]} is never closed"
    return [block for block in found if block.language == language]


@pytest.fixture(autouse=True)
def one_thread():
    """Small tensors are slow on several threads when the machine is busy."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def name_of(page):
    return str(page.relative_to(CHECKOUT))


def pages_with(language):
    return [page for page in PAGES if blocks(page.read_text(), language)]


def other_pages(language):
    """Those with blocks of a language, without the one whose package its own test installs."""
    return [page for page in pages_with(language) if page.stem != "how_to_extension"]


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("page", other_pages("python"), ids=name_of)
def test_page_programs_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    stand_in_for_ipython(monkeypatch)
    module = ModuleType(f"page_{page.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for block in blocks(page.read_text(), "python"):
        if block.file:
            Path(block.file).write_text(block.text)
            continue
        # Blank lines in front let a traceback name the line of the page.
        source = "\n" * (block.line - 1) + block.text
        exec(compile(source, str(page), "exec"), module.__dict__)


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize("page", other_pages("bash"), ids=name_of)
def test_page_commands_parse(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for block in blocks(page.read_text(), "python"):
        if block.file:  # which a command may name
            Path(block.file).parent.mkdir(parents=True, exist_ok=True)
            Path(block.file).write_text(block.text)
    for block in blocks(page.read_text(), "bash"):
        for line in block.text.replace("\\\n", " ").splitlines():
            understand(line)


def understand(line):
    """Raise unless a `coach` or `make` line asks for something that exists."""
    program, *words = shlex.split(line, comments=True) or [""]
    if program == "make":
        targets = re.findall(r"^(\w+):", (CHECKOUT / "Makefile").read_text(), re.MULTILINE)
        for word in words:
            assert word in targets, f"`{line}`: make has no target {word}"
    elif Path(program).name == "coach":
        if words == ["--help"]:
            return
        given = parse_arguments(words)
        if given.command is COMMANDS["new"]:  # the commands behind it need its files
            assert given.command.function()(given) == 0
        is_described = given.command in (COMMANDS["train"], COMMANDS["describe"])
        if is_described and not given.preset.partition(":")[0].endswith(".py"):
            preset = rl.load_preset(rl.find_preset(given.preset))
            preset.configure(overrides_of(given, preset))


@pytest.mark.parametrize(
    "wrong",
    [
        "coach -p CartPole_PPO --stepz 5",
        "coach -p CartPole_PPG",
        'coach -p CartPole_PPO -cp "agent.algorithm.discont=0.9"',
        "coach -crd run -lvl hopper",
    ],
)
def test_understand_wrong_command_error(wrong):
    with pytest.raises(rl.ConfigurationError):
        understand(wrong)


def test_understand_wrong_make_target_error():
    with pytest.raises(AssertionError, match="no target trian"):
        understand("make trian")


def test_pages_install_from_a_checkout():
    """Until it is, extras are installed from a checkout: pip install -e ".[video]"."""
    places = [*PAGES, *(CHECKOUT / "benchmarks").rglob("*.md")]
    for folder in ("coach_rl", "environments", "filters", "presets", "benchmarks"):
        places += (CHECKOUT / folder).rglob("*.py")
    wrong = re.compile(r"coach-rl\[|pip install( -\S+)* coach")
    assert wrong.search("pip install -U coach_rl")
    assert not [name_of(place) for place in places if wrong.search(place.read_text())]


def anchors(markdown):
    """The anchors of a page's headings, as GitHub makes them."""
    plain = re.sub(r"^```.*?^```", "", markdown, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", plain, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_page_links_exist(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"\w+://", target):
            continue
        file, _, anchor = target.partition("#")
        place = (page.parent / file).resolve() if file else page
        assert place.exists(), f"{name_of(page)} links to {target}, which does not exist"
        if anchor:
            assert anchor in anchors(place.read_text()), (
                f"{name_of(page)} links to {target}, which has no such heading"
            )


def test_import_table_equals_the_enforced_matrix():
    allowed = runpy.run_path(str(CHECKOUT / "tests" / "test_architecture.py"))["ALLOWED"]
    section = (DOCS / "architecture.md").read_text().partition("## Who may import whom")[2]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", section.partition("\n## ")[0], re.MULTILINE)
    table = {room: set(re.findall(r"`(\w+)`", rooms)) for room, rooms in rows}
    presets = table.pop("presets")
    assert not presets, "presets may import everything"
    assert table == allowed


def test_reading_lists_name_files_that_exist():
    section = (DOCS / "architecture.md").read_text().partition("## Reading lists")[2]
    files = re.findall(r"`((?:coach_rl|presets)/[\w/]+\.py)`", section)
    assert len(files) > 10
    assert [file for file in files if not (CHECKOUT / file).exists()] == []


def metrics_in_the_source():
    rooms = "|".join({name.partition("/")[0] for name in DESCRIBED})
    literal = re.compile(rf'"((?:(?:final_)?evaluation_)?(?:{rooms})/[a-z0-9_]*[a-z0-9])"')
    names = {f"faults/{cause}" for cause in get_args(Cause)}
    for folder in ("coach_rl", "environments", "filters"):
        for file in (CHECKOUT / folder).rglob("*.py"):
            names |= set(literal.findall(file.read_text()))
    return names


def test_tables_of_metrics_equal_the_descriptions():
    """After a change: `python .ci/metrics_page.py`."""
    texts = {page: page.read_text() for page in METRICS["PAGES"]}
    assert {page: METRICS["rewritten"](page) for page in texts} == texts
    found = [title for text in texts.values() for title in METRICS["TABLE"].findall(text)]
    assert sorted(found) == sorted(METRICS["descriptions"]())


def test_presets_page_names_every_preset():
    text = (DOCS / "presets.md").read_text()
    assert not [name for name in shipped_presets() if f"`{name}`" not in text]


@pytest.mark.parametrize(
    ("page", "parameters"),
    [
        ("ppo", rl.PPOAlgorithmParameters),
        ("dqn", rl.DQNAlgorithmParameters),
        ("ddpg", rl.DDPGAlgorithmParameters),
        ("td3", rl.TD3AlgorithmParameters),
        ("td3", rl.SACAlgorithmParameters),
    ],
)
def test_table_of_an_algorithm_names_every_parameter_and_its_default(page, parameters):
    text = (DOCS / "algorithms" / f"{page}.md").read_text()
    section = text.partition(f"`{parameters.__name__}` (`agent.algorithm.…`)")[2]
    table = section.partition("\n|")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \|", table, re.MULTILINE)
    default = parameters()
    assert sorted(name for name, _ in rows) == sorted(field.name for field in fields(default))
    for name, shown in rows:
        value = getattr(default, name)
        if value is None or isinstance(value, bool):
            assert shown == str(value), name
        elif isinstance(value, int | float):
            assert float(shown) == value, name


NAMED_TEST = re.compile(r"`(tests/[\w/]+\.py)((?:::\w+)*)`")


@pytest.mark.parametrize(
    "page", [page for page in PAGES if NAMED_TEST.search(page.read_text())], ids=name_of
)
def test_named_tests_exist(page):
    for file, names in NAMED_TEST.findall(page.read_text()):
        assert (CHECKOUT / file).is_file(), file
        source = (CHECKOUT / file).read_text()
        for name in filter(None, names.split("::")):
            assert re.search(rf"^\s*(?:def|class) {name}\b", source, re.M), f"{file}::{name}"
