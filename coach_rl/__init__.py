"""A preset-driven experiment engine for reinforcement learning.

What presets and programs are made of is imported from here:

    from coach_rl import AdamParameters, GymnasiumParameters, PPOAgentParameters

Names are imported when they are first used, so `coach -l` answers without waiting for torch. Each
room lists its other names; docs/architecture.md describes the rooms.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import find_moved_modules, lazy_names

if TYPE_CHECKING:
    from coach_rl.agents import (
        AdjacencyParameters,
        AgentGroupParameters,
        CriticSteps,
        DDPGAgentParameters,
        DDPGAlgorithmParameters,
        DIAYNAgentParameters,
        DiscriminatorParameters,
        DQNAgentParameters,
        DQNAlgorithmParameters,
        EdgeLengths,
        EnvironmentTurns,
        FarthestPoints,
        GraphAgentParameters,
        GridPlaces,
        GroupMember,
        HACAgentParameters,
        HIROAgentParameters,
        LandmarkParameters,
        LearnedGoals,
        LearnedGoalSpace,
        LearningParameters,
        LESSONGoalSpace,
        METRAGoalSpace,
        NoveltyParameters,
        OffPolicyAgentParameters,
        OptionCriticAgentParameters,
        PPOAgentParameters,
        PPOAlgorithmParameters,
        SACAgentParameters,
        SACAlgorithmParameters,
        ScriptedAgentParameters,
        SelectedTurns,
        SkillAgentsParameters,
        SubGoalCorrectionParameters,
        SubGoalGuideParameters,
        TD3AgentParameters,
        TD3AlgorithmParameters,
        TerminationParameters,
        Turns,
        UniformAgentParameters,
    )
    from coach_rl.architectures import (
        GRU,
        LSTM,
        ActorCriticParameters,
        ActorParameters,
        AdamParameters,
        AdamWParameters,
        Attention,
        CategoricalHead,
        CriticParameters,
        MeanHead,
        MinGRU,
        ModuleParameters,
        QNetworkParameters,
        QuantileHead,
        RMSpropParameters,
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
        CertifyParameters,
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
        InspectParameters,
        LinearSchedule,
        Observation,
        OptionSpace,
        OutputFilterParameters,
        ParameterError,
        PiecewiseSchedule,
        Runtime,
        Space,
        SuccessRate,
        SymmetryParameters,
        TimedGoalSpace,
        TrainingSteps,
        UnknownNameError,
    )
    from coach_rl.environments.faults import FaultParameters
    from coach_rl.environments.goal_worlds import (
        ANT_OBSERVED,
        GOAL_WORLDS,
        AntMaze,
        AntSymmetry,
        GoalTask,
        GoalWorldParameters,
        OGBenchPointMaze,
        PointMaze,
        RoboticsPointMaze,
    )
    from coach_rl.environments.gymnasium import GymnasiumParameters
    from coach_rl.environments.mujoco import (
        SHORT_NAMES,
        TASKS,
        MujocoParameters,
        MujocoTask,
        MujocoTaskParameters,
    )
    from coach_rl.environments.pettingzoo import PettingZooParameters
    from coach_rl.environments.toy import (
        BitFlipParameters,
        CablesParameters,
        ChainParameters,
        ConnectFourParameters,
        GatesParameters,
        GoalPointMassParameters,
        OneStepParameters,
        PlatformParameters,
        PointMassParameters,
        SteadyPayParameters,
        TMazeParameters,
    )
    from coach_rl.exploration_policies import (
        Boltzmann,
        Categorical,
        EpsilonGreedy,
        EpsilonGreedyNoise,
        EpsilonZGreedy,
        GaussianNoise,
        Greedy,
        OrnsteinUhlenbeckNoise,
        ParameterNoise,
        TruncatedNormalNoise,
    )
    from coach_rl.exporting import export
    from coach_rl.filters import (
        BoxDiscretization,
        BoxMasking,
        FullDiscreteActionSpaceMap,
        InputFilter,
        LinearBoxToBoxMap,
        ObservationClippingFilter,
        ObservationCropFilter,
        ObservationNormalizationFilter,
        ObservationReductionBySubPartsNameFilter,
        ObservationRescaleSizeByFactorFilter,
        ObservationRescaleToSizeFilter,
        ObservationRGBToYFilter,
        ObservationStackingFilter,
        ObservationToUInt8Filter,
        OutputFilter,
        PartialDiscreteActionSpaceMap,
        RewardClippingFilter,
        RewardNormalizationFilter,
        RewardRescaleFilter,
        RewardReturnScalingFilter,
    )
    from coach_rl.graph_managers import (
        BasicGraphParameters,
        BasicRLGraphManager,
        CheckpointParameters,
        CollectionParameters,
        GraphManager,
        GraphParameters,
        HACGraphManager,
        HACGraphParameters,
        HRLGraphManager,
        LevelParameters,
        ScheduleParameters,
        SignalParameters,
        ValidationParameters,
    )
    from coach_rl.memories import (
        HindsightActionParameters,
        HindsightParameters,
        PrioritisedParameters,
        ReplayMemoryParameters,
        SequenceParameters,
    )
    from coach_rl.sessions import (
        RunSettings,
        TrainedAgent,
        TrainedOpponent,
        evaluate_run,
        fork_experiment,
        load,
        load_levels,
        resume_experiment,
        run_experiment,
        train,
    )
    from coach_rl.studies import Needs, Published, Study, Variant, watch
    from coach_rl.telemetry import NotebookSink, TrackerParameters, VideoParameters
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "ANT_OBSERVED", "GOAL_KEY", "GOAL_WORLDS", "GRU", "LSTM", "OPTION_KEY", "SHORT_NAMES", "TASKS",
    "Action", "ActionUnit", "ActorCriticParameters", "ActorParameters", "AdamParameters",
    "AdamWParameters", "AdjacencyParameters", "AgentGroupParameters", "AgentParameters", "AntMaze",
    "AntSymmetry", "Attention", "BasicGraphParameters", "BasicRLGraphManager", "BitFlipParameters",
    "Boltzmann", "BoxDiscretization", "BoxMasking", "CablesParameters", "Categorical",
    "CategoricalHead", "CertifyParameters", "ChainParameters", "CheckpointParameters", "CoachError",
    "CoachWarning", "CollectionParameters", "ConfigurationError", "ConnectFourParameters",
    "ConstantSchedule", "CriticParameters", "CriticSteps", "DDPGAgentParameters",
    "DDPGAlgorithmParameters", "DIAYNAgentParameters", "DQNAgentParameters",
    "DQNAlgorithmParameters", "DiscriminatorParameters", "DivergenceParameters", "EdgeLengths",
    "EnvironmentEpisodes", "EnvironmentParameters", "EnvironmentSteps", "EnvironmentTurns",
    "EpsilonGreedy", "EpsilonGreedyNoise", "EpsilonZGreedy", "ExponentialSchedule",
    "FarthestPoints", "FaultParameters", "FullDiscreteActionSpaceMap", "GatesParameters",
    "GaussianNoise", "GoalPointMassParameters", "GoalSpace", "GoalStep", "GoalTask",
    "GoalWorldParameters", "GraphAgentParameters", "GraphManager", "GraphParameters", "Greedy",
    "GridPlaces", "GroupMember", "GymnasiumParameters", "HACAgentParameters", "HACGraphManager",
    "HACGraphParameters", "HIROAgentParameters", "HRLGraphManager", "HindsightActionParameters",
    "HindsightParameters", "Hours", "InputFilter", "InputFilterParameters", "InspectParameters",
    "LESSONGoalSpace", "LandmarkParameters", "LearnedGoalSpace", "LearnedGoals",
    "LearningParameters", "LevelParameters", "LinearBoxToBoxMap", "LinearSchedule",
    "METRAGoalSpace", "MeanHead", "MinGRU", "ModuleParameters", "MujocoParameters", "MujocoTask",
    "MujocoTaskParameters", "Needs", "NotebookSink", "NoveltyParameters", "OGBenchPointMaze",
    "Observation", "ObservationClippingFilter", "ObservationCropFilter",
    "ObservationNormalizationFilter", "ObservationRGBToYFilter",
    "ObservationReductionBySubPartsNameFilter", "ObservationRescaleSizeByFactorFilter",
    "ObservationRescaleToSizeFilter", "ObservationStackingFilter", "ObservationToUInt8Filter",
    "OffPolicyAgentParameters", "OneStepParameters", "OptionCriticAgentParameters", "OptionSpace",
    "OrnsteinUhlenbeckNoise", "OutputFilter", "OutputFilterParameters", "PPOAgentParameters",
    "PPOAlgorithmParameters", "ParameterError", "ParameterNoise", "PartialDiscreteActionSpaceMap",
    "PettingZooParameters", "PiecewiseSchedule", "PlatformParameters", "PointMassParameters",
    "PointMaze", "PrioritisedParameters", "Published", "QNetworkParameters", "QuantileHead",
    "RMSpropParameters", "ReplayMemoryParameters", "RewardClippingFilter",
    "RewardNormalizationFilter", "RewardRescaleFilter", "RewardReturnScalingFilter",
    "RoboticsPointMaze", "RunSettings", "Runtime", "SACAgentParameters", "SACAlgorithmParameters",
    "ScheduleParameters", "ScriptedAgentParameters", "SelectedTurns", "SequenceParameters",
    "SignalParameters", "SkillAgentsParameters", "Space", "SteadyPayParameters", "Study",
    "SubGoalCorrectionParameters", "SubGoalGuideParameters", "SuccessRate", "SymmetryParameters",
    "TD3AgentParameters", "TD3AlgorithmParameters", "TMazeParameters", "TargetSync",
    "TerminationParameters", "TimedGoalSpace", "TorsoParameters", "TrackerParameters",
    "TrainedAgent", "TrainedOpponent", "TrainingSteps", "TruncatedNormalNoise", "Turns",
    "UniformAgentParameters", "UnknownNameError", "ValidationParameters", "Variant",
    "VideoParameters", "__version__", "evaluate_run", "export", "find_preset", "fork_experiment",
    "load", "load_levels", "load_preset", "resume_experiment", "run_experiment", "train", "watch",
]  # fmt: skip

__version__ = "0.3.0"

find_moved_modules()
