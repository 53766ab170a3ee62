"""PPO on a point mass, in a few hundred steps."""

from functools import partial

from tests import builders

ppo = partial(builders.ppo, rollout=64, epochs=2)


def parameters(**schedule):
    given = {
        "training": 400,
        "heatup": 40,
        "evaluation_interval": 100,
        "evaluation_episodes": 3,
        "progress_interval": 100,
        **schedule,
    }
    return builders.flat(ppo(), num_envs=4, **given)
