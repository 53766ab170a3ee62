"""Small Gymnasium environments, well-behaved and not, named as `little_environments:Class`."""

import sys
from typing import ClassVar

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

TAXI = "Taxi-v4" if "Taxi-v4" in gymnasium.registry else "Taxi-v3"
"""The newest that there is; Gymnasium 1.2 has no fourth."""


class Walk(gymnasium.Env):
    """A random walk that ends at 3 or after `limit` steps; everything a space can be."""

    observation_space = spaces.Dict(
        {
            "place": spaces.Box(-9, 9, (2,), np.float32),
            "camera": spaces.Dict(
                {"left": spaces.Box(0, 255, (2, 2), np.uint8), "on": spaces.MultiBinary(2)}
            ),
            "mode": spaces.Discrete(3, start=1),
            "counts": spaces.MultiDiscrete([4, 20]),
        }
    )
    action_space = spaces.Dict(
        {
            "wheel": spaces.Box(-1, 1, (2,), np.float32),
            "arm": spaces.Dict(
                {"grip": spaces.Discrete(2), "joints": spaces.MultiDiscrete([2, 3])}
            ),
        }
    )

    def __init__(self, limit=12):
        self.limit = limit

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        self.place = self.np_random.uniform(-1, 1, 2)
        return self._observed(), {"start": float(self.place[0])}

    def step(self, action):
        assert self.action_space.contains(action)
        self.time += 1
        push = action["wheel"] * (1 + action["arm"]["grip"]) + action["arm"]["joints"]
        self.place = np.clip(self.place + push + self.np_random.normal(size=2), -9, 9)
        info = {"time": self.time, "deep": {"push": push.astype(np.float32)}, "name": "walk"}
        if self.time % 2:
            info["odd"] = True
            info["object"] = object()
        return (
            self._observed(),
            np.float32(self.place.sum()),
            bool(self.place[0] > 3),
            self.time >= self.limit,
            info,
        )

    def _observed(self):
        return {
            "place": self.place,  # float64, as many environments do
            "camera": {
                "left": self.np_random.integers(0, 256, (2, 2), dtype=np.uint8),
                "on": np.array([1, self.time % 2], np.int8),
            },
            "mode": 1 + self.time % 3,
            "counts": np.array([self.time % 4, self.time]),
        }


class Gadget(gymnasium.Env):
    """Tuples and dicts in each other, of every kind of action; the middle of its dials pays."""

    observation_space = spaces.Tuple(
        (
            spaces.Box(-9, 9, (2,), np.float32),
            spaces.Dict({"mode": spaces.Discrete(3), "last": spaces.Tuple([spaces.Discrete(4)])}),
        )
    )
    action_space = spaces.Dict(
        {
            "drive": spaces.Tuple(
                (
                    spaces.Discrete(3, start=1),
                    spaces.Dict({"far": spaces.Box(0, 8, (1,)), "turn": spaces.Box(-2, 2, (1, 2))}),
                )
            ),
            "lamps": spaces.MultiBinary((2, 2)),
            "gears": spaces.MultiDiscrete([[2, 3]], dtype=np.int32),
            "size": spaces.Box(-1, 5, (2, 1), np.float64),
        }
    )

    def __init__(self, limit=7, render_mode=None):
        self.limit, self.render_mode = limit, render_mode
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": 20}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time, self.kind = 0, 0
        return self.observed(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.time += 1
        self.kind, dials = action["drive"]
        far = abs(dials["far"][0] - 4) if self.kind == 2 else 4
        reward = -float(far) - float(np.abs(action["size"] - 2).sum()) + action["lamps"].sum()
        return self.observed(), reward, bool(self.time > 3 and self.kind == 1), self.is_late(), {}

    def is_late(self):
        return self.time >= self.limit

    def observed(self):
        place = self.np_random.normal(size=2).astype(np.float32)
        return place, {"mode": self.time % 3, "last": (self.kind,)}

    def render(self):
        return np.full((16, 16, 3), 20 * self.time, np.uint8)


class Plain(gymnasium.Env):
    """Counts its steps; the base of the troublemakers."""

    observation_space = spaces.Box(-1000, 1000, (2,), np.float32)
    action_space = spaces.Discrete(4)

    def __init__(self, trouble_at=3, render_mode=None):
        self.trouble_at = trouble_at
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time, self.start = 0, self.np_random.uniform()
        return self.observed(), {}

    def step(self, action):
        self.time += 1
        if action == 3 and self.time >= self.trouble_at:
            self.trouble()
        return self.observed(), 1.0, False, self.time >= 10, {}

    def observed(self):
        return np.array([self.time, self.start], np.float32)

    def trouble(self):
        raise ZeroDivisionError("the wheels came off")

    def render(self):
        return np.full((4, 5, 3), self.time, np.uint8)


def plain(name, **changed):
    """A kind of `Plain` with other attributes and methods."""
    return type(name, (Plain,), {"__module__": __name__, **changed})


def fails_to_reset(env, *, seed=None, options=None):
    if seed == 1:
        raise RuntimeError("no way to begin")
    return Plain.reset(env, seed=seed)


def step_without_truncation(env, action):
    observation, reward, terminated, _, info = Plain.step(env, action)
    return observation, reward, terminated, info


def only_observation(env, *, seed=None, options=None):
    return Plain.reset(env, seed=seed)[0]


FailsToReset = plain("FailsToReset", reset=fails_to_reset)
Narrow = plain("Narrow", observation_space=spaces.Box(0, 0.5, (2,), np.float32))
"""Shows more than its space says."""
WrongShape = plain("WrongShape", observed=lambda env: np.zeros(1, np.float32))
WrongKind = plain(
    "WrongKind",
    observation_space=spaces.MultiDiscrete([9, 9]),
    observed=lambda env: np.zeros(2, np.float32),
)
MissingKey = plain(
    "MissingKey",
    observation_space=spaces.Dict({"here": Plain.observation_space, "there": spaces.Discrete(2)}),
    observed=lambda env: {"here": Plain.observed(env)},
)
CollidingKeys = plain(
    "CollidingKeys",
    observation_space=spaces.Dict(
        {"a/b": spaces.Discrete(2), "a": spaces.Dict({"b": spaces.Discrete(2)})}
    ),
)
HasGraph = plain(
    "HasGraph",
    action_space=spaces.Dict({"plan": spaces.Tuple((spaces.Discrete(2), spaces.Text(5)))}),
)
OldStep = plain("OldStep", step=step_without_truncation)
"""Gym's interface of before 2022."""
ReturnsNone = plain("ReturnsNone", step=lambda env, action: None)
"""Forgets what a step has to return."""
OldReset = plain("OldReset", reset=lambda env: only_observation(env))
OldResetWithSeed = plain("OldResetWithSeed", reset=only_observation)


class NoSpaces(gymnasium.Env):
    """Forgets to say what it shows and takes."""


class Answers(Plain):
    """Gives any reward and any success."""

    def __init__(self, reward=1.0, success=None):
        super().__init__()
        self.given = reward, {} if success is None else {"is_success": success}

    def step(self, action):
        observation, _, *ends, _ = super().step(action)
        return observation, self.given[0], *ends, self.given[1]


class KeepsSettings(Plain):
    """Remembers what the last one was made with."""

    last = None

    def __init__(self, settings):
        super().__init__()
        KeepsSettings.last = settings


class OneBuffer(Plain):
    """Hands out the same array every time, and keeps writing into it."""

    buffer = None

    def observed(self):
        if self.buffer is None:
            self.buffer = np.zeros(2, np.float32)
        self.buffer[:] = super().observed()
        return self.buffer


class Rude(gymnasium.Env):
    """Changes its actions in place; hands out its own arrays, and one that all copies share."""

    observation_space = spaces.Box(-1e6, 1e6, (2,), np.float64)
    action_space = spaces.Dict(
        {"push": spaces.Box(-1, 1, (2,), np.float32), "gears": spaces.MultiDiscrete([3, 4])}
    )
    shown = np.zeros(2)

    def __init__(self):
        self.place, self.count = np.zeros(2), np.zeros((), np.int64)
        self.reward, self.over = np.zeros(()), np.zeros((), np.bool_)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place[:] = self.np_random.normal(size=2)
        self.count[...], self.reward[...], self.over[...] = 0, 0, False
        self.shown[:] = self.place
        return self.shown, {"place": self.place}

    def step(self, action):
        action["push"] *= 0.5
        np.clip(action["gears"], 1, 2, out=action["gears"])
        self.place += action["push"] * action["gears"] + self.np_random.normal(size=2)
        self.count += 1
        self.reward[...], self.over[...] = self.count, self.count >= 7
        self.shown[:] = self.place
        info = {"place": self.place, "is_success": self.over, "deep": {"count": self.count}}
        return self.shown, self.reward, self.over, False, info


class OneBufferVector(VectorEnv):
    """Rows that count to 3, in arrays that are written to for ever; actions as well."""

    single_observation_space = spaces.Box(0, 9, (1,), np.float64)
    single_action_space = spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, num_envs, mode):
        self.num_envs, self.metadata = num_envs, {"autoreset_mode": AutoresetMode(mode)}
        self.counts, self.rewards = np.zeros((num_envs, 1)), np.zeros(num_envs)
        self.over, self.never = np.zeros(num_envs, np.bool_), np.zeros(num_envs, np.bool_)
        self.info = {"count": self.counts, "_count": np.ones(num_envs, np.bool_)}

    def reset(self, *, seed=None, options=None):
        self._restart((options or {}).get("reset_mask", np.ones(self.num_envs, np.bool_)))
        return self.counts, self.info

    def step(self, actions):
        actions[:] = 0
        again = self.over.copy()
        self.counts += 1
        self.rewards[:] = self.counts[:, 0]
        if self.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP:
            self._restart(again)
        self.over[:] = self.counts[:, 0] >= 3
        return self.counts, self.rewards, self.over, self.never, self.info

    def _restart(self, rows):
        self.counts[rows], self.rewards[rows], self.over[rows] = 0, 0, False


class Gives(VectorEnv):
    """Rows of two steps that give what `values` has, by name; the others are as they should be."""

    values: ClassVar = {}

    single_observation_space = spaces.Dict(
        {"place": spaces.Box(-9, 9, (2,), np.float32), "count": spaces.Discrete(9)}
    )
    single_action_space = spaces.Discrete(2)
    metadata: ClassVar = {"autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(self, num_envs):
        self.num_envs, self.time = num_envs, 0

    def reset(self, *, seed=None, options=None):
        self.time = 0
        return self.values.get("start", self.seen()), self.values.get("start info", {})

    def step(self, actions):
        self.time += 1
        over = np.full(self.num_envs, self.time % 2 == 0)
        given = {
            "observation": self.seen(),
            "reward": np.ones(self.num_envs),
            "terminated": over,
            "truncated": over & False,
        }
        last = {"final_obs": self.seen(), "_final_obs": over} if over.any() else {}
        info = self.values.get("info", {})
        changed = {**given, **self.values}
        changed["info"] = {**last, **info} if isinstance(info, dict) else info
        return tuple(changed[name] for name in (*given, "info"))

    def seen(self):
        place = np.zeros((self.num_envs, 2), np.float32)
        return {"place": place, "count": np.full(self.num_envs, self.time)}


def gives(num_envs) -> VectorEnv:
    return Gives(num_envs)


def one_buffer(num_envs, mode) -> VectorEnv:
    return OneBufferVector(num_envs, mode)


class Endless(gymnasium.Env):
    """Adds up its actions, without an end; shows its steps in all episodes if it `carries`."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = spaces.Box(-1, 1, (2,), np.float32)

    def __init__(self, carries=False):
        self.carries, self.steps = carries, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.sum = 0.0
        return self._seen(), {}

    def step(self, action):
        self.steps += 1
        self.sum += float(action.sum())
        return self._seen(), 0.0, False, False, {}

    def _seen(self):
        return np.array([self.sum, self.steps if self.carries else 0])


class Far(Endless):
    """Leaves its space at every 37th step, and only there."""

    observation_space = spaces.Dict(
        {"box": spaces.Box(-1, 1, (2,), np.float32), "mode": spaces.Discrete(3, start=5)}
    )

    def __init__(self, key):
        super().__init__()
        self.key = key

    def _seen(self):
        is_far = self.steps % 37 == 36
        box = np.full(2, 3.0 if is_far and self.key == "box" else 1.0, np.float32)
        return {"box": box, "mode": 8 if is_far and self.key == "mode" else 7}


class Signalled(KeyboardInterrupt):
    """A signal to the run, such as Ctrl-C."""

    signal = 2


class FailsToClose(Plain):
    """Fails when it is closed, in a way of its own."""

    def __init__(self, how):
        super().__init__()
        self.how = how

    def close(self):
        raise {
            "error": RuntimeError("stuck"),
            "exit": SystemExit(0),
            "interrupt": KeyboardInterrupt("mine"),
            "signal": Signalled(),
        }[self.how]


def fail_to_close(num_envs, how) -> VectorEnv:
    return SyncVectorEnv([lambda: FailsToClose(how)] * num_envs)


class Meddles(Plain):
    """Changes a setting of torch, which the whole process has once."""

    def __init__(self, setting, where):
        super().__init__()
        self.setting, self.where = setting, where
        self.meddle("construction")

    def reset(self, *, seed=None, options=None):
        self.meddle("reset")
        return super().reset(seed=seed)

    def step(self, action):
        self.meddle("step")
        return super().step(action)

    def meddle(self, where):
        if where == self.where:
            {
                "dtype": lambda: torch.set_default_dtype(torch.float64),
                "gradients": lambda: torch.set_grad_enabled(False),
                "device": lambda: torch.set_default_device("meta"),
                "threads": lambda: torch.set_num_threads(torch.get_num_threads() + 1),
            }[self.setting]()


class Mutes(Meddles):
    """Takes the standard streams from its process."""

    def __init__(self, where, render_mode=None):
        super().__init__("streams", where)
        self.render_mode = render_mode

    def meddle(self, where):
        if where == self.where:
            sys.stdout = sys.stderr = None

    def render(self):
        self.meddle("render")
        return super().render()

    def close(self):
        self.meddle("close")


def mute(num_envs, **kwargs) -> VectorEnv:
    return SyncVectorEnv([lambda: Mutes(**kwargs)] * num_envs)


class Exits(Plain):
    """Ends the process in its third step."""

    def __init__(self, how="exit"):
        super().__init__()
        self.how = how

    def step(self, action):
        if self.time == 2:
            raise {"exit": SystemExit(0), "generator": GeneratorExit()}[self.how]
        return super().step(action)


def exits(num_envs, how="exit") -> VectorEnv:
    return SyncVectorEnv([lambda: Exits(how)] * num_envs)


class OwnRandomness(Plain):
    """Seeds a generator that nobody else can see."""

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        super().reset(seed=seed)
        self.start = self.rng.uniform()
        return self.observed(), {}


class OldGenerator(Plain):
    """Uses another kind of generator than Gymnasium's own."""

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            self.np_random = np.random.Generator(np.random.MT19937(seed))
        return super().reset()


class NoGenerator(Plain):
    """Has no generator and needs none."""

    np_random = None

    def reset(self, *, seed=None, options=None):
        self.time, self.start = 0, 0.5
        return self.observed(), {}


class DifferentSpaces(Plain):
    made = 0

    def __init__(self):
        super().__init__()
        DifferentSpaces.made += 1
        self.action_space = spaces.Discrete(2 + DifferentSpaces.made)


class AddToReward(gymnasium.RewardWrapper):
    def __init__(self, env, amount=1.0):
        super().__init__(env)
        self.amount = amount

    def reward(self, reward):
        return reward + self.amount


class Double(gymnasium.RewardWrapper):
    def reward(self, reward):
        return 2 * reward


class VectorBonus(gymnasium.vector.VectorRewardWrapper):
    def rewards(self, rewards):
        return rewards + 5


def not_an_environment() -> gymnasium.Env:
    return "nothing"


def needs_a_package() -> gymnasium.Env:
    raise gymnasium.error.DependencyNotInstalled(
        "swimsuit is not installed, run `pip install swim`"
    )


def walks(num_envs, mode="NextStep", limit=12) -> VectorEnv:
    return SyncVectorEnv([lambda: Walk(limit)] * num_envs, autoreset_mode=mode)


def gadgets(num_envs, mode="NextStep") -> VectorEnv:
    return SyncVectorEnv([Gadget] * num_envs, autoreset_mode=mode)


def plains(num_envs, mode="NextStep") -> VectorEnv:
    return SyncVectorEnv([Plain] * num_envs, autoreset_mode=mode)


class SilentVector(VectorEnv):
    """Doesn't say what it does at an episode's end."""

    single_observation_space = Plain.observation_space
    single_action_space = Plain.action_space

    def __init__(self, num_envs):
        self.num_envs = num_envs


class NoFinalObs(SyncVectorEnv):
    """Resets in the same step and loses the last observation."""

    def __init__(self, num_envs):
        super().__init__([Plain] * num_envs, autoreset_mode="SameStep")

    def step(self, actions):
        *result, info = super().step(actions)
        info.pop("final_obs", None)
        return *result, info


if "LittlePlain-v0" not in gymnasium.registry:  # this module is imported under two names
    gymnasium.register("LittlePlain-v0", entry_point="little_environments:Plain")
    gymnasium.register("LittleSettings-v0", entry_point="little_environments:KeepsSettings")
