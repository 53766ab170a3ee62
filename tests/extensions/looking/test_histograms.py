"""Histograms of a run: what is in them, and when they are made."""

from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.extensions.looking.histograms import HistogramParameters
from coach_rl.sessions import Audience, RunSettings
from coach_rl.sessions.session import run_experiment
from tests.small_runs import preset


def test_histograms_of_a_run_of_levels(tmp_path):
    """Parameters, gradients, observations and actions, at the steps asked for; the log is small."""
    records = []

    class Keeper:
        def write(self, record):
            if record.kind == "histogram":
                records.append(record)

        def close(self): ...

    values = {"steps": 1_200, "updates_per_step": 0.001, "schedule.evaluation_interval": None}
    folder = run_experiment(
        preset("Pendulum_HAC").configure(values),
        name="hac",
        root=tmp_path,
        settings=RunSettings(
            final_episodes=EnvironmentEpisodes(0),
            parts=(HistogramParameters(every=EnvironmentSteps(1_000)),),
        ),
        audience=Audience(sinks=(Keeper(),)),
    ).folder
    assert [(each.level, each.environment_steps) for each in records] == [
        ("top", 1000),
        ("low", 1000),
    ]
    for each in records:
        kinds = {name.partition("/")[0] for name in each.arrays}
        assert kinds == {"parameters", "gradients", "observations", "actions"}
        assert all(values[:, 2].sum() > 0 for values in each.arrays.values())
    assert '"histogram"' not in (folder.path / "log.jsonl").read_text()
