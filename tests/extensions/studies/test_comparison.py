import pytest

from coach_rl.extensions.studies.comparison import (
    compare,
    comparison_table,
    default_baseline,
    notes_on,
    overall_improvement,
    possible_comparisons,
    score_table,
    shown,
)
from coach_rl.extensions.studies.runs import find_runs, group_scores
from coach_rl.telemetry.tables import markdown
from tests.extensions.studies.written_runs import write_seeds


def scored_of(tmp_path, metric="reward_mean", episodes=None, **groups):
    folders = [
        write_seeds(tmp_path / name, scores, metric=metric, episodes=episodes)
        for name, scores in groups.items()
    ]
    return group_scores(find_runs(folders)[0], metric=metric)[0]


def verdict(tmp_path, metric="reward_mean", episodes=None, **groups):
    scored = scored_of(tmp_path, metric, episodes, **groups)
    (found,) = compare(scored, "b", metric=metric, statistic="mean")
    return found.verdict()


def test_compare_clear_difference_verdict(tmp_path):
    said = verdict(tmp_path, a=[110, 111, 112, 113, 114], b=[10, 11, 12, 13, 14])
    assert said.startswith("a is higher than b by 100.0 (95 % interval 97.")
    said = verdict(tmp_path / "turned", a=[10, 11, 12, 13, 14], b=[110, 111, 112, 113, 114])
    assert said.startswith("a is lower than b by 100.0 (95 % interval 97.")


def test_compare_interval_with_zero_verdict(tmp_path):
    said = verdict(tmp_path, a=[1.0, 2.0, 3.0], b=[1.5, 2.5, 3.5])
    assert said.startswith(
        "no difference is established between a and b with 3 and 3 seeds: it is -0.5"
    )
    assert "which may be zero. With 3 seeds each, only a difference of about 3" in said
    assert said.endswith(" would be found with 80 % power")


def test_compare_one_seed_verdict(tmp_path):
    said = verdict(tmp_path, a=[100.0], b=[1.0, 2.0, 3.0])
    assert said == (
        "no difference is established between a and b with 1 and 3 seeds, too few for an interval; "
        "train with 5 or more of each"
    )


def test_compare_share_interval_within_bounds(tmp_path):
    said = verdict(tmp_path, "success_rate", a=[1.0, 0.0, 1.0], b=[0.0, 0.0, 1.0])
    assert "(95 % interval -" in said
    assert "to 100.0 %)" in said
    assert "With 3 seeds each, which differ this much, no difference would be found" in said


def test_verdict_equal_scores_states_episodes_and_the_permutation_test(tmp_path):
    equal = {"a": [1.0] * 3, "b": [0.5] * 3}
    unclear = "no difference is established between a and b with 3 and 3 seeds: it is 50.0 % "
    # Of the 20 ways to deal 6 scores to two groups of 3, 2 are as extreme.
    assert verdict(tmp_path / "3", "success_rate", episodes=100, **equal) == (
        unclear + "(95 % interval 44.2 % to 55.6 % over episodes, permutation test over seeds p = "
        "0.1)"
    )  # Newcombe's interval of 300 of 300 beside 150 of 300
    assert verdict(tmp_path / "unknown", "success_rate", **equal) == (
        unclear + "(no interval, because the seeds of each group are equal, permutation test over "
        "seeds p = 0.1)"
    )
    said = verdict(tmp_path / "5", "success_rate", episodes=100, a=[1.0] * 5, b=[0.5] * 5)
    assert said == (
        "a is higher than b by 50.0 % with each of its 5 seeds beside 5 (95 % interval 45.6 % to "
        "54.4 % over episodes)"
    )
    said = verdict(tmp_path / "two", "success_rate", episodes=100, a=[1.0] * 2, b=[0.0] * 2)
    assert said.endswith("too few for an interval; train with 5 or more of each")


def test_score_table_equal_scores_shows_episodes_and_unseen_failures(tmp_path):
    scored = scored_of(tmp_path, "success_rate", episodes=100, a=[1.0] * 5, b=[0.9] * 3)
    found = [row[6] for row in score_table(scored, metric="success_rate").cells()]
    assert found == [
        # The 500th root of 0.025, and 1 less the 5th root of 0.05.
        "500 of 500 episodes, 99.3 % to 100.0 %; up to 45 % of seeds may fail",
        "270 of 300 episodes, 86.0 % to 93.2 %; up to 63 % of seeds may differ",
    ]


def test_score_table_row_per_group(tmp_path):
    scored = scored_of(tmp_path, a=[1.0, 2.0, 3.0], b=[7.0])
    cells = score_table(scored, metric="reward_mean").cells()
    assert [row[:5] for row in cells] == [
        ["a", "point", "3", "2", "1"],
        ["b", "point", "1", "7", "-"],
    ]
    assert cells[1][6] == "too few seeds"
    lines = markdown(comparison_table(compare(scored, "b", metric="reward_mean"))).split("\n")
    assert lines[0] == (
        "|  | level | seeds | difference | 95 % interval | P(higher) | 95 % interval |"
    )
    assert lines[2] == (
        "| a | point | 3 and 1 | not established | too few seeds | 0.00 | too few seeds |"
    )


def test_compare_levels_singly_and_together(tmp_path):
    for name, scores in {"a": [5, 6, 7, 8], "b": [1, 2, 3, 4]}.items():
        for level in ("near", "far"):
            write_seeds(tmp_path / name / level, scores, level=level)
    write_seeds(tmp_path / "b" / "else", [1], level="else")
    scored, _ = group_scores(find_runs([tmp_path])[0], metric="reward_mean")
    found = compare(scored, "b", metric="reward_mean")
    assert [each.level for each in found] == ["far", "near"]
    chance, levels = overall_improvement(scored, "a", "b")
    assert (chance.value, levels) == (1.0, 2)
    assert chance.low > found[0].improvement.low  # twice as many runs
    assert "not compared on else, where there are no scores: a" in notes_on(scored)


def test_verdict_equal_middle_half_has_no_interval(tmp_path):
    said = verdict_of_iqm(tmp_path, a=[0.0] * 6 + [1.0] * 94, b=[1.0] * 100)
    assert "(no interval, because the middle half of the seeds of each group is equal; " in said


def verdict_of_iqm(tmp_path, **groups):
    (found,) = compare(scored_of(tmp_path, **groups), "b", metric="reward_mean")
    return found.verdict()


def test_default_baseline_is_the_last_group_that_shares_a_level(tmp_path):
    def baseline(*groups):
        folders = [
            write_seeds(tmp_path / "-".join(map("".join, groups)) / name / level, [1], level=level)
            for name, levels in groups
            for level in levels
        ]
        folders = list(dict.fromkeys(folder.parent for folder in folders))
        frame, _ = find_runs(folders)
        scored, _ = group_scores(frame, metric="reward_mean")
        found = default_baseline(scored, frame.groups)
        compared = possible_comparisons(scored, None, metric="reward_mean", groups=frame.groups)
        assert {each.baseline for each in compared} == ({found} - {None})
        return found

    assert baseline(("one", "h"), ("two", "ah")) == "two"  # the levels alone end with "one"
    assert baseline(("one", "a"), ("two", "h"), ("three", "a")) == "three"
    assert baseline(("one", "a"), ("two", "a"), ("three", "h")) == "two"
    assert baseline(("one", "a"), ("two", "h")) is None


def test_notes_on_different_lengths(tmp_path):
    folders = [
        write_seeds(tmp_path / name, [1, 2], steps=steps)
        for name, steps in (("a", 1000), ("b", 2000))
    ]
    scored, _ = group_scores(find_runs(folders)[0], metric="reward_mean")
    assert notes_on(scored) == [
        "runs on point trained for different lengths, in steps: a 1,000; b 2,000"
    ]


@pytest.mark.parametrize(
    ("value", "metric", "text"),
    [
        (0.1234, "success_rate", "12.3 %"),
        (0.5, "low/goal_share", "50.0 %"),
        (3e-4, "train/learning_rate", "0.0003"),
        (12345.67, "reward_mean", "12,345.7"),
        (-3.14159, "reward_mean", "-3.14"),
    ],
)
def test_shown_values(value, metric, text):
    assert shown(value, metric) == text
