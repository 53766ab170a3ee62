"""The scores of a run show themselves as its folder does."""

from pathlib import Path

from coach_rl.extensions.studies import read_scores
from coach_rl.sessions.session import run_experiment
from coach_rl.sessions.settings import RunSettings
from tests.sessions.test_shown_facts import rows
from tests.small_runs import experiment


def test_folder_and_scores_of_a_run_show_the_same_run(tmp_path: Path) -> None:
    settings = RunSettings(tensorboard=False, final_episodes=2)
    result = run_experiment(experiment(), name="shown", root=tmp_path, settings=settings)
    folder, scores = rows(result.folder), rows(read_scores(result.folder.path))
    for fact in ("run", "task", "seed", "environment steps", "final mean reward"):
        assert folder[fact] == scores[fact], fact
    assert scores["state"] == "done"
    assert len(repr(read_scores(result.folder.path))) < 600  # without its arrays
