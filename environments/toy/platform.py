"""The Platform domain: run, hop and leap over three platforms, each as far as its argument."""

from typing import ClassVar

import numpy as np
from gymnasium import spaces

from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import Action, Array, BoolArray, FloatArray, IntArray, Observation
from coach_rl.environments.world import WorldEnvironment, WorldState, WorldStep, plain_spaces

RUN, HOP, LEAP = range(3)
"""The kinds of action."""
LARGEST = {"run": 30.0, "hop": 720.0, "leap": 430.0}
"""Their largest arguments: the speed gained in a tick of a run; the distance a jump aims at."""
LEFT = np.array([0.0, 475.0, 985.0])
WIDTH = np.array([250.0, 275.0, 50.0])
GAP = (225.0, 235.0, 0)
"""Left ends, widths, and the gaps behind them, of the platforms."""
LENGTH = 1035.0
TOP = 40.0
"""Height of the platforms' surface, on which the player and the enemies stand."""
SIZE = np.array([20.0, 30.0])
"""Width and height of the player and of the enemies."""
TICK = 0.05
RUN_TICKS = 20
"""Ticks of a run: one second."""
MOST_TICKS = 150
"""More than the highest jump takes."""
RISE = np.array([0.0, 35.0, 25.0])
"""Upward speed of each kind."""
GRAVITY = 9.8
DECAY = 0.99
GAIN = 30.0
FASTEST = 100.0
FASTEST_STANDING = 70.0
"""Largest gain of speed at once, and largest speeds of the player in the air and on a platform."""
ENEMY_SPEED = 30.0
NOISE = 0.5
_SHIFT = np.array([SIZE[0], 0, 0, ENEMY_SPEED, 0, 0, 0, 0, 0])
_SCALE = np.array([LENGTH + SIZE[0], FASTEST, LENGTH, 2 * ENEMY_SPEED, 275, 275, 235, LENGTH, 1])
_PLATFORMS = np.array(
    [[WIDTH[i], WIDTH[i + 1] if i < 2 else 0.0, GAP[i], LEFT[i], 0.0] for i in range(3)]
)
"""The last five features of the observation: width, next width, gap, left end, step in height."""


@parameter_class
class PlatformParameters:
    """Cross three platforms from left to right, over two gaps and past two enemies.

    The domain of Masson, Ranchod and Konidaris 2016, "Reinforcement Learning with Parameterized
    Actions" (arXiv:1509.01644), rebuilt from the constants of Bester's gym-platform: sizes, the
    physics of a tick with its noise, 9 features scaled in the same way, the reward (progress as a
    share of the whole length, 1 in total at the end) and the ends (a fall, a touch of an enemy,
    the right end) are the same, and so are the bounds of the arguments. It differs in its action,
    a Dict of the kind and an argument for each kind instead of a pair, and in what it leaves out:
    the number of ticks in the observation, and pictures.
    """

    level: ClassVar[str] = "platform"

    max_episode_steps: Positive[int] = 200
    """Length of an episode that does not end."""

    def build(self, *, num_envs: int) -> WorldEnvironment:
        return WorldEnvironment(
            Platform(), num_envs=num_envs, max_episode_steps=self.max_episode_steps
        )


class Platform:
    """The rules of the Platform domain. A decision lasts until the player stands again."""

    start_numbers, step_numbers = 0, 2 * (1 + MOST_TICKS)

    def __init__(self) -> None:
        arguments = {name: spaces.Box(0, high, (1,)) for name, high in LARGEST.items()}
        self.spaces = plain_spaces(
            spaces.Box(-1, 2, (9,), np.float32),
            spaces.Dict({"kind": spaces.Discrete(3), **arguments}),
        )

    def start(self, uniform: FloatArray) -> WorldState:
        rows = len(uniform)
        return {
            "place": np.tile([0.0, TOP], (rows, 1)),
            "speed": np.zeros((rows, 2)),
            "enemy": np.tile(LEFT[:2] + WIDTH[:2] - SIZE[0], (rows, 1)),
            "enemy_speed": np.full((rows, 2), -ENEMY_SPEED),
        }

    def observe(self, state: WorldState) -> Observation:
        """Nine features, [R, 9]."""
        x = state["place"][:, 0]
        rows = np.arange(len(x))
        near = _near_enemy(x)
        moving = [x, state["speed"][:, 0], state["enemy"][rows, near]]
        moving.append(state["enemy_speed"][rows, near])
        platform = (x[:, None] >= LEFT[1:]).sum(axis=1)
        features = np.concatenate([np.stack(moving, axis=1), _PLATFORMS[platform]], axis=1)
        return {"observation": ((features + _SHIFT) / _SCALE).astype(np.float32)}

    def step(self, state: WorldState, action: Action, uniform: FloatArray) -> WorldStep:
        assert isinstance(action, dict), "the action is a dict"
        kind: IntArray = action["kind"]
        arguments = np.concatenate([action[name] for name in LARGEST], axis=1)
        argument = arguments[np.arange(len(kind)), kind].astype(np.float64)
        normal = _normal(uniform)
        after = {name: values.copy() for name, values in state.items()}
        terminated = np.zeros(len(kind), np.bool_)
        # rows whose decision lasts, and their state
        moving = np.arange(len(kind))
        now = after
        stands = _stands(now["place"])  # not where a run has ended just behind an edge
        begun = _impulse(kind, argument, now["speed"][:, 0], normal[:, :2])
        impulse = np.where(stands[:, None], begun, [0.0, -GRAVITY * TICK])
        for tick in range(MOST_TICKS):
            stands = _tick(now, impulse, stands, normal[moving, 2 * tick + 2 : 2 * tick + 4])
            ended = _has_ended(now)
            over = ended | np.where(kind[moving] == RUN, tick + 1 == RUN_TICKS, stands)
            if over.any():
                for name, values in after.items():
                    values[moving[over]] = now[name][over]
                terminated[moving[over]] = ended[over]
                now = {name: values[~over] for name, values in now.items()}
                moving = moving[~over]
                stands = stands[~over]
                impulse = impulse[~over]
            if not len(moving):
                break
            impulse[:, 0] = np.where(stands, argument[moving], 0.0)
            impulse[:, 1] = np.where(stands, 0.0, -GRAVITY * TICK)
        x = after["place"][:, 0]
        reward = (np.minimum(x, LENGTH) - state["place"][:, 0]) / LENGTH
        return WorldStep(after, reward, terminated, {"is_success": x >= LENGTH})


def _impulse(
    kind: IntArray, argument: FloatArray, speed: FloatArray, noise: FloatArray
) -> FloatArray:
    """Change of speed, along and upwards, by which players begin a run or a jump, [R, 2]."""
    time = 2 * RISE[kind] / GRAVITY + 1
    along = np.clip(argument / time - speed - np.abs(noise[:, 0]), -GAIN, GAIN)
    upwards = RISE[kind] - np.abs(noise[:, 1])
    runs = kind == RUN
    return np.stack([np.where(runs, argument, along), np.where(runs, 0.0, upwards)], axis=1)


def _tick(now: WorldState, impulse: FloatArray, stands: BoolArray, noise: FloatArray) -> BoolArray:
    """Move players and their enemies in place, and return which of the players stand, [R]."""
    place = now["place"]
    speed = now["speed"]
    speed += impulse
    speed[:, 0] -= np.abs(noise[:, 0]) * (NOISE * TICK)
    fastest = np.where(stands, FASTEST_STANDING, FASTEST)
    speed[:, 0] = np.maximum(np.minimum(speed[:, 0], fastest), 0.0)
    near = _near_enemy(place[:, 0])
    place += speed * TICK
    place[:, 0] = np.maximum(np.minimum(place[:, 0], LENGTH), 0.0)
    speed[:, 0] *= DECAY
    _move_enemies(now, near, noise[:, 1])
    if (place[:, 1] < TOP).any():
        for left, width in zip(LEFT, WIDTH, strict=True):
            _push_out(place, speed, left, width)
    return _stands(place)


def _move_enemies(now: WorldState, near: IntArray, noise: FloatArray) -> None:
    """Move the enemy with this number of each row, in place."""
    rows = np.arange(len(near))
    x = now["enemy"][rows, near]
    speed = now["enemy_speed"][rows, near]
    left, right = LEFT[near], LEFT[near] + WIDTH[near] - SIZE[0]
    speed = np.where((left < x) & (x < right), speed, -speed) + noise * NOISE * TICK
    speed = np.maximum(np.minimum(speed, ENEMY_SPEED), -ENEMY_SPEED)
    now["enemy"][rows, near] = np.maximum(np.minimum(x + speed * TICK, right), left)
    now["enemy_speed"][rows, near] = speed


def _push_out(place: FloatArray, speed: FloatArray, left: float, width: float) -> None:
    """Move players that overlap a platform out of it, in place: up, or to the nearer side."""
    x, y = place[:, 0], place[:, 1]
    hit = (left - SIZE[0] < x) & (x < left + width) & (y < TOP)
    side = np.where(x < left, left - SIZE[0], np.where(x > left + width - SIZE[0], left + width, x))
    sideways = hit & (side != x) & (np.abs(x - side) < np.abs(y - TOP))
    place[:, 0] = np.where(sideways, side, x)
    place[:, 1] = np.where(hit & ~sideways, TOP, y)
    speed[:, 0] = np.where(hit, 0.0, speed[:, 0])
    speed[:, 1] = np.where(hit & ~sideways, 0.0, speed[:, 1])


def _stands(place: FloatArray) -> BoolArray:
    """Return which players stand on a platform, [R]."""
    stands: BoolArray = place[:, 1] == TOP
    if stands.any():
        x = place[:, :1]
        stands &= ((x >= LEFT - SIZE[0]) & (x <= LEFT + WIDTH)).any(axis=1)
    return stands


def _has_ended(now: WorldState) -> BoolArray:
    """Return which players have fallen, have touched an enemy or are at the end, [R]."""
    x, y = now["place"][:, :1], now["place"][:, 1]
    touched = (np.abs(x - now["enemy"]) < SIZE[0]).any(axis=1) & (np.abs(y - TOP) < SIZE[1])
    ended: BoolArray = (y < TOP) | touched | (x[:, 0] >= LENGTH)
    return ended


def _near_enemy(x: FloatArray) -> IntArray:
    """Return the number of the enemy that moves and is seen, [R]."""
    return np.asarray(x > LEFT[1], np.int64)


def _normal(uniform: FloatArray) -> Array:
    """Standard normal numbers from as many uniform ones, [R, 2 K], by Box and Muller."""
    radius = np.sqrt(-2 * np.log1p(-uniform[:, ::2]))
    angle = 2 * np.pi * uniform[:, 1::2]
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
