"""What the tests of spaces of choices share."""

import pytest
import torch

from coach_rl.architectures.layers import FlattenVector


@pytest.fixture
def in_doubles(monkeypatch):
    """Networks that leave observations in double precision."""
    monkeypatch.setattr(FlattenVector, "forward", lambda self, values: values.flatten(1))
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)
