import pytest

from coach_rl.extensions.looking.inspection_text import parse_inspections
from coach_rl.extensions.looking.inspections import InspectParameters


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
def test_parse_inspections_text_of_users_is_read(text, expected):
    usual = {"point": "batch", "checks": ("nan",)}
    assert parse_inspections(text) == tuple(InspectParameters(**usual | each) for each in expected)
