import pytest

from coach_rl.core.errors import (
    ActionError,
    CheckpointError,
    CoachError,
    ConfigurationError,
    EnvironmentFault,
    NonFiniteError,
    ParameterError,
    ProblemsError,
    RunError,
    SpaceError,
    UnknownNameError,
    problems_of,
    require,
    require_no_problems,
    suggestion,
)


@pytest.mark.parametrize("error", [ParameterError, SpaceError, UnknownNameError])
def test_what_the_user_asked_for_exits_with_2(error):
    assert issubclass(error, ConfigurationError)
    assert issubclass(error, CoachError)
    assert error.exit_code == 2


@pytest.mark.parametrize("error", [EnvironmentFault, NonFiniteError, ActionError, CheckpointError])
def test_what_goes_wrong_while_running_exits_with_1(error):
    assert issubclass(error, RunError)
    assert not issubclass(error, ConfigurationError)
    assert error.exit_code == 1


def test_an_unknown_name_says_the_nearest_names_and_what_to_do():
    error = UnknownNameError("preset", "Mujoco_PPo", ["Mujoco_PPO", "Atari_DQN"], "see coach -l")
    assert str(error) == ("unknown preset 'Mujoco_PPo'; did you mean 'Mujoco_PPO'? (see coach -l)")
    assert error.allowed == ["Atari_DQN", "Mujoco_PPO"]


def test_without_a_near_name_all_few_names_are_listed():
    assert str(UnknownNameError("activation", "xyz", ["tanh", "relu"])) == (
        "unknown activation 'xyz'; allowed: relu, tanh"
    )


def test_many_names_are_not_listed():
    names = [f"name{number}" for number in range(13)]
    assert suggestion("qqq", names) == ""
    assert suggestion("qqq", names[:12]).startswith("; allowed: name0, name1")
    assert suggestion("qqq", []) == ""


def test_require_raises_only_where_the_condition_fails():
    require(True, "fine")
    with pytest.raises(ParameterError, match=r"^x must be 1, got 2$"):
        require(False, "x must be 1, got 2")


def test_problems_single_is_raised_as_its_own_error():
    require_no_problems([])
    with pytest.raises(UnknownNameError, match="unknown flag 'x'"):
        require_no_problems([UnknownNameError("flag", "x", [])])
    with pytest.raises(ParameterError, match=r"^too few$"):
        require_no_problems(["too few"])


def test_problems_several_are_one_error_with_a_line_each():
    nested = problems_of(require_no_problems, ["b", "c"])
    with pytest.raises(ProblemsError, match=r"^3 problems: \(1\) a; \(2\) b; \(3\) c$") as caught:
        require_no_problems(["a", *nested])
    assert caught.value.problems == ("a", "b", "c")
