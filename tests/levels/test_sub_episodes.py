"""Sums over sub-episodes: by hand, and the same however often they are saved."""

import numpy as np
from gymnasium import spaces

from coach_rl.core.goals import GoalSpace
from coach_rl.core.levels import LevelDescription, received_by
from coach_rl.core.options import OptionSpace
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import End
from coach_rl.levels.goal_sub_episodes import sub_episodes_of

PLACES = GoalSpace(low=(0.0, 0.0), high=(1.0, 1.0), threshold=(0.1, 0.1))
LEVEL = LevelDescription(goal_space=PLACES)


def of(level):
    return sub_episodes_of(received_by(level), {}, {})


def note(figures, rng, count):
    figures.note_ends(
        np.arange(count),
        rng.choice([End.GOAL, End.HORIZON], count).astype(np.uint8),
        distance_at_start=rng.normal(size=(count, 2)),
        distance=rng.normal(size=(count, 2)),
        decisions=rng.integers(1, 9, count),
        steps=rng.integers(1, 99, count),
        returns=rng.normal(size=count) * 0.1,
    )


@parameter_class
class Directions(OptionSpace):
    """Options by a direction in place of a number."""

    @property
    def space(self):
        return spaces.Box(-1, 1, (self.count,), np.float32)


def test_sub_episodes_unnumbered_options_have_no_shares():
    figures = of(LevelDescription(goal_space=Directions(count=2)))
    one = {"decisions": np.array([2]), "steps": np.array([2]), "returns": np.ones(1)}
    figures.note_ends(np.array([0]), np.array([End.OPTION], np.uint8), **one)
    again = of(LevelDescription(goal_space=Directions(count=2)))
    again.load_state_dict({**figures.state_dict(), "options": np.ones((2, 4))})
    for drained in (figures.drain(), again.drain()):
        assert drained["return"] == 1
        assert not [name for name in drained if name.startswith("option")]


def test_sub_episodes_count_only_applies_until_drain():
    def drained():
        figures.note_ends(
            np.array([2, 1]),
            np.array([End.GOAL, End.HORIZON], np.uint8),
            distance_at_start=np.array([[1.0], [3.0]]),
            distance=np.array([[0.0], [3.0]]),
            decisions=np.array([4, 6]),
            steps=np.array([8, 9]),
            returns=np.array([-3.0, -6.0]),
        )
        found = figures.drain()
        names = ("sub_episodes", "goal_share", "decisions", "steps", "return", "distance_at_start")
        return [found[name] for name in names]

    figures = of(LEVEL)
    figures.count_only(np.array([True, False, True]))
    assert drained() == [1, 1, 4, 8, -3, 1]
    assert drained() == [2, 0.5, 5, 8.5, -4.5, 2]


def test_sub_episodes_saved_midway_equals_unsaved():
    never, often = of(LEVEL), of(LEVEL)
    one, other = np.random.default_rng(0), np.random.default_rng(0)
    for tick in range(400):
        note(never, one, tick % 4 + 1)
        note(often, other, tick % 4 + 1)
        if tick % 3 == 0:
            restored = of(LEVEL)
            restored.load_state_dict(often.state_dict())
            often = restored
    assert never.drain() == often.drain()
