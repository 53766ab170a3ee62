import pytest

from coach_rl.core import InspectParameters, parse_inspections
from coach_rl.core.errors import ConfigurationError, ParameterError, UnknownNameError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("batch:nan", [{}]),
        ("batch:nan,stats@50", [{}, {"checks": ("stats",), "every": 50}]),
        ("batch:stats", [{"checks": ("stats",), "every": 100}]),
        ("batch:nan,shape", [{"checks": ("nan", "shape")}]),
        ("low.batch:nan:warn", [{"level": "low", "reaction": "warn"}]),
        (
            " batch/reward : range = -1.5 .. 1e3 @ 5 : dump ; network:nan;",
            [
                {
                    "point": "batch/reward",
                    "checks": ("range",),
                    "within": (-1.5, 1000.0),
                    "every": 5,
                    "reaction": "dump",
                },
                {"point": "network"},
            ],
        ),
        (
            "batch:staleness=500,stats",
            [{"checks": ("staleness", "stats"), "oldest": 500, "every": 100}],
        ),
        ("memory/extras.x:nan", [{"point": "memory/extras.x"}]),
        ("batch:nan,nan", [{}]),
        ("off", []),
    ],
)
def test_inspections_are_read_as_users_type_them(text, expected):
    usual = {"point": "batch", "checks": ("nan",)}
    assert parse_inspections(text) == tuple(InspectParameters(**usual | each) for each in expected)


@pytest.mark.parametrize(
    "text",
    ["", ";", "batch", "batch:", ":nan", "batch:nan@", "a:nan@x", "a:b:c:d", "batch:nan=3",
     "batch:range=3", "batch:staleness=1..2"],
)  # fmt: skip
def test_text_of_another_form_is_refused_with_an_example(text):
    with pytest.raises(ConfigurationError, match="is not an inspection; write POINT:CHECK"):
        parse_inspections(text)


def test_a_wrong_check_or_reaction_is_told_the_nearest():
    with pytest.raises(UnknownNameError, match=r"unknown check 'stat' in 'batch:stat'.*'stats'"):
        parse_inspections("batch:stat")
    with pytest.raises(UnknownNameError, match=r"reaction 'stp' in 'batch:nan:stp'.*'stop'"):
        parse_inspections("batch:nan:stp")
    with pytest.raises(ParameterError, match=r"got \('nans',\); did you mean 'nan'\?"):
        InspectParameters(checks=("nans",))


def test_bounds_without_their_check_and_intervals_of_nothing_are_refused():
    with pytest.raises(ParameterError, match="within is for the check 'range', which is not among"):
        InspectParameters(checks=("nan",), within=(0.0, 1.0))
    with pytest.raises(ParameterError, match="every must be int > 0, got 0"):
        parse_inspections("batch:nan@0")
    with pytest.raises(ParameterError, match="within"):
        parse_inspections("batch:range=2..1")
