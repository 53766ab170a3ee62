"""Goals that learn: what is judged, drawn, saved and sent elsewhere is judged by their networks."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from gymnasium import spaces

import coach_rl as rl
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.core.errors import ConfigurationError, ParameterError, RunError, SpaceError
from coach_rl.core.goals import Verdict
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.saved import SavedAttribute
from coach_rl.core.seeding import integer_seed
from coach_rl.environments import parameters
from coach_rl.extensions.testing.states import assert_same_state
from coach_rl.runs.checkpoint import find_checkpoint, read_checkpoint
from coach_rl.telemetry import description
from tests.agents.goal_stacks import SETTINGS, stack
from tests.agents.resuming import after, amid, assert_resumes
from tests.builders import agents_of, created
from tests.refusals import check_refused
from tests.small_runs import lines_of

KEY = "observation"
TD3 = rl.TD3AgentParameters(**SETTINGS)
BOX = {"low": (-2.0,) * 3, "high": (2.0,) * 3, "threshold": (0.3,) * 3}


@parameter_class
class Linear(rl.LearnedGoalSpace):
    """Three numbers of an observation by a matrix that moves at random."""

    def build(self, context):
        return LinearGoals(self, context)


class LinearGoals(rl.LearnedGoals):
    SAVED = (SavedAttribute("matrix", policy=True), SavedAttribute("rng", policy=False))

    def __init__(self, params, context):
        super().__init__(params, context)
        self.rng = torch.Generator().manual_seed(integer_seed(context.runtime.seed, "matrix"))
        module = torch.nn.Linear(4, 3)
        for each in module.parameters():
            each.data = 0.5 * torch.randn(each.shape, generator=self.rng)
        self.matrix = NetworkWrapper(module, device=self.device)
        self.batches = []

    def latents(self, observation):
        return self.matrix.module(observation[self.key])

    def learn(self, batch):
        self.batches.append(batch)
        noise = torch.randn(self.matrix.online.shape, generator=self.rng)
        self.matrix.online.add_(0.05 * noise)
        return True


@parameter_class
class Directions(Linear):
    """The same, rewarded by the direction of the change."""

    def build(self, context):
        return DirectionGoals(self, context)


class DirectionGoals(LinearGoals):
    uses_before = True

    def judge(self, goal, achieved, before=None):
        reward = ((achieved - before) * goal).sum(axis=1).astype(np.float64)
        never = np.zeros(len(goal), np.bool_)
        return Verdict(self.difference_of(goal, achieved), reward, never, never)


@parameter_class
class Silent(Linear):
    """The same, which forgets to return whether it learned."""

    def build(self, context):
        return SilentGoals(self, context)


class SilentGoals(LinearGoals):
    def learn(self, batch):
        super().learn(batch)


@parameter_class
class Blended(Linear):
    """Reads an observation that it does not list in `keys`."""

    def build(self, context):
        return BlendedGoals(self, context)


class BlendedGoals(LinearGoals):
    def latents(self, observation):
        return self.matrix.module(observation[self.key]) + observation["achieved_goal"][:, :1]


LINEAR = Linear(**BOX, key=KEY, reward="dense")
RELATIVE = replace(LINEAR, relative=True, observed="relative")
SCALED = replace(RELATIVE, bounds_rate=0.1)
SLOW = rl.LESSONGoalSpace(**BOX, key=KEY, reward="dense", ahead=4, every=1)
HER = rl.ReplayMemoryParameters(relabelling=rl.HindsightParameters(goal_ends_episode=True))
WITH_HER = rl.TD3AgentParameters(**SETTINGS, memory=HER)
FILTERED = rl.TD3AgentParameters(
    **SETTINGS,
    input_filter=rl.InputFilter(observation={KEY: (rl.ObservationNormalizationFilter(),)}),
)
SPACES = {
    "absolute": LINEAR,
    "relative": RELATIVE,
    "scaled": SCALED,
    "directions": Directions(**BOX, key=KEY),
    "slow": SLOW,
}


def of(goals, low=TD3, top=TD3, **given):
    return stack(top, low, goals=goals, **given)


def weights(manager, level="low"):
    """The matrix and the offset, in float64."""
    module = manager.graph.agents[level].goals.matrix.module
    return module.weight.double().numpy(), module.bias.double().numpy()


def latents(manager, observation):
    matrix, offset = weights(manager)
    return observation.astype(np.float64) @ matrix.T + offset


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("low", [TD3, FILTERED], ids=["as seen", "filtered"])
@pytest.mark.parametrize("space", ["absolute", "relative", "scaled", "directions"])
def test_drawn_rewards_are_those_of_the_networks_now(space, low):
    manager = created(of(SPACES[space], low, training=400))
    _, agent = agents_of(manager)
    manager.run()
    assert agent.goals.version > 20
    store = agent.memory.store
    found = agent.memory.sampler(200)
    positions = found["/positions"].numpy()
    assert (store.read("/goal_space/before/given_version", positions) < agent.goals.version).any()
    raw = "/goal_space/{}/" + KEY if low is FILTERED else "/{}" + KEY
    names = ("before", "after") if low is FILTERED else ("observations/", "next_observations/")
    before, now = (store.read(raw.format(name), positions) for name in names)
    goal = store.read("/goal_space/before/given", positions).astype(np.float64)
    start, end = latents(manager, before), latents(manager, now)
    if space == "directions":
        reward = ((end - start) * goal).sum(axis=1)
    else:
        reward = -np.linalg.norm(end - goal, axis=1)
    np.testing.assert_allclose(found["/rewards"], reward, rtol=0, atol=2e-6)
    if space == "absolute":
        np.testing.assert_allclose(found["/observations/desired_goal"], goal, rtol=0, atol=1e-6)
    if space in ("relative", "scaled"):
        for path, there in (("observations", start), ("next_observations", end)):
            shown = found[f"/{path}/desired_goal"]
            np.testing.assert_allclose(shown, goal - there, rtol=0, atol=2e-6)
    reached = (np.abs(end - goal) <= 0.3).all(axis=1)
    if space != "directions":
        np.testing.assert_array_equal(found["/discounts"].numpy() == 0, reached)


@pytest.mark.parametrize("space", ["absolute", "relative", "directions"])
def test_rewards_as_they_are_observed_are_those_of_the_networks_then(space):
    manager = created(of(SPACES[space]))
    _, agent = agents_of(manager)
    kept, store = [], agent.store

    def stored(transition):
        kept.append((transition, weights(manager)))
        store(transition)

    agent.store = stored
    manager.run()
    assert len(kept) > 60
    for transition, (matrix, offset) in kept:
        start, end = (
            each[KEY].astype(np.float64) @ matrix.T + offset
            for each in (transition.observation, transition.next_observation)
        )
        goal = transition.observation["desired_goal"]
        goal = goal + start if space == "relative" else goal
        if space == "directions":
            reward = ((end - start) * goal).sum(axis=1)
            np.testing.assert_allclose(transition.reward, reward, rtol=0, atol=2e-6)
        elif space == "absolute":
            reward = -np.linalg.norm(end - goal, axis=1)
            np.testing.assert_allclose(transition.reward, reward, rtol=0, atol=2e-6)


@pytest.mark.parametrize("space", [SCALED, replace(SCALED, relative=False)])
def test_drawn_actions_above_stand_for_what_was_sent(space):
    manager = created(of(space, training=900))
    top, low = agents_of(manager)
    level, sent = manager.graph.training.levels[1], []
    send = level.send

    def note(directive, rows=None):
        send(directive, rows)
        middle, half = low.goals.scale
        sent.extend((middle + directive.action.astype(np.float64) * half).tolist())

    level.send = note
    manager.run()
    assert low.goals.space == spaces.Box(-1, 1, (3,), np.float32)
    found = top.memory.sampler(100)
    kept = found["/goal_space/sent"].numpy()
    assert np.abs(np.array(sent)[:, None] - kept).max(axis=2).min(axis=0).max() < 1e-6
    low_bound, high_bound = (each.astype(np.float64) for each in low.goals._range)
    middle, half = (low_bound + high_bound) / 2, (high_bound - low_bound) / 2
    if space.relative:
        middle, half = 0.0, 2 * half
    wanted = np.clip((kept - middle) / half, -1, 1)
    np.testing.assert_allclose(found["/actions"], wanted, rtol=0, atol=2e-6)
    positions = found["/positions"].numpy()
    assert np.abs(top.memory.store.read("/actions", positions) - wanted).max() > 0.05


def test_hindsight_takes_goals_that_are_achieved_by_the_networks_now():
    manager = created(of(RELATIVE, WITH_HER, training=400))
    manager.run()
    _, agent = agents_of(manager)
    store, found = agent.memory.store, agent.memory.sampler(300)
    positions = found["/positions"].numpy()
    end = latents(manager, store.read(f"/next_observations/{KEY}", positions))
    start = latents(manager, store.read(f"/observations/{KEY}", positions))
    goal = found["/goal_space/goal"].numpy()
    kept = (goal == store.read("/goal_space/before/given", positions)).all(axis=1)
    assert 0.6 < (~kept).mean() < 0.95  # 4 of 5
    every = latents(manager, store.read(f"/next_observations/{KEY}", store.kept()))
    distance = np.abs(every[None] - goal[~kept][:, None]).max(axis=2).min(axis=1)
    np.testing.assert_allclose(distance, 0, atol=2e-6)
    reward = -np.linalg.norm(end - goal, axis=1)
    np.testing.assert_allclose(found["/rewards"], reward, rtol=0, atol=2e-6)
    shown = found["/observations/desired_goal"]
    np.testing.assert_allclose(shown, goal - start, rtol=0, atol=2e-6)


def test_later_observations_are_of_the_same_episode():
    manager = created(of(SLOW, training=300))
    manager.run()
    _, agent = agents_of(manager)
    store, found = agent.memory.store, agent.memory.sampler(400)
    positions, has = found["/positions"].numpy(), found["/goal_space/has_later"].numpy()
    later = found[f"/goal_space/later/{KEY}"].numpy()
    rows, steps = store.rows_of(positions), store.steps_of(positions)
    for row, step, is_there, value in zip(rows, steps, has, later, strict=True):
        ends = step + 4 > store.counts[row]
        for k in range(step, min(step + 3, int(store.counts[row]) - 1)):
            one, two = (store.positions_of(row, np.array([each]))[0] for each in (k, k + 1))
            after_one = store.read(f"/next_observations/{KEY}", np.array([one]))
            before_two = store.read(f"/observations/{KEY}", np.array([two]))
            ends |= not np.array_equal(after_one, before_two)
        assert is_there == (not ends)
        if is_there:
            last = store.positions_of(row, np.array([step + 3]))
            wanted = store.read(f"/next_observations/{KEY}", last)[0]
            np.testing.assert_array_equal(value, wanted)
    assert 0.3 < has.mean() < 1


def levels_of(kinds, training=300):
    """A stack with these goal spaces, from the second level on."""
    params = of(LINEAR, training=training)
    top, low = params.levels
    names = ("middle", "low") if len(kinds) == 2 else ("low",)
    more = tuple(
        replace(low, name=name, goal_space=kind, horizon=4)
        for name, kind in zip(names, kinds, strict=True)
    )
    return replace(params, levels=(top, *more))


PLAIN = rl.GoalSpace(
    key="achieved_goal", low=(-1.0, -1.0), high=(1.0, 1.0), threshold=(0.1, 0.1), reward="dense"
)
STACKS = {
    **{name: (each,) for name, each in SPACES.items()},
    "middle": (RELATIVE, PLAIN),
    "low": (PLAIN, SLOW),
    "both": (SLOW, SCALED),
}


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("kinds", STACKS.values(), ids=STACKS)
def test_stack_with_learned_goals_resumes_bit_for_bit(kinds, tmp_path):
    build = partial(created, levels_of(kinds, training=240))
    assert_resumes(build, tmp_path, after(100, amid), kinds=("train", "level"))


def finished(params):
    manager = created(params)
    records = [
        (each.kind, each.level, each.environment_steps, each.scalars)
        for each in manager.improve()
        if each.kind in ("train", "level", "evaluation")
    ]
    scalars = [
        (*rest, {k: v for k, v in found.items() if not k.startswith(("time/", "collection/"))})
        for *rest, found in records
    ]
    state = manager.state_dict()["agents"]
    return scalars, state


def with_workers(params, on, workers=1):
    chosen = rl.CollectionParameters(workers=workers, on=on, ticks=7)
    return finished(replace(params, source=chosen))


@pytest.mark.drawn(one_of=4)
@pytest.mark.parametrize("on", ["inline", "local"])
@pytest.mark.parametrize("kinds", [STACKS["both"], STACKS["directions"]], ids=["both", "one"])
def test_workers_judge_by_the_networks_of_the_run(kinds, on):
    alone, collected = finished(levels_of(kinds)), with_workers(levels_of(kinds), on)
    assert alone[0] == collected[0]
    assert_same_state(alone[1], collected[1])


def test_workers_elsewhere_keep_unfiltered_observations_as_those_here_do():
    params = of(RELATIVE, FILTERED)  # whose statistics workers see later than a run without them
    inline, local = (with_workers(params, on, workers=2) for on in ("inline", "local"))
    assert inline[0] == local[0]
    assert_same_state(inline[1], local[1])


class Undeclared:
    """Builds a class whose state may stay behind."""

    def __init__(self, *saved):
        self.saved = saved

    def __call__(self):
        type("Own", (rl.LearnedGoals,), {"SAVED": self.saved})


@parameter_class
class Shown(Linear):
    def build(self, context):
        return ShownGoals(self, context)


class ShownGoals(LinearGoals):
    def show(self, goal, observation):
        return super().show(-goal, observation)


def made(*arguments, **given):
    return lambda: created(of(*arguments, **given)).close()


def changed(params, **changes):
    top, *below = params.levels
    return lambda: created(replace(params, levels=(replace(top, **changes), *below))).close()


SEQUENCES = rl.ReplayMemoryParameters(n_step=3)
HIRO = rl.HIROAgentParameters(**SETTINGS)
HAC = rl.HACAgentParameters(
    learner=rl.DDPGAgentParameters(learning=SETTINGS["learning"], update_mode="eager")
)
GOALS_ON_TOP = {"goal_space": replace(PLAIN, reward="sparse"), "horizon": 5}
REFUSED = [  # call, kind of error, message
    (lambda: replace(LINEAR, elements=(0, 1, 2)), ParameterError, "leave out elements and angles"),
    (lambda: replace(LINEAR, angles=(0,)), ParameterError, "leave out elements and angles"),
    (lambda: replace(LINEAR, reward=lambda step: 0), ParameterError, "LearnedGoals.judge"),
    (
        lambda: replace(SCALED, reach=(1.0,) * 3),
        ParameterError,
        "Linear.bounds_rate ... reach=(1.0, 1.0, 1.0)",
    ),
    (lambda: rl.TimedGoalSpace.of(LINEAR, longest=5), ParameterError, "lose the methods"),
    (lambda: LINEAR.achieved({}), ConfigurationError, "Linear describes ... its build() returns"),
    (Undeclared("matrix"), ConfigurationError, "SavedAttribute('matrix', policy=True)"),
    (
        Undeclared(SavedAttribute("count")),
        ConfigurationError,
        "'count' does not show ... policy=False",
    ),
    (made(replace(LINEAR, key="where")), SpaceError, "level 'low': ... 'where', which is not"),
    (
        changed(of(LINEAR), goal_space=LINEAR),
        SpaceError,
        "level 'top': the goals of the top level ... use a GoalSpace there, and Linear below it",
    ),
    (
        made(LINEAR, rl.PPOAgentParameters()),
        ConfigurationError,
        "level 'low': LinearGoals learns from the replay memory ... PPOAgent",
    ),
    (
        made(LINEAR, replace(TD3, memory=SEQUENCES)),
        ConfigurationError,
        "level 'low': LinearGoals learns or follows a curriculum, and judges single ... n_step=3",
    ),
    (
        made(
            LINEAR,
            replace(TD3, memory=replace(HER, relabelling=rl.HindsightParameters(goal=PLAIN))),
        ),
        ConfigurationError,
        "HindsightParameters.goal is a GoalSpace ... leave it at None",
    ),
    (
        made(
            LINEAR,
            replace(
                TD3,
                input_filter=rl.InputFilter(
                    observation={"desired_goal": (rl.ObservationNormalizationFilter(),)}
                ),
            ),
        ),
        ConfigurationError,
        "its memory, as its goals learn, reads goals from 'desired_goal'",
    ),
    (
        made(
            LINEAR,
            replace(TD3, input_filter=rl.InputFilter(reward=(rl.RewardRescaleFilter(factor=2.0),))),
        ),
        ConfigurationError,
        "its memory, as its goals learn, rewards a part of each batch",
    ),
    (
        made(Blended(**BOX, key=KEY)),
        SpaceError,
        "level 'low': BlendedGoals.achieved reads the observation key 'achieved_goal' ... `keys`",
    ),
    (
        lambda: list(created(of(Silent(**BOX, key=KEY))).improve()),
        RunError,
        "SilentGoals.learn must return whether anything changed ... got None",
    ),
    (made(Shown(**BOX, key=KEY)), ConfigurationError, "ShownGoals overrides show()"),
    (
        made(RELATIVE, top=HIRO),
        ConfigurationError,
        "the correction of HIRO computes with goals that are elements ... LinearGoals overrides",
    ),
    (
        changed(of(LINEAR, top=HAC), **GOALS_ON_TOP),
        ConfigurationError,
        "keeps goals that the level below achieved, and LinearGoals moves them",
    ),
    (
        made(Directions(**BOX, key=KEY), HAC),
        ConfigurationError,
        "level 'low': values are bounded ... DirectionGoals.judge makes others",
    ),
    (
        changed(of(LINEAR, top=rl.GraphAgentParameters()), **GOALS_ON_TOP),
        ConfigurationError,
        "keeps goals that the level below achieved, and LinearGoals moves them",
    ),
    (
        lambda: created(
            replace(
                of(LINEAR),
                source=rl.CollectionParameters(
                    workers=1, mode="asynchronous", ticks=2, staleness=4
                ),
            )
        ).close(),
        ConfigurationError,
        "the goals of level 'low' learn (LinearGoals) ... use synchronous",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), REFUSED)
def test_what_does_not_fit_goals_that_learn_is_refused(call, kind, message):
    check_refused(call, kind, message)


QUICK = rl.RunSettings(tensorboard=False, final_episodes=rl.EnvironmentEpisodes(2))


def run_of(params, root, **settings):
    """The folder of a finished run with evaluations."""
    schedule = replace(
        params.schedule,
        evaluation_interval=rl.EnvironmentSteps(100),
        evaluation_episodes=rl.EnvironmentEpisodes(2),
    )
    manager = rl.HRLGraphManager(replace(params, schedule=schedule))
    task = rl.Runtime(seed=2, device="cpu")
    settings = replace(QUICK, **settings)
    return rl.run_experiment(manager, task, name="run", root=root, settings=settings).folder.path


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    return run_of(levels_of((SLOW, SCALED), training=400), tmp_path_factory.mktemp("runs"))


def networks_of(folder):
    """The saved goals of the levels below the top, by name."""
    found = read_checkpoint(find_checkpoint(folder / "checkpoints", "last")).state["agents"]
    return {name: found[name]["goal_space"] for name in ("middle", "low")}


def test_loaded_agents_judge_by_what_was_learned(run_folder):
    saved = networks_of(run_folder)
    graph = rl.load(run_folder)._graph
    for name, level in zip(("top", "middle", "low"), graph.evaluation.levels, strict=True):
        if name == "top":
            continue
        goals = graph.agents[name].goals
        assert level.params.goal_space is goals
        assert goals.version == saved[name]["version"] > 5
    online = saved["low"]["matrix"]["online"]
    np.testing.assert_array_equal(graph.agents["low"].goals.matrix.module.weight, online["weight"])
    np.testing.assert_array_equal(graph.agents["low"].goals._range, saved["low"]["bounds"])


def test_frozen_levels_of_other_runs_keep_their_goals(run_folder):
    top, *below = levels_of((SLOW, SCALED)).levels
    frozen = tuple(replace(each, load=str(run_folder), frozen=True) for each in below)
    manager = created(replace(levels_of((SLOW, SCALED)), levels=(top, *frozen)), seed=5)
    rl.load_levels(manager)
    manager.run()
    for name, saved in networks_of(run_folder).items():
        goals = manager.graph.agents[name].goals
        assert goals.version == saved["version"]
        network = goals.matrix if name == "low" else goals.features
        for key, values in network.state_dict()["online"].items():
            assert torch.equal(
                values, saved["matrix" if name == "low" else "features"]["online"][key]
            )


def test_background_evaluations_equal_those_of_the_run(run_folder, tmp_path, served_evaluations):
    params = levels_of((SLOW, SCALED), training=400)
    aside = run_of(params, tmp_path, parts=(rl.BackgroundEvaluation(),))
    here, there = (
        [line for line in lines_of(each) if line["kind"] == "evaluation"]
        for each in (run_folder, aside)
    )
    assert len(here) >= 4
    assert [each["environment_steps"] for each in here] == [
        each["environment_steps"] for each in there
    ]
    for one, other in zip(here, there, strict=True):
        assert one["scalars"] == other["scalars"]


def test_films_of_learned_goals_have_no_mark_for_them(tmp_path):
    params = of(LINEAR, training=60)
    low = replace(params.levels[1], goal_space=replace(LINEAR, relative=True))
    world = parameters("point_maze_u", max_episode_steps=15)
    filmed = replace(params, levels=(params.levels[0], low), environment=world)
    folder = run_of(filmed, tmp_path, parts=(rl.VideoParameters(frame_skip=5),))
    assert list(folder.glob("videos/**/*.gif"))


def test_description_names_the_learned_space():
    manager = created(of(SLOW))
    text = description.described(manager)
    assert "goals: 3 latents of LESSONGoals in [-2, 2] by 'observation'" in text
