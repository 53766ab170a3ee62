import pytest

from coach_rl.core.errors import ConfigurationError, UnknownNameError
from coach_rl.studies.comparison import (
    compare,
    comparison_table,
    notes_on,
    overall_improvement,
    score_table,
    shown,
)
from coach_rl.studies.run_groups import find_groups, group_scores
from tests.studies.written_runs import write_seeds


def scored_of(tmp_path, metric="reward_mean", **groups):
    folders = [
        write_seeds(tmp_path / name, scores, metric=metric) for name, scores in groups.items()
    ]
    return group_scores(find_groups(folders)[0], metric=metric)[0]


def verdict(tmp_path, metric="reward_mean", **groups):
    scored = scored_of(tmp_path, metric, **groups)
    (found,) = compare(scored, "b", metric=metric, statistic="mean")
    return found.verdict()


def test_a_clear_difference_is_called(tmp_path):
    said = verdict(tmp_path, a=[110, 111, 112, 113, 114], b=[10, 11, 12, 13, 14])
    assert said.startswith("a is higher than b by 100.0 (95 % interval 97.")
    said = verdict(tmp_path / "turned", a=[10, 11, 12, 13, 14], b=[110, 111, 112, 113, 114])
    assert said.startswith("a is lower than b by 100.0 (95 % interval 97.")


def test_no_difference_is_called_where_the_interval_holds_zero(tmp_path):
    said = verdict(tmp_path, a=[1.0, 2.0, 3.0], b=[1.5, 2.5, 3.5])
    assert said.startswith(
        "no difference is established between a and b with 3 and 3 seeds: it is -0.5"
    )
    assert "which may be zero; so many seeds see a difference of 3" in said


def test_no_difference_is_called_with_one_seed(tmp_path):
    said = verdict(tmp_path, a=[100.0], b=[1.0, 2.0, 3.0])
    assert said == (
        "no difference is established between a and b with 1 and 3 seeds, too few for an interval; "
        "train with 5 or more of each"
    )


def test_shares_end_at_their_bounds(tmp_path):
    said = verdict(tmp_path, "success_rate", a=[1.0, 0.0, 1.0], b=[0.0, 0.0, 1.0])
    assert "(95 % interval -" in said
    assert "to 100.0 %)" in said
    assert "so few seeds, which differ so much, cannot establish any" in said


def test_seeds_that_all_agree_are_said(tmp_path):
    said = verdict(tmp_path, "success_rate", a=[1.0, 1.0, 1.0], b=[0.0, 0.0, 0.0])
    assert said == "a is higher than b by 100.0 % with each of its 3 seeds beside 3"
    said = verdict(tmp_path / "two", "success_rate", a=[1.0, 1.0], b=[0.0, 0.0])
    assert said.startswith("no difference is established")


def test_tables_have_a_line_for_each_group(tmp_path):
    scored = scored_of(tmp_path, a=[1.0, 2.0, 3.0], b=[7.0])
    table = score_table(scored, metric="reward_mean")
    assert [row[:5] for row in table.rows] == [
        ("a", "point", "3", "2", "1"),
        ("b", "point", "1", "7", "-"),
    ]
    assert table.rows[1][6] == "-"  # one seed has no interval
    lines = comparison_table(compare(scored, "b", metric="reward_mean")).markdown().split("\n")
    assert lines[0] == (
        "|  | level | seeds | difference | 95 % interval | P(higher) | 95 % interval |"
    )
    assert lines[2] == "| a | point | 3 and 1 | not established | - | 0.00 | - |"


def test_different_environments_are_refused(tmp_path):
    folders = [write_seeds(tmp_path / name, [1, 2], level=name) for name in ("a", "b")]
    scored, _ = group_scores(find_groups(folders)[0], metric="reward_mean")
    with pytest.raises(ConfigurationError, match=r"different environments .* a on a; b on b"):
        compare(scored, "b", metric="reward_mean")


def test_one_group_and_unknown_baselines_are_refused(tmp_path):
    scored = scored_of(tmp_path, a=[1, 2])
    with pytest.raises(ConfigurationError, match="only one group"):
        compare(scored, "trial", metric="reward_mean")
    with pytest.raises(UnknownNameError, match="unknown group 'c' as baseline"):
        compare(scored, "c", metric="reward_mean")


def test_levels_are_compared_one_by_one_and_together(tmp_path):
    for name, scores in {"a": [5, 6, 7, 8], "b": [1, 2, 3, 4]}.items():
        for level in ("near", "far"):
            write_seeds(tmp_path / name / level, scores, level=level)
    write_seeds(tmp_path / "b" / "else", [1], level="else")
    scored, _ = group_scores(find_groups([tmp_path])[0], metric="reward_mean")
    found = compare(scored, "b", metric="reward_mean")
    assert [each.level for each in found] == ["far", "near"]
    chance, levels = overall_improvement(scored, "a", "b")
    assert (chance.value, levels) == (1.0, 2)
    assert chance.low > found[0].improvement.low  # twice as many runs
    assert "not compared on else, where there are no scores: a" in notes_on(scored)


def test_runs_of_different_lengths_are_said(tmp_path):
    folders = [
        write_seeds(tmp_path / name, [1, 2], steps=steps)
        for name, steps in (("a", 1000), ("b", 2000))
    ]
    scored, _ = group_scores(find_groups(folders)[0], metric="reward_mean")
    assert notes_on(scored) == [
        "runs on point trained for different lengths, in steps: a 1,000; b 2,000"
    ]


@pytest.mark.parametrize(
    ("value", "metric", "text"),
    [
        (0.1234, "success_rate", "12.3 %"),
        (0.5, "low/goal_share", "50.0 %"),
        (12345.67, "reward_mean", "12,345.7"),
        (-3.14159, "reward_mean", "-3.14"),
    ],
)
def test_values_are_shown_for_people(value, metric, text):
    assert shown(value, metric) == text
