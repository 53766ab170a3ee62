"""The levels of a hierarchy in numbers."""

from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from coach_rl import Published, Study, Variant
from coach_rl.core.errors import ConfigurationError
from coach_rl.extensions.studies.runs import Row, RunFrame
from coach_rl.extensions.studies.scores import Curve, RunScores, read_scores
from coach_rl.extensions.studies.statistics import estimate
from coach_rl.extensions.studies.tables import (
    LEVEL_COLUMNS,
    GroupLevel,
    levels_with_goals,
    report,
    seed_tables,
    write_blocks,
)
from coach_rl.telemetry.tables import rich_table, table
from tests.extensions.studies.written_runs import write_run

A = Variant(name="a", preset="p")
B = Variant(name="b", preset="p")


@dataclass
class Run:
    """A run with its score, which needs no folder."""

    variant: str
    seed: int
    value: float | None
    level: str = "here"
    curve: tuple[float, ...] = (1.0, 2.0)
    state: str = "done"
    code: tuple[str, ...] = ("c0ffee",)
    final: dict[str, float] = field(default_factory=dict)
    any_step: float | None = None
    steps: int = 100
    scores: RunScores | None = None

    def __post_init__(self) -> None:
        count = len(self.curve)
        self.scores = None if self.state == "missing" else RunScores(
            path=Path(), experiment="s", labels={}, preset="p", level=self.level, seed=self.seed,
            created="", state=self.state, holder=None, environment_steps=self.steps,
            training_steps=self.steps // 2, episodes=3, wall_seconds=1800.0, steps_per_second=50.0,
            curve=Curve(
                steps=np.arange(1, count + 1) * self.steps // count,
                hours=np.zeros(count),
                metrics={"reward_mean": np.array(self.curve), "success_rate": np.array(self.curve)},
            ),
            final=self.final,
            code=self.code,
        )  # fmt: skip

    @property
    def is_done(self) -> bool:
        return self.state == "done"

    def score(self, study: Study) -> float | None:
        return self.value

    def evaluation(self, study: Study) -> dict[str, float]:
        scored = {study.metric: self.value, "success_any_rate": self.any_step}
        return {**{name: of for name, of in scored.items() if of is not None}, **self.final}

    def success_at_any_step(self, study: Study) -> float | None:
        return self.any_step


def study_of(*variants, **given):
    return Study(**{"name": "s", "variants": variants, "seeds": (1, 2, 3, 4), **given})


def cells(text, start):
    """The cells of the first line that begins with a cell, by the names of its columns."""
    lines = text.splitlines()
    row = next(i for i, line in enumerate(lines) if line.startswith(f"| {start} |"))
    head = max(i for i in range(row) if lines[i].startswith("| ---")) - 1
    return dict(zip(lines[head][2:-2].split(" | "), lines[row][2:-2].split(" | "), strict=True))


def test_scores_of_a_variant_in_one_line():
    runs = [Run("a", seed, score) for seed, score in enumerate((1.0, 2.0, 3.0, 6.0), 1)]
    line = cells(report(study_of(A), runs), "a")
    # mean 3, squares of what is left 4 + 1 + 0 + 9 over 3; IQM (2 + 3) / 2
    assert line["mean"] == "3.0 ± 2.2"
    assert line["median"] == "2.5"
    assert line["IQM (95 %)"].startswith("2.5 (")
    assert (line["seeds"], line["steps"], line["updates"]) == ("4", "100", "50")
    assert (line["hours"], line["steps/s"]) == ("0.50", "50")


def test_best_point_is_of_the_mean_over_seeds():
    runs = [Run("a", 7, 0.0, curve=(5.0, 1.0, 4.0)), Run("a", 8, 0.0, curve=(0.0, 5.0, 4.0))]
    text = report(study_of(A), runs)
    assert (cells(text, "a")["best point"], cells(text, "a")["at step"]) == ("4.0 ± 0.0", "100")
    assert cells(text, "a | 7")["best evaluation (at)"] == "5.0 (33)"
    assert cells(text, "a | 8")["last"] == "4.0"


def test_scores_where_no_evaluation_has_all_seeds_leave_the_best_empty():
    nan = float("nan")
    runs = [Run("a", 1, 0.0, curve=(nan, 3.0)), Run("a", 2, 1.0, curve=(1.0, nan))]
    line = cells(report(study_of(A), runs), "a")
    assert (line["best point"], line["at step"], line["mean"]) == ("", "", "0.5 ± 0.7")
    runs[0] = Run("a", 1, 0.0, curve=(2.0, 3.0))
    line = cells(report(study_of(A), runs), "a")
    assert (line["best point"], line["at step"]) == ("1.5 ± 0.7", "50")
    assert "nan" not in report(study_of(A), runs)


def test_curve_of_two_evaluations_at_one_step_has_the_later():
    runs = [Run("a", seed, 0.0, curve=(9.0, 1.0, 2.0), steps=200) for seed in (1, 2)]
    for run in runs:
        steps = replace(run.scores.curve, steps=np.array([100, 100, 200]))
        run.scores = replace(run.scores, curve=steps)
    line = cells(report(study_of(A), runs), "a")
    assert (line["best point"], line["at step"]) == ("2.0 ± 0.0", "200")


def test_tail_is_the_mean_of_the_last_twenty_evaluations_of_forty():
    long = Run("a", 1, 0.0, curve=(*[0.0] * 20, *[1.0] * 10, *[2.0] * 10))
    assert cells(report(study_of(A), [long]), "a")["tail"] == "1.5"
    short = Run("a", 1, 0.0, curve=(1.0,) * 39)
    assert cells(report(study_of(A), [short]), "a")["tail"] == ""


def test_rates_are_percentages_and_their_intervals_possible():
    study = study_of(A, metric="success_rate")
    runs = [Run("a", 1, 1.0), Run("a", 2, 0.995), Run("a", 3, 0.8)]
    line = cells(report(study, runs), "a")
    assert line["median"] == "99.5 %"
    assert line["IQM (95 %)"].endswith("to 100 %)")


def test_success_at_any_step_stands_beside_the_score_where_it_is_known():
    study = study_of(A, B, metric="success_rate")
    runs = [Run("a", 1, 0.5, any_step=0.75), Run("a", 2, 0.5, any_step=0.25), Run("b", 1, 0.5)]
    text = report(study, runs)
    assert cells(text, "a")["success at any step"] == "50 % ± 35.4 %"
    singly = text[text.index("| variant | seed |") :]
    assert cells(singly, "a | 2")["success at any step"] == "25 %"
    assert cells(text, "b")["success at any step"] == ""
    assert "any step" not in report(study, runs[2:])


def test_difference_from_the_baseline_is_called_only_where_it_is_clear():
    study = study_of(A, B, Variant(name="c", preset="p"), baseline="a")
    runs = [Run("a", seed, 10.0 + seed / 10) for seed in (1, 2, 3, 4)]
    runs += [Run("b", seed, 20.0 + seed / 10) for seed in (1, 2, 3, 4)]
    runs += [Run("c", seed, 10.0 * (seed - 2)) for seed in (1, 2, 3, 4)]
    text = report(study, runs)
    table = text[text.index("against a") :]
    b, c = (next(x for x in table.splitlines() if x.startswith(f"| {name} |")) for name in "bc")
    assert b.startswith("| b | 10.0 (")
    assert b.endswith("| higher |")
    assert c.endswith("| no clear difference |")


def test_report_one_seed_no_verdict():
    text = report(study_of(A, B, baseline="a"), [Run("a", 1, 1.0), Run("b", 1, 2.0)])
    assert "| b | 1.0 (too few seeds) | 100 % (too few seeds) |  | too few seeds |" in text


def test_variants_on_another_level_are_not_compared():
    study = study_of(A, B, baseline="a")
    assert "against a" not in report(study, [Run("a", 1, 1.0), Run("b", 1, 2.0, level="there")])
    assert "no finished run to compare with" in report(study, [Run("b", 1, 2.0)])


def test_published_scores_stand_beside_ones_own():
    published = Published(score=7.0, source="them", curve={50: (6.0, 0.5), 900: (9.0, 0.1)})
    study = study_of(Variant(name="a", preset="p", published=published), B)
    text = report(study, [Run("a", 1, 1.0, curve=(3.0, 4.0)), Run("b", 1, 2.0)])
    assert cells(text, "a")["published"] == "7.0 (them)"
    assert cells(text, "a: them")["50"] == "6.0 ± 0.5"
    assert "| a | 1 | 3.0 |" in text
    assert "900" not in text


def test_curves_are_shown_at_a_few_of_their_evaluations():
    text = report(study_of(A), [Run("a", 1, 1.0, curve=tuple(range(13)), steps=1300)])
    curve = cells(text[text.index("after steps") - 2 :], "a")
    assert {step: value for step, value in curve.items() if "," in step or step.isdecimal()} == {
        "200": "1.0", "400": "3.0", "600": "5.0", "800": "7.0", "1,000": "9.0", "1,300": "12.0"
    }  # fmt: skip
    assert "| after steps | seeds | 50 | 100 |" in report(study_of(A), [Run("a", 1, 1.0)])


def test_report_missing_runs():
    states = {2: "missing", 3: "stopped", 4: "done"}
    runs = [Run("a", 1, 1.0), *(Run("a", seed, None, state=of) for seed, of in states.items())]
    text = report(study_of(A), runs)
    assert "Missing: 3 of 4 runs." in text
    assert "- a: seed 2 not begun" in text
    assert "- a: seed 3 stopped" in text
    assert "- a: seed 4 done, without reward_mean" in text
    assert "seed 4 not evaluated over 9 episodes" in report(study_of(A, episodes=9), runs)
    assert "Missing" not in report(study_of(A), runs[:1])


def test_report_without_finished_runs():
    text = report(study_of(A, question="Why?"), [Run("a", 1, None, state="missing")])
    assert text == "Why?\n\nMissing: 1 of 1 runs.\n\n- a: seed 1 not begun"


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        ((("one",), ("one",)), ""),
        ((("one",), ("two",)), "- a: one: seed 1; two: seed 2"),
        ((("one", "two"), ("one", "two")), "- a: one, two: seeds 1, 2"),
    ],
)
def test_report_different_code_named(codes, said):
    runs = [Run("a", seed, 1.0, code=code) for seed, code in enumerate(codes, 1)]
    text = report(study_of(A), runs)
    assert ("different versions of the code" in text) == bool(said)
    assert said in text


def test_levels_of_a_hierarchy_have_a_table():
    runs = [Run("a", 1, 1.0, final={"low/goal_share": 0.25, "reward_mean": 1.0})]
    assert "| a | low | 1 | 25 % |\n" in report(study_of(A), runs)
    runs[0].scores.final["low/distance"] = 2.0
    runs += [Run("b", 1, 1.0, final={"top/goal_share": 0.5, "top/graph_places": 1234.0})]
    text = report(study_of(A, B), runs)
    assert cells(text, "a | low")["distance at the end"] == "2"
    assert cells(text, "a | low")["places"] == ""
    assert cells(text, "b | top")["places"] == "1,234"


def test_brief_report_leaves_out_curves_and_single_runs():
    runs = [Run("a", 1, 1.0)]
    assert "after steps" in report(study_of(A), runs)
    brief = report(study_of(A), runs, brief=True)
    assert "after steps" not in brief
    assert "best evaluation" not in brief


@pytest.fixture
def run(tmp_path) -> RunScores:
    return read_scores(write_run(tmp_path / "run"))


def test_levels_with_goals_reach_one_or_are_near_one(run):
    final = {
        **{"top/goal_share": 0.0, "top/distance": 0.0, "graph/goal_share": 0.0},
        **{"graph/distance": 6.5, "low/goal_share": 1.0, "reward_mean": 1.0},
    }
    assert levels_with_goals([run, replace(run, final=final)]) == ["graph", "low"]
    assert levels_with_goals([run]) == []


def test_level_columns_means_and_empty_left_out(run):
    graph = {"graph_places": 1200.0, "planning_seconds": 4e-4, "distance": 14.0}
    final = {f"graph/{name}": value for name, value in graph.items()} | {"low/distance": 0.25}
    one = replace(run, final=final, thresholds={"graph": (0.5, 0.5), "low": (0.5, 1.0)})
    runs = [one, replace(one, final={**final, "graph/distance": 15.0}), replace(run, final={})]
    rows = tuple(Row(group="a", run=each, evaluation={"reward_mean": 0.0}) for each in runs)
    (group,) = RunFrame(groups=("a",), rows=rows).scored("reward_mean")
    found = table(LEVEL_COLUMNS, [GroupLevel(group, "graph"), GroupLevel(group, "low")])
    assert {
        column.title: cells for column, *cells in zip(found.columns, *found.cells(), strict=True)
    } == {
        "reached within": ["0.5", "0.5 to 1"],
        "distance at the end": ["14.5", "0.25"],
        "places": ["1,200", ""],
        "ms of planning a decision": ["0.4", ""],
    }


def text_of(runs):
    console = Console(file=StringIO(), width=120)
    for each in seed_tables(runs):
        console.print(rich_table(each))
    return console.file.getvalue()


def test_seed_tables_statistics_by_hand(run):
    scores = [100.0, 200.0, 300.0, 1000.0]
    runs = [
        replace(run, seed=seed, final={"reward_mean": score}) for seed, score in enumerate(scores)
    ]
    text = text_of(runs)
    interval = estimate(np.array(scores))
    assert "400.00" in text  # mean
    assert "408.25" in text  # deviation: sqrt((300² + 200² + 100² + 600²) / 3)
    assert "250.00" in text  # (200 + 300) / 2
    assert f"({interval.low:,.2f} to {interval.high:,.2f})" in text
    assert "success" not in text


def test_seed_tables_success_and_levels(run):
    levels = {"top/goal_share": 0.0, "top/distance": 0.0, "low/goal_share": 0.25}
    final = {"reward_mean": -3.0, "success_rate": 0.5, **levels, "low/distance": 0.1}
    text = text_of([replace(run, final=final)])
    assert "50.0%" in text
    assert "low reaches its goal" in text
    assert "25.0%" in text
    assert "top" not in text
    assert "Over one seed" in text
    assert " to " not in text  # no interval


def test_seed_tables_nan_score_named(run):
    assert "not finite" in text_of([replace(run, final={"reward_mean": float("nan")})] * 2)


PAGE = "# A page\r\nbefore\r\n<!-- study: one -->\r\nold\r\n<!-- /study -->\r\n\tafter  \r\n\r\n"


def test_block_is_written_and_the_rest_stays_byte_for_byte(tmp_path):
    page = tmp_path / "page.md"
    page.write_bytes(PAGE.encode())
    assert write_blocks([page], "one", "a\nb\n", runs=2) == [page]
    after = page.read_bytes().decode()
    assert after == PAGE.replace("old", "<!-- runs: 2 -->\r\na\r\nb")
    assert write_blocks([page], "one", "a\nb", runs=2) == [page]
    assert page.read_bytes().decode() == after


def test_every_block_of_the_study_is_written_and_no_other(tmp_path):
    (tmp_path / "sub").mkdir()
    mine = "x<!-- study: one --><!-- /study -->y<!-- study: one --><!-- /study -->"
    other = "<!-- study: one more -->kept<!-- /study -->"
    (tmp_path / "sub" / "a.md").write_text(mine + other)
    (tmp_path / "b.md").write_text(other)
    assert write_blocks([tmp_path], "one", "T", runs=0) == [tmp_path / "sub" / "a.md"]
    block = "<!-- study: one -->\n<!-- runs: 0 -->\nT\n<!-- /study -->"
    assert (tmp_path / "sub" / "a.md").read_text() == f"x{block}y{block}{other}"
    assert (tmp_path / "b.md").read_text() == other


def test_write_blocks_more_runs_error(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- study: one --><!-- /study -->")
    write_blocks([page], "one", "many", runs=12)
    with pytest.raises(ConfigurationError):
        write_blocks([page], "one", "few", runs=11)
    assert "many" in page.read_text()
    write_blocks([page], "one", "more", runs=13)
    assert "more" in page.read_text()


def test_write_blocks_incomplete_block_changes_no_page(tmp_path):
    good, page = tmp_path / "a.md", tmp_path / "page.md"
    page.write_text("<!-- study: one -->")
    good.write_text("<!-- study: one --><!-- /study -->")
    with pytest.raises(ConfigurationError):
        write_blocks([good, page], "one", "text", runs=1)
    assert page.read_text() == "<!-- study: one -->"
    assert good.read_text() == "<!-- study: one --><!-- /study -->"
