import pytest

from coach_rl.architectures.gradient_step import AdamParameters, TargetSync
from coach_rl.core.errors import ParameterError


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        (AdamParameters, {"learning_rate": 0.0}, r"learning_rate must be float > 0, got 0\.0"),
        (
            AdamParameters,
            {"betas": (0.9, 1.0)},
            "betas must be tuple.float in .0, 1",
        ),
        (
            AdamParameters,
            {"betas": (-0.1, 0.9)},
            "betas must be tuple.float in .0, 1",
        ),
        (AdamParameters, {"max_gradient_norm": 0.0}, "max_gradient_norm must be float > 0"),
        (AdamParameters, {"l2": -0.1}, r"l2 must be float >= 0, got -0\.1"),
        (TargetSync, {"rate": 0.0}, r"rate must be float in \(0, 1\], got 0\.0"),
        (TargetSync, {"rate": 1.5}, "rate"),
        (TargetSync, {"every": 0}, "every must be int > 0"),
    ],
)
def test_impossible_settings_are_refused(kind, changes, message):
    with pytest.raises(ParameterError, match=message):
        kind(**changes)
