"""The programs of docs/research: short, public, and right in all that surrounds a run.

Each is resumed bit for bit, is evaluated in the background and is loaded,
with equal numbers.
"""

import importlib
import re
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import coach_rl as rl
from coach_rl.core.parts import trajectories_of
from coach_rl.core.records import End
from coach_rl.core.runtime import Runtime
from coach_rl.extensions.testing import assert_same_state
from coach_rl.runs.checkpoint import read_checkpoint, write_checkpoint
from coach_rl.sessions.opening import rebuild
from coach_rl.sessions.session import run_experiment
from tests.agents.resuming import amid
from tests.samples import drawn
from tests.small_runs import QUIET, preset, state_of

FOLDER = Path(__file__).parents[2] / "docs" / "research"
OTHERS = {"two_levels", "compared_rewards"}
FILES = sorted({file.stem for file in FOLDER.glob("*.py")} - OTHERS)
PROGRAMS = [*FILES, "ends_below above=hac", "ends_below above=timed"]
"""Programs, some with a setting of their panel."""
MOST_LINES = 40
SHORT = 400
"""Environment steps after heat-up of runs that only need some of each kind of step."""
SELDOM = rl.LearningParameters(batch=16, learning_starts=30, updates_per_step=0.25)
"""Settings of learning for these runs, by which both levels learn."""


@pytest.fixture(autouse=True, scope="module")
def programs():
    """Programs can be imported by name, and their agents learn seldom."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        patch.setitem(importlib.import_module("two_levels").SMALL, "learning", SELDOM)
        yield


@pytest.fixture
def learn_often(monkeypatch):
    """The agents of programs learn as often as in the folder."""
    learning = rl.LearningParameters(batch=32, learning_starts=200)
    monkeypatch.setitem(importlib.import_module("two_levels").SMALL, "learning", learning)


@pytest.fixture(scope="module", params=drawn(PROGRAMS, one_of=6))
def program(request):
    return request.param


@pytest.fixture(scope="module")
def whole(program):
    """The graph manager of a whole run, and its records."""
    manager = short_run_of(program)
    return manager, list(manager.improve())


def settings_of(name):
    """The module of a program, and the settings of its panel."""
    module, *settings = name.split()
    return module, dict(each.split("=") for each in settings)


def manager_of(name, *, seed=0, steps=700, **changes):
    """The program's graph manager, built; changes are of the graph's parameters."""
    name, settings = settings_of(name)
    module = importlib.import_module(name)
    panel = getattr(module, "Panel", importlib.import_module("two_levels").Panel)
    manager = module.graph_manager(panel(steps=steps, **settings))
    schedule = replace(
        manager.parameters.schedule,
        evaluation_interval=rl.EnvironmentSteps(300),
        evaluation_episodes=rl.EnvironmentEpisodes(2),
        progress_interval=rl.EnvironmentSteps(50),
    )
    manager = type(manager)(replace(manager.parameters, schedule=schedule, **changes))
    manager.create_graph(Runtime(seed=seed, device="cpu"))
    return manager


def short_run_of(name, **changes):
    """The program's graph manager for a short run."""
    return manager_of(name, steps=SHORT, **changes)


def figures(records):
    """Figures of training's records, without times and speeds."""
    return [
        (
            each.kind,
            each.level,
            each.environment_steps,
            {k: v for k, v in each.scalars.items() if not k.startswith(("time/", "collection/"))},
        )
        for each in records
        if not any(name.startswith("evaluation") for name in each.scalars)
    ]


def scores(found):
    """Scores in a form that compares."""
    episodes = found.episodes
    return found.levels, episodes.reward.tolist(), episodes.length.tolist()


def code_lines(text):
    """Lines of a program, without imports, docstrings and empty lines."""
    bare = re.sub(r'""".*?"""', "", text, flags=re.DOTALL)
    bare = re.sub(r"^from \S+ import \([^)]*\)|^(from|import) .*$", "", bare, flags=re.MULTILINE)
    return [line for line in bare.splitlines() if line.strip()]


@pytest.mark.parametrize("name", FILES)
def test_research_program_is_short_and_uses_public_names(name):
    text = (FOLDER / f"{name}.py").read_text()
    assert len(code_lines(text)) <= MOST_LINES
    assert not re.findall(r"(?<!self)\._[a-z]\w*", text), "private names"
    assert not re.findall(r"def (achieved|verdict)\(", text)


def test_research_program_resumed_equals_whole_run(program, whole, tmp_path):
    manager, records = whole
    middle = next(i for i, each in enumerate(records) if each.environment_steps > 250)
    first = short_run_of(program)
    running, count = first.improve(), 0
    while count <= middle or not (first.progress.is_settled and amid(first)):
        next(running)
        count += 1
    write_checkpoint(tmp_path / "half", first.state_dict(), {})
    second = short_run_of(program, seed=99)
    second.load_state_dict(read_checkpoint(tmp_path / "half").state)
    assert figures(second.improve()) == figures(records[count:])
    assert_same_state(second.state_dict(), manager.state_dict())


def test_research_program_evaluated_elsewhere_equals_its_own_evaluation(program, whole):
    trained, _ = whole
    policies = trained.evaluations.policies()
    elsewhere = short_run_of(program)
    clock = trained.graph.clock.state_dict()
    untrained = elsewhere.evaluations.scores_of(elsewhere.evaluations.policies(), clock=clock)
    found = elsewhere.evaluations.scores_of(policies, clock=clock)
    own = trained.evaluations.scores_of(policies)
    assert scores(found) == scores(own)
    assert scores(found) != scores(untrained)


def continue_streams(agent, evaluation):
    """Let a loaded agent draw the numbers of the evaluation's streams, instead of its own."""
    for own, level in zip(agent._actor_for(2)._stack.levels, evaluation.levels, strict=True):
        own.agent_rows.load_state_dict(level.agent_rows.state_dict())
        for name in {"horizons", "drawn_ends"} & own._saved_parts.keys():
            draws = level._saved_parts[name]._draws
            own._saved_parts[name]._draws.load_state_dict(draws.state_dict())


@pytest.mark.filterwarnings("ignore:.*would learn nothing")
def test_research_program_loaded_from_its_run_acts_as_in_evaluations(program, tmp_path):
    name, settings = settings_of(program)
    manager = preset(FOLDER / f"{name}.py").configure({"steps": SHORT, **settings})
    run = run_experiment(
        manager, Runtime(seed=1, device="cpu"), name=name, root=tmp_path, settings=QUIET
    ).folder
    rebuilt, task, _ = rebuild(run, learns=False)
    with rebuilt:
        rebuilt.create_graph(task, training=False, evaluation_envs=2)
        rebuilt.evaluations.load_agents(state_of(run.path))
        evaluation, agent = rebuilt.graph.evaluation, rl.load(run.path)
        evaluation.reset(5)
        continue_streams(agent, evaluation)
        with closing(rebuilt.parameters.environment.build(num_envs=2)) as outside:
            answer = outside.reset(5)
            for _ in range(110):
                outside.send(agent.act(answer.first_observation))
                answer, expected = outside.recv(), evaluation.tick()
                for key, values in expected.observation.items():
                    np.testing.assert_array_equal(answer.observation[key], values)
                agent.reset(answer.terminated | answer.truncated)


def stored(name, level, **changes):
    """What a level has stored in a run, [T, ...] each, and what of it belongs to each row."""
    manager = manager_of(name, **changes)
    list(manager.improve())
    found = trajectories_of(manager.graph.agents[level])
    flat = {path: values.reshape(-1, *values.shape[2:]) for path, values in found.items()}
    columns = {path.rsplit("/", 1)[-1]: flat[path] for path in flat if "next" not in path}
    after = {path.rsplit("/", 1)[-1]: flat[path] for path in flat if "next" in path}
    kept = columns["mask"]
    return {k: v[kept] for k, v in columns.items()}, {k: v[kept] for k, v in after.items()}


def test_potential_reward_is_what_is_stored():
    columns, after = stored("potential_reward", "low", steps=SHORT)
    before = -np.linalg.norm(columns["desired_goal"], axis=1)
    then = -np.linalg.norm(after["desired_goal"], axis=1)
    np.testing.assert_allclose(columns["rewards"], 0.99 * then - before, atol=1e-6)
    assert len(before) > 300


def test_direction_reward_is_what_is_stored():
    columns, after = stored("direction_reward", "low", steps=SHORT)
    moved = (after["achieved_goal"] - columns["achieved_goal"]).astype(np.float64)
    wanted = columns["desired_goal"].astype(np.float64)
    lengths = np.linalg.norm(moved, axis=1) * np.linalg.norm(wanted, axis=1)
    cosine = (moved * wanted).sum(axis=1) / np.maximum(lengths, 1e-8)
    np.testing.assert_allclose(columns["rewards"], cosine, atol=2e-6)
    assert (np.abs(cosine) > 0.5).any()


def expected(critics, observation, action):
    """The lower of two critics' values, layer by layer in float64; actions are at most 0.5."""
    columns = [observation[key] for key in ("achieved_goal", "desired_goal", "observation")]
    found = np.concatenate([*columns, action / 0.5], axis=1).astype(np.float64)[None]
    first, second = (
        (layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy())
        for layer in critics.module.values.layers
    )
    hidden = np.tanh(found @ first[0] + first[1])
    return (hidden @ second[0] + second[1])[:, :, 0].min(axis=0)


def test_expected_above_is_what_is_stored(monkeypatch):
    module, graphs, wanted, kept = importlib.import_module("expected_above"), [], [], []
    gain = module.gain

    def recorded(step, above):
        critics = graphs[0].agents["top"].learner.critics
        after, before = (
            expected(critics, seen, np.clip(step.goal - seen["achieved_goal"], -0.5, 0.5))
            for seen in (step.after, step.before)
        )
        wanted.extend((after - before).tolist())
        return gain(step, above)

    monkeypatch.setattr(module, "gain", recorded)
    manager = manager_of("expected_above", steps=400)
    graphs.append(manager.graph)
    low = manager.graph.agents["low"]
    store = low.store

    def noted(transition):
        kept.extend(zip(wanted[-len(transition.reward) :], transition.reward, strict=True))
        store(transition)

    low.store = noted
    list(manager.improve())
    of_network, stored = np.array(kept, np.float64).T
    np.testing.assert_allclose(stored, of_network, atol=1e-6)
    assert np.abs(stored).max() > 0.01
    assert len(stored) > 300


def test_bonus_for_visits_is_what_is_stored_beside_the_reward():
    """By plain counts of cells, in the order in which the rows of a step are answered."""
    manager, kept = manager_of("counted_visits"), []
    top = manager.graph.agents["top"]
    observe, store = top.observe, top.store

    def observed(row_state, outcome, clock):
        if clock.learns:
            kept.append([outcome, None])
        observe(row_state, outcome, clock)

    def noted(transition):
        kept[-1][1] = transition.reward.tolist()
        store(transition)

    top.observe, top.store = observed, noted
    list(manager.improve())
    counts, compared = Counter(), 0
    for outcome, rewards in kept:
        places = outcome.observation["achieved_goal"].astype(np.float64)
        cells = [tuple(np.clip(np.floor(5 * (place + 1)), 0, 9)) for place in places]
        counts.update(cells)
        wanted = [
            given + 1 / np.sqrt(counts[cell])
            for given, cell in zip(outcome.reward.tolist(), cells, strict=True)
        ]
        np.testing.assert_allclose(rewards, wanted, atol=1e-6)
        compared += len(rewards)
    assert compared > 50
    assert max(counts.values()) > 5


def test_won_episodes_are_all_that_the_top_stores():
    manager, kept, open_rows, won = manager_of("won_episodes", steps=2_000), [], {}, []
    top = manager.graph.agents["top"]
    observe, store = top.observe, top.store

    def observed(row_state, outcome, clock):
        for number, row in enumerate(outcome.rows.tolist() if clock.learns else ()):
            place = outcome.observation["achieved_goal"][number].tolist()
            open_rows.setdefault(row, []).append(place)
            if outcome.end[number] & (End.TERMINATED | End.TRUNCATED):
                episode = open_rows.pop(row)
                won.extend(episode if outcome.end[number] & End.TERMINATED else [])
        observe(row_state, outcome, clock)

    def noted(transition):
        kept.extend(transition.next_observation["achieved_goal"].tolist())
        store(transition)

    top.observe, top.store = observed, noted
    list(manager.improve())
    assert sorted(kept) == sorted(won)
    assert len(won) > 10


def test_chosen_horizons_are_the_durations_of_sub_goals():
    manager, found = manager_of("chosen_horizons"), []
    level = manager.graph.training.levels[1]
    horizons = level._saved_parts["horizons"]
    process, chosen = level.process, horizons._found
    limits = {}

    def begun(rows, observation, goal):
        draw = horizons._draws.draw
        uniform = []
        horizons._draws.draw = lambda rows: uniform.append(draw(rows)) or uniform[-1]
        limit = chosen(rows, observation, goal)
        horizons._draws.draw = draw
        distance = np.linalg.norm(goal - observation["achieved_goal"], axis=1)
        limits.update(
            zip(rows.tolist(), np.clip(10 * distance * (1 + uniform[0]), 3, 12), strict=True)
        )
        return limit

    def processed(answer):
        upwards = process(answer)
        for row, end, lasted in zip(upwards.rows, upwards.end, upwards.duration, strict=True):
            found.append((int(lasted), int(limits[row]), int(end)))
        return upwards

    horizons._found, level.process = begun, processed
    list(manager.improve())
    assert all(lasted <= limit for lasted, limit, _ in found)
    alone = [(lasted, limit) for lasted, limit, end in found if end == End.HORIZON]
    assert all(lasted == limit for lasted, limit in alone)
    assert len({limit for _, limit in alone}) > 4


def test_relabelled_goals_are_those_that_explain_the_steps_better():
    """By the policy below, one step at a time."""
    manager = manager_of("relabelled_goals", steps=1_500)
    list(manager.improve())
    top, low = manager.graph.agents.values()
    unit, found = top.memory.sampler.by_name["achieved"], []
    relabelled = unit.relabelled

    def noted(steps):
        found.append(steps)
        return relabelled(steps)

    unit.relabelled = noted
    batch = top.memory.sample(60)
    (steps,) = found
    begun, ended = (
        each["achieved_goal"].numpy() for each in (batch.observation, batch.next_observation)
    )
    achieved = np.clip(ended - begun, -0.5, 0.5)
    chosen = []
    for number in range(60):
        fits = []
        for goal in (steps.sent[number], achieved[number]):
            wanted, squares = np.clip(begun[number] + goal, -1, 1), 0.0
            for time in range(int(steps.mask[number].sum())):
                seen = {key: each[number, time][None] for key, each in steps.observation.items()}
                seen["desired_goal"] = (wanted - seen["achieved_goal"]).astype(np.float32)
                away = low.policy_actions(seen)[0] - steps.action[number, time]
                squares += float(np.square(away, dtype=np.float64).sum())
            fits.append(squares)
        chosen.append(fits[1] < fits[0])
    wanted = np.where(np.array(chosen)[:, None], achieved, steps.sent)
    np.testing.assert_allclose(batch.action.numpy(), wanted, atol=1e-6)
    assert 5 < sum(chosen) < 55


def test_widened_reach_changes_in_both_halves_of_a_run(learn_often):
    manager = manager_of("widened_reach")
    name, found = "level/reach_factor", []
    for each in manager.improve():
        if each.level == "low" and name in each.scalars:
            found.append((each.environment_steps, each.scalars[name]))
    assert len({value for steps, value in found if steps < 350}) > 1
    assert len({value for steps, value in found if steps > 350}) > 1


def test_map_of_goals_is_noted_in_pictures_and_histograms():
    manager = manager_of("map_of_goals")
    notes = [record for record in manager.improve() if record.kind == "note"]
    assert len(notes) == 2
    assert all(note.images["goals/map"].shape == (32, 32) for note in notes)
    assert all(note.images["goals/map"].max() == 255 for note in notes)
    assert all(note.arrays["goals/distance"][:, 2].sum() > 300 for note in notes)


def test_moved_low_level_is_taken_from_the_run_and_stays(tmp_path):
    def run_of(changes, name):
        manager = preset(FOLDER / "moved_low_level.py").configure({"steps": 400, **changes})
        runtime = Runtime(seed=1, device="cpu")
        return run_experiment(manager, runtime, name=name, root=tmp_path, settings=QUIET).folder

    first = run_of({}, "first")
    second = run_of({"trained": str(first.path)}, "second")
    one, other = (state_of(folder.path)["agents"]["low"] for folder in (first, second))
    assert one["training_steps"] > 0
    assert_same_state(one["networks"], other["networks"])


def test_learned_ends_gradient_equals_a_float64_formula():
    """Of the mean of b * (A + 0.01), where b has a layer of tanh and a logistic output."""
    agent = manager_of("learned_ends").graph.agents["low"]
    rng, count = np.random.default_rng(0), 7
    place, goal = rng.normal(size=(2, count, 2)).astype(np.float32)
    advantage = rng.normal(size=count).astype(np.float32)
    inner, bias, outer, offset = (
        each.detach().double().numpy().copy() for each in agent.logit.parameters()
    )
    agent.learn_ends({"achieved_goal": place, "desired_goal": goal}, advantage)
    seen = np.concatenate([place, goal], axis=1).astype(np.float64)
    hidden = np.tanh(seen @ inner.T + bias)
    chance = 1 / (1 + np.exp(-(hidden @ outer[0] + offset)))
    of_logit = (advantage.astype(np.float64) + 0.01) * chance * (1 - chance) / count
    of_hidden = of_logit[:, None] * outer * (1 - hidden**2)
    expected = of_hidden.T @ seen, of_hidden.sum(axis=0), of_logit @ hidden, of_logit.sum()
    for each, wanted in zip(agent.logit.parameters(), expected, strict=True):
        np.testing.assert_allclose(each.grad.numpy().squeeze(), wanted, rtol=1e-4, atol=1e-8)


def test_learned_ends_below_hac_learn_from_goals_as_they_were_sent():
    """HAC shows most of them as what was achieved, where a chance to end means nothing."""
    manager = manager_of("ends_below above=hac", steps=900)
    top, low = manager.graph.agents.values()
    sent, off, store = {}, [], top.store

    def noted(transition):
        goals = transition.observation["achieved_goal"] + transition.action
        ended = transition.next_observation["achieved_goal"]
        for place, goal in zip(ended, np.clip(goals, -1, 1), strict=True):
            sent.setdefault(bytes(place), []).append(goal)  # several in a corner of the world
        store(transition)

    def learned(seen, advantage):
        places, offsets = seen["achieved_goal"], seen["desired_goal"]
        for place, offset in zip(places, offsets, strict=True):
            off.append(np.abs(np.array(sent[bytes(place)]) - place - offset).max(axis=1).min())

    top.store, low.learn_ends = noted, learned
    list(manager.improve())
    np.testing.assert_allclose(off, 0, atol=1e-6)
    assert len(off) > 500


def test_learned_ends_learn_what_a_goal_is_worth_beside_another():
    """The level above values goals by how far they are to the left, and would send -0.5."""
    manager = manager_of("learned_ends", steps=900)
    top, low = manager.graph.agents.values()
    to_the_left = np.array([-0.5, 0.0], np.float32)
    top.learner.acting.policy_actions = lambda seen: np.tile(
        to_the_left, (len(seen["achieved_goal"]), 1)
    )
    top.learner.values = lambda seen, action: -action[:, 0]
    learned = []
    low.learn_ends = lambda seen, advantage: learned.append((seen["desired_goal"][:, 0], advantage))
    list(manager.improve())
    ahead, advantage = (np.concatenate(each) for each in zip(*learned, strict=True))
    reached = np.clip(ahead, -0.5, 0.5)  # goals are at most so far away
    np.testing.assert_allclose(advantage, -reached - 0.5, atol=1e-5)
    assert len(ahead) > 500


def test_learned_ends_end_goals_where_another_is_worth_more():
    """A goal is worth less than another right of 0, and more left of it."""
    _, low = manager_of("learned_ends").graph.agents.values()
    low.optimizer.param_groups[0]["lr"] = 0.02
    rng = np.random.default_rng(0)
    for _ in range(100):
        place, ahead = rng.uniform(-1, 1, (2, 64, 2)).astype(np.float32)
        advantage = -np.sign(place[:, 0])
        low.learn_ends({"achieved_goal": place, "desired_goal": ahead}, advantage)
    place = np.array([[0.6, 0.0], [-0.6, 0.0]], np.float32)
    ahead = np.array([[0.4, 0.0], [0.4, 0.0]], np.float32)
    right, left = low.chance({"achieved_goal": place, "desired_goal": ahead}).tolist()
    assert right > 0.9
    assert left < 0.05


def test_compared_rewards_is_a_study_of_programs_of_the_folder():
    study = importlib.import_module("compared_rewards").study()
    assert [len(study.variants), len(study.seeds)] == [2, 3]
    assert all(Path(variant.preset).is_file() for variant in study.variants)


def test_rewards_in_a_latent_are_those_of_the_network():
    manager = manager_of("learned_latent", steps=400)
    agent = manager.graph.agents["low"]
    list(manager.improve())
    weight, bias = (
        each.detach().double().numpy() for each in agent.goals.coder.module[0].parameters()
    )
    batch = agent.memory.sample(64)
    then = batch.next_observation["observation"].double().numpy()
    goal = batch.extras["goal_space/goal"].double().numpy()
    distance = np.linalg.norm(then @ weight.T + bias - goal, axis=1)
    np.testing.assert_allclose(batch.reward.numpy(), -distance, atol=1e-5)


def test_rewards_of_skills_are_those_of_the_discriminator():
    manager = manager_of("discriminated_skills", steps=400)
    agent = manager.graph.agents["low"]
    list(manager.improve())
    first, bias1, second, bias2 = (
        each.detach().double().numpy() for each in agent.goals.guess.module.parameters()
    )
    batch = agent.memory.sample(64)
    then = batch.next_observation["achieved_goal"].double().numpy()
    guess = np.maximum(then @ first.T + bias1, 0) @ second.T + bias2
    skill = batch.observation["desired_goal"].double().numpy()
    wanted = -0.5 * ((guess - skill) ** 2).sum(axis=1)
    np.testing.assert_allclose(batch.reward.numpy(), wanted, atol=1e-6)
