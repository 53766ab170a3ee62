from pathlib import Path

import pytest

from coach_rl.core.errors import ConfigurationError, UnknownNameError
from coach_rl.studies import load_study

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


def test_file_may_have_several_studies(tmp_path):
    body = 'def first() -> Study: return Study(name="f", variants=(V,), seeds=(1,))\n'
    file = written(tmp_path, 'V = Variant(name="a", preset="CartPole_PPO")\n' + body)
    assert load_study(f"{file}:first").name == "f"
    with pytest.raises(UnknownNameError, match=r"name one of its studies: .*my_study.py:first"):
        load_study(file)


def test_preset_files_are_found_beside_the_study(tmp_path):
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
def test_wrong_file_is_said_in_one_line(tmp_path, body, message):
    with pytest.raises(ConfigurationError, match=message) as caught:
        load_study(written(tmp_path, body))
    assert "\n" not in str(caught.value)


def test_missing_file_is_said(tmp_path):
    with pytest.raises(ConfigurationError, match="there is no study file"):
        load_study(str(tmp_path / "none.py"))
    with pytest.raises(ConfigurationError, match="there is no study file 'small_study'"):
        load_study("small_study")
