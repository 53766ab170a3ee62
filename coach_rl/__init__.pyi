"""The public names; written by .ci/public_names.py."""

from coach_rl.agents import (
    DDPGAgentParameters as DDPGAgentParameters,
    DDPGAlgorithmParameters as DDPGAlgorithmParameters,
    DQNAgentParameters as DQNAgentParameters,
    DQNAlgorithmParameters as DQNAlgorithmParameters,
    LearningParameters as LearningParameters,
    OffPolicyAgentParameters as OffPolicyAgentParameters,
    PPOAgentParameters as PPOAgentParameters,
    PPOAlgorithmParameters as PPOAlgorithmParameters,
    SACAgentParameters as SACAgentParameters,
    SACAlgorithmParameters as SACAlgorithmParameters,
    TD3AgentParameters as TD3AgentParameters,
    TD3AlgorithmParameters as TD3AlgorithmParameters,
)
from coach_rl.architectures import (
    ActorCriticParameters as ActorCriticParameters,
    ActorParameters as ActorParameters,
    AdamParameters as AdamParameters,
    CriticParameters as CriticParameters,
    MeanHead as MeanHead,
    OptimizerParameters as OptimizerParameters,
    QNetworkParameters as QNetworkParameters,
    TargetSync as TargetSync,
    TorsoParameters as TorsoParameters,
)
from coach_rl.configuration import (
    find_preset as find_preset,
    load_preset as load_preset,
)
from coach_rl.core import (
    Action as Action,
    ActionUnit as ActionUnit,
    AgentParameters as AgentParameters,
    CoachError as CoachError,
    CoachWarning as CoachWarning,
    ConfigurationError as ConfigurationError,
    ConstantSchedule as ConstantSchedule,
    DivergenceParameters as DivergenceParameters,
    EnvironmentEpisodes as EnvironmentEpisodes,
    EnvironmentParameters as EnvironmentParameters,
    EnvironmentSteps as EnvironmentSteps,
    ExponentialSchedule as ExponentialSchedule,
    GOAL_KEY as GOAL_KEY,
    GoalSpace as GoalSpace,
    GoalStep as GoalStep,
    Hours as Hours,
    InputFilterParameters as InputFilterParameters,
    LinearSchedule as LinearSchedule,
    Observation as Observation,
    OPTION_KEY as OPTION_KEY,
    OptionSpace as OptionSpace,
    OutputFilterParameters as OutputFilterParameters,
    ParameterError as ParameterError,
    PiecewiseSchedule as PiecewiseSchedule,
    Runtime as Runtime,
    Space as Space,
    SymmetryParameters as SymmetryParameters,
    TrainingSteps as TrainingSteps,
    UnknownNameError as UnknownNameError,
)
from coach_rl.environments.atari.game import (
    AtariGame as AtariGame,
)
from coach_rl.environments.atari.games import (
    GAMES as GAMES,
)
from coach_rl.environments.atari.parameters import (
    AtariParameters as AtariParameters,
)
from coach_rl.environments.dm_control.control_task import (
    ControlTask as ControlTask,
)
from coach_rl.environments.dm_control.parameters import (
    DMControlParameters as DMControlParameters,
)
from coach_rl.environments.dm_control.tasks import (
    BENCHMARK_TASKS as BENCHMARK_TASKS,
)
from coach_rl.environments.faults import (
    FaultParameters as FaultParameters,
)
from coach_rl.environments.goal_worlds import (
    ANT_OBSERVED as ANT_OBSERVED,
)
from coach_rl.environments.goal_worlds.ant import (
    AntSymmetry as AntSymmetry,
)
from coach_rl.environments.goal_worlds.ant_mazes import (
    AntMaze as AntMaze,
)
from coach_rl.environments.goal_worlds.ant_workshop import (
    AntWorkshop as AntWorkshop,
    WORKSHOP_OBSERVED as WORKSHOP_OBSERVED,
    WorkshopSymmetry as WorkshopSymmetry,
)
from coach_rl.environments.goal_worlds.goal_task import (
    GoalTask as GoalTask,
)
from coach_rl.environments.goal_worlds.packaged import (
    OGBenchPointMaze as OGBenchPointMaze,
    RoboticsPointMaze as RoboticsPointMaze,
)
from coach_rl.environments.goal_worlds.parameters import (
    GOAL_WORLDS as GOAL_WORLDS,
    GoalWorldParameters as GoalWorldParameters,
)
from coach_rl.environments.goal_worlds.point_maze import (
    PointMaze as PointMaze,
)
from coach_rl.environments.gymnasium import (
    GymnasiumParameters as GymnasiumParameters,
)
from coach_rl.environments.minigrid.parameters import (
    MiniGridParameters as MiniGridParameters,
)
from coach_rl.environments.mujoco import (
    MujocoParameters as MujocoParameters,
    MujocoTask as MujocoTask,
    MujocoTaskParameters as MujocoTaskParameters,
    SHORT_NAMES as SHORT_NAMES,
    TASKS as TASKS,
)
from coach_rl.environments.pettingzoo.parallel import (
    PettingZooParameters as PettingZooParameters,
)
from coach_rl.environments.toy import (
    BitFlipParameters as BitFlipParameters,
    CablesParameters as CablesParameters,
    ChainParameters as ChainParameters,
    GatesParameters as GatesParameters,
    GoalPointMassParameters as GoalPointMassParameters,
    OneStepParameters as OneStepParameters,
    PlatformParameters as PlatformParameters,
    PointMassParameters as PointMassParameters,
    SteadyPayParameters as SteadyPayParameters,
    TMazeParameters as TMazeParameters,
)
from coach_rl.environments.toy.connect_four import (
    ConnectFourParameters as ConnectFourParameters,
)
from coach_rl.environments.toy.workshop import (
    WorkshopParameters as WorkshopParameters,
)
from coach_rl.exploration_policies import (
    EpsilonGreedy as EpsilonGreedy,
    EpsilonGreedyNoise as EpsilonGreedyNoise,
    GaussianNoise as GaussianNoise,
    Greedy as Greedy,
)
from coach_rl.extensions.atari.terminal_info import (
    TerminalInfo as TerminalInfo,
)
from coach_rl.extensions.bot_data.bot_episodes import (
    bot_data as bot_data,
    BotDataParameters as BotDataParameters,
)
from coach_rl.extensions.choices.softmax import (
    Boltzmann as Boltzmann,
    Categorical as Categorical,
)
from coach_rl.extensions.curiosity.episodic_count import (
    EpisodicCount as EpisodicCount,
)
from coach_rl.extensions.curiosity.noveld import (
    NovelD as NovelD,
)
from coach_rl.extensions.curiosity.rnd import (
    RND as RND,
)
from coach_rl.extensions.curiosity.streams import (
    RewardStream as RewardStream,
)
from coach_rl.extensions.curricula.curriculum import (
    Curriculum as Curriculum,
)
from coach_rl.extensions.data.batch_graph import (
    batch_schedule as batch_schedule,
    BatchGraphManager as BatchGraphManager,
    BatchGraphParameters as BatchGraphParameters,
    BatchHierarchyParameters as BatchHierarchyParameters,
    DataSourceParameters as DataSourceParameters,
)
from coach_rl.extensions.data.files import (
    read_data as read_data,
)
from coach_rl.extensions.data.held_out import (
    HeldOutParameters as HeldOutParameters,
)
from coach_rl.extensions.data.held_out_losses import (
    HeldOutLossParameters as HeldOutLossParameters,
)
from coach_rl.extensions.data.minari_data import (
    read_minari as read_minari,
    write_minari as write_minari,
)
from coach_rl.extensions.data.prefill import (
    DataSetParameters as DataSetParameters,
)
from coach_rl.extensions.data.recording import (
    RecordingParameters as RecordingParameters,
)
from coach_rl.extensions.discrete_maps.discrete_maps import (
    BoxDiscretization as BoxDiscretization,
    FullDiscreteActionSpaceMap as FullDiscreteActionSpaceMap,
    PartialDiscreteActionSpaceMap as PartialDiscreteActionSpaceMap,
)
from coach_rl.extensions.disk_storage.disk_tables import (
    DiskStorage as DiskStorage,
)
from coach_rl.extensions.distributional.heads import (
    CategoricalHead as CategoricalHead,
    QuantileHead as QuantileHead,
)
from coach_rl.extensions.drq.encoder import (
    PictureTorsoParameters as PictureTorsoParameters,
)
from coach_rl.extensions.drq.random_shift import (
    RandomShiftParameters as RandomShiftParameters,
)
from coach_rl.extensions.episode_filters.episode_filter import (
    EpisodeFilter as EpisodeFilter,
)
from coach_rl.extensions.evaluation_from_data.evaluation import (
    evaluate_from_data as evaluate_from_data,
)
from coach_rl.extensions.exploration.epsilon_z_greedy import (
    EpsilonZGreedy as EpsilonZGreedy,
)
from coach_rl.extensions.exploration.ornstein_uhlenbeck import (
    OrnsteinUhlenbeckNoise as OrnsteinUhlenbeckNoise,
)
from coach_rl.extensions.exploration.parameter_noise import (
    ParameterNoise as ParameterNoise,
)
from coach_rl.extensions.exploration.truncated_normal import (
    TruncatedNormalNoise as TruncatedNormalNoise,
)
from coach_rl.extensions.exporting.archive import (
    export as export,
)
from coach_rl.extensions.films.episode_recorder import (
    VideoParameters as VideoParameters,
)
from coach_rl.extensions.films.playing import (
    play_run as play_run,
)
from coach_rl.extensions.goals_from_data.data_goals import (
    DataGoalsParameters as DataGoalsParameters,
    GoalShares as GoalShares,
)
from coach_rl.extensions.goals_from_data.gciql import (
    GCIQLAgentParameters as GCIQLAgentParameters,
    GCIQLAlgorithmParameters as GCIQLAlgorithmParameters,
)
from coach_rl.extensions.goals_from_data.hiql import (
    ExtractionParameters as ExtractionParameters,
    HIQLAgentParameters as HIQLAgentParameters,
    HIQLAlgorithmParameters as HIQLAlgorithmParameters,
    HIQLUpperAgentParameters as HIQLUpperAgentParameters,
)
from coach_rl.extensions.goals_from_data.point_mazes import (
    maze_data as maze_data,
    MazeDataParameters as MazeDataParameters,
)
from coach_rl.extensions.goals_from_data.sub_goals import (
    SubGoalsFromDataParameters as SubGoalsFromDataParameters,
)
from coach_rl.extensions.groups.agent_group import (
    AgentGroupParameters as AgentGroupParameters,
    GroupMember as GroupMember,
)
from coach_rl.extensions.groups.arbiters import (
    EnvironmentTurns as EnvironmentTurns,
    SelectedTurns as SelectedTurns,
    Turns as Turns,
)
from coach_rl.extensions.groups.level_graph import (
    LevelGraph as LevelGraph,
)
from coach_rl.extensions.groups.trained_opponent import (
    TrainedOpponent as TrainedOpponent,
)
from coach_rl.extensions.hac.hac_agent import (
    HACAgentParameters as HACAgentParameters,
)
from coach_rl.extensions.hac.hac_graph import (
    HACGraphManager as HACGraphManager,
    HACGraphParameters as HACGraphParameters,
)
from coach_rl.extensions.hac.hindsight_actions import (
    HindsightActionParameters as HindsightActionParameters,
)
from coach_rl.extensions.hac.sub_goal_testing import (
    SubGoalTesting as SubGoalTesting,
)
from coach_rl.extensions.hindsight.hindsight import (
    HindsightParameters as HindsightParameters,
)
from coach_rl.extensions.hiro.hiro_agent import (
    HIROAgentParameters as HIROAgentParameters,
    SubGoalCorrectionParameters as SubGoalCorrectionParameters,
)
from coach_rl.extensions.hiro.landmarks import (
    LandmarkParameters as LandmarkParameters,
    NoveltyParameters as NoveltyParameters,
)
from coach_rl.extensions.hiro.sub_goal_guide import (
    AdjacencyParameters as AdjacencyParameters,
    SubGoalGuideParameters as SubGoalGuideParameters,
)
from coach_rl.extensions.hits.timed_goals import (
    TimedGoalSpace as TimedGoalSpace,
)
from coach_rl.extensions.image_filters.image_filters import (
    ObservationCropFilter as ObservationCropFilter,
    ObservationRescaleSizeByFactorFilter as ObservationRescaleSizeByFactorFilter,
    ObservationRescaleToSizeFilter as ObservationRescaleToSizeFilter,
    ObservationRGBToYFilter as ObservationRGBToYFilter,
    ObservationToUInt8Filter as ObservationToUInt8Filter,
)
from coach_rl.extensions.imitation.behaviour_cloning import (
    BCAgentParameters as BCAgentParameters,
)
from coach_rl.extensions.imitation.dagger import (
    DAggerAgentParameters as DAggerAgentParameters,
)
from coach_rl.extensions.imitation.policy_network import (
    PolicyParameters as PolicyParameters,
)
from coach_rl.extensions.imitation.teacher import (
    TeacherParameters as TeacherParameters,
)
from coach_rl.extensions.learned_goals.learned_goals import (
    LearnedGoals as LearnedGoals,
    LearnedGoalSpace as LearnedGoalSpace,
)
from coach_rl.extensions.learned_goals.lesson_goals import (
    LESSONGoalSpace as LESSONGoalSpace,
)
from coach_rl.extensions.learned_goals.metra_goals import (
    METRAGoalSpace as METRAGoalSpace,
)
from coach_rl.extensions.level_phases.level_phases import (
    LevelTimes as LevelTimes,
)
from coach_rl.extensions.level_phases.moments import (
    SuccessRate as SuccessRate,
)
from coach_rl.extensions.level_phases.success_schedule import (
    SuccessSchedule as SuccessSchedule,
)
from coach_rl.extensions.looking.histograms import (
    HistogramParameters as HistogramParameters,
)
from coach_rl.extensions.looking.inspections import (
    InspectParameters as InspectParameters,
)
from coach_rl.extensions.looking.notebook import (
    NotebookSink as NotebookSink,
)
from coach_rl.extensions.looking.profile import (
    ProfileParameters as ProfileParameters,
)
from coach_rl.extensions.looking.trackers.tracker import (
    TrackerParameters as TrackerParameters,
)
from coach_rl.extensions.noisy.noisy_net import (
    NoisyNet as NoisyNet,
)
from coach_rl.extensions.offline.discrete_cql import (
    CQLAlgorithmParameters as CQLAlgorithmParameters,
    DiscreteCQLAgentParameters as DiscreteCQLAgentParameters,
)
from coach_rl.extensions.offline.iql import (
    IQLAgentParameters as IQLAgentParameters,
    IQLAlgorithmParameters as IQLAlgorithmParameters,
)
from coach_rl.extensions.offline.rebrac import (
    NextActionsParameters as NextActionsParameters,
    ReBRACAgentParameters as ReBRACAgentParameters,
    ReBRACAlgorithmParameters as ReBRACAlgorithmParameters,
)
from coach_rl.extensions.offline.td3_bc import (
    TD3BCAgentParameters as TD3BCAgentParameters,
    TD3BCAlgorithmParameters as TD3BCAlgorithmParameters,
)
from coach_rl.extensions.optimizers.adamw import (
    AdamWParameters as AdamWParameters,
)
from coach_rl.extensions.optimizers.rmsprop import (
    RMSpropParameters as RMSpropParameters,
)
from coach_rl.extensions.own_modules.user_module import (
    ModuleParameters as ModuleParameters,
)
from coach_rl.extensions.parallel.parallel import (
    ParallelParameters as ParallelParameters,
)
from coach_rl.extensions.planning.edge_costs import (
    CriticSteps as CriticSteps,
    EdgeLengths as EdgeLengths,
)
from coach_rl.extensions.planning.graph_agent import (
    GraphAgentParameters as GraphAgentParameters,
)
from coach_rl.extensions.planning.places import (
    FarthestPoints as FarthestPoints,
    GridPlaces as GridPlaces,
)
from coach_rl.extensions.prioritised.prioritised import (
    PrioritisedParameters as PrioritisedParameters,
)
from coach_rl.extensions.recurrent_layers.attention import (
    Attention as Attention,
)
from coach_rl.extensions.recurrent_layers.gated_recurrence import (
    GRU as GRU,
    LSTM as LSTM,
)
from coach_rl.extensions.recurrent_layers.kinds import (
    layer_of_kind as layer_of_kind,
)
from coach_rl.extensions.recurrent_layers.linear_recurrence import (
    MinGRU as MinGRU,
)
from coach_rl.extensions.recurrent_layers.recurrent_agents import (
    recurrent_agent as recurrent_agent,
)
from coach_rl.extensions.recurrent_layers.sequences import (
    SequenceParameters as SequenceParameters,
)
from coach_rl.extensions.scripts.scripted_agent import (
    ScriptedAgentParameters as ScriptedAgentParameters,
    UniformAgentParameters as UniformAgentParameters,
)
from coach_rl.extensions.skills.diayn_agent import (
    DIAYNAgentParameters as DIAYNAgentParameters,
    DiscriminatorParameters as DiscriminatorParameters,
)
from coach_rl.extensions.skills.option_critic_agent import (
    OptionCriticAgentParameters as OptionCriticAgentParameters,
    TerminationParameters as TerminationParameters,
)
from coach_rl.extensions.skills.skill_agents import (
    SkillAgentsParameters as SkillAgentsParameters,
)
from coach_rl.extensions.strict_subgoals.stop_on_failure import (
    StopOnFailure as StopOnFailure,
)
from coach_rl.extensions.studies.job import (
    Needs as Needs,
)
from coach_rl.extensions.studies.live import (
    watch as watch,
)
from coach_rl.extensions.studies.study import (
    Published as Published,
    Study as Study,
    Variant as Variant,
)
from coach_rl.extensions.way_points_from_data.data_graph import (
    DataGraphAgentParameters as DataGraphAgentParameters,
)
from coach_rl.extensions.way_points_from_data.data_places import (
    DataPlaces as DataPlaces,
)
from coach_rl.extensions.way_points_from_data.value_steps import (
    ValueSteps as ValueSteps,
)
from coach_rl.extensions.workers.collection import (
    CollectionParameters as CollectionParameters,
)
from coach_rl.extensions.workers.evaluation_process import (
    BackgroundEvaluation as BackgroundEvaluation,
)
from coach_rl.filters import (
    BoxMasking as BoxMasking,
    InputFilter as InputFilter,
    LinearBoxToBoxMap as LinearBoxToBoxMap,
    ObservationClippingFilter as ObservationClippingFilter,
    ObservationNormalizationFilter as ObservationNormalizationFilter,
    ObservationReductionBySubPartsNameFilter as ObservationReductionBySubPartsNameFilter,
    ObservationStackingFilter as ObservationStackingFilter,
    OutputFilter as OutputFilter,
    RewardClippingFilter as RewardClippingFilter,
    RewardNormalizationFilter as RewardNormalizationFilter,
    RewardRescaleFilter as RewardRescaleFilter,
    RewardReturnScalingFilter as RewardReturnScalingFilter,
)
from coach_rl.graph_managers import (
    BasicGraphParameters as BasicGraphParameters,
    BasicRLGraphManager as BasicRLGraphManager,
    CheckpointParameters as CheckpointParameters,
    GraphManager as GraphManager,
    GraphParameters as GraphParameters,
    HRLGraphManager as HRLGraphManager,
    LevelChain as LevelChain,
    LevelParameters as LevelParameters,
    ScheduleParameters as ScheduleParameters,
    SignalParameters as SignalParameters,
    SourceParameters as SourceParameters,
    TickSource as TickSource,
    ValidationParameters as ValidationParameters,
)
from coach_rl.memories import (
    ReplayMemoryParameters as ReplayMemoryParameters,
    SingleTransitions as SingleTransitions,
)
from coach_rl.sessions import (
    evaluate_run as evaluate_run,
    fork_experiment as fork_experiment,
    load as load,
    load_levels as load_levels,
    resume_experiment as resume_experiment,
    run_experiment as run_experiment,
    RunSettings as RunSettings,
    train as train,
    TrainedAgent as TrainedAgent,
)

__all__: list[str]
__version__: str
