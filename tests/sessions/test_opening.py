"""A state from which agents draw other numbers."""

import numpy as np
import torch

from coach_rl.core.row_noise import BLOCK, RowNoise
from coach_rl.core.seeding import generator, generator_state
from coach_rl.extensions.testing import assert_same_state
from coach_rl.sessions.opening import with_new_streams


def test_with_new_streams_changes_those_of_agents_only() -> None:
    stream = generator_state(generator(1, "x"))
    noise = torch.Generator().manual_seed(1).get_state()
    state = {
        "agents": {"main": {"shuffle": stream, "noise": noise, "image": noise, "kept": 3}},
        "training": {"top": {"environment": {"streams": [stream]}, "rows": [stream, stream]}},
    }
    first, same, second = (with_new_streams(state, seed=1, names=(n,)) for n in (1, 1, 2))
    assert_same_state(first, same)
    main, rows = first["agents"]["main"], first["training"]["top"]["rows"]
    assert (main["kept"], main["image"] is noise) == (3, True)
    assert first["training"]["top"]["environment"]["streams"] == [stream]
    drawn = [each["state"]["state"] for each in (stream, main["shuffle"], *rows)]
    drawn.append(second["agents"]["main"]["shuffle"]["state"]["state"])
    assert len(set(drawn)) == 5
    assert not torch.equal(main["noise"], noise)


def test_with_new_streams_drops_numbers_drawn_ahead() -> None:
    noise = RowNoise(num_rows=2, size=1, kind="normal", seed=1, name="exploration")
    rows = np.arange(2)
    noise.draw(rows)
    state = with_new_streams({"rows": noise.state_dict()}, seed=1, names=("fork",))
    expected = noise.draw(rows)
    noise.load_state_dict(state["rows"])
    assert np.all(state["rows"]["used"] == BLOCK)
    assert not np.isclose(noise.draw(rows), expected).any()


def test_with_new_streams_simulators_keep_theirs() -> None:
    stream = generator_state(generator(1, "x"))
    lower = {"agent_rows": {"noise": stream}, "environment": {"streams": [stream]}}
    state = with_new_streams({"top": {"environment": lower}}, seed=1, names=("fork",))
    changed = state["top"]["environment"]
    assert changed["agent_rows"]["noise"] != stream
    assert changed["environment"] == {"streams": [stream]}
