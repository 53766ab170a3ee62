"""`coach study`: a study run, extended, watched and reported from the command line."""

import json
import re
from pathlib import Path

import pytest

from coach_rl.cli.main import main
from tests.extensions.studies.walks import WALK

STUDY = f"""
from coach_rl import Study, Variant

def study() -> Study:
    return Study(
        name="walks",
        question="Which walk is longer?",
        variants=(
            Variant(name="slow", preset={WALK!r}),
            Variant(name="fast", preset={WALK!r}, changes={{"learning_rate": 0.5}}),
        ),
        seeds=(1, 2),
        steps=60,
        baseline="slow",
        device="cpu",
        pages=("page.md",),
    )
"""


@pytest.fixture(autouse=True)
def with_a_study(somewhere_else):
    Path("walks.py").write_text(STUDY)


def coach(*words):
    return main(["study", *words])


def made():
    return sorted(path.parent for path in Path("experiments").glob("walks/*/summary.json"))


def edit(old, new):
    Path("walks.py").write_text(Path("walks.py").read_text().replace(old, new))


def test_study_is_run_extended_and_reported(capsys):
    run = ("run", "walks.py", "--plain", "--jobs", "2", "-ntb")
    assert coach(*run) == 0
    first = made()
    assert len(first) == 4
    out = capsys.readouterr().out
    assert "study walks: 4 runs, 0 done" in out
    assert re.search(r"\| slow \| 60 \| 2 \| -?\d", out)
    times = [(path / "log.jsonl").stat().st_mtime_ns for path in first]

    edit("seeds=(1, 2)", "seeds=(1, 2, 3)")
    assert coach(*run) == 0
    assert len(made()) == 6
    assert set(first) < set(made())
    assert times == [(path / "log.jsonl").stat().st_mtime_ns for path in first]
    assert "study walks: 6 runs, 4 done" in capsys.readouterr().out

    edit("seeds=(1, 2, 3)", "seeds=(1, 2, 3, 4)")
    assert coach("status", "walks.py") == 0
    status = capsys.readouterr().out
    assert status.endswith("6 done, 2 missing\n")
    assert re.search(r"fast +4 +missing", status)

    Path("page.md").write_text("above\n<!-- study: walks -->\n<!-- /study -->\nbelow")
    assert coach("report", "walks.py", "--write") == 0
    page = Path("page.md").read_text()
    assert page.startswith("above\n<!-- study: walks -->\n<!-- runs: 6 -->\nWhich walk is longer?")
    assert page.endswith("- fast: seed 4 not begun\n<!-- /study -->\nbelow")
    assert "| against slow |" in page
    assert coach("report", "walks.py", "-ep", "elsewhere", "--write") == 2
    assert "is about 6 runs, and here are 0" in capsys.readouterr().err
    assert Path("page.md").read_text() == page
    assert coach("report", "walks.py", "-ep", "elsewhere", "--runs", "experiments") == 0
    assert "Missing: 2 of 8 runs." in capsys.readouterr().out


def test_failed_run_does_not_end_the_others(capsys):
    edit('"learning_rate": 0.5', '"learning_rate": 0.5, "fail_at": 30')
    assert coach("run", "walks.py", "--plain", "--jobs", "2", "-ntb") == 1
    out, err = capsys.readouterr()
    assert len(made()) == 2
    assert err.startswith("coach: error: 2 of 4 runs failed: fast seed 1: ")
    assert "the loss is NaN" in err
    assert err.count("\n") == 1
    assert "Missing: 2 of 4 runs." in out


def test_variant_that_does_not_resolve_is_said_before_anything_runs(capsys):
    edit('"learning_rate": 0.5', '"lerning_rate": 0.5')
    assert coach("run", "walks.py") == 2
    err = capsys.readouterr().err
    assert err.startswith("coach: error: the variant 'fast' of the study 'walks': ")
    assert "learning_rate" in err
    assert not Path("experiments").exists()


def test_records_of_a_study_are_exported_and_imported(capsys):
    assert coach("run", "walks.py", "--plain", "--jobs", "2", "-ntb") == 0
    edit("seeds=(1, 2)", "seeds=(1, 2, 3)")
    capsys.readouterr()
    assert coach("export", "walks.py") == 0
    told = capsys.readouterr().out
    assert told.startswith("4 of 6 runs written to walks.zip\nthe others have no score: ")
    assert told.endswith("coach study run walks.py\n")
    assert coach("import", "walks.zip", "-ep", "elsewhere") == 0
    assert capsys.readouterr().out == "4 new runs in elsewhere/walks, 0 were there already\n"
    for root in ("elsewhere", "experiments"):
        assert coach("import", "walks.zip", "-ep", root) == 0
        assert capsys.readouterr().out.startswith("0 new runs in ")
    assert coach("run", "walks.py", "--plain", "-ntb", "-ep", "elsewhere") == 0
    assert "study walks: 6 runs, 4 done" in capsys.readouterr().out
    assert coach("export", "walks.py", "-ep", "elsewhere", "--to", "walks.zip") == 0
    assert capsys.readouterr().out == "6 of 6 runs written to walks.zip\n"
    run = made()[0].name
    for words in (["-crd"], ["--evaluate", "1", "-crd"]):
        assert main([*words, f"elsewhere/walks/{run}"]) == 2
        said = capsys.readouterr().err
        assert "was imported without its checkpoints, so nothing can continue from it" in said


def test_report_compare_and_plot_take_the_study_file(capsys):
    assert coach("run", "walks.py", "--plain", "--jobs", "2", "-ntb") == 0
    capsys.readouterr()
    assert main(["report", "walks.py"]) == 0
    assert capsys.readouterr().out == "baseline:   slow\nwritten to  walks.html\n"
    assert "Which walk is longer?" in Path("walks.html").read_text()
    assert main(["report", "walks.py", "--to", "reports/today.html"]) == 0
    assert Path("reports/today.html").exists()
    capsys.readouterr()
    assert main(["compare", "walks.py"]) == 0
    out = capsys.readouterr().out
    assert "Compared with slow" in out
    assert "between fast and slow" in out or "fast is" in out
    assert main(["plot", "walks.py", "--to", "pictures"]) == 0
    assert "slow,line,1,done,60" in Path("pictures/runs.csv").read_text()
    edit("seeds=(1, 2)", "seeds=(1, 2, 3)")
    capsys.readouterr()
    assert main(["report", "walks.py"]) == 0
    assert "missing:    2 of 6 runs" in capsys.readouterr().out


def test_compare_and_plot_score_a_study_by_the_evaluations_of_its_report(capsys):
    edit("seeds=(1, 2)", "seeds=(1,)")
    edit("steps=60", "steps=60, episodes=3")
    assert coach("run", "walks.py", "--plain", "--jobs", "2", "-ntb") == 0
    for folder in made():
        for number, options in enumerate(({"sampling": True}, {"overrides": {"a": 1}}, {})):
            later = {"environment_steps": 60, **options}
            scalars = {"evaluation/reward_mean": 777.0, "evaluation/episodes": 9 + number}
            text = json.dumps({**later, "scalars": scalars})
            (folder / "evaluations" / f"later_{number}.json").write_text(text)
    capsys.readouterr()
    assert main(["compare", "walks.py"]) == 0
    said = capsys.readouterr().out
    assert "reward_mean of the evaluation over 3 episodes after training" in said
    assert "777" not in said
    assert main(["plot", "walks.py", "--to", "pictures"]) == 0
    assert "777" not in Path("pictures/runs.csv").read_text()
    capsys.readouterr()
    assert main(["compare", "walks.py", "--at", "afterwards"]) == 0
    assert "777" in capsys.readouterr().out


def test_docstring_is_the_question_where_none_is_given(capsys):
    edit('        question="Which walk is longer?",\n', "")
    edit("-> Study:\n", '-> Study:\n    """Who walks\n    farther?\n\n    A test."""\n')
    assert main(["report", "walks.py"]) == 0
    page = Path("walks.html").read_text()
    assert "<h1>Who walks farther?</h1>" in page
    assert "<p>A test.</p>" in page
