"""PettingZoo's parallel environments behind the contract, and equal to themselves run bare."""

import importlib.util
import re
import sys
from copy import deepcopy

import numpy as np
import pytest
from gymnasium import spaces

from coach_rl.configuration.parameters_json import decode, encode
from coach_rl.configuration.trust import OURS_ALONE
from coach_rl.core.errors import (
    CheckpointError,
    ConfigurationError,
    EnvironmentFault,
    ParameterError,
    UnknownNameError,
)
from coach_rl.core.infos import agent_info, agent_rewards
from coach_rl.core.random_actions import actions_from_uniform, allowed_choice, uniform_size
from coach_rl.core.records import End
from coach_rl.environments import make
from coach_rl.environments.pettingzoo import PettingZooParameters
from coach_rl.extensions.testing import ENVIRONMENT_CHECKS, EnvironmentContract, Trial

needs_pettingzoo = pytest.mark.skipif(
    importlib.util.find_spec("mpe2") is None,
    reason="mpe2 is not installed; it comes with the extra pettingzoo",
)
HUNT = PettingZooParameters(level="little_parallel:Hunt")
ALL = {
    "hunt": HUNT,
    "wrapped": PettingZooParameters(
        level="little_parallel:Hunt", wrappers=(("little_parallel:Louder", {"by": 3}),)
    ),
    "cut_off": PettingZooParameters(level="little_parallel:Hunt", max_episode_steps=3),
    "spread": PettingZooParameters(level="mpe2.simple_spread_v3", kwargs={"max_cycles": 6}),
    "speaker": PettingZooParameters(
        level="mpe2.simple_speaker_listener_v4:parallel_env",
        kwargs={"max_cycles": 5, "continuous_actions": True},
    ),
    "tag": PettingZooParameters(level="mpe2.simple_tag_v3", max_episode_steps=6),
    "speaker_in_turn": PettingZooParameters(
        level="mpe2.simple_speaker_listener_v4:env", kwargs={"max_cycles": 5}
    ),
}
TICTACTOE = PettingZooParameters(level="pettingzoo.classic.tictactoe.tictactoe")


EACH_TIME = {"hunt", "tag", "speaker_in_turn"}
"""Those that keep the contract each time; the others have the same adapters."""


@pytest.mark.drawn(one_of=3, each="check")
@needs_pettingzoo
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in EACH_TIME else pytest.mark.slow) for name in ALL],
)
@pytest.mark.parametrize("check", ENVIRONMENT_CHECKS, ids=lambda check: check.__name__)
def test_contract(name, check):
    check(Trial(build=lambda num_envs: ALL[name].build(num_envs=num_envs), steps=16))


@needs_pettingzoo
class TestWorkers(EnvironmentContract):
    steps = 14

    def build(self, num_envs):
        return PettingZooParameters(
            level="little_parallel:Hunt",
            vectorization="subprocess",
            processes=1,  # rows are shared among processes as Gymnasium's are, whose test is alike
            start_method="fork",  # many are built here, and fork is quick
        ).build(num_envs=num_envs)


@needs_pettingzoo
def test_spaces_are_dicts_by_agent():
    shown = HUNT.build(num_envs=1).spaces
    assert shown.observation == spaces.Dict(
        {
            "hare": spaces.Box(-99, 99, (3,), np.float32),
            "hawk": spaces.Box(-99, 99, (3,), np.float32),
            "hound/all": spaces.Box(-99, 99, (3,), np.float32),
            "hound/nose": spaces.Discrete(5, start=1),
        }
    )
    assert shown.action == spaces.Dict(
        {
            "hare": spaces.Discrete(3),
            "hawk/cry": spaces.Discrete(2),
            "hawk/wings": spaces.Box(-1, 1, (2,), np.float32),
            "hound": spaces.Discrete(3),
        }
    )


@needs_pettingzoo
def test_adapter_equals_pettingzoo():
    """Observations, each agent's reward and end, whoever is still there, over many episodes."""
    from little_parallel import Hunt

    environment = HUNT.build(num_envs=2)
    bare = [Hunt(), Hunt()]
    first = environment.reset(seed=3)
    last = [hunt.reset(seed=3 + row)[0] for row, hunt in enumerate(bare)]
    check_seen(first.observation, last)
    done = [{name: (False, False) for name in hunt.possible_agents} for hunt in bare]
    space, rng = environment.spaces.action, np.random.default_rng(0)
    fates = set()
    for _ in range(200):
        action = actions_from_uniform(space, rng.random((2, uniform_size(space))))
        environment.send(action)
        answer = environment.recv()
        for row, hunt in enumerate(bare):
            playing = list(hunt.agents)
            told = {name: action[name][row] for name in ("hare", "hound")}
            told["hawk"] = {"cry": action["hawk/cry"][row], "wings": action["hawk/wings"][row]}
            seen, rewards, ended, cut, infos = hunt.step({name: told[name] for name in playing})
            last[row] |= deepcopy(seen)
            done[row] |= {name: (ended[name], cut[name]) for name in playing}
            for name in hunt.possible_agents:
                info = {w: answer.info[agent_info(name, w)][row] for w in ENDS}
                assert info["reward"] == rewards.get(name, 0.0)
                assert (info["terminated"], info["truncated"]) == done[row][name]
            assert answer.reward[row] == sum(
                float(rewards[n]) for n in hunt.possible_agents if n in rewards
            )
            over = not hunt.agents
            any_cut = over and any(cut[name] for name in playing)
            assert answer.truncated[row] == any_cut
            assert answer.terminated[row] == (over and not any_cut)
            if "hare" in playing:
                assert answer.info["agents/hare/info/time"][row] == infos["hare"]["time"]
            fates.add((tuple(hunt.agents), bool(over), bool(any_cut)))
        check_seen(answer.observation, last)
        for row, hunt in enumerate(bare):
            if not hunt.agents:
                last[row] = hunt.reset()[0]
                done[row] = {name: (False, False) for name in hunt.possible_agents}
        check_seen(answer.first_observation, last)
    assert (("hare",), False, False) in fates  # one alone
    assert {((), True, False), ((), True, True)} <= fates  # both kinds of ends
    environment.close()


ENDS = ("reward", "terminated", "truncated")


def check_seen(observation, rows):
    for row, seen in enumerate(rows):
        np.testing.assert_array_equal(observation["hare"][row], seen["hare"])
        np.testing.assert_array_equal(observation["hawk"][row], seen["hawk"])
        np.testing.assert_array_equal(observation["hound/all"][row], seen["hound"]["all"])
        assert observation["hound/nose"][row] == seen["hound"]["nose"]


@needs_pettingzoo
def test_time_limit_truncates_remaining_agents():
    environment = ALL["cut_off"].build(num_envs=4)
    environment.reset(seed=0)
    space, rng = environment.spaces.action, np.random.default_rng(0)
    for step in range(1, 4):
        environment.send(actions_from_uniform(space, rng.random((4, uniform_size(space)))))
        answer = environment.recv()
        assert (answer.end == (End.TRUNCATED if step == 3 else 0)).all()
    ends = [answer.info[agent_info("hound", what)] for what in ("terminated", "truncated")]
    assert (ends[0] ^ ends[1]).all()
    assert ends[0].any()
    assert answer.info["agents/hawk/truncated"].all()
    environment.close()


@needs_pettingzoo
def test_wrappers_are_applied():
    plain, louder = (ALL[name].build(num_envs=1) for name in ("hunt", "wrapped"))
    for environment in (plain, louder):
        environment.reset(seed=0)
        space = environment.spaces.action
        environment.send(actions_from_uniform(space, np.zeros((1, uniform_size(space)))))
    left, right = (agent_rewards(environment.recv().info) for environment in (plain, louder))
    assert set(left) == {"hound", "hawk", "hare"}
    for name, reward in left.items():
        np.testing.assert_allclose(3 * reward, right[name], rtol=1e-6)


@needs_pettingzoo
def test_render_needs_rgb_array():
    environment = PettingZooParameters(
        level="little_parallel:Hunt", kwargs={"render_mode": "rgb_array"}
    ).build(num_envs=1)
    environment.reset(seed=0)
    assert environment.render().shape == (4, 6, 3)
    with pytest.raises(ConfigurationError):
        HUNT.build(num_envs=1).render()


@needs_pettingzoo
@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        ("late", r"failed in reset: .*\['hare'\] are not there when the episode begins"),
        ("lost", r"failed in step: .*left without being terminated or truncated"),
        ("back", r"failed in step: .* are there although their episode is over"),
    ],
)
def test_agents_appearing_or_leaving_without_end_error(trouble, message):
    environment = PettingZooParameters(
        level="little_parallel:Hunt", kwargs={"trouble": trouble}
    ).build(num_envs=2)

    def play():
        space, rng = environment.spaces.action, np.random.default_rng(0)
        environment.reset(seed=0)
        for _ in range(20):
            environment.send(actions_from_uniform(space, rng.random((2, uniform_size(space)))))
            environment.recv()

    with pytest.raises(EnvironmentFault, match=message):
        play()


@needs_pettingzoo
def test_load_irreproducible_environment_error(monkeypatch):
    import little_parallel

    class Fickle(little_parallel.Hunt):
        drawn = np.random.default_rng(0)

        def step(self, actions):
            seen, rewards, *rest = super().step(actions)
            return seen, {name: self.drawn.random() for name in rewards}, *rest

    monkeypatch.setattr(little_parallel, "Fickle", Fickle, raising=False)
    environment = PettingZooParameters(level="little_parallel:Fickle").build(num_envs=1)
    environment.reset(seed=0)
    space = environment.spaces.action
    environment.send(actions_from_uniform(space, np.zeros((1, uniform_size(space)))))
    environment.recv()
    with pytest.raises(CheckpointError):
        environment.load_state_dict(environment.state_dict())


@needs_pettingzoo
@pytest.mark.parametrize(
    ("level", "error", "message"),
    [
        (
            "little_parallel:Hint",
            UnknownNameError,
            "unknown environment 'little_parallel:Hint'; did you mean 'little_parallel:Hunt' or "
            "'little_parallel:Birds' or 'little_parallel:KnockOut'?",
        ),
        (
            "little_parallel:Nameless",
            ConfigurationError,
            "'little_parallel:Nameless' must name its agents beforehand with strings, got "
            "possible_agents []; without them there is nothing to give to the members of a group",
        ),
    ],
)
def test_not_a_parallel_environment_error(level, error, message):
    with pytest.raises(error) as caught:
        PettingZooParameters(level=level).build(num_envs=1)
    assert str(caught.value) == message


@needs_pettingzoo
def test_gymnasium_adapter_error_names_pettingzoo():
    with pytest.raises(ConfigurationError):
        make("mpe2.simple_spread_v3:parallel_env")


@needs_pettingzoo
def test_turn_based_environment_with_parallel_wrapper():
    environment = PettingZooParameters(
        level="little_parallel:turn_based",
        wrappers=("pettingzoo.utils.conversions:turn_based_aec_to_parallel",),
    ).build(num_envs=1)
    assert set(environment.spaces.action.spaces) == {"hare", "hawk/cry", "hawk/wings", "hound"}


@needs_pettingzoo
def test_turn_based_environment_equals_pettingzoo_and_shows_turns():
    """Two games side by side, of which each equals the environment played by its own loop."""
    from pettingzoo.classic.tictactoe import tictactoe

    environment = TICTACTOE.build(num_envs=2)
    seen = environment.reset(seed=0).observation
    players, rng = ("player_1", "player_2"), np.random.default_rng(0)
    games = [tictactoe.env() for _ in range(2)]
    for game in games:
        game.reset()
    for _ in range(40):
        actions = {name: np.zeros(2, np.int64) for name in players}
        rewards = {name: np.zeros(2) for name in players}
        over = np.zeros(2, np.bool_)
        for row, game in enumerate(games):
            mover = game.agent_selection
            for name in players:
                assert seen[f"turn/{name}"][row] == (name == mover)
            shown = game.observe(mover)
            for key in ("observation", "action_mask"):
                np.testing.assert_array_equal(seen[f"{mover}/{key}"][row], shown[key])
            actions[mover][row] = rng.choice(np.flatnonzero(shown["action_mask"]))
            game.step(int(actions[mover][row]))
            for name in players:
                rewards[name][row] = game.rewards[name]
            if all(game.terminations.values()):
                over[row] = True
                game.reset()
        environment.send(actions)
        answer = environment.recv()
        for name in players:
            np.testing.assert_array_equal(answer.info[agent_info(name, "reward")], rewards[name])
        np.testing.assert_array_equal(answer.terminated, over)
        seen = answer.first_observation
    environment.close()


def test_parameters_survive_json():
    trust = OURS_ALONE.plus("little_parallel")
    assert decode(encode(ALL["wrapped"]), trust=trust) == ALL["wrapped"]


@pytest.mark.parametrize("hidden", ["pettingzoo", "mpe2"])
def test_missing_package_error_names_extra(monkeypatch, hidden):
    for name in [name for name in sys.modules if name.partition(".")[0] == hidden]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, hidden, None)
    module = "pettingzoo" if hidden == "pettingzoo" else "mpe2.simple_spread_v3"
    with pytest.raises(ConfigurationError) as caught:
        PettingZooParameters(level="mpe2.simple_spread_v3").build(num_envs=1)
    assert str(caught.value) == (
        f"the environment's module '{module}' cannot be imported: {hidden} is not installed; "
        '`pip install -e ".[pettingzoo]"` in the checkout installs it'
    )


@pytest.mark.parametrize("by_info", [False, True])
def test_masks_of_agents_are_shown_and_waiting_agents_may_do_anything(by_info):
    environment = PettingZooParameters(
        level="masked_parallel:Turns",
        kwargs={"by_info": by_info},
        action_mask="info:legal" if by_info else None,
    ).build(num_envs=2)
    assert set(environment.spaces.observation.spaces) == {
        f"{name}/{key}" for name in ("one", "two") for key in ("observation", "action_mask")
    }
    answer, rng = environment.reset(seed=0), np.random.default_rng(0)
    moves = np.zeros(2, int)
    for _ in range(40):
        action = {}
        for number, name in enumerate(("one", "two")):
            mask = answer.first_observation[f"{name}/action_mask"] > 0
            waits = moves % 2 != number
            assert mask[waits].all()
            action[name] = allowed_choice(mask, rng.random(2))
        environment.send(action)  # raises where one is forbidden
        answer = environment.recv()
        moves = np.where(answer.end > 0, 0, moves + 1)
    environment.close()


def test_masks_of_agents_that_are_not_there_are_refused():
    with pytest.raises(ParameterError, match="'info:KEY', a key of each agent's own info"):
        PettingZooParameters(level="masked_parallel:Turns", action_mask="method:action_masks")
    settings = {"kwargs": {"by_info": True}, "action_mask": "info:mask"}
    environment = PettingZooParameters(level="masked_parallel:Turns", **settings).build(num_envs=1)
    with pytest.raises(EnvironmentFault, match=r"agent 'one' has no 'mask'.*it has legal"):
        environment.reset(seed=0)


def second_step(**settings):
    """The answer to the step in which the hound of `Answers` is out."""
    environment = PettingZooParameters(level="little_parallel:Answers", kwargs=settings).build(
        num_envs=2
    )
    environment.reset(seed=0)
    for _ in range(2):
        space = environment.spaces.action
        environment.send(actions_from_uniform(space, np.full((2, uniform_size(space)), 0.5)))
        answer = environment.recv()
    environment.close()
    return answer


@needs_pettingzoo
@pytest.mark.parametrize("end", ["terminated", "both"])
@pytest.mark.parametrize(
    "how", [{"left_out": (0,)}, {"changed": {"0": None}}, {"left_out": (0, 4)}]
)
def test_terminated_agent_needs_no_last_observation(end, how):
    answer = second_step(end=end, **how)
    assert not answer.faults
    assert answer.info[agent_info("hound", "terminated")].all()
    assert answer.info[agent_info("hound", "reward")].tolist() == [-10, -10]
    assert (answer.observation["hound/nose"] == 2).all(), "its last one stands"


MALFORMED = [
    ({"end": "truncated", "left_out": (0,)}, "there is no observation of agent 'hound', but of h"),
    ({"left_out": (0,)}, "there is no observation of agent 'hound', but of hawk, hare"),
    ({"left_out": (1,)}, "there is no reward of agent 'hound', but of hawk, hare"),
    ({"end": "terminated", "left_out": (1,)}, "there is no reward of agent 'hound'"),
    ({"left_out": (2,)}, "there is no termination of agent 'hound'"),
    ({"left_out": (3,)}, "there is no truncation of agent 'hound'"),
    ({"changed": {"1": None}}, "the reward of agent 'hound' must be a number, got None"),
    ({"changed": {"1": np.ones(1)}}, "the reward of agent 'hound' must be a number, got array"),
    ({"changed": {"1": "1"}}, "the reward of agent 'hound' must be a number, got '1'"),
    ({"changed": {"1": 10**400}}, "the reward of agent 'hound' must be a number, got 1000"),
    ({"changed": {"2": None}}, "the termination of agent 'hound' must be True or False, got None"),
    ({"changed": {"2": np.zeros(1)}}, "the termination of agent 'hound' must be True or False"),
    ({"changed": {"3": "no"}}, "the truncation of agent 'hound' must be True or False, got 'no'"),
    ({"changed": {"0": None}}, "no 'hound/all', which its space has"),
    ({"changed": {"0": {"all": np.zeros(3, np.float32)}}}, "no 'hound/nose', which its space has"),
    ({"changed": {"0": {"all": np.zeros(2, np.float32), "nose": 1}}}, "'hound/all' has shape"),
    ({"changed": {"4": None}}, "the info of agent 'hound' must be a dict, got None"),
    *(
        ({"whole": {str(place): None}}, f"the {what}s must be a dict, got None")
        for place, what in enumerate(("observation", "reward", "termination", "truncation"))
    ),
    ({"whole": {"1": 1.0}}, "the rewards must be a dict, got a float"),
    ({"whole": {"4": None}}, "the infos must be a dict, got None"),
]


@needs_pettingzoo
@pytest.mark.parametrize(("settings", "message"), MALFORMED)
def test_malformed_part_of_an_agent_stops_and_names_it(settings, message):
    """By default malformed values stop; a step that raises would be a restart."""
    with pytest.raises(EnvironmentFault, match=re.escape(message)):
        second_step(**settings)


@needs_pettingzoo
@pytest.mark.parametrize("how", [None, ({}, {}, {}, {}), 1.0, [{}] * 3])
def test_malformed_step_of_a_parallel_environment_stops(monkeypatch, how):
    import little_parallel

    monkeypatch.setattr(little_parallel.Answers, "step", lambda *_: how)
    with pytest.raises(EnvironmentFault, match=r"step must return|step gave 4 values"):
        second_step()


@needs_pettingzoo
@pytest.mark.parametrize("way", ["terminated", "truncated"])
@pytest.mark.parametrize("masked", [False, True])
def test_turn_based_player_may_be_out_before_its_turn(way, masked):
    environment = PettingZooParameters(
        level="little_parallel:KnockOut",
        kwargs={"way": way, "masked": masked},
        action_mask="info:legal" if masked else None,
    ).build(num_envs=1)
    answer, names = environment.reset(seed=0), ("p0", "p1", "p2")
    movers, outs, rewards = [], [], []
    for move in (3, 0, 0, 0, 0, 0, 0, 0):
        shown = answer.first_observation
        if masked:
            allowed = [shown[f"{name}/action_mask"][0].sum() for name in names]
            assert sorted(allowed) == [4, 5, 5], "who waits may do anything"
        turns = [name for name in names if shown[f"turn/{name}"][0]]
        environment.send({name: np.array([move if name in turns else 4]) for name in names})
        answer = environment.recv()
        movers += turns
        outs.append([bool(answer.info[agent_info(name, way)][0]) for name in names])
        rewards.append([float(answer.info[agent_info(name, "reward")][0]) for name in names])
    assert movers == ["p0", "p1", "p0", "p1", "p0", "p1", "p0", "p1"]
    assert outs[0] == outs[-2] == [False, False, True]
    assert [sum(each) for each in zip(*rewards, strict=True)] == [4, 4, 0]
    assert answer.terminated[0]
    environment.close()


@needs_pettingzoo
@pytest.mark.parametrize("problem", ["none", "truncated"])
def test_agents_that_act_need_a_mask(monkeypatch, problem):
    """Who plays, and who is truncated, whose next actions are valued."""
    import masked_parallel

    class Forgets(masked_parallel.Turns):
        def step(self, actions):
            shown, rewards, ends, cuts, infos = super().step(actions)
            infos["two"] = {"legal": None} if problem == "none" else {}
            cuts = dict.fromkeys(cuts, problem == "truncated")
            self.agents = [] if problem == "truncated" else self.agents
            return shown, rewards, dict.fromkeys(ends, False), cuts, infos

    monkeypatch.setattr(masked_parallel, "Forgets", Forgets, raising=False)
    environment = PettingZooParameters(
        level="masked_parallel:Forgets", kwargs={"by_info": True}, action_mask="info:legal"
    ).build(num_envs=1)
    mask = environment.reset(seed=0).observation["one/action_mask"] > 0
    environment.send({"one": allowed_choice(mask, np.zeros(1)), "two": np.zeros(1, np.int64)})
    with pytest.raises(EnvironmentFault, match="info of agent 'two' has no 'legal'"):
        environment.recv()


@needs_pettingzoo
def test_malformed_mask_of_an_agent_error_names_it(monkeypatch):
    import masked_parallel

    class Nans(masked_parallel.Turns):
        def infos(self):
            return {name: {"legal": np.full(size, np.nan)} for name, size in self.sizes.items()}

    monkeypatch.setattr(masked_parallel, "Nans", Nans, raising=False)
    environment = PettingZooParameters(
        level="masked_parallel:Nans", kwargs={"by_info": True}, action_mask="info:legal"
    ).build(num_envs=1)
    with pytest.raises(EnvironmentFault, match="mask of 'info:legal' of agent 'one' must have 3"):
        environment.reset(seed=0)
