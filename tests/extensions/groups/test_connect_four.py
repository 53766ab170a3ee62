"""The rules of Connect Four, its opponents, and games against trained agents."""

import numpy as np
import pytest

from coach_rl.environments.toy.connect_four import ConnectFour, RandomPlayer, RulesPlayer, view

HALF = np.full(1, 0.5)


class Moves:
    """An opponent that plays given columns, one after another."""

    def __init__(self, *columns):
        self.columns_left = list(columns)

    def columns(self, observation, uniform):
        assert len(uniform) == len(observation["observation"]) == 1
        return np.array([self.columns_left.pop(0)])


def board(text):
    """Own stones `x` and others `o`, [1, 42] each, of lines from the top row to the lowest."""
    lines = text.split()[::-1]
    own, others = np.zeros((2, 1, 6, 7), bool)
    for row, line in enumerate(lines):
        for column, stone in enumerate(line):
            own[0, row, column], others[0, row, column] = stone == "x", stone == "o"
    return own.reshape(1, 42), others.reshape(1, 42)


def test_connect_four_full_column_is_forbidden_and_loses():
    world = ConnectFour(Moves(2, 2, 2, 0))
    state = world.start(np.zeros((1, 2)))
    for _ in range(3):
        state = world.step(state, np.array([2]), HALF[:, None]).state
    assert world.observe(state)["action_mask"].tolist() == [[1, 1, 0, 1, 1, 1, 1]]
    step = world.step(state, np.array([2]), HALF[:, None])
    assert (step.reward.tolist(), step.terminated.tolist()) == ([-1], [True])
    np.testing.assert_array_equal(step.state["own"], state["own"])


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("x...... x...... x...o.o", 0),  # wins
        ("ooo.... xxx....", 3),  # wins on the lowest row, rather than preventing
        ("....... ....... ....... ..o.... ..o.... ..o.x.x", 2),  # prevents
        ("..xooo. ..oxoxx", 6),  # prevents on the second row
    ],
)
def test_rules_player_wins_or_prevents(text, column):
    own, others = board(text)
    for share in np.linspace(0, 0.99, 9):
        assert RulesPlayer().columns(view(own, others), np.array([share])).tolist() == [column]


@pytest.mark.parametrize("player", [RandomPlayer(), RulesPlayer()])
def test_players_draw_evenly_among_columns_with_an_empty_cell(player):
    own, others = board("x.....o o.....x x.....o o.....x x.....o o.....x")
    seen = {key: np.repeat(values, 500, axis=0) for key, values in view(own, others).items()}
    columns = player.columns(seen, np.arange(500) / 500)
    assert np.bincount(columns, minlength=7).tolist() == [0, 100, 100, 100, 100, 100, 0]


@pytest.mark.filterwarnings("ignore:The old environment creation API:DeprecationWarning")
def test_connect_four_equals_pettingzoo():
    module = pytest.importorskip("pettingzoo.classic.connect_four.connect_four")
    theirs = module.raw_env()
    rng = np.random.default_rng(0)
    played = []
    for _ in range(600):
        opponent = _Recorded(rng)
        world = ConnectFour(opponent)
        state = world.start(rng.random((1, 2)))
        theirs.reset()
        names = ("player_0", "player_1") if not state["others"].any() else ("player_1", "player_0")
        while True:
            for seen, column in opponent.taken():
                shown = theirs.observe(names[1])["observation"]
                np.testing.assert_array_equal(
                    np.moveaxis(seen.reshape(2, 6, 7), 0, -1)[::-1], shown
                )
                theirs.step(column)
            mask = world.observe(state)["action_mask"][0]
            their = theirs.observe(names[0])
            np.testing.assert_array_equal(mask, their["action_mask"])
            ours = np.stack([state["own"], state["others"]], axis=-1).reshape(6, 7, 2)[::-1]
            np.testing.assert_array_equal(ours, their["observation"])
            assert theirs.agent_selection == names[0]
            action = int(rng.choice(np.flatnonzero(mask)))
            theirs.step(action)
            step = world.step(state, np.array([action]), rng.random((1, 1)))
            state = step.state
            if step.terminated[0]:
                break
        for _, column in opponent.taken():
            theirs.step(column)
        assert step.reward[0] == theirs.rewards[names[0]] == -theirs.rewards[names[1]]
        assert all(theirs.terminations.values())
        assert step.info["is_success"][0] == (step.reward[0] == 1)
        played.append((step.reward[0], names[0]))
    kinds = set(played)
    assert {(1, "player_0"), (-1, "player_0"), (1, "player_1"), (-1, "player_1")} <= kinds
    assert any(reward == 0 for reward, _ in kinds)


class _Recorded(RandomPlayer):
    """A random player that keeps its columns, and what it was shown."""

    def __init__(self, rng):
        self._rng, self._columns = rng, []

    def columns(self, observation, uniform):
        column = super().columns(observation, uniform)
        self._columns.append((observation["observation"][0], int(column[0])))
        return column

    def taken(self):
        taken, self._columns = self._columns, []
        return taken
