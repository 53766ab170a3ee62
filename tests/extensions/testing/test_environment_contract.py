"""Each check of the environment contract finds its defect, and passes a good environment."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from coach_rl.core.errors import ActionError, CheckpointError
from coach_rl.core.records import Directive
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.environments.gymnasium import GymnasiumParameters
from coach_rl.environments.toy import GoalPointMassParameters, PointMassParameters
from coach_rl.extensions.testing import (
    ENVIRONMENT_CHECKS,
    ContractViolation,
    EnvironmentContract,
    Trial,
    check_environment,
)

CHECKS = {check.__name__: check for check in ENVIRONMENT_CHECKS}
GOOD = GoalPointMassParameters(max_episode_steps=8)


class Broken:
    """A good environment; each subclass breaks one promise."""

    def __init__(self, num_envs):
        self.inner = GOOD.build(num_envs=num_envs)
        self.num_envs = num_envs

    @property
    def spaces(self):
        return self.inner.spaces

    def reset(self, seed=None):
        return self.inner.reset(seed)

    def send(self, directive, rows=None):
        self.inner.send(directive, rows)

    def recv(self):
        return self.inner.recv()

    def state_dict(self):
        return self.inner.state_dict()

    def load_state_dict(self, state):
        self.inner.load_state_dict(state)

    def close(self):
        self.inner.close()


def answering(change, method="recv"):
    """Environments that return something else than a good one."""

    def answer(self, *given, **named):
        return change(getattr(Broken, method)(self, *given, **named))

    return type("Answering", (Broken,), {method: answer})


def given(change, method):
    """Environments that do something else than what they are given."""

    def do(self, *given, **named):
        first, *more = (*given, *named.values())
        return getattr(Broken, method)(self, change(first), *more)

    return type("Given", (Broken,), {method: do})


def showing(response, **observed):
    return replace(response, observation={**response.observation, **observed})


def with_two_first(response):
    first = {key: values * 0.5 for key, values in response.first_observation.items()}
    return replace(response, first_observation=first)


def fresh_seed(_):
    return np.random.SeedSequence().generate_state(1)[0].item()


def seeds(row_of):
    """Environments of which row i has another seed than `seed + i`."""

    def reset(self, seed=None):
        if isinstance(seed, int):
            seed = [row_of(seed, row) for row in range(self.num_envs)]
        return Broken.reset(self, seed)

    return type("Seeds", (Broken,), {"reset": reset})


def action_of(directive):
    return directive.action if isinstance(directive, Directive) else directive


class WrongNumber(Broken):
    def __init__(self, num_envs):
        super().__init__(num_envs)
        self.num_envs = num_envs + 1


class NestedSpace(Broken):
    @property
    def spaces(self):
        nested = spaces.Dict({"all": self.inner.spaces.observation})
        return EnvironmentSpaces(observation=nested, action=self.inner.spaces.action)


class InfoOfAllRows(Broken):
    def recv(self):
        response = super().recv()
        return replace(response, info={"is_success": np.zeros(self.num_envs, np.bool_)})


class NeverEnds(Broken):
    def __init__(self, num_envs):
        super().__init__(num_envs)
        self.inner = PointMassParameters(max_episode_steps=1000).build(num_envs=num_envs)


class SeedsInReverse(Broken):
    """Row i alone gets `seed`, among others `seed + N - 1 - i`."""

    def reset(self, seed=None):
        if isinstance(seed, int):
            seed = [seed + self.num_envs - 1 - row for row in range(self.num_envs)]
        elif seed is not None:
            seed = seed[::-1]
        return super().reset(seed)


class NoSeedRepeats(Broken):
    def reset(self, seed=None):
        self.seed = self.seed if seed is None else seed
        return super().reset(self.seed)


class NoSeedIsRandom(Broken):
    def reset(self, seed=None):
        return super().reset(fresh_seed(seed) if seed is None else seed)


class AnswersUnasked(Broken):
    def __init__(self, num_envs):
        super().__init__(num_envs)
        self.last = None

    def recv(self):
        response = super().recv()
        self.last = response if len(response) or self.last is None else self.last
        return self.last


class IdlingMoves(Broken):
    """Receiving with nothing sent steps row 0 in secret."""

    def recv(self):
        response = super().recv()
        if not len(response):
            self.inner.send(np.ones((1, 2), np.float32), np.array([0]))
            self.inner.recv()
        return response


class SortsActions(Broken):
    """Forgets that rows may come in any order."""

    def send(self, directive, rows=None):
        super().send(directive, None if rows is None else np.sort(rows))


class StepsEveryone(Broken):
    """Steps the rows that were sent nothing with a zero action."""

    def send(self, directive, rows=None):
        super().send(directive, rows)
        self.sent = np.arange(self.num_envs) if rows is None else rows

    def recv(self):
        response = super().recv()
        others = np.setdiff1d(np.arange(self.num_envs), self.sent)
        if len(response) and len(others):
            self.inner.send(np.zeros((len(others), 2), np.float32), others)
            self.inner.recv()
        return response


class OverwritesOpenRows(Broken):
    def send(self, directive, rows=None):
        try:
            super().send(directive, rows)
        except ActionError as error:
            if "open decision" not in str(error):
                raise


class TakesRowTwice(Broken):
    def send(self, directive, rows=None):
        if rows is not None and len(np.unique(rows)) < len(rows):
            return
        super().send(directive, rows)


class WrongErrorForRows(Broken):
    def send(self, directive, rows=None):
        if rows is not None and np.max(rows) >= self.num_envs:
            raise IndexError("no such row")
        super().send(directive, rows)


class BrokenByBadAction(Broken):
    """Refuses, but forgets the rows it refused for: they are stepped with zeros."""

    def send(self, directive, rows=None):
        try:
            super().send(directive, rows)
        except ActionError:
            self.inner.send(np.zeros((self.num_envs, 2), np.float32))
            self.inner.recv()
            raise


class StartsBySelf(Broken):
    def send(self, directive, rows=None):
        if not self.inner.state_dict()["inbox"]["started"]:
            self.inner.reset(0)
        super().send(directive, rows)


class ReusesBuffers(Broken):
    def __init__(self, num_envs):
        super().__init__(num_envs)
        self.buffer = np.zeros((num_envs, 4), np.float32)

    def recv(self):
        response = super().recv()
        if len(response) == self.num_envs:
            self.buffer[:] = response.observation["observation"]
            seen = {**response.observation, "observation": self.buffer}
            response = replace(response, observation=seen)
        return response


class HandsOutItsState(Broken):
    def __init__(self, num_envs):
        super().__init__(num_envs)
        self.rewards = np.zeros(num_envs)

    def recv(self):
        response = super().recv()
        self.rewards[response.rows] += response.reward
        if len(response) < self.num_envs:
            return response
        return replace(response, reward=self.rewards)


class KeepsActions(Broken):
    """Steps with the caller's array, whatever has become of it."""

    def send(self, directive, rows=None):
        super().send(directive, rows)
        self.sent = None
        if rows is None and not isinstance(directive, Directive):
            self.sent = directive

    def recv(self):
        if self.sent is not None:
            self.inner.load_state_dict(without_decisions(self.inner.state_dict()))
            self.inner.send(self.sent)
            self.sent = None
        return super().recv()


def with_other_streams(state):
    streams = {row: np.random.default_rng(int(row)) for row in state["streams"]}
    return {**state, "streams": {row: it.bit_generator.state for row, it in streams.items()}}


def without_decisions(state):
    return {**state, "inbox": {**state["inbox"], "rows": np.zeros(0, np.int64)}}


class KeepsOpenDecisions(Broken):
    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.inner.send(np.zeros((self.num_envs, 2), np.float32))


class KeepsItsOwnWorld(Broken):
    """Takes over the saved goals only where it has none yet."""

    def load_state_dict(self, state):
        mine = super().state_dict()
        super().load_state_dict(state)
        if mine["inbox"]["started"]:
            loaded = super().state_dict()
            world = {**loaded["world"], "goal": mine["world"]["goal"]}
            super().load_state_dict({**loaded, "world": world})


class StateIsAView(Broken):
    """What it has saved goes on changing with it."""

    saved = None

    def state_dict(self):
        self.saved = super().state_dict()
        return self.saved

    def recv(self):
        if self.saved is not None:
            self.saved["elapsed"] += 1
        return super().recv()


class LoadsAView(Broken):
    """Goes on to look at the state that was loaded."""

    loaded = before = None

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.loaded = state["world"]["position"]
        self.before = self.loaded.copy()

    def recv(self):
        if self.loaded is not None and not np.array_equal(self.loaded, self.before):
            mine = super().state_dict()
            super().load_state_dict({**mine, "world": {**mine["world"], "position": self.loaded}})
            self.before = self.loaded.copy()
        return super().recv()


class SavesNothingOpen(Broken):
    def state_dict(self):
        state = super().state_dict()
        if len(state["inbox"]["rows"]):
            raise CheckpointError("rows are open")
        return state


class StateOfObjects(Broken):
    def state_dict(self):
        return {**super().state_dict(), "generator": np.random.default_rng(0)}

    def load_state_dict(self, state):
        super().load_state_dict({k: v for k, v in state.items() if k != "generator"})


FLAGS, NUMBER = spaces.MultiBinary(2), spaces.Box(0, 9, (1,), np.float64)


class Count(gymnasium.Env):
    """Counts to 3."""

    observation_space = spaces.Box(0, 9, (), np.float64)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0.0
        return self.count, {"count": self.count}

    def step(self, action):
        self.count += 1
        return self.count, 0.0, self.count == 3, False, {"count": self.count}


class Masked(Count):
    """The same with masks that are given."""

    observation_space = spaces.Dict({"count": NUMBER, "action_mask": FLAGS})
    masks = ([1, 0], [0, 1], [1, 1], [0, 0])

    def shown(self, count):
        return {
            "count": np.full(1, count),
            "action_mask": np.array(self.masks[int(count)], np.int8),
        }

    def reset(self, *, seed=None, options=None):
        count, info = super().reset(seed=seed)
        return self.shown(count), info

    def step(self, action):
        assert self.masks[int(self.count)][action], "a forbidden action"
        count, *rest = super().step(action)
        return self.shown(count), *rest


class Stuck(Masked):
    masks = ([1, 0], [0, 0], [1, 1], [0, 0])


class Halves(Masked):
    observation_space = spaces.Dict(
        {"count": NUMBER, "action_mask": spaces.Box(0, 2, (2,), np.int8)}
    )
    masks = ([1, 0], [2, 1], [1, 1], [0, 0])


def masked(name):
    return lambda rows: GymnasiumParameters(level=f"{__name__}:{name}").build(num_envs=rows)


class InfoOfTheNextEpisode(Broken):
    single = Count

    def __init__(self, num_envs):
        self.inner = GymnasiumParameters(level=f"{__name__}:Count").build(num_envs=num_envs)
        self.num_envs = num_envs

    def recv(self):
        response = super().recv()
        return replace(response, info={"count": response.first_observation["observation"]})


class WritesIntoActions(Broken):
    def send(self, directive, rows=None):
        super().send(directive, rows)
        directive *= 0.5


class ClosesOnce(Broken):
    closed = False

    def close(self):
        if self.closed:
            raise RuntimeError("already closed")
        self.closed = True


BROKEN = {
    "reset_answers_for_all_rows": {
        "in reverse": answering(lambda it: replace(it, rows=it.rows[::-1].copy()), "reset"),
        "duration": answering(lambda it: replace(it, duration=it.duration + 1), "reset"),
        "two observations": answering(with_two_first, "reset"),
        "wrong number": WrongNumber,
    },
    "answers_have_the_promised_form": {
        "dtype": answering(
            lambda it: showing(it, observation=it.observation["observation"].astype(np.float64))
        ),
        "out of space": answering(
            lambda it: showing(it, achieved_goal=it.observation["achieved_goal"] + np.float32(9))
        ),
        "missing key": answering(
            lambda it: replace(it, observation={"observation": it.observation["observation"]})
        ),
        "nested space": NestedSpace,
    },
    "info_is_aligned": {
        "all rows": InfoOfAllRows,
        "objects": answering(lambda it: replace(it, info={"is_success": [False] * len(it)})),
    },
    "info_is_that_of_the_step": {"next episode": InfoOfTheNextEpisode},
    "duration_counts_steps": {
        "two": answering(lambda it: replace(it, duration=it.duration * 2)),
    },
    "end_bits_agree": {
        "no flag": answering(lambda it: replace(it, truncated=np.zeros_like(it.truncated))),
        "never": NeverEnds,
    },
    "last_observation_is_the_true_one": {
        "reset": answering(lambda it: replace(it, observation=dict(it.first_observation))),
        "first everywhere": answering(with_two_first),
        "never": NeverEnds,
    },
    "masks_allow_an_action": {"stuck": masked("Stuck"), "halves": masked("Halves")},
    "same_seed_same_numbers": {"unseeded": given(fresh_seed, "reset")},
    "different_seeds_differ_if_anything_does": {"one for all": seeds(lambda _, row: row)},
    "integer_seed_counts_up": {"times two": seeds(lambda seed, row: seed + 2 * row)},
    "rows_live_alone_as_among_others": {"in reverse": SeedsInReverse},
    "no_seed_continues": {"repeats": NoSeedRepeats, "random": NoSeedIsRandom},
    "recv_without_send_is_empty": {"unasked": AnswersUnasked, "moves": IdlingMoves},
    "directive_equals_bare_action": {
        "ignored": given(
            lambda it: Directive(action=it.action * 0) if isinstance(it, Directive) else it, "send"
        ),
    },
    "rows_and_actions_stay_together": {"sorted": SortsActions},
    "unsent_rows_stay_untouched": {"everyone": StepsEveryone},
    "bad_rows_are_refused": {
        "overwrites": OverwritesOpenRows,
        "row twice": TakesRowTwice,
        "wrong error": WrongErrorForRows,
    },
    "bad_actions_are_refused": {
        "clips": given(lambda it: np.clip(action_of(it), -1, 1), "send"),
        "NaN": given(lambda it: np.nan_to_num(action_of(it)), "send"),
        "broken by it": BrokenByBadAction,
    },
    "send_before_reset_is_refused": {"by itself": StartsBySelf},
    "answers_are_not_overwritten": {"buffers": ReusesBuffers},
    "answers_can_be_written_to": {"its state": HandsOutItsState, "actions": KeepsActions},
    "sent_actions_stay_as_they_are": {"written": WritesIntoActions},
    "state_round_trip": {
        "elapsed": answering(lambda it: {**it, "elapsed": it["elapsed"] * 0}, "state_dict"),
        "streams": given(with_other_streams, "load_state_dict"),
    },
    "state_replaces_everything": {"open": KeepsOpenDecisions, "own world": KeepsItsOwnWorld},
    "state_shares_no_memory": {
        "view saved": StateIsAView,
        "view loaded": LoadsAView,
        "objects": StateOfObjects,
    },
    "open_decisions_are_saved": {
        "forgotten": given(without_decisions, "load_state_dict"),
        "nothing open": SavesNothingOpen,
    },
    "saved_before_reset": {
        "started": given(
            lambda it: {**it, "inbox": {**it["inbox"], "started": True}}, "load_state_dict"
        ),
    },
    "close_twice": {"once": ClosesOnce},
}


def test_every_check_is_proved():
    assert set(BROKEN) == set(CHECKS)


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        pytest.param(name, broken, id=f"{name}, {kind}")
        for name, kinds in BROKEN.items()
        for kind, broken in kinds.items()
    ],
)
def test_check_finds_the_broken_promise(name, broken):
    with pytest.raises(ContractViolation) as caught:
        CHECKS[name](Trial(build=broken, steps=20, single=getattr(broken, "single", None)))
    assert "\n\n" not in str(caught.value)


class TestGoodEnvironment(EnvironmentContract):
    steps = 20

    def build(self, num_envs):
        return GOOD.build(num_envs=num_envs)


def test_the_mixin_has_every_check():
    assert {f"test_{name}" for name in CHECKS} <= set(dir(EnvironmentContract))


def test_check_environment_runs_every_check():
    check_environment(Broken, steps=20)
    check_environment(masked("Masked"), steps=20)
    with pytest.raises(ContractViolation):
        check_environment(ClosesOnce, steps=20)


def test_environment_contract_without_build_raises():
    with pytest.raises(NotImplementedError):
        EnvironmentContract().build(1)
