"""A preset-driven experiment engine for reinforcement learning.

What presets and programs are made of is imported from here:

    from coach_rl import AdamParameters, GymnasiumParameters, PPOAgentParameters

Names are imported when they are first used, so `coach -l` answers without waiting for torch. Each
room lists its other names; docs/architecture.md describes the rooms.
"""

import sys
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from coach_rl.configuration.meant_names import MeantNames
from coach_rl.core.errors import field_hints
from coach_rl.core.lazy_names import lazy_names
from coach_rl.core.variants import variant_tables

if TYPE_CHECKING:
    from coach_rl.agents import (
        DDPGAgentParameters,
        DDPGAlgorithmParameters,
        DQNAgentParameters,
        DQNAlgorithmParameters,
        LearningParameters,
        OffPolicyAgentParameters,
        PPOAgentParameters,
        PPOAlgorithmParameters,
        SACAgentParameters,
        SACAlgorithmParameters,
        TD3AgentParameters,
        TD3AlgorithmParameters,
    )
    from coach_rl.architectures import (
        ActorCriticParameters,
        ActorParameters,
        AdamParameters,
        CriticParameters,
        MeanHead,
        OptimizerParameters,
        QNetworkParameters,
        TargetSync,
        TorsoParameters,
    )
    from coach_rl.configuration import find_preset, load_preset
    from coach_rl.core import (
        GOAL_KEY,
        OPTION_KEY,
        Action,
        ActionUnit,
        AgentParameters,
        CoachError,
        CoachWarning,
        ConfigurationError,
        ConstantSchedule,
        DivergenceParameters,
        EnvironmentEpisodes,
        EnvironmentParameters,
        EnvironmentSteps,
        ExponentialSchedule,
        GoalSpace,
        GoalStep,
        Hours,
        InputFilterParameters,
        LinearSchedule,
        Observation,
        OptionSpace,
        OutputFilterParameters,
        ParameterError,
        PiecewiseSchedule,
        Runtime,
        Space,
        SymmetryParameters,
        TrainingSteps,
        UnknownNameError,
    )
    from coach_rl.environments.faults import FaultParameters
    from coach_rl.environments.gymnasium import GymnasiumParameters
    from coach_rl.environments.mujoco import (
        SHORT_NAMES,
        TASKS,
        MujocoParameters,
        MujocoTask,
        MujocoTaskParameters,
    )
    from coach_rl.environments.toy import (
        BitFlipParameters,
        CablesParameters,
        ChainParameters,
        GatesParameters,
        GoalPointMassParameters,
        OneStepParameters,
        PlatformParameters,
        PointMassParameters,
        SteadyPayParameters,
        TMazeParameters,
    )
    from coach_rl.exploration_policies import (
        EpsilonGreedy,
        EpsilonGreedyNoise,
        GaussianNoise,
        Greedy,
    )
    from coach_rl.filters import (
        BoxMasking,
        InputFilter,
        LinearBoxToBoxMap,
        ObservationClippingFilter,
        ObservationNormalizationFilter,
        ObservationReductionBySubPartsNameFilter,
        ObservationStackingFilter,
        OutputFilter,
        RewardClippingFilter,
        RewardNormalizationFilter,
        RewardRescaleFilter,
        RewardReturnScalingFilter,
    )
    from coach_rl.graph_managers import (
        BasicGraphParameters,
        BasicRLGraphManager,
        CheckpointParameters,
        GraphManager,
        GraphParameters,
        HRLGraphManager,
        LevelChain,
        LevelParameters,
        ScheduleParameters,
        SignalParameters,
        SourceParameters,
        TickSource,
        ValidationParameters,
    )
    from coach_rl.memories import (
        ReplayMemoryParameters,
        SingleTransitions,
    )
    from coach_rl.sessions import (
        RunSettings,
        TrainedAgent,
        evaluate_run,
        fork_experiment,
        load,
        load_levels,
        resume_experiment,
        run_experiment,
        train,
    )
else:

    def _names_of_extensions() -> dict[str, tuple[str, str]]:
        """The names of extensions, whose tables are read when a name is first used."""
        from coach_rl.configuration.extensions import public_names

        return public_names()

    def _familiar_classes() -> Mapping[str, tuple[str, ...]]:
        """Names by those of other libraries, for messages about unknown ones."""
        from coach_rl.configuration.familiar_names import names_here

        return names_here("classes")

    def _familiar_fields(name: str, fields: Collection[str]) -> list[str]:
        """The fields that an unknown one of a parameter class may stand for."""
        from coach_rl.configuration.familiar_names import familiar_fields

        return familiar_fields(name, fields)

    def _variants(name: str) -> Mapping[str, str]:
        """The variants of a part by kind of space, whose tables are read when one is needed."""
        from coach_rl.configuration.extensions import variants_of

        return variants_of(name)

    __getattr__, __dir__ = lazy_names(__name__, _names_of_extensions, _familiar_classes)
    field_hints.append(_familiar_fields)
    variant_tables.append(_variants)
    sys.meta_path.append(MeantNames(__name__, _familiar_classes))


__version__ = "0.3.0"
