"""DAgger (Ross et al. 2011, arXiv:1011.0686): a student acts, a teacher names the right actions.

The memory keeps the observations that the student meets, with the teacher's actions in them, which
it clones (algorithm 3.1). Decisions are the teacher's with probability beta, which falls. The paper
trains a new policy on all data in each iteration; here one policy keeps learning from a replay
memory, as is usual for networks.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import ClassVar, Literal

import numpy as np
from torch import Tensor

from coach_rl.agents.agent_rows import AgentRows
from coach_rl.agents.off_policy_agent import MakeLearner, OffPolicyAgent
from coach_rl.agents.stages.stage import INSIDE, Stage, StageKind
from coach_rl.architectures.gradient_step import Numbers
from coach_rl.core.agents import AgentContext, RowState
from coach_rl.core.clock import Clock, ConstantSchedule, Phase, Schedule
from coach_rl.core.errors import require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import Action, ActionRequest, Array, FloatArray, Observation, Outcome
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.saved import SavedAttribute, SavedNames
from coach_rl.core.state import State
from coach_rl.extensions.imitation.behaviour_cloning import BCAgentParameters, CloningLearner
from coach_rl.extensions.imitation.policy_network import PolicyAgent
from coach_rl.extensions.imitation.teacher import AnyTeacher, TeacherParameters
from coach_rl.memories.transition_batch import TransitionBatch

TEACHER_ACTION = "teacher_action"
"""The extra of the teacher's actions, in the agent's space."""
TEACHER_PARAMETERS = "teacher_parameters"
"""The extra of the parameters [P] of the teacher's distribution."""


@parameter_class
class DAggerAgentParameters(BCAgentParameters):
    """An agent that clones a teacher's actions in the observations that it meets itself."""

    teacher: TeacherParameters
    """The teacher (required)."""
    target: Literal["action", "distribution"] = "action"
    """action: the teacher's greedy action, cloned by `loss`. distribution: all that it may do, by
    the divergence KL(teacher || student) in place of `loss` (Hinton et al. 2015, Rusu et al. 2016);
    for teachers of PPO's or a cloned policy's kind, in the student's action space."""
    beta: Schedule = field(default_factory=lambda: ConstantSchedule(value=0.0))
    """Probability that a decision in training is the teacher's; the paper's usual choice is 1 at
    first, then 0."""

    def __post_init__(self) -> None:
        require(
            self.target == "action" or self.loss == "likelihood",
            f"DAggerAgentParameters.target is '{self.target}', which has a loss of its own, and "
            f"loss is '{self.loss}'; leave loss out",
        )

    def build(self, context: AgentContext) -> OffPolicyAgent:
        """The agent; SpaceError when there is no policy for the action space."""
        learner = TaughtLearner if self.target == "action" else DistilledLearner
        return DAggerAgent(self, context, discount=1.0, make_learner=partial(learner, self))


@dataclass(kw_only=True)
class TaughtRows(AgentRows[RowState]):
    """Rows of a student, with those of its teacher from the first decision in training on."""

    SAVED: ClassVar[SavedNames] = (SavedAttribute("taught", optional=True), "mixing")

    mixing: RowNoise
    """Uniform numbers by which decisions are the teacher's."""
    new_taught: Callable[[], RowState]
    """Makes the teacher's rows."""
    taught: RowState | None = None
    """The teacher's rows; None until it is needed, so that evaluations need no teacher."""
    label: Array = field(default_factory=lambda: np.zeros(0))
    """The teacher's actions [R, ...] in the decisions that are being made, in the agent's space."""
    parameters: FloatArray | None = None
    """Parameters [R, P] of the teacher's distribution there; None where its actions are cloned."""

    def load_state_dict(self, state: State) -> None:
        if "taught" in state:
            self.taught = self.new_taught()
        super().load_state_dict(state)


class TeachersActions(Stage):
    """The stage that stores the teacher's actions, of random decisions in HEATUP as well.

    Args:
        params: The agent's parameters.
    """

    def __init__(self, params: DAggerAgentParameters) -> None:
        self.extras = (TEACHER_ACTION,)
        if params.target == "distribution":
            self.extras += (TEACHER_PARAMETERS,)
        self.needed = self.extras


class DAggerAgent(PolicyAgent):
    """An agent whose decisions a teacher labels, and makes in part.

    Args:
        params: The agent's parameters.
        context: Settings known only at construction, such as spaces.
        discount: Gamma, for the memory.
        make_learner: See `OffPolicyAgent`.
    """

    STAGES = (StageKind(order=INSIDE, build=lambda at: TeachersActions(at.params)),)

    params: DAggerAgentParameters

    def __init__(
        self,
        params: DAggerAgentParameters,
        context: AgentContext,
        *,
        discount: float,
        make_learner: MakeLearner,
    ) -> None:
        super().__init__(params, context, discount=discount, make_learner=make_learner)
        self._spaces = context.spaces

    @cached_property
    def teacher(self) -> AnyTeacher:
        """The teacher, which is loaded where it is needed."""
        teacher = self.params.teacher.build(self._spaces)
        if self.params.target == "distribution":
            teacher.require_same_actions(self)
        return teacher

    def new_rows(self, num_envs: int, seed: int) -> TaughtRows:
        return TaughtRows(
            **vars(super().new_rows(num_envs, seed)),
            mixing=RowNoise(num_rows=num_envs, size=1, kind="uniform", seed=seed, name="teacher"),
            new_taught=lambda: self.teacher.new_rows(num_envs),
        )

    def act(self, row_state: AgentRows[RowState], request: ActionRequest, clock: Clock) -> Action:
        assert isinstance(row_state, TaughtRows)
        if clock.trains:
            if row_state.taught is None:
                row_state.taught = row_state.new_taught()
            action = self.teacher.actions(row_state.taught, request)
            row_state.label = np.asarray(self.output_filter.inverse(action))
            if self.params.target == "distribution":
                row_state.parameters = self.teacher.parameters(row_state.taught, request.rows)
        return super().act(row_state, request, clock)

    def observe(self, row_state: AgentRows[RowState], outcome: Outcome, clock: Clock) -> None:
        assert isinstance(row_state, TaughtRows)
        if row_state.taught is not None:
            self.teacher.observe(row_state.taught, outcome)
        super().observe(row_state, outcome, clock)

    def _chosen(
        self,
        row_state: AgentRows[RowState],
        request: ActionRequest,
        observation: Observation,
        clock: Clock,
    ) -> dict[str, Array]:
        assert isinstance(row_state, TaughtRows)
        choice = super()._chosen(row_state, request, observation, clock)
        if not clock.trains:
            return choice
        label = row_state.label
        choice[TEACHER_ACTION] = label
        if row_state.parameters is not None:
            choice[TEACHER_PARAMETERS] = row_state.parameters
        if clock.phase is Phase.TRAIN:
            action = choice["action"]
            drawn = row_state.mixing.draw(request.rows)[:, 0]
            is_taught = (drawn < self.params.beta(clock)) & ~request.greedy
            shape = (-1,) + (1,) * (action.ndim - 1)
            choice["action"] = np.where(is_taught.reshape(shape), label, action)
        return choice


class TaughtLearner(CloningLearner):
    """A policy that makes the teacher's actions likely."""

    def shown(self, batch: TransitionBatch) -> Tensor:
        return batch.extras[TEACHER_ACTION]


class DistilledLearner(CloningLearner):
    """A policy whose distribution comes near to the teacher's."""

    def loss(
        self, flat: Tensor, batch: TransitionBatch, scalars: Numbers
    ) -> tuple[Tensor, Numbers]:
        """The mean divergence KL(teacher || student)."""
        parameters = self.network.call(flat, batch.observation)
        divergence = self.distribution.kl(batch.extras[TEACHER_PARAMETERS], parameters)
        loss = (batch.weight * divergence).mean()  # the weights of sequences are 0 in padding
        entropy = batch.mean(self.distribution.entropy(parameters))
        return loss, {"cloning_loss": loss, "entropy": entropy}
