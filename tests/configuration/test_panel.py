"""What a setting means is read from where it is written."""

from dataclasses import dataclass, make_dataclass

from coach_rl import GymnasiumParameters, TD3AgentParameters
from coach_rl.configuration.preset_file import documented


@dataclass(frozen=True)
class Base:
    steps: int = 1
    """Steps of the base,
    in two lines."""
    layers: int = 2
    """Layers."""


@dataclass(frozen=True)
class Heir(Base):
    layers: int = 3
    rate: float = 0.1
    """Own."""
    silent: int = 0

    @dataclass(frozen=True)
    class Inner:
        x: int = 0
        """Of the inner class."""


def function(steps: int, rate: float = 0.1, other: int = 3) -> None:
    """Do something.

    Args:
        steps: How many,
            at most.
        rate (float): How fast: very.

    Returns:
        nothing: that is no argument.
    """


def test_fields_are_documented_below_them_or_in_a_base_class() -> None:
    assert documented(Heir) == {
        "steps": "Steps of the base, in two lines.",
        "layers": "Layers.",
        "rate": "Own.",
    }
    assert documented(Heir.Inner) == {"x": "Of the inner class."}
    assert "Batch" not in documented(TD3AgentParameters)
    assert documented(TD3AgentParameters)["critic"]
    assert documented(GymnasiumParameters)["level"].startswith("A registered id")


def test_arguments_are_documented_in_the_docstring() -> None:
    assert documented(function) == {"steps": "How many, at most.", "rate": "How fast: very."}
    assert documented(lambda x: x) == {}


def test_classes_made_at_run_time_have_nothing_to_read() -> None:
    assert documented(make_dataclass("Made", [("x", int)])) == {}
