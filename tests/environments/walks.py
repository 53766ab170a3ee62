"""Random actions in environments, and restored environments beside those that they were saved from.

Wherever an environment's state is saved, by replay or by its own state, the same must hold.
"""

import numpy as np

from coach_rl.core.random_actions import actions_from_uniform, uniform_size


def random_actions(environment, steps, seed=0):
    """Actions of all rows, for each step."""
    rng = np.random.default_rng(seed)
    space = environment.spaces.action
    shape = (environment.num_envs, uniform_size(space))
    for _ in range(steps):
        yield actions_from_uniform(space, rng.random(shape))


def answer_to(environment, action, rows=None):
    """The answer to a decision of these rows; None: of all."""
    environment.send(action, rows)
    return environment.recv()


def walk(environment, steps, seed=0):
    """Answers to random actions."""
    actions = random_actions(environment, steps, seed)
    return [answer_to(environment, action) for action in actions]


def seen(answers):
    """All that answers show, to be compared."""
    return [
        (
            [values.tobytes() for values in answer.observation.values()],
            [values.tobytes() for values in answer.first_observation.values()],
            answer.reward.tolist(),
            answer.end.tolist(),
            answer.info.get("life_lost", np.zeros(0)).tolist(),
        )
        for answer in answers
    ]


def assert_same_walks(one, other, steps, seed=1):
    assert seen(walk(one, steps, seed)) == seen(walk(other, steps, seed))


def assert_continues(one, other, *, before, after, elsewhere=0):
    """The other environment, after a walk elsewhere, continues from the state of the first.

    Args:
        one: The environment that is saved.
        other: The one that is restored.
        before: Steps until the first is saved.
        after: Steps in which both are compared.
        elsewhere: Steps of the other before it is restored.
    """
    one.reset(seed=5)
    walk(one, before)
    if elsewhere:
        other.reset(seed=9)
        walk(other, elsewhere)
    other.load_state_dict(one.state_dict())
    assert_same_walks(one, other, after)


def assert_restored_without_steps(one, other, monkeypatch, *, before):
    """The other environment is restored by its own state, without a step of its row."""
    one.reset(seed=5)
    walk(one, before)
    state = one.state_dict()
    assert state["rows"]["0"]["actions"] == {}
    monkeypatch.setattr(type(other._rows._rows[0]), "step", None)
    other.load_state_dict(state)
