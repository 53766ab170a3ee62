"""The OutputFilter: what an agent does to its actions before the environment sees them."""

from collections.abc import Sequence

from coach_rl.core.errors import ActionError, SpaceError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.parts import TimedCall
from coach_rl.core.records import Action, Array
from coach_rl.core.spaces import Space
from coach_rl.core.state import State
from coach_rl.filters.stages import (
    ActionStage,
    ActionStageParameters,
    load_stage_states,
    stage_states,
)


@parameter_class
class OutputFilter:
    """The filters that actions pass, listed from the environment outwards.

    The first filter is the one that touches the environment: it is built for the environment's
    space, the second for what the first leaves to the agent, and so on. An action therefore passes
    them from the last to the first.
    """

    action: tuple[ActionStageParameters, ...] = ()
    """Filters from the environment's side to the agent's."""

    def build(self, space: Space) -> "OutputFilterChain":
        """The chain for an environment that takes `space`.

        Raises:
            SpaceError: A filter doesn't suit the space of its environment side.
        """
        stages: list[ActionStage] = []
        reached = space
        for position, parameters in enumerate(self.action):
            try:
                stages.append(parameters.build(reached))
            except SpaceError as error:
                raise SpaceError(f"OutputFilter, filter {position}: {error}") from error
            reached = stages[-1].agent_space
        chain = OutputFilterChain(space=space, stages=stages)
        chain.names = [f"action/{i} {type(each).__name__}" for i, each in enumerate(self.action)]
        return chain


class OutputFilterChain:
    """A built OutputFilter; without filters, actions go through as the arrays they are.

    Args:
        space: What the environment takes.
        stages: From the environment's side to the agent's.
    """

    def __init__(self, *, space: Space, stages: Sequence[ActionStage]) -> None:
        self.agent_space: Space = stages[-1].agent_space if stages else space
        """The agent's action space."""
        self._inwards = tuple(stages)
        self.names = [f"action/{i}" for i in range(len(stages))]
        """Names of filters for people, in the order of `stages`."""
        self._outwards = self._inwards[::-1]

    def apply(self, action: Action) -> Action:
        for stage in self._outwards:
            action = stage.apply(_plain(action))
        return action

    def inverse(self, action: Action) -> Action:
        """Map actions from the environment's space to the agent's, [R, ...].

        Raises:
            SpaceError: A filter has no way back.
            ActionError: A filter never gives this action.
        """
        for stage in self._inwards:
            action = stage.inverse(_plain(action))
        return action

    def parts(self) -> dict[str, object]:
        return dict(zip(self.names, self._inwards, strict=True))

    def timed_calls(self) -> list[TimedCall]:
        """The calls whose times a profile shows; none where nothing is filtered."""
        return [TimedCall(self, "apply", "filter")] if self._inwards else []

    def state_dict(self) -> State:
        return {"action": stage_states(self._inwards)}

    def load_state_dict(self, state: State) -> None:
        load_stage_states(self._inwards, state.get("action", {}), owner="OutputFilter.action")


def _plain(action: Action) -> Array:
    if isinstance(action, dict):
        raise ActionError(
            f"an OutputFilter with filters takes one array of actions, got parts {sorted(action)}"
        )
    return action
