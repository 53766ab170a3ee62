"""The report of a study as an HTML page."""

import base64
import io
import re
import shlex
import shutil
import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from coach_rl import Study, Variant
from coach_rl.configuration.overrides import parse_overrides
from coach_rl.extensions.studies.job import Job, coach_line, identity, run_job
from coach_rl.extensions.studies.plots import COLOURS
from coach_rl.extensions.studies.report import DARK_COLOURS, report_page
from coach_rl.extensions.studies.study import jobs_of
from coach_rl.extensions.studies.study_runs import study_runs
from coach_rl.extensions.studies.tables import report
from coach_rl.runs.folder import read_manifest, write_manifest
from tests.extensions.studies.walks import WALK, walk

STUDY = Study(
    name="walks",
    question="Is <b>fast</b> better?",
    about="A walk.\n\nIt pretends to learn.",
    variants=(
        Variant(name="slow", preset=WALK),
        Variant(name="fast & far", preset=WALK, changes={"learning_rate": 0.5}),
    ),
    seeds=(1, 2, 3),
    steps=60,
    baseline="slow",
    device="cpu",
)

WHEN = datetime(2026, 11, 22, tzinfo=UTC)
VOID = ("meta", "path", "use", "rect", "img")
"""Tags that nothing closes."""


class Page(HTMLParser):
    """What a page consists of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def page_of(study: Study, root: Path) -> str:
    return report_page(study, study_runs(study, root=root), file="walks.py", when=WHEN)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("report")
    assert {run_job(job).state for job in jobs_of(STUDY, root=root)} == {"done"}
    return root


@pytest.fixture(scope="module")
def text(root: Path) -> str:
    return page_of(STUDY, root)


def test_report_has_question_answer_tables_and_how_to_make_the_runs_again(text: str) -> None:
    assert "<h1>Is &lt;b&gt;fast&lt;/b&gt; better?</h1>" in text
    assert "<p>A walk.</p>\n<p>It pretends to learn.</p>" in text
    assert re.search(r'class="mark (yes">a difference|open">no difference established)<', text)
    assert '<th scope="row" class="text">slow (baseline)</th><td class="text">none</td>' in text
    assert '<td class="text">learning_rate=0.5</td>' in text
    assert "The same for all: preset fake_preset.py; level line; steps 60; seeds 1, 2, 3." in text
    (place,) = {*re.findall("<td[^>]*>([^<]*/walks)/", text)}
    assert text.count(place) == 6
    assert "<code>coach study run walks.py -ep again</code>" in text
    assert "<h2>Missing</h2>" not in text


def test_report_stands_alone_and_can_be_read_aloud(text: str) -> None:
    page = Page(text)
    requested = [each for tag in ("img", "link", "script", "iframe") for each in page.all(tag)]
    assert requested == []
    assert "@import" not in text
    assert {each for each in re.findall(r"url\((.)", text)} <= {"#"}
    hrefs = [value for _, own in page.tags for name, value in own.items() if "href" in name]
    assert all(value and value.startswith("#") for value in hrefs)
    pictures = page.all("svg")
    assert len(pictures) == 4
    for picture in pictures:
        assert picture["role"] == "img"
        assert len(picture["aria-label"] or "") > 30
    assert all(own.get("scope") in ("col", "row") for own in page.all("th"))
    assert len(page.all("table")) == len(page.all("caption")) == 5
    names = [own["id"] for _, own in page.tags if "id" in own]
    assert len(names) == len(set(names))


def test_newest_noted_pictures_of_each_variants_first_run_are_in_the_report(
    root: Path, tmp_path: Path
) -> None:
    shutil.copytree(root / "walks", tmp_path / "walks")
    for run in study_runs(STUDY, root=tmp_path):
        assert run.folder is not None
        run.folder.images.mkdir()
        for step, side in ((20, 3), (100, 4), (40, 5)):
            picture = Image.fromarray(np.full((side, side, 3), run.seed, np.uint8))
            picture.save(run.folder.images / f"step_{step}_low_map.png")
        (run.folder.images / "step_5_low_large.png").write_bytes(bytes(1_000_001))
    page = Page(page_of(STUDY, tmp_path))
    shown = page.all("img")
    assert [each["alt"] for each in shown] == [
        f"{variant}, seed 1: low_map after 100 steps." for variant in ("slow", "fast & far")
    ]
    _, data = (shown[0]["src"] or "").split("data:image/png;base64,")
    with Image.open(io.BytesIO(base64.b64decode(data))) as picture:
        assert picture.size == (4, 4)
        assert picture.getpixel((0, 0)) == (1, 1, 1)


def test_pictures_take_the_colours_of_the_page(text: str) -> None:
    svg = text[text.index("<svg") :]
    assert "var(--group0)" in svg
    assert "var(--group1)" in svg
    assert not re.search("#0072b2|#d55e00|#000000", svg, re.IGNORECASE)
    assert len(DARK_COLOURS) == len(COLOURS)


def test_missing_runs_are_named_and_nothing_is_concluded_without_any(root: Path) -> None:
    text = page_of(replace(STUDY, seeds=(1, 2, 3, 4)), root)
    assert "2 of 8 runs are missing; what follows may change." in text
    assert "<li>slow: seed 4 not begun</li>" in text
    nothing = page_of(STUDY, root / "nowhere")
    assert "No run has a score yet." in nothing
    assert "<svg" not in nothing
    assert "<li>slow: seeds 1, 2, 3 not begun</li>" in nothing


def test_report_without_a_baseline_compares_nothing(root: Path) -> None:
    text = page_of(replace(STUDY, baseline=None), root)
    assert "The study names no baseline, so nothing is compared." in text
    assert "no difference established</span>" not in text


def test_report_different_code_versions_listed(root: Path, tmp_path: Path) -> None:
    shutil.copytree(root / "walks", tmp_path / "walks")
    run = study_runs(STUDY, root=tmp_path)[0]
    assert run.folder is not None
    manifest = read_manifest(run.folder)
    write_manifest(run.folder, {**manifest, "git": None, "versions": {"coach-rl": "0.0.1"}})
    text = page_of(STUDY, tmp_path)
    assert "Runs of one variant were made with different versions of the code:" in text
    assert "<li>slow: version 0.0.1: seed 1; " in text


def test_coach_line_makes_the_same_run(tmp_path: Path) -> None:
    job = walk(tmp_path, learning_rate=0.25)
    line = coach_line([job, replace(job, task=replace(job.task, seed=4))])
    assert line is not None
    words = shlex.split(line)
    said = dict(zip(words[1::2], words[2::2], strict=True))
    assert said.pop("-cp") == "learning_rate=0.25"
    assert said == {"-p": WALK, "--seeds": "3,4", "--device": "cpu", "-e": "walk_again"}
    again = replace(job, overrides=parse_overrides("learning_rate=0.25"))
    assert identity(again) == identity(job)


@pytest.mark.parametrize(("threads", "named"), [(None, False), (1, True), (2, False)])
def test_coach_line_names_other_threads(tmp_path: Path, threads: int | None, named: bool) -> None:
    job = walk(tmp_path, threads=2)
    line = coach_line([replace(job, task=replace(job.task, threads=threads))])
    assert line is not None
    assert (f" --threads {threads} " in line) == named
    assert named or "--threads" not in line


def test_report_changes_by_seed_line_for_each(root: Path) -> None:
    slow = replace(STUDY.variants[0], changes_by_seed={2: {"learning_rate": 0.25}})
    text = page_of(replace(STUDY, variants=(slow, STUDY.variants[1])), root)
    assert ">seed 2: learning_rate=0.25</td>" in text
    section = text[text.index("How to make the runs again") :]
    lines = re.findall(
        "<pre><code>(coach -p .*)</code>", section[: section.index("fast &amp; far")]
    )
    assert ["--seed 1 " in lines[0], "--seed 2 " in lines[1], "--seed 3 " in lines[2]] == [True] * 3
    assert ["learning_rate=0.25" in line for line in lines] == [False, True, False]


def test_levels_and_success_at_any_step_are_in_both_reports(root: Path) -> None:
    study = replace(STUDY, metric="success_rate")
    figures = {"goal_share": 0.25, "distance": 1.5, "graph_places": 9.0, "graph_edges": 40.0}
    levels = {f"top/{name}": of for name, of in {**figures, "planning_seconds": 4e-4}.items()}
    runs = [
        replace(
            run,
            scores=replace(
                run.scores,
                final={"success_rate": 0.5, "success_any_rate": 0.75, **levels},
                thresholds={"top": (0.45,)},
            ),
        )
        for run in study_runs(study, root=root)
    ]
    assert runs[0].success_at_any_step(study) == 0.75
    assert runs[0].success_at_any_step(STUDY) is None
    assert runs[0].success_at_any_step(replace(study, episodes=7)) is None
    heads = "reached within", "distance at the end", "places", "edges", "ms of planning a decision"
    page, tables = report_page(study, runs, file="walks.py", when=WHEN), report(study, runs)
    Page(page)
    for head in ("success at any step", *heads):
        assert f'<th scope="col">{head}</th>' in page
        assert f" {head} |" in tables
    assert page.count(">success at any step<") == 2  # of scores, and of every run
    assert "| slow | top | 3 | 25 % ± 0 % | 0.45 | 1.5 | 9 | 40 | 0.4 |" in tables


def test_report_unwritable_changes_noted(tmp_path: Path) -> None:
    class Odd(float):
        def __repr__(self) -> str:
            return "odd at 1"

    job: Job = walk(tmp_path, learning_rate=Odd(0.25))
    assert coach_line([job]) is None


@pytest.mark.slow
def test_chromium_shows_tables_and_pictures_and_asks_no_network(root: Path, tmp_path: Path) -> None:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("needs Chromium")
    file, log = tmp_path / "page.html", tmp_path / "net.json"
    file.write_text(page_of(STUDY, root))
    words = [chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--log-net-log={log}"]
    words += [f"--user-data-dir={tmp_path / 'user'}", "--window-size=1000,2000"]
    picture = tmp_path / "page.png"
    shown = subprocess.run(
        [*words, f"--screenshot={picture}", "--dump-dom", file.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    page = Page(shown.stdout)
    assert len(page.all("table")) == 5
    assert len(page.all("svg")) == 4
    assert "Refused" not in shown.stderr
    assert picture.stat().st_size > 20_000
    initiators = re.findall('"initiator":"([^"]*)"', log.read_text())
    assert {*initiators} <= {"not an origin"}  # the browser's own; those of a page have one
