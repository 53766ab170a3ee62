from dataclasses import replace

import pytest

from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.core.runtime import Runtime


def preset(name, **panel):
    return load_preset(find_preset(name)).build(panel).parameters


def test_hindsight_is_the_only_difference_of_the_bit_flipping_presets():
    control, cure = preset("BitFlip_DQN", bits=9), preset("BitFlip_DQN_HER", bits=9)
    assert control.agent.memory.relabelling is None
    memory = replace(cure.agent.memory, relabelling=None)
    assert replace(cure, agent=replace(cure.agent, memory=memory)) == control


def best_success(name, *, seed=0):
    """The best share of 100 evaluation episodes that reached the goal."""
    manager = load_preset(find_preset(name)).build({})
    manager.create_graph(Runtime(seed=seed, device="cpu"))
    records = list(manager.improve())
    manager.close()
    return max(
        record.scalars["evaluation/success_rate"]
        for record in records
        if record.kind == "evaluation"
    )


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_hindsight_solves_sixteen_bits_and_nothing_else_does():
    assert best_success("BitFlip_DQN_HER") >= 0.95
    assert best_success("BitFlip_DQN") <= 0.05
