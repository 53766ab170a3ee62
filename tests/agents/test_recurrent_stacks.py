"""Stacks of one to four levels with any mix of recurrent and other networks.

At each level each greedy decision equals that of one pass over all observations of its row since
the hidden state was reset. That the resets are at the right moments is tested in
tests/levels/test_level_machine.py, where recurrent levels equal a plain recursion bit for bit.
"""

import numpy as np
import pytest
from test_recurrent_agents import final_state, greedy_action, parameters

import coach_rl as rl
from coach_rl.core.clock import Phase
from coach_rl.core.parts import wrap_method
from coach_rl.core.records import HIDDEN_STATE
from coach_rl.extensions.recurrent_layers.stage import HiddenStates
from tests import builders
from tests.builders import created

LAYERS = (rl.GRU, rl.LSTM, rl.MinGRU)
CONTINUOUS = ("PPO", "DDPG", "TD3", "SAC")


def random_level(rng, name, *, below, is_top):
    """A level above a level with that goal space, or above the simulator (None)."""
    kind = "DQN" if isinstance(below, rl.OptionSpace) else CONTINUOUS[rng.integers(4)]
    layer = LAYERS[rng.integers(3)]
    settings = {
        "size": int(rng.integers(2, 6)),
        "skip": bool(rng.random() < 0.3),
        "reset": ("sub_episode", "episode")[rng.integers(2)],
    }
    recurrence = layer(**settings) if rng.random() < 0.7 else None
    memory = {} if recurrence is not None else {"memory": rl.ReplayMemoryParameters(capacity=500)}
    space = None
    if not is_top:
        is_relative = bool(rng.random() < 0.5)
        goals = rl.GoalSpace(
            key="achieved_goal",
            low=(-1.0, -1.0),
            high=(1.0, 1.0),
            threshold=(0.3, 0.3),
            relative=is_relative,
            reach=(1.0, 1.0) if is_relative else None,
            observed=("absolute", "relative")[rng.integers(2)],
        )
        space = goals if rng.random() < 0.7 else rl.OptionSpace(count=3)
    return rl.LevelParameters(
        name=name,
        agent=parameters(kind, recurrence, **memory),
        goal_space=space,
        horizon=None if is_top else int(rng.integers(1, 7)),
    )


def random_stack(rng):
    levels = []
    count = int(rng.integers(1, 5))
    for number in reversed(range(count)):
        below = levels[0].goal_space if levels else None
        levels.insert(0, random_level(rng, f"level{number}", below=below, is_top=number == 0))
    return tuple(levels)


def compared_decisions(seed):
    """Play a stack; how many decisions of recurrent levels were compared."""
    rng = np.random.default_rng(seed)
    levels = random_stack(rng)
    world = rl.GoalPointMassParameters()
    manager = created(builders.graph(*levels, environment=world, num_envs=3, training=300), seed)
    graph, compared = manager.graph, 0
    requests = {name: [] for name in graph.agents}
    for name, agent in graph.agents.items():
        act, kept = agent.act, requests[name]

        def noted(row_state, request, clock, act=act, kept=kept):
            action = act(row_state, request, clock)
            kept.append((request, {k: v.copy() for k, v in row_state.choice.items()}))
            return action

        wrap_method(agent, "act", noted)
    stack = graph.training
    stack.clock.phase = Phase.TEST
    stack.reset(seed)
    for _ in range(60):
        stack.tick()
    for name, agent in graph.agents.items():
        if agent.stages.of(HiddenStates) is None:
            continue
        seen = {}
        for request, choice in requests[name]:
            is_reset = request.episode_start
            if agent.stages.of(HiddenStates).state.reset == "sub_episode":
                is_reset = request.starts
            for place, row in enumerate(request.rows.tolist()):
                now = {key: each[place] for key, each in request.observation.items()}
                seen[row] = [now] if is_reset[place] else [*seen[row], now]
                found = choice[HIDDEN_STATE][row], choice["action"][row]
                wanted = final_state(agent, seen[row]), greedy_action(agent, seen[row])
                for own, plain in zip(found, wanted, strict=True):
                    np.testing.assert_allclose(own, plain, atol=2e-5, rtol=1e-5)
                compared += len(seen[row]) > 1
    manager.close()
    return compared


@pytest.mark.parametrize(
    ("seeds", "least"),
    [
        (range(6), 200),
        pytest.param(range(6, 300), 10_000, marks=pytest.mark.slow),
    ],
    ids=["few", "many"],
)
def test_random_recurrent_stacks_decide_as_one_pass_over_the_observations(seeds, least):
    assert sum(map(compared_decisions, seeds)) > least
