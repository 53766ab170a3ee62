"""Visits of an episode are kept until a real one begins, also where other agents act in between."""

import numpy as np

from coach_rl.agents.bonuses import Bonus
from coach_rl.core.records import ActionRequest
from coach_rl.extensions.curiosity.terms import EpisodeBonus, EpisodeBonusTerms


class Shared(ActionRequest):
    """A request of an agent in whose rows others act, too."""

    real = np.array([True, False, False])


class Rows:
    """The row state of an agent, of which bonuses have a part."""

    def __init__(self, filters):
        self.filters = filters


def marked(kind):
    """Rows whose visits are forgotten by a request with real episodes, as that kind has them."""
    bonus = EpisodeBonus()
    terms = EpisodeBonusTerms(bonus, Bonus(bonus, None, "agent"))
    rows = Rows(terms.new_rows(3))
    first = np.array([True, True, False])
    request = kind(
        rows=np.arange(3),
        observation={},
        starts=first,
        episode_start=first,
        greedy=np.zeros(3, np.bool_),
    )
    terms.begin(rows, request)
    (begins,) = rows.filters.values()
    return begins.tolist()


def test_visits_are_forgotten_where_a_real_episode_begins():
    assert marked(ActionRequest) == [True, True, False]
    assert marked(Shared) == [True, False, False]
