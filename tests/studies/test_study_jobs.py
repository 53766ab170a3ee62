from dataclasses import replace
from pathlib import Path

import pytest

from coach_rl import ConfigurationError, Hours, Study, Variant
from coach_rl.studies import check_study, jobs_of, load_study

SMALL = Path(__file__).with_name("small_study.py")
PRESET = Path(__file__).parent.parent / "fake_preset.py"
WALK = Variant(name="walk", preset=str(PRESET))


def study_of(*variants, **given):
    return Study(**{"name": "s", "variants": variants, "seeds": (3, 4), **given})


def test_study_has_a_job_for_each_seed_of_each_variant(tmp_path):
    jobs = jobs_of(load_study(str(SMALL)), root=tmp_path)
    assert len(jobs) == 4 * 5
    assert [job.task.seed for job in jobs[:5]] == [0, 0, 0, 0, 1]
    assert jobs[3].labels == {"study": "small_study", "variant": "maze, two levels"}
    assert jobs[3].overrides["level"] == "point_maze_u"
    assert [job.overrides["steps"] for job in jobs[:3]] == [3_000, 4_096, 1_200]
    assert (jobs[0].root, jobs[0].name) == (tmp_path, "small_study")


def test_variant_may_have_its_own_seeds():
    jobs = jobs_of(study_of(WALK, replace(WALK, name="more", seeds=(3, 4, 5))))
    assert [(job.task.seed, job.labels["variant"]) for job in jobs] == [
        (3, "walk"),
        (3, "more"),
        (4, "walk"),
        (4, "more"),
        (5, "more"),
    ]


def test_variant_may_change_single_seeds():
    walk = replace(WALK, changes={"steps": 9}, changes_by_seed={4: {"learning_rate": 0.5}})
    three, four = jobs_of(study_of(walk))
    assert three.overrides == {"steps": 9}
    assert four.overrides == {"steps": 9, "learning_rate": 0.5}


@pytest.mark.parametrize(("of_study", "threads"), [(None, (1, 2)), (3, (3, 3))])
def test_jobs_take_a_core_for_each_thread_of_their_preset_or_study(of_study, threads):
    two = replace(WALK, name="two", changes={"threads": 2})
    jobs = jobs_of(study_of(WALK, two, seeds=(3,), threads=of_study))
    assert tuple(job.task.threads for job in jobs) == threads
    assert tuple(job.needs.cores for job in jobs) == threads


def test_settings_go_to_the_panel_where_it_has_them_and_else_to_their_path():
    maze = Variant(name="maze", preset="PointMaze_HAC", level="point_maze_u")
    other = Variant(name="other", preset="CartPole_PPO", level="CartPole-v0")
    jobs = jobs_of(study_of(maze, other, steps=700, hours=0.5))
    assert jobs[0].overrides["level"] == "point_maze_u"
    assert jobs[1].overrides["environment.level"] == "CartPole-v0"
    assert jobs[0].overrides["steps"] == 700
    assert jobs[0].overrides["schedule.stop_after"] == Hours(0.5)


def test_preset_files_are_named_for_processes_in_other_folders(tmp_path, monkeypatch):
    monkeypatch.chdir(PRESET.parent)
    (job, _) = jobs_of(study_of(Variant(name="a", preset="fake_preset.py")))
    assert job.preset == f"{PRESET}:graph_manager"


def cart_pole(name="a", **given):
    return Variant(name=name, preset="CartPole_PPO", **given)


@pytest.mark.parametrize(
    ("variants", "given", "message"),
    [
        ([Variant(name="a", preset="CartPol_PPO")], {}, "'a' .*did you mean 'CartPole_PPO'"),
        ([cart_pole(changes={"learning_rat": 1})], {}, "'a' .*did you mean '?learning_rate"),
        ([Variant(name="a", preset="Mujoco_PPO", level="hoper")], {}, "did you mean 'hopper'"),
        ([cart_pole(level="CartPole-v77")], {}, "variant 'a' of the study 's': .*CartPole"),
        ([cart_pole(changes={"steps": 3})], {"steps": 5}, "steps is given twice, by steps and"),
        ([cart_pole(changes_by_seed={4: {"learning_rat": 1}})], {}, "did you mean '?learning_rate"),
        (
            [cart_pole(changes_by_seed={4: {"environment.level": "CartPole-v77"}})],
            {},
            "variant 'a' .*CartPole",
        ),
        ([cart_pole(changes_by_seed={4: {"steps": 3}})], {"steps": 5}, "steps is given twice"),
        (
            [cart_pole(name, changes_by_seed={3: {"discount": 0.9}}) for name in "ab"],
            {},
            "'a' and 'b' of the study 's' have the same parameters",
        ),
        (
            [cart_pole(), cart_pole("b", changes={"discount": 0.98})],
            {},
            "'a' and 'b' of the study 's' have the same parameters",
        ),
        ([cart_pole()], {"metric": "reward_men"}, "metric .*did you mean 'reward_mean'"),
        (
            [cart_pole()],
            {"metric": "low/goal_share"},
            "'low/goal_share' in the study 's'",
        ),
    ],
)
def test_what_cannot_run_is_said_before_anything_runs(
    tmp_path, monkeypatch, variants, given, message
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match=message) as caught:
        check_study(study_of(*variants, **given))
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_variants_may_have_the_same_changes_for_other_seeds():
    one, other = {"discount": 0.9}, {"discount": 0.8}
    changes = {"a": {3: one, 4: other}, "b": {3: other, 4: one}}
    check_study(study_of(*(cart_pole(name, changes_by_seed=of) for name, of in changes.items())))


def test_small_study_can_be_run():
    check_study(load_study(str(SMALL)))
