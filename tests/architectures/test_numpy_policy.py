import numpy as np
import pytest
import torch
from gymnasium import spaces

from coach_rl.architectures.actor_critic import ActorCriticParameters
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.numpy_layers import BLOCK, in_blocks
from coach_rl.architectures.numpy_policy import numpy_policy
from coach_rl.architectures.onednn import onednn_linear
from coach_rl.architectures.torso import TorsoParameters

VECTOR = {"x": spaces.Box(-3, 3, (4,))}
ACTIONS = [spaces.Box(-1, 1, (2,)), spaces.Discrete(3), spaces.MultiDiscrete([2, 3])]


def build(observed, action=ACTIONS[0], **torso):
    return ActorCriticParameters(
        torso=TorsoParameters(**torso), policy_gain=1.0, initial_log_std=-0.3
    ).build(
        observation_space=spaces.Dict(observed),
        action_space=action,
        rng=torch.Generator().manual_seed(0),
    )


def observations(observed, rows=5):
    space = spaces.Dict(observed, seed=1)
    samples = [space.sample() for _ in range(rows)]
    return {key: np.stack([sample[key] for sample in samples]) for key in space}


def in_torch(model, observation):
    with torch.no_grad():
        return model.policy({key: torch.from_numpy(v) for key, v in observation.items()}).numpy()


SEVERAL = {
    "a": spaces.Box(-1, 1, (2, 3), np.float64),
    "b.c": spaces.MultiBinary(4),
    "d": spaces.Box(0, 9, (2,), np.int64),
    "e": spaces.Box(0, 255, (3, 2), np.uint8),  # divided by 255
}


@pytest.mark.parametrize("action", ACTIONS, ids=str)
@pytest.mark.parametrize("activation", ["tanh", "relu", "none"])
@pytest.mark.parametrize(
    ("observed", "layers"),
    [
        (VECTOR, {}),
        (VECTOR, {"middleware": ()}),
        (VECTOR, {"middleware": (7,), "embedder": (6, 5)}),
        (VECTOR, {"middleware": (7, 4), "layer_norm": True}),
        (SEVERAL, {"embedder": (6,)}),
        (SEVERAL, {"middleware": (), "orthogonal": False}),
    ],
    ids=["plain", "linear", "embedded", "normalised", "several keys", "several keys linear"],
)
def test_it_equals_the_torch_policy_to_rounding(observed, layers, activation, action):
    model = build(observed, action, activation=activation, **layers)
    policy = numpy_policy(model)
    assert policy is not None
    observation = observations(observed)
    given = {key: values.copy() for key, values in observation.items()}
    found = policy(observation)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, in_torch(model, observation), rtol=2e-5, atol=2e-6)
    for key, values in given.items():
        np.testing.assert_array_equal(observation[key], values)


@pytest.mark.parametrize("rows", [BLOCK - 1, BLOCK, 2 * BLOCK - 1, 2 * BLOCK + 3])
@pytest.mark.parametrize("by_onednn", [False, True])
@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="no oneDNN in this torch")
def test_many_rows_equal_the_torch_policy_to_rounding(monkeypatch, rows, by_onednn):
    calls = []

    def counted(*args):
        calls.append(args)
        return onednn_linear(*args)

    monkeypatch.setattr("coach_rl.architectures.numpy_layers.onednn_is_faster", lambda: by_onednn)
    monkeypatch.setattr("coach_rl.architectures.numpy_layers.onednn_linear", counted)
    model = build({"x": spaces.Box(-3, 3, (20,))}, activation="relu", middleware=(32, 40))
    observation = observations({"x": spaces.Box(-3, 3, (20,))}, rows=rows)
    given = observation["x"].copy()
    found = numpy_policy(model)(observation)
    np.testing.assert_allclose(found, in_torch(model, observation), rtol=2e-5, atol=2e-6)
    np.testing.assert_array_equal(observation["x"], given)
    wide_layers, blocks = 2, rows // BLOCK  # a layer of two outputs is too narrow
    assert len(calls) == (wide_layers * blocks if by_onednn else 0)


@pytest.mark.parametrize(
    "observed",
    [
        VECTOR,
        SEVERAL,
        {"x": spaces.Discrete(3)},
        {"x": spaces.MultiDiscrete([[3, 2], [4, 2]])},
        {"x": spaces.Box(0, 255, (8, 8, 1), np.uint8)},
    ],
    ids=list,
)
@pytest.mark.parametrize("action", ACTIONS, ids=str)
def test_no_rows_give_no_outputs(observed, action):
    model = build(observed, action, convolutions="shallow")
    one = observations(observed, rows=1)
    none = {key: values[:0] for key, values in one.items()}
    width = in_torch(model, one).shape[1]
    assert in_torch(model, none).shape == (0, width)
    policy = numpy_policy(model)
    assert policy is None or policy(none).shape == (0, width)


def test_it_follows_updates_made_in_place():
    model = build(VECTOR)
    network = NetworkWrapper(model, device=torch.device("cpu"))
    policy, observation = numpy_policy(model), observations(VECTOR)
    before = policy(observation)
    network.online.mul_(1.5).add_(0.01)
    after = policy(observation)
    assert np.abs(after - before).min() > 1e-3
    np.testing.assert_allclose(after, in_torch(model, observation), rtol=2e-5, atol=2e-6)
    other = NetworkWrapper(build(VECTOR), device=torch.device("cpu"))
    network.load_state_dict(other.state_dict())
    np.testing.assert_allclose(policy(observation), before, rtol=1e-6)


def test_results_of_two_calls_share_no_memory():
    for action in ACTIONS:
        policy, observation = numpy_policy(build(VECTOR, action)), observations(VECTOR)
        first = policy(observation)
        kept = first.copy()
        policy({"x": observation["x"] + 1})
        np.testing.assert_array_equal(first, kept)


@pytest.mark.parametrize(
    ("observed", "torso"),
    [
        ({"x": spaces.Discrete(3)}, {}),
        ({"x": spaces.MultiDiscrete([3, 2])}, {}),
        ({"x": spaces.Box(0, 255, (8, 8, 1), np.uint8)}, {"convolutions": "shallow"}),
        ({**VECTOR, "y": spaces.Discrete(3)}, {}),
        (VECTOR, {"activation": "elu"}),
        (VECTOR, {"activation": "selu", "middleware": (), "embedder": (3,)}),
    ],
)
def test_what_it_cannot_do_is_left_to_torch(observed, torso):
    assert numpy_policy(build(observed, **torso)) is None


def test_a_model_elsewhere_than_on_the_cpu_is_left_to_torch():
    assert numpy_policy(build(VECTOR).to("meta")) is None


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rows", [1, 2 * BLOCK + 3])
def test_a_result_that_is_not_finite_gives_no_warning_of_numpy(rows):
    """The flag that it follows is set now and then by finite numbers, in OpenBLAS's padding."""
    weight = np.float32([[np.inf], [-np.inf]])
    forward = in_blocks(lambda observation: observation["x"].dot(weight))
    assert np.isnan(forward({"x": np.ones((rows, 2), np.float32)})).all()
