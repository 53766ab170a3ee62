"""Small agents that move fast, and random graphs of levels with networks."""

from dataclasses import replace

import numpy as np

import coach_rl as rl

KEY = "observation"
GOALS = rl.GoalSpace(low=(-1, -1), high=(1, 1), threshold=(0.2, 0.2), elements=(0, 1), key=KEY)
STACKED = rl.InputFilter(
    observation={KEY: (rl.ObservationStackingFilter(stack_size=2, axis=0),)},
)


def ppo(name="agent", *, remembers=None, **settings):
    """PPO whose weights move far in a few steps.

    Args:
        name: The agent's name.
        remembers: Start at which its hidden state becomes 0; None: it has none.
        settings: Other parameters.
    """
    recurrence = None if remembers is None else rl.GRU(size=8, reset=remembers)
    torso = rl.TorsoParameters(middleware=(16,), recurrence=recurrence)
    return rl.PPOAgentParameters(
        name=name,
        algorithm=rl.PPOAlgorithmParameters(
            rollout=rl.EnvironmentSteps(24), minibatch=12, sequence=4
        ),
        network=rl.ActorCriticParameters(torso=torso),
        optimizer=rl.AdamParameters(learning_rate=0.1),
        update_mode="eager",
        **settings,
    )


def random_space(rng):
    """What a level below the top receives."""
    kind = rng.choice(["goal", "goal", "timed", "option", "nothing"])
    if kind == "nothing":
        return None
    if kind == "option":
        return rl.OptionSpace(count=int(rng.integers(2, 4)))
    space = replace(
        GOALS,
        threshold=(float(rng.choice([0.2, 0.6])),) * 2,
        relative=bool(rng.random() < 0.5),
        observed=str(rng.choice(["absolute", "relative"])),
    )
    longest = int(rng.integers(2, 6))
    return rl.TimedGoalSpace.of(space, longest=longest) if kind == "timed" else space


def random_levels(rng):
    """A top, one to three levels below it, and up to two below these; with their arrangement."""
    layers = [["top"], ["left", "middle", "right"][: rng.integers(1, 4)]]
    layers.append(["deep", "deeper"][: rng.integers(0, 3)])
    links = {"top": layers[1], **{name: [] for name in layers[1] + layers[2]}}
    for name in layers[2]:
        able = rng.permutation(layers[1])[: rng.integers(1, len(layers[1]) + 1)]
        for each in able.tolist():
            links[each].append(name)
    if layers[2] and rng.random() < 0.5:
        links["top"] = [*links["top"], layers[2][0]]
    levels, preempt = [], []
    for name, below in links.items():
        above = [each for each in links if name in links[each]]
        space = None if name == "top" else random_space(rng)
        if name != "top" and space is None and any(len(links[each]) == 1 for each in above):
            space = GOALS
        remembers = [None, "episode", "sub_episode"][rng.integers(3)]
        levels.append(
            rl.LevelParameters(
                name=name,
                agent=ppo(remembers=remembers, input_filter=STACKED),
                goal_space=space,
                horizon=None if name == "top" else int(rng.integers(2, 6)),
            )
        )
        if below and rng.random() < 0.4:
            preempt.append(name)
    return {"levels": tuple(levels), "arrangement": rl.LevelGraph(below=links, preempt=preempt)}


def to_the_left(observation, _space):
    """The members 1 where the point is on the right, else 0, [R]."""
    return (observation[KEY][:, 0] > 0).astype(np.int64)
