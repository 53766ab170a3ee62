"""The stages of an agent, in their order."""

from coach_rl.agents.stages.stage import AnyStage, RewardStream, Stage
from coach_rl.architectures.output_rules import Forward, OutputRule
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.records import Array, BoolArray, IntArray, Observation
from coach_rl.core.spaces import Space


class Stages:
    """The stages of an agent, outermost first.

    Args:
        agent: The agent's name, for messages.
    """

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self.all: tuple[Stage, ...] = ()
        self.kept: dict[str, Space] = {}
        """Spaces of what is kept beside the observation space; see `Stage.kept`."""
        self.extras: tuple[str, ...] = ()
        """Names of extras that are added to transitions."""
        self.needed: tuple[str, ...] = ()
        """Names of extras of the policy's choices that random ones need."""
        self.output_rules: tuple[OutputRule, ...] = ()
        """Rules for the outputs of the agent's networks."""
        self.own_keys: frozenset[str] = frozenset()
        """Keys of the level's observation that are about the agent's choices alone."""
        self.streams: tuple[RewardStream, ...] = ()
        """Streams of reward for PPO."""
        self.conditions: dict[str, str] = {}
        """Conditions of a policy, by the key under which they are saved."""
        self.is_stateless = True
        """True if observations can enter out of turn, with `{}` for their memory."""
        self.adds_to_reward = False
        """True if the agent learns from other rewards than those of its level and its filters."""
        self.sees_whole = ""
        """The reason why a stage is shown whole observations, also where a goal alone is received;
        empty: none is."""
        self.preparing: list[Stage] = []
        """The stages that override `prepare`; the next ones are those of the other methods."""
        self.beginning: list[Stage] = []
        self.checking: list[Stage] = []
        self.choosing: list[Stage] = []
        self.leaving: list[Stage] = []
        """Innermost first."""
        self.rewarding: list[Stage] = []
        self.storing: list[Stage] = []
        self.advancing: list[Stage] = []
        self.cutting: list[Stage] = []
        self.refreshing: list[Stage] = []
        self._entering: list[Stage] = []
        self._remembering: list[Stage] = []
        self._acting: list[Stage] = []

    def add(self, stage: Stage) -> None:
        """Add a stage further inside than the others.

        Raises:
            ConfigurationError: It remembers observations, and another one transforms them alone.
        """
        if self.sees_whole and stage.remembers:
            reasons = f"{self.sees_whole}, and {stage.remembers}"
            raise ConfigurationError(f"agent '{self._agent}': {reasons}")
        self.all += (stage,)
        self.kept |= stage.kept
        self.extras += stage.extras
        self.needed += stage.needed
        self.output_rules += stage.output_rules
        self.own_keys |= stage.own_keys
        self.streams += stage.streams
        self.conditions |= stage.conditions
        self.is_stateless &= stage.is_stateless
        self.adds_to_reward |= stage.adds_to_reward
        self.sees_whole = self.sees_whole or stage.single
        inwards = {
            "new_rows": self._remembering,
            "enter": self._entering,
            "acting": self._acting,
            "prepare": self.preparing,
            "begin": self.beginning,
            "check": self.checking,
            "choose": self.choosing,
            "reward": self.rewarding,
            "store": self.storing,
            "advance": self.advancing,
            "cut_off": self.cutting,
            "refreshed": self.refreshing,
        }
        kind = type(stage)
        for method, stages in inwards.items():
            if getattr(kind, method) is not getattr(Stage, method):
                stages.append(stage)
        if kind.leave is not Stage.leave:
            self.leaving.insert(0, stage)

    def of(self, kind: type[AnyStage]) -> AnyStage | None:
        """The stage of a class; None where the agent has none."""
        return next((each for each in self.all if isinstance(each, kind)), None)

    def enter(
        self,
        memory: dict[str, Array],
        rows: IntArray,
        observation: Observation,
        *,
        starts: BoolArray,
        learn: bool,
    ) -> Observation:
        """The observations for the policy, of those that the level shows; see `Stage.enter`."""
        for stage in self._entering:
            observation = stage.enter(memory, rows, observation, starts=starts, learn=learn)
        return observation

    def new_rows(self, num_rows: int) -> dict[str, Array]:
        """Fresh memory of rows, of all stages, [N, ...] each."""
        memory: dict[str, Array] = {}
        for stage in self._remembering:
            memory |= stage.new_rows(num_rows)
        return memory

    def saved(self, *, acting: bool) -> dict[str, object]:
        """Objects with a state, by key: those that acting needs, or the others."""
        stages = [stage for stage in self.all if stage.acts_by_saved == acting]
        return {key: value for stage in stages for key, value in stage.saved.items()}

    def acting(self, forward: Forward) -> Forward:
        """The function by which the policy acts, by that of its network."""
        for rule in self.output_rules:
            forward = rule.acting(forward)
        for stage in self._acting:
            forward = stage.acting(forward)
        return forward
