from dataclasses import replace

import pytest

from coach_rl import ConfigurationError, Study, Variant
from coach_rl.core.errors import ParameterError, UnknownNameError

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
def test_wrong_study_is_refused_where_it_is_written(given, error, message):
    with pytest.raises(error, match=message):
        Study(**{"name": "s", "variants": (ONE, TWO), "seeds": (1,), **given})


def test_variant_is_named_in_one_line():
    with pytest.raises(ParameterError, match="one line of text"):
        Variant(name="a | b", preset="CartPole_PPO")


def test_seeds_of_a_variant_are_named_once():
    with pytest.raises(ParameterError, match="has the seed 3 2 times"):
        Study(name="s", variants=(Variant(name="a", preset="p", seeds=(3, 3)),), seeds=(1,))


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
