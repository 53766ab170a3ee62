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
