"""A ball in a workshop: it walks to a point, presses a plate and pushes a block, in some order."""

from typing import Literal

import numpy as np
from gymnasium import spaces

from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import Action, Array, BoolArray, FloatArray, IntArray, Observation
from coach_rl.environments.world import WorldEnvironment, WorldState, WorldStep, plain_spaces

TASKS = ("walk", "press", "push")
"""The three tasks by number."""
STEP = 0.15
"""The farthest that a step moves the ball along an axis."""
NEAR = 0.15
"""The distance at which the ball is at the point or on the plate, and the block at its mark."""
STAYS = 3
"""Steps that the ball has to stay at the point, or to press the plate, without a break."""
HALF_WIDTH, HALF_HEIGHT = 0.12, 0.2
"""Half of the block's size along its rail, and across."""
ORDERS = np.array([[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]], np.int64)
"""Orders of the tasks."""


@parameter_class
class WorkshopParameters:
    """Do three tasks in an order that each episode draws and shows, or one of them alone.

    All three: each task done in its turn is rewarded with 1, and the last ends the episode. One
    done before its turn undoes those before, which costs as much, and the block slides back. One
    task alone: the reward is the progress towards it, and 1 when it is done, which ends the
    episode.
    """

    task: Literal["all", "walk", "press", "push"] = "all"
    """The task; all: the three in order."""
    max_episode_steps: Positive[int] = 150
    """Length of an episode."""

    @property
    def level(self) -> str:
        return f"workshop_{self.task}"

    def build(self, *, num_envs: int) -> WorldEnvironment:
        world = Workshop(None if self.task == "all" else TASKS.index(self.task))
        return WorldEnvironment(world, num_envs=num_envs, max_episode_steps=self.max_episode_steps)


class Workshop:
    """The rules of the workshop.

    Args:
        task: The number of the only task; None: all are to be done in order.
    """

    start_numbers, step_numbers = 12, 0

    def __init__(self, task: int | None) -> None:
        self._task = task
        self.spaces = plain_spaces(
            spaces.Box(-2, 2, (24,), np.float32), spaces.Box(-1, 1, (3,), np.float32)
        )

    def start(self, uniform: FloatArray) -> WorldState:
        """Ball, point and plate anywhere, the block at least 0.3 beside its mark on a rail."""
        place = 1.8 * uniform - 0.9
        mark = 0.6 * place[:, 6]
        side = np.where(uniform[:, 7] < 0.5, -1.0, 1.0)
        block = np.clip(mark + side * (0.3 + 0.3 * uniform[:, 8]), -0.7, 0.7)
        block = np.where(np.abs(block - mark) < 0.3, mark - side * 0.4, block)
        order = ORDERS[(6 * uniform[:, 9]).astype(np.int64)]
        done = np.zeros(len(uniform), np.int64)
        if self._task is not None:  # what is shown of the other tasks means nothing
            done = (3 * uniform[:, 10]).astype(np.int64)
        return {
            "ball": place[:, 0:2],
            "point": place[:, 2:4],
            "plate": place[:, 4:6],
            "rail": 0.7 * place[:, 11],
            "mark": mark,
            "block": block,
            "block_start": block.copy(),
            "order": order,
            "done": done,
            "stayed": np.zeros((len(uniform), 2), np.int64),
        }

    def observe(self, state: WorldState) -> Observation:
        """The places, the steps that the ball has stayed, the order, and the number done of it."""
        ball = state["ball"]
        rows = len(state["ball"])
        block = np.stack([state["block"], state["rail"]], axis=1)
        whose = np.eye(3)[state["order"]].reshape(rows, 9)
        return {
            "observation": np.concatenate(
                [
                    ball,
                    state["point"] - ball,
                    state["plate"] - ball,
                    block - ball,
                    (state["mark"] - state["block"])[:, None],
                    state["stayed"] / STAYS,
                    whose,
                    np.eye(4)[state["done"]],
                ],
                axis=1,
            ).astype(np.float32)
        }

    def step(self, state: WorldState, action: Action, uniform: FloatArray) -> WorldStep:  # noqa: ARG002 - deterministic
        action = np.clip(np.asarray(action, np.float64), -1, 1)
        after = {**state, **_moved(state, action)}
        # A task is finished by the step at which its condition comes true: the ball has stayed at
        # the point, or pressing on the plate, for `STAYS` steps; the block has reached its mark.
        stands = [_distance(after["ball"], after[name]) <= NEAR for name in ("point", "plate")]
        is_there = np.stack([stands[0], stands[1] & (action[:, 2] > 0)], axis=1)
        after["stayed"] = np.where(is_there, np.minimum(state["stayed"] + 1, STAYS), 0)
        arrives = (after["stayed"] == STAYS) & (state["stayed"] < STAYS)
        was_off = np.abs(state["block"] - state["mark"]) > NEAR
        pushed = was_off & (np.abs(after["block"] - after["mark"]) <= NEAR)
        finished = np.stack([arrives[:, 0], arrives[:, 1], pushed], axis=1)
        if self._task is not None:
            success = finished[:, self._task]
            reward = self._potential(after) - self._potential(state) + success
            return WorldStep(after, reward, success, {"is_success": success})
        # A task that is finished before its turn undoes those before it.
        done, is_early = counted(state["order"], state["done"], finished)
        after["done"] = done
        after["stayed"] = np.where(is_early[:, None], 0, after["stayed"])
        after["block"] = np.where(is_early, state["block_start"], after["block"])
        success = after["done"] == len(TASKS)
        reward = (after["done"] - state["done"]).astype(np.float64)
        return WorldStep(after, reward, success, {"is_success": success})

    def _potential(self, state: WorldState) -> FloatArray:
        """The potential of the only task, at most 0: the nearer to being done, the higher."""
        ball = state["ball"]
        if self._task != TASKS.index("push"):
            return -_distance(ball, state["point" if self._task == 0 else "plate"])
        away = state["mark"] - state["block"]
        behind = state["block"] - np.sign(away) * (HALF_WIDTH + 0.05)
        to_push = _distance(ball, np.stack([behind, state["rail"]], axis=1))
        potential: FloatArray = -2.0 * np.abs(away) - 0.3 * to_push
        return potential


def _moved(state: WorldState, action: Array) -> WorldState:
    """The ball after a step, and the block where the ball has pushed it along its rail."""
    old = state["ball"]
    ball = np.clip(old + STEP * action[:, :2], -1, 1)
    offset = ball[:, 0] - state["block"]
    touches = (np.abs(offset) < HALF_WIDTH) & (np.abs(ball[:, 1] - state["rail"]) < HALF_HEIGHT)
    from_left = old[:, 0] < state["block"]
    side = np.where(from_left, 1.0, -1.0)
    block = np.where(touches, np.clip(ball[:, 0] + side * HALF_WIDTH, -0.8, 0.8), state["block"])
    return {"ball": ball, "block": block}


def counted(order: IntArray, done: IntArray, finished: BoolArray) -> tuple[IntArray, BoolArray]:
    """The number of tasks done in order, and whether one was finished too early, [R] each.

    Args:
        order: [R, 3] the tasks in the order of the episode.
        done: [R] how many of them are done before the step.
        finished: [R, 3] the task was finished in the step.
    """
    due = np.take_along_axis(order, done[:, None], axis=1)
    turn = order.argsort(axis=1)  # [R, 3] of each task
    is_early = np.asarray((finished & (turn > done[:, None])).any(axis=1))
    now: IntArray = done + np.take_along_axis(finished, due, axis=1)[:, 0]
    return np.where(is_early, 0, now), is_early


def _distance(one: Array, other: Array) -> FloatArray:
    distance: FloatArray = np.sqrt(((one - other) ** 2).sum(axis=1))
    return distance
