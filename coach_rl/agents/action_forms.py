"""The forms of actions in which PPO's policies act: scaled to [-1, 1], and flat."""

from collections.abc import Callable
from typing import Any

from gymnasium.spaces import Box, Dict, MultiBinary, MultiDiscrete

from coach_rl.agents.own_filters import ScaledOutput, needs_scaling, warn_of_endless
from coach_rl.agents.stages.stage import INSIDE, Stage, StageBuild, StageKind
from coach_rl.core.box_ranges import acts_in_units
from coach_rl.core.errors import SpaceError
from coach_rl.core.interfaces import OutputFilter
from coach_rl.core.spaces import Space
from coach_rl.core.state import State
from coach_rl.core.variants import variant_for

ACTION_UNITS = "action_units"
SCALED = "[-1, 1], scaled to the bounds of a Box"
"""Key and value that name the units of actions in a saved policy; absent where not scaled."""
Form = Callable[[OutputFilter, Any, str], OutputFilter]
"""An OutputFilter by that of the user, or of another form, the agent's parameters and its owner."""


def _scaled(output: OutputFilter, params: Any, owner: str) -> OutputFilter:
    """Behind it, policies act in [-1, 1] instead of a Box."""
    space = output.agent_space
    if not params.scale_actions or not acts_in_units(space):
        return output
    warn_of_endless(space, owner)
    return ScaledOutput(output, space) if needs_scaling(space) else output


def _flattened(output: OutputFilter, params: Any, _owner: str) -> OutputFilter:
    """Behind it, policies act in one flat space, if there is none for the actions as they are."""
    space = output.agent_space
    if not params.arguments and _is_flat(space):
        return output
    form = variant_for(
        "PPOAgentParameters", space, {}, claim=f"agent '{params.name}' cannot act in"
    )
    flat: OutputFilter = form(output, params)
    return flat


FORMS: tuple[Form, ...] = (_scaled, _flattened)
"""The filters between the user's OutputFilter and the policy, from the user's on."""


def _is_flat(space: Space) -> bool:
    """Return whether there is a policy for a space as it is, or for no form of it."""
    match space:
        case MultiBinary() | Dict():
            return False
        case Box() | MultiDiscrete():
            return len(space.shape) == 1
    return True


class ActionUnits(Stage):
    """Names the units of scaled actions with the policy, which means others without scaling."""

    conditions = {ACTION_UNITS: SCALED}  # noqa: RUF012 (never written to)


def _action_units(build: StageBuild) -> ActionUnits | None:
    """The stage of an agent whose actions are scaled."""
    space = build.output_filter.agent_space
    is_scaled = build.params.scale_actions and acts_in_units(space) and needs_scaling(space)
    return ActionUnits() if is_scaled else None


def _check_units(saved: State, own: State, build: StageBuild) -> None:
    was_scaled = saved.get(ACTION_UNITS) == SCALED
    is_scaled = ACTION_UNITS in own
    if acts_in_units(build.output_filter.agent_space) and was_scaled != is_scaled:
        raise SpaceError(
            f"the saved policy was learned with scale_actions={was_scaled}, and agent "
            f"'{build.name}' has scale_actions={is_scaled}: its actions would have other units; "
            "give it the same"
        )


ACTION_UNITS_KIND = StageKind(order=INSIDE, build=_action_units, check_policy=_check_units)
