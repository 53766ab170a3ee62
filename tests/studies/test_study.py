from dataclasses import replace
from pathlib import Path

import pytest

from coach_rl import Hours, Study, Variant
from coach_rl.core.errors import ConfigurationError, ParameterError, UnknownNameError
from coach_rl.studies import check_study, jobs_of, load_study

ONE, TWO = Variant(name="one", preset="CartPole_PPO"), Variant(name="two", preset="Pendulum_PPO")


def test_study_takes_a_range_or_a_list_of_seeds():
    assert Study(name="s", variants=[ONE], seeds=range(3)).seeds == (0, 1, 2)
    assert Study(name="s", variants=(ONE,), seeds=[4, 2]).seeds == (4, 2)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"variants": (ONE, ONE)}, ParameterError, "has the variant 'one' 2 times; rename"),
        ({"variants": ()}, ParameterError, "variants of 's' must be .* of length >= 1"),
        ({"seeds": ()}, ParameterError, "seeds of 's' must be .* of length >= 1, got ()"),
        ({"seeds": 5}, ParameterError, r"got 5; write range\(5\) for so many"),
        ({"seeds": (1, 2, 1)}, ParameterError, "has the seed 1 2 times; name it once"),
        ({"seeds": (-1,)}, ParameterError, "seeds of 's' must be"),
        ({"baseline": "tow"}, UnknownNameError, "'tow'.* did you mean 'two'"),
        ({"steps": 0}, ParameterError, "steps of 's' must be"),
        ({"name": "a/b"}, ConfigurationError, "'a/b' cannot name a folder"),
        ({"metrics": "x"}, UnknownNameError, "did you mean 'metric'"),
    ],
)
def test_study_invalid_error(given, error, message):
    with pytest.raises(error, match=message):
        Study(**{"name": "s", "variants": (ONE, TWO), "seeds": (1,), **given})


def test_changes_of_one_seed_are_of_a_seed_that_the_variant_has():
    walker = Variant(name="a", preset="p", changes_by_seed={1: {"load": "x"}, 7: {"load": "y"}})
    with pytest.raises(ParameterError, match=r"variant 'a' names seeds .* of: 7; its seeds are 1"):
        Study(name="s", variants=(walker,), seeds=(1,))
    Study(name="s", variants=(replace(walker, seeds=(1, 7)),), seeds=(1,))
    with pytest.raises(ParameterError, match="changes_by_seed of 'a' must be"):
        replace(walker, changes_by_seed={-1: {}})


def test_setting_is_changed_for_all_seeds_or_for_single_ones():
    with pytest.raises(ParameterError, match=r"'a' changes load twice, .* for seed 7; name it in"):
        Variant(name="a", preset="p", changes={"load": "x"}, changes_by_seed={7: {"load": "y"}})


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


def test_load_study_several_in_a_file(tmp_path):
    body = 'def first() -> Study: return Study(name="f", variants=(V,), seeds=(1,))\n'
    file = written(tmp_path, 'V = Variant(name="a", preset="CartPole_PPO")\n' + body)
    assert load_study(f"{file}:first").name == "f"
    with pytest.raises(UnknownNameError, match=r"name one of its studies: .*my_study.py:first"):
        load_study(file)


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


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("def study(): return 3", "must return a Study, got int"),
        ("def study(): return 1 / 0", r"study .*my_study.py:2: ZeroDivisionError"),
        ("1 / 0", r"study .*my_study.py:2: ZeroDivisionError"),
        ("def study(): raise SystemExit(0)", r"study .*my_study.py:2: SystemExit: 0"),
        ("raise SystemExit(0)", r"study .*my_study.py:2: SystemExit: 0"),
        ("x = 3", "defines no study: a function that returns a Study"),
        ("def study(): return Study(name='s', variants=(), seeds=(1,))", r"my_study.py: Study.var"),
    ],
)
def test_load_study_invalid_file_error(tmp_path, body, message):
    with pytest.raises(ConfigurationError, match=message) as caught:
        load_study(written(tmp_path, body))
    assert "\n" not in str(caught.value)


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


def test_jobs_of_preset_file_absolute(tmp_path, monkeypatch):
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
def test_check_study_invalid_variant_error(tmp_path, monkeypatch, variants, given, message):
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
