from dataclasses import replace
from pathlib import Path

import pytest

from coach_rl import Hours, Study, Variant
from coach_rl.extensions.studies import check_study, jobs_of, load_study

ONE, TWO = Variant(name="one", preset="CartPole_PPO"), Variant(name="two", preset="Pendulum_PPO")


def test_study_takes_a_range_or_a_list_of_seeds():
    assert Study(name="s", variants=[ONE], seeds=range(3)).seeds == (0, 1, 2)
    assert Study(name="s", variants=(ONE,), seeds=[4, 2]).seeds == (4, 2)


HEAD = "from coach_rl import Study, Variant\n"
SMALL = Path(__file__).with_name("small_study.py")


def written(folder, body, head=HEAD):
    file = folder / "my_study.py"
    file.write_text(head + body)
    return str(file)


def test_study_is_read_from_its_file():
    study = load_study(str(SMALL))
    assert study.name == "small_study"
    assert [variant.name for variant in study.variants][2:] == ["maze, flat", "maze, two levels"]


def test_load_study_function_of_a_file(tmp_path):
    body = 'def first() -> Study: return Study(name="f", variants=(V,), seeds=(1,))\n'
    file = written(tmp_path, 'V = Variant(name="a", preset="CartPole_PPO")\n' + body)
    assert load_study(f"{file}:first").name == "f"


def test_load_study_preset_relative_to_file(tmp_path):
    (tmp_path / "mine.py").write_text("")
    body = """
def study():
    names = ["mine.py", "mine.py:other", "CartPole_PPO"]
    variants = tuple(Variant(name=name, preset=name) for name in names)
    return Study(name="s", variants=variants, seeds=(1,))
"""
    presets = [variant.preset for variant in load_study(written(tmp_path, body)).variants]
    assert presets == [f"{tmp_path}/mine.py", f"{tmp_path}/mine.py:other", "CartPole_PPO"]


PRESET = Path(__file__).parents[2] / "fake_preset.py"
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


def test_jobs_of_preset_file_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(PRESET.parent)
    (job, _) = jobs_of(study_of(Variant(name="a", preset="fake_preset.py")))
    assert job.preset == f"{PRESET}:graph_manager"


def cart_pole(name="a", **given):
    return Variant(name=name, preset="CartPole_PPO", **given)


def test_variants_may_have_the_same_changes_for_other_seeds():
    one, other = {"discount": 0.9}, {"discount": 0.8}
    changes = {"a": {3: one, 4: other}, "b": {3: other, 4: one}}
    check_study(study_of(*(cart_pole(name, changes_by_seed=of) for name, of in changes.items())))


def test_small_study_can_be_run():
    check_study(load_study(str(SMALL)))
