import torch
from torch import nn

from coach_rl.architectures.network_wrapper import NetworkWrapper

CPU = torch.device("cpu")


def small(first=1.0):
    """y = w x + b with two inputs: three parameters, counted up from `first`."""
    layer = nn.Linear(2, 1)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[first, first + 1]]))
        layer.bias.copy_(torch.tensor([first + 2]))
    return layer


X = torch.tensor([[10.0, 100.0]])


def test_all_parameters_lie_in_one_flat_tensor():
    network = NetworkWrapper(small(), device=CPU)
    assert network.size == 3
    assert network.online.tolist() == [1.0, 2.0, 3.0]
    assert not network.has_target


def test_the_modules_parameters_are_views_of_it():
    module = small()
    network = NetworkWrapper(module, device=CPU)
    assert module(X).item() == 213.0
    network.online.copy_(torch.tensor([2.0, 0.0, 1.0]))
    assert module(X).item() == 21.0
    assert module.weight.tolist() == [[2.0, 0.0]]
    module.bias.fill_(7.0)
    assert network.online.tolist() == [2.0, 0.0, 7.0]


def test_any_flat_tensor_can_stand_for_the_parameters():
    network = NetworkWrapper(small(), device=CPU)
    assert network.call(torch.tensor([0.0, 1.0, 5.0]), X).item() == 105.0
    assert network.module(X).item() == 213.0
    named = network.named(torch.arange(3.0))
    assert {name: value.tolist() for name, value in named.items()} == {
        "weight": [[0.0, 1.0]],
        "bias": [2.0],
    }


def test_tied_parameters_are_one_in_every_call():
    module = nn.Sequential(small(), nn.Linear(1, 1), nn.Linear(1, 1))
    module[2].weight = module[1].weight
    network = NetworkWrapper(module, device=CPU)
    assert network.size == 3 + 2 + 1
    flat = torch.tensor([0.0, 0.0, 1.0, 3.0, 0.0, 0.0])  # w, w, b; the tied weight; its two biases
    assert network.call(flat, X).item() == 9.0


def test_the_summary_says_the_number_of_parameters():
    text = NetworkWrapper(nn.Linear(100, 12), device=CPU).summary()
    assert "Linear(in_features=100" in text
    assert text.endswith("1,212 parameters")
