"""Random network distillation, and the most novel states that are kept."""

import numpy as np
import torch
from gymnasium import spaces

from coach_rl.extensions.hiro.landmarks import Novelty, NoveltyParameters
from tests.agents.decisions import context

BOX = spaces.Box(-9, 9, (2,), np.float32)
STATES = spaces.Dict({"observation": BOX})
CONTEXT = context(STATES, BOX, num_envs=1)


def novelty(**changes):
    settings = {"count": 3, "layers": (16,), "features": 4, "apart": 0.5, **changes}
    return Novelty(
        NoveltyParameters(**settings), observation_space=STATES, context=CONTEXT, owner="agent"
    )


def states(*places):
    return {"observation": np.array(places, np.float32)}


def test_scores_are_half_the_squared_errors_of_the_prediction():
    learner = novelty()
    seen = states([1, 2], [-3, 4], [0, 0])

    def features(network):
        hidden, last = network.module.torso.middleware[0], network.module.last
        weights = [each.detach().numpy() for each in (hidden.weight, hidden.bias)]
        values = np.maximum(seen["observation"] @ weights[0].T + weights[1], 0)
        return values @ last.weight.detach().numpy().T + last.bias.detach().numpy()

    slow = ((features(learner.predictor) - features(learner.random)) ** 2).sum(axis=1) / 2
    np.testing.assert_allclose(learner.scores(seen), slow, rtol=1e-5)
    assert (slow > 0).all()


def test_the_most_novel_are_kept_and_those_visited_again_given_up(monkeypatch):
    learner = novelty()
    given = {"next": [1.0, 5.0, 3.0, 4.0]}
    monkeypatch.setattr(learner, "scores", lambda states: np.array(given["next"]))
    first = states([0, 0], [1, 0], [2, 0], [3, 0])
    learner.offer(first, first["observation"])
    assert learner.places.tolist() == [[1, 0], [3, 0], [2, 0]]
    given["next"] = [2.0, 4.5]
    then = states([3, 0.4], [7, 7])  # the first is 0.4 away from one that is kept
    learner.offer(then, then["observation"])
    assert learner.places.tolist() == [[1, 0], [7, 7], [2, 0]]
    np.testing.assert_array_equal(learner.states["observation"], learner.places)


def test_what_it_learns_from_is_less_novel_afterwards():
    learner = novelty(layers=(32,))
    torch.set_num_threads(1)
    known, strange = states([1, 1]), states([-8, 5])
    before = learner.scores(known)[0]
    for _ in range(200):
        learner.learn(known)
    assert learner.scores(known)[0] < 0.01 * before
    assert learner.scores(strange)[0] > learner.scores(known)[0]
    assert learner.metrics()["landmarks/novelty_loss"] > 0


def test_the_fixed_network_is_another_and_never_moves():
    learner = novelty()
    assert not torch.equal(learner.random.online, learner.predictor.online)
    before = learner.random.online.clone()
    learner.learn(states([1, 1]))
    assert torch.equal(learner.random.online, before)
