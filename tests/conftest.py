"""What holds for every test."""

import pytest
import torch


@pytest.fixture(scope="session", autouse=True)
def one_tensor_thread():
    """Small networks are fastest with one thread, and tests run side by side."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session", autouse=True)
def own_state_folder(tmp_path_factory):
    """Tests don't write into the user's home which code their runs have used."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield
