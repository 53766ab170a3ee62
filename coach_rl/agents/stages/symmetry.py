"""The stage of an agent with a symmetry: what holds in one situation holds in all like it."""

from collections.abc import Mapping

from gymnasium import spaces

from coach_rl.agents.agent_rows import AnyAgentRows
from coach_rl.agents.stages.stage import Stage, StageBuild, StageKind
from coach_rl.core.agents import Symmetry
from coach_rl.core.errors import SpaceError
from coach_rl.core.records import Action, Array, BoolArray, IntArray, Observation
from coach_rl.core.state import State

_KEY = "symmetry"
"""The key under which a saved policy names its symmetry."""


class SymmetricView(Stage):
    """Shows canonical observations, and restores the actions that were chosen for them.

    Args:
        symmetry: Of observations and actions as the level has them.
    """

    is_stateless = False
    single = "its symmetry transforms each observation by itself"

    def __init__(self, symmetry: Symmetry) -> None:
        self.symmetry = symmetry
        self.conditions: Mapping[str, str] = {_KEY: symmetry.description}

    def shown(self, space: spaces.Dict) -> spaces.Dict:
        return self.symmetry.observation_space

    def enter(
        self,
        memory: dict[str, Array],
        rows: IntArray,
        observation: Observation,
        *,
        starts: BoolArray,
        learn: bool,
    ) -> Observation:
        return self.symmetry.canonical(observation)

    def leave(
        self, row_state: AnyAgentRows, rows: IntArray, action: Action, observation: Observation
    ) -> Action:
        return self.symmetry.restored(action, observation)


def _check_policy(saved: State, own: State, _build: StageBuild) -> None:
    if saved.get(_KEY) != own.get(_KEY):
        raise SpaceError(
            f"the saved policy was learned with symmetry={saved.get(_KEY)}, and this agent has "
            f"symmetry={own.get(_KEY)}; give it the same"
        )


KIND = StageKind(
    order=10,
    option="symmetry",
    build=lambda at: SymmetricView(at.params.symmetry.build(at.context)),
    check_policy=_check_policy,
)
