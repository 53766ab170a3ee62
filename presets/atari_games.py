"""Atari games for presets: settings, networks for pictures, and the experiment.

Meant to be imported by presets, the shipped ones and yours.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import coach_rl as rl
from coach_rl.architectures.torso import AnyTorsoParameters
from coach_rl.presets.panels import LayerKind, RunPanel, recurrent_layer, solved

MARKS = {"pong": (16.7, 10_000_000)}
"""Evaluation reward to reach, and environment steps by which, by game: that of PPO with sticky
actions in SLM-Lab 5, whose frames are steps of the environment, four of the console each."""
PICTURE = "observation"
"""Observation key of the pictures."""


@dataclass(frozen=True, kw_only=True)
class AtariPanel(RunPanel):
    """Settings of all presets on Atari games."""

    LEVELS: ClassVar = tuple(rl.GAMES)  # the others of ale-py serve as well
    level: str = "pong"
    """The game."""
    protocol: Literal["A", "B"] = "A"
    """A: sticky actions, whole games. B: as NoFrameskip-v4, where a lost life is terminal for
    learning. Scores are comparable under the same protocol only."""
    steps: int = 10_000_000
    """Environment steps to train for, of four frames each."""
    learning_rate: float
    """Learning rate at the start."""
    discount: float = 0.99
    """Discount factor."""
    torso: Literal["nature", "impala"] = "nature"
    """Three convolutions (Mnih et al. 2015), or fifteen with residual blocks (Espeholt et al.
    2018)."""
    shows: Literal["picture", "memory"] = "picture"
    """Observations: pictures, or the 128 bytes of the console's memory."""
    recurrence: LayerKind = "none"
    """The recurrent layer behind the convolutions."""
    frames: int | None = None
    """Pictures that the networks see at once; None: 4, and 1 with a recurrent layer."""
    all_actions: bool = False
    """True: all 18 actions of the joystick; False: those that have an effect in the game."""
    evaluation_interval: int = 250_000
    """Environment steps between evaluations, of 30 whole games each."""

    @property
    def is_recurrent(self) -> bool:
        """True if the networks have a recurrent layer."""
        return self.recurrence != "none"

    @property
    def stacked(self) -> tuple[str, ...]:
        """The observation keys with stacks of pictures."""
        return (PICTURE,) if self.shows == "picture" else ()

    @property
    def input_filter(self) -> rl.InputFilter:
        """Stacks of pictures, and rewards clipped to -1, 0 and 1 for learning."""
        size = self.frames or (1 if self.is_recurrent else 4)
        stack = rl.ObservationStackingFilter(stack_size=size)
        return rl.InputFilter(
            observation={key: (stack,) for key in self.stacked},
            reward=(rl.RewardClippingFilter(low=-1.0, high=1.0),),
        )

    def network(self, *, orthogonal: bool) -> AnyTorsoParameters:
        """The torso, with a layer of 512 units behind the convolutions; two such of the memory.

        Raises:
            ParameterError: IMPALA's has no recurrent layer, and sees pictures.
        """
        if self.shows == "memory":
            if self.torso == "impala" or self.frames is not None:
                raise rl.ParameterError(
                    "torso='impala' and frames are for pictures; leave them out with shows='memory'"
                )
            return rl.TorsoParameters(
                embedder=(512,),
                recurrence=recurrent_layer(self.recurrence, size=128),
                middleware=() if self.is_recurrent else (512,),
                activation="relu",
                orthogonal=orthogonal,
            )
        if self.torso == "impala":
            if self.is_recurrent:
                raise rl.ParameterError(
                    "torso='impala' has no recurrent layer; use torso='nature', or leave out "
                    "recurrence"
                )
            return rl.ModuleParameters(module="coach_rl.extensions.atari.impala:ImpalaTorso")
        layer = recurrent_layer(self.recurrence, size=128)
        return rl.TorsoParameters(
            embedder=(512,) if self.is_recurrent else (),
            recurrence=layer,
            middleware=() if self.is_recurrent else (512,),
            activation="relu",
            orthogonal=orthogonal,
            images="channels_last",
        )

    def experiment(
        self, agent: rl.AgentParameters, *, random_actions: float = 0.0
    ) -> rl.GraphManager:
        """One agent in one game.

        Args:
            agent: The agent.
            random_actions: Probability of a random action in evaluations.
        """
        game = rl.AtariParameters(
            level=self.level,
            protocol=self.protocol,
            shows=self.shows,
            all_actions=self.all_actions,
        )
        evaluated = replace(game, random_actions=random_actions)
        lives = (rl.TerminalInfo(info="life_lost"),) if self.protocol == "B" else ()
        return rl.BasicRLGraphManager(
            rl.BasicGraphParameters(
                agent=agent,
                environment=game,
                evaluation_environment=evaluated if random_actions else None,
                schedule=self.schedule(
                    self.evaluation_interval, evaluation_episodes=30, progress_interval=5_000
                ),
                num_envs=self.num_envs,
                validation=solved(*MARKS[self.level]) if self.level in MARKS else None,
                parts=lives,
            )
        )
