"""Memories under any sequence of calls, against plain lists of transitions.

Every rule makes one call on the memory and on the lists. Whatever is drawn has to be possible for
the lists; whatever is kept, saved and loaded has to be theirs.
"""

import copy
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import coach_rl as rl
from coach_rl.core.errors import RunError
from coach_rl.core.records import HIDDEN_STATE, Transition
from coach_rl.memories import RolloutMemory
from coach_rl.memories.batches import columns_of
from coach_rl.runs.checkpoint import read_checkpoint, write_checkpoint
from coach_rl.runs.packing import NOTHING_STORED
from tests.memories.plain_replay import ALWAYS, GOAL_KEY, PlainReplay, achieved, is_reached
from tests.memories.replay_worlds import build, same_batches

DISCOUNT = 0.9
EXAMPLES = settings(
    max_examples=3,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),  # to shrink takes minutes
    suppress_health_check=list(HealthCheck),
)


class Robots:
    """Rows that walk on a grid towards goals, seen by cameras with stacked frames.

    Places lie on a grid of quarters, so that goals are often reached exactly. Episodes end by their
    goal, by dying, by a time limit, or only for the agent; then the frames continue.
    """

    def __init__(self, num_rows, frames, goal, seed, *, remembers=False):
        self.rng, self.num_rows = np.random.default_rng(seed), num_rows
        self.frames, self.goal, self.remembers = frames, goal, remembers
        self.place = np.zeros((num_rows, 3))
        self.wanted = np.zeros((num_rows, 2))
        self.stack = np.zeros((num_rows, 2, 2, frames), np.uint8)
        for row in range(num_rows):
            self.restart(row)

    @property
    def spaces(self):
        camera = {"camera": spaces.Box(0, 255, (2, 2, self.frames), np.uint8)}
        hidden = {HIDDEN_STATE: spaces.Box(-np.inf, np.inf, (2,), np.float32)}
        return spaces.Dict(
            {
                "place": spaces.Box(-9, 9, (3,), np.float64),
                "reached": spaces.Box(-9, 9, (1, 2), np.float64),
                GOAL_KEY: spaces.Box(-9, 9, (2,), np.float64),
                **(camera if self.frames else {}),
                **(hidden if self.remembers else {}),
            }
        )

    def restart(self, row):
        self.place[row] = self.quarters(3)
        self.wanted[row] = self.quarters(2)
        self.stack[row] = self.frame()[..., None]

    def leave(self, row):
        """Leave an episode: by a new one of the world, or only by a new goal."""
        if self.rng.random() < 0.6:
            self.restart(row)
        else:
            self.wanted[row] = self.quarters(2)

    def quarters(self, count):
        return self.rng.integers(-3, 4, count) / 4

    def frame(self):
        return self.rng.integers(0, 256, (2, 2)).astype(np.uint8)

    def seen(self, rows):
        seen = {
            "place": self.place[rows].copy(),
            "reached": self.place[rows][:, None, [2, 0]].copy(),
            GOAL_KEY: self.wanted[rows].copy(),
        }
        if self.goal.observed == "relative":
            seen[GOAL_KEY] -= self.place[rows][:, [2, 0]]
        return seen | ({"camera": self.stack[rows].copy()} if self.frames else {})

    def step(self, rows, *, gaps=0.0, ends=True):
        """A transition of rows; some of their goals have moved before."""
        rows, count, rng = np.array(rows, np.int64), len(rows), self.rng
        follows = rng.random(count) >= gaps
        for row in rows[~follows]:
            self.wanted[row] = self.quarters(2)
        before = self.seen(rows)
        for row in rows:
            self.place[row] += rng.integers(-1, 2, 3) / 4
            newest = self.frame()[..., None]
            self.stack[row] = np.concatenate([self.stack[row][..., 1:], newest], axis=-1)
        after = self.seen(rows)
        reached = np.zeros(count, bool)
        for index, row in enumerate(rows):
            last = {key: values[index] for key, values in after.items()}
            reached[index] = is_reached(self.goal, achieved(self.goal, last), self.wanted[row])
        terminated = (reached & (rng.random(count) < 0.7)) | (rng.random(count) < 0.07)
        truncated = rng.random(count) < 0.12
        terminated, truncated = terminated & ends, truncated & ends
        for row in rows[terminated | truncated]:
            self.leave(row)
        return Transition(
            rows=rows,
            observation=before,
            action=rng.random((count, 1)).astype(np.float32),
            reward=rng.integers(-8, 9, count) / 4,
            next_observation=after,
            terminated=terminated,
            truncated=truncated,
            duration=rng.integers(1, 4, count),
            follows=follows,
            extras={
                "log_prob": rng.random(count).astype(np.float32),
                HIDDEN_STATE: rng.random((count, 2)).astype(np.float32),
            },
        )


def any_goals(rng):
    return rl.GoalSpace(
        low=(-9.0, -9.0),
        high=(9.0, 9.0),
        threshold=tuple(rng.choice([0.25, 0.5, 0.75], 2).tolist()),
        reward=str(rng.choice(["sparse", "dense"])),
        reached_within=str(rng.choice(["elements", "ball"])),
        observed=str(rng.choice(["absolute", "relative"])),
        **rng.choice([{"key": "reached"}, {"key": "place", "elements": (2, 0)}]),
    )


def any_memory(number):
    """A memory of 1 to 3 rows with 1 to 12 transitions each, and the goals of its robots.

    Drawn by one number: what Hypothesis draws field by field is mostly small and alike. Every third
    memory has sequences, whose rows have up to 24 transitions; every strategy has its turn.
    """
    rng = np.random.default_rng(number)
    goal, capacity = any_goals(rng), int(rng.integers(1, 13))
    num_rows, frames = int(rng.integers(1, 4)), int(rng.integers(5))
    draws, hindsight, n_step = rl.SingleTransitions(), None, int(rng.integers(1, 5))
    if number % 3 == 2:
        capacity *= 2
        length, n_step = int(rng.integers(1, min(capacity, 9) + 1)), 1
        burn_in = int(rng.integers(min(capacity - length, 4) + 1))
        draws = rl.SequenceParameters(length=length, burn_in=burn_in)
    elif rng.random() < 0.7:
        hindsight = rl.HindsightParameters(
            goal=goal,
            strategy=("future", "final", "episode", "random")[number % 4],
            ratio=float(rng.choice([0.0, 2.0, ALWAYS, ALWAYS])),
            goal_ends_episode=bool(rng.integers(2)),
        )
    steps = rng.choice([rl.EnvironmentSteps(2_000), None])
    prioritised = rl.PrioritisedParameters(
        alpha=float(rng.choice([0.0, 0.6, 1.0])), anneal_beta_over=steps
    )
    params = {
        # what is left over by the division is not used
        "capacity": num_rows * capacity + int(rng.integers(num_rows)),
        "n_step": n_step,
        "discount_by_duration": bool(rng.integers(2)),
        "relabelling": hindsight,
        "prioritised": rng.choice([prioritised, None]),
        "draws": draws,
        "frame_stack": ("camera",) if frames and rng.integers(2) else (),
        "extras": ("log_prob",) if rng.integers(2) else (),
        "storage": str(rng.choice(["cpu", "device"])),
    }
    return params, goal, num_rows, frames


SEEDS = st.integers(0, 2**32)


class ReplayMachine(RuleBasedStateMachine):
    """One memory, the lists, and what both were when they were saved."""

    def __init__(self, number):
        super().__init__()
        self.number = number
        params, goal, num_rows, frames = any_memory(number)
        remembers = not params["draws"].is_single
        robots = Robots(num_rows, frames, goal, number, remembers=remembers)
        self.described = {
            "num_envs": num_rows, "observed": robots.spaces, "discount": DISCOUNT, **params,
        }  # fmt: skip
        self.memory = build(**self.described)
        plain = PlainReplay(rl.ReplayMemoryParameters(**params), num_rows, DISCOUNT)
        self.world = (robots, plain, [0] * num_rows)
        self.saved, self.stored, self.generation = [], NOTHING_STORED, 0
        self.folder = tempfile.TemporaryDirectory()

    @property
    def robots(self):
        return self.world[0]

    @property
    def plain(self):
        return self.world[1]

    @property
    def read(self):
        """Steps of each row that were read."""
        return self.world[2]

    @property
    def is_filled(self):
        return len(self.memory) > 0

    def add(self, transition):
        given = copy.deepcopy(transition)
        self.memory.add(given)
        self.plain.add(transition)
        for each in (given.reward, *given.observation.values()):
            each[...] = 0  # the memory has a copy

    @rule(seed=SEEDS, times=st.integers(5, 25), gaps=st.sampled_from([0.0, 0.0, 0.3]))
    def act(self, seed, times, gaps):
        """Transitions of any rows in any order, possibly of none; and batches now and then."""
        rng = np.random.default_rng([self.number, seed])
        for _ in range(times):
            rows = rng.permutation(self.robots.num_rows)
            self.add(self.robots.step(rows[: rng.integers(len(rows) + 1)], gaps=gaps))
            if self.is_filled and rng.random() < 0.15:
                self.learn(int(rng.integers(1, 13)), seed)

    @rule(seed=SEEDS)
    def act_for_long(self, seed):
        self.act(seed, times=30, gaps=0.1)

    @rule(seed=SEEDS)
    def truncate(self, seed):
        rng = np.random.default_rng([self.number, seed])
        rows = rng.permutation(self.robots.num_rows)[: rng.integers(self.robots.num_rows + 1)]
        for row in filter(self.plain.is_open, rows):
            self.robots.leave(row)
        self.truncate_rows(rows)

    def truncate_rows(self, rows):
        """Truncate rows of both; states that are not written refer to what is changed by it."""
        self.memory.truncate(np.array(rows))
        self.plain.truncate(rows)
        self.saved = [each for each in self.saved if isinstance(each[0], Path)]

    @precondition(lambda self: self.is_filled)
    @rule(time=st.integers(1, 6), is_death=st.booleans())
    def fill(self, time, is_death):
        """An episode of a data set goes to the row with fewest transitions, if it fits."""
        row = min(range(self.robots.num_rows), key=lambda each: len(self.plain.rows[each]))
        self.truncate_rows([row])
        self.robots.restart(row)
        steps = [self.robots.step([row], ends=False) for _ in range(time)]
        self.robots.restart(row)
        last = np.array([is_death])
        steps[-1] = replace(steps[-1], terminated=last, truncated=~last)
        extras = self.described["extras"] + tuple(self.memory.layout.draws.states)
        columns = [
            columns_of(each) | {f"/{name}": each.extras[name] for name in extras} for each in steps
        ]
        episode = {path: np.concatenate([each[path] for each in columns]) for path in columns[0]}
        if len(self.plain.rows[row]) + time > self.plain.row_capacity:
            with pytest.raises(rl.ConfigurationError, match="does not fit into the memory"):
                self.memory.fill([episode], "a data set")
            return
        self.memory.fill([episode], "a data set")
        for each in steps:
            self.plain.add(each, counts=False)

    @precondition(lambda self: self.is_filled)
    @rule(count=st.integers(1, 12), seed=st.integers(0, 99))
    def learn(self, count, seed):
        draws = self.memory.layout.draws
        batch = self.memory.sample(count if draws.is_single else count * draws.length)
        if draws.is_single:
            self.plain.check(batch)
        else:
            self.plain.check_sequences(batch, count)
        errors = torch.from_numpy(np.random.default_rng([self.number, seed]).normal(size=40))
        errors = errors[batch.position % 40] * (1 if batch.valid is None else batch.valid)
        self.memory.note_errors(batch.position, errors)
        self.plain.note_errors(batch, errors.numpy(), count)
        for column in batch.observation.values():
            column.zero_()  # the batch is a copy

    @precondition(lambda self: not self.is_filled)
    @rule()
    def draw_from_nothing(self):
        with pytest.raises(RunError, match="memory is empty"):
            self.memory.sample(self.memory.layout.row_capacity)

    @rule(is_due=st.sampled_from([False, False, False, True]))
    def clear(self, is_due):
        if is_due:
            self.memory.clear()
            self.plain.clear()
            self.generation += 1

    @rule(seed=SEEDS)
    def save_before_and_after_truncation(self, seed):
        """The second checkpoint shares transitions that are truncated only since the first."""
        self.save(is_written=True)
        self.truncate(seed)
        self.save(is_written=True)

    @rule(is_written=st.booleans())
    def save(self, is_written):
        """Keep a state, or write a checkpoint, which shares with the one before."""
        state = {"memory": self.memory.state_dict(), **self.more_state()}
        if is_written:
            path = Path(self.folder.name) / f"step_{len(list(Path(self.folder.name).iterdir()))}"
            self.stored = write_checkpoint(path, state, {}, earlier=self.stored)
            state = path
        self.saved = [*self.saved[-1:], (state, copy.deepcopy(self.world), self.generation)]

    @precondition(lambda self: self.saved)
    @rule(which=st.sampled_from([-1, -1, 0]), seed=st.none() | st.integers(1, 9))
    def load(self, which, seed):
        """Load what was saved into another memory, or return to it; both continue alike."""
        state, world, generation = self.saved[which]
        is_written = isinstance(state, Path)
        if is_written:
            checkpoint = read_checkpoint(state)
            state, self.stored = checkpoint.state, checkpoint.stored
        elif self.is_overwritten(world[1], generation):
            with pytest.raises(RunError, match="overwritten transitions that its state refers to"):
                build(**self.described).load_state_dict(state["memory"])
            return
        if seed is not None:
            others = Robots(*vars_of(self.robots), seed)
            replaced = build(**self.described, seed=seed)
            replaced.add(others.step(range(others.num_rows)))
            replaced.load_state_dict(state["memory"])
        self.memory.load_state_dict(state["memory"])
        if seed is not None and len(replaced):
            size = 2 * self.memory.layout.row_capacity
            if not self.memory.layout.draws.is_single:
                size = 2 * self.memory.layout.draws.length
            same_batches(replaced.sample(size), self.memory.sample(size))
            self.memory = replaced
        self.load_more(state)
        self.world = copy.deepcopy(world)
        self.generation = generation
        self.saved = [each for each in self.saved if isinstance(each[0], Path)]

    def more_state(self):
        """The state of what else reads the memory; a machine of such a reader has some."""
        return {}

    def load_more(self, state):
        """Load `more_state()`, with the memory as it is now."""

    def is_overwritten(self, plain, generation):
        """Whether the memory has lost transitions that lists of before still have."""
        if not plain.all():
            return False
        lost = (
            kept and now - self.plain.row_capacity > kept[0].step
            for now, kept in zip(self.plain.added, plain.rows, strict=True)
        )
        return generation != self.generation or any(lost)

    @invariant()
    def has_as_many(self):
        assert len(self.memory) == len(self.plain.all())
        assert self.memory.capacity == self.plain.row_capacity * self.robots.num_rows
        assert self.memory.is_prioritised == (self.plain.params.prioritised is not None)

    @invariant()
    def has_their_episodes(self):
        store = self.memory.store
        positions = store.kept()
        found = zip(*store.episodes_of(positions), store.first_steps_of(positions), strict=True)
        for position, (oldest, end, first) in zip(positions.tolist(), found, strict=True):
            one = self.plain.at(position)
            episode = self.plain.episode_of(one)
            assert (oldest, end) == (episode[0].step, episode[-1].step + 1)
            assert first == self.plain.begins[one.row][one.episode]

    @invariant()
    def has_their_priorities(self):
        if self.plain.params.prioritised is not None:
            positions = self.memory.store.kept()
            found = self.memory.sampler.by_name["positions"].priorities(positions)
            expected = [self.plain.at(position).priority for position in positions.tolist()]
            np.testing.assert_allclose(found, expected, rtol=1e-9)
            assert self.memory.metrics()["memory/beta"] == pytest.approx(self.plain.beta)

    def teardown(self):
        shown = self.memory.trajectories("robot")
        self.folder.cleanup()
        for row, kept in enumerate(self.plain.rows):
            mask = shown["/mask"][row]
            assert mask.tolist() == [place < len(kept) for place in range(len(mask))]
            for place, one in enumerate(kept):
                found = {path: values[row, place] for path, values in shown.items()}
                for key in one.observation:
                    for side in ("observation", "next_observation"):
                        expected = getattr(one, side)[key]
                        np.testing.assert_array_equal(found[f"/{side}s/{key}"], expected)
                np.testing.assert_array_equal(found["/agents/robot/actions"], one.action)
                assert found["/rewards"] == one.reward
                assert found["/terminated"] == one.terminated
                assert found["/truncated"] == one.truncated
                assert found["/durations"] == one.duration
                for name in self.described["extras"]:
                    assert found[f"/agents/robot/artifacts/{name}"] == one.extras[name]


def vars_of(robots):
    return robots.num_rows, robots.frames, robots.goal


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize(
    "number", [pytest.param(n, marks=() if n < 24 else pytest.mark.slow) for n in range(200)]
)
def test_replay_memory_equals_plain_lists(number):
    machine = seed(number)(partial(ReplayMachine, number))  # else all make the same calls
    run_state_machine_as_test(machine, settings=EXAMPLES)


class RolloutMachine(RuleBasedStateMachine):
    """A rollout and a list of its transitions: rows, and columns by path."""

    @initialize(capacity=st.integers(1, 60), seed=SEEDS, parts=st.booleans())
    def begin(self, capacity, seed, parts):
        goal = rl.GoalSpace(low=(-9, -9), high=(9, 9), threshold=(0.5, 0.5), key="reached")
        self.robots, self.parts = Robots(3, 2, goal, seed), parts
        self.memory, self.plain, self.saved = RolloutMemory(capacity), [], []

    def step(self, rows):
        made = self.robots.step(rows, gaps=0.1)
        if not self.parts:
            return made
        return replace(made, action={"move": made.action, "grip": made.rows + 4})

    @rule(seed=SEEDS, times=st.integers(1, 20))
    def act(self, seed, times):
        rng = np.random.default_rng(seed)
        for _ in range(times):
            rows = rng.permutation(3)[: rng.integers(4)]
            made = self.step(rows)
            if len(self.plain) + len(rows) > self.memory.capacity:
                with pytest.raises(RunError, match=f"{len(self.plain)} kept, {len(rows)} more"):
                    self.memory.add(made)
                return
            columns = columns_of(made) | {"/follows": made.follows, "/rows": made.rows}
            columns |= {f"/{name}": values for name, values in made.extras.items()}
            self.plain += [
                {path: np.array(values[place]) for path, values in columns.items()}
                for place in range(len(rows))
            ]
            self.memory.add(made)
            made.reward[:] = 99  # the memory has a copy

    @rule(rows=st.lists(st.integers(0, 3), unique=True))
    def truncate(self, rows):
        self.memory.truncate(np.array(rows, np.int64))
        for row in rows:
            own = [each for each in self.plain if each["/rows"] == row]
            if own and not own[-1]["/terminated"]:
                own[-1]["/truncated"] = np.array(True)

    @rule()
    def clear(self):
        self.memory.clear()
        self.plain = []

    @rule()
    def save(self):
        self.saved = [(self.memory.state_dict(), copy.deepcopy(self.plain))]

    @precondition(lambda self: self.saved)
    @rule(is_new=st.booleans())
    def load(self, is_new):
        state, plain = self.saved[0]
        if is_new:
            self.memory = RolloutMemory(self.memory.capacity)
        self.memory.load_state_dict(state)
        self.plain = copy.deepcopy(plain)

    @invariant()
    def is_the_list(self):
        columns, plain = self.memory.columns, self.plain
        assert len(self.memory) == len(plain)
        assert self.memory.environment_steps == sum(each["/durations"] for each in plain)
        for path, values in columns.items() if plain else ():
            expected = np.stack([each[path] for each in plain])
            np.testing.assert_array_equal(values[: len(plain)], expected)
            assert values.dtype == expected.dtype
            assert len(values) == self.memory.capacity

    @invariant()
    def has_its_rows(self):
        if not self.plain:
            return
        shown = self.memory.trajectories("robot")
        places = {}
        for each in self.plain:
            places.setdefault(int(each["/rows"]), []).append(each)
        mask = shown["/mask"]
        assert mask.sum(axis=1).tolist() == [len(places[row]) for row in sorted(places)]
        actions = "/actions/grip" if self.parts else "/actions"
        for number, row in enumerate(sorted(places)):
            for time, each in enumerate(places[row]):
                assert mask[number, time]
                np.testing.assert_array_equal(shown["/rewards"][number, time], each["/rewards"])
                found = shown[f"/agents/robot{actions}"][number, time]
                np.testing.assert_array_equal(found, each[actions])
                found = shown["/agents/robot/artifacts/log_prob"][number, time]
                assert found == each["/log_prob"]


class TestRolloutMemory(RolloutMachine.TestCase):
    settings = settings(EXAMPLES, max_examples=40, stateful_step_count=15)
