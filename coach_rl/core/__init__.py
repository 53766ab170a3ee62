"""Values and contracts: the data that rooms exchange, and their protocols.

Imports nothing of ours. Start with `records` (the data), then `interfaces` (who does what with it),
then `steps` and `clock` (how progress is counted).
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.core.agents import (
        Agent,
        AgentContext,
        AgentParameters,
        AnyAgent,
        LevelPlace,
        RowState,
        Symmetry,
        SymmetryParameters,
        TrainingReport,
    )
    from coach_rl.core.box_ranges import ActionUnit
    from coach_rl.core.clock import (
        Clock,
        ConstantSchedule,
        ExponentialSchedule,
        LinearSchedule,
        Phase,
        PiecewiseSchedule,
        Schedule,
    )
    from coach_rl.core.errors import (
        ActionError,
        CheckpointError,
        CoachError,
        CoachWarning,
        ConfigurationError,
        DivergedError,
        EnvironmentFault,
        NonFiniteError,
        ParameterError,
        RunError,
        SpaceError,
        UnknownNameError,
    )
    from coach_rl.core.goals import (
        GOAL_KEY,
        TIME_KEY,
        GoalContext,
        GoalSpace,
        GoalStep,
        Verdict,
    )
    from coach_rl.core.interfaces import (
        DrawableParameters,
        Environment,
        EnvironmentParameters,
        InputFilter,
        InputFilterParameters,
        Mark,
        MarkRenderable,
        OutputFilter,
        OutputFilterParameters,
        Renderable,
    )
    from coach_rl.core.level_parts import Judgement, LevelPart
    from coach_rl.core.levels import (
        LevelChange,
        LevelDescription,
        LevelPartContext,
        LevelPartParameters,
    )
    from coach_rl.core.log_records import (
        Evaluation,
        Kind,
        LogRecord,
        Sink,
        SinkParameters,
        SinkRun,
    )
    from coach_rl.core.options import OPTION_KEY, OptionSpace
    from coach_rl.core.parameter_classes import (
        KeepingParameters,
        LearnerParameters,
        MovableParameters,
        parameter_class,
    )
    from coach_rl.core.parts import TimedCall
    from coach_rl.core.records import (
        Action,
        ActionInfo,
        ActionRequest,
        Array,
        BoolArray,
        Directive,
        End,
        EnvResponse,
        Fault,
        FloatArray,
        IntArray,
        Observation,
        Outcome,
        Transition,
    )
    from coach_rl.core.row_noise import RowNoise
    from coach_rl.core.running_statistics import RunningStatistics
    from coach_rl.core.runtime import DivergenceParameters, Runtime
    from coach_rl.core.saved import Saved, SavedAttribute
    from coach_rl.core.seeding import generator
    from coach_rl.core.signals import Signals
    from coach_rl.core.spaces import EnvironmentSpaces, Space
    from coach_rl.core.state import Appended, State, Stateful
    from coach_rl.core.steps import (
        EnvironmentEpisodes,
        EnvironmentSteps,
        Hours,
        RunLength,
        StepUnit,
        TrainingSteps,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "GOAL_KEY", "OPTION_KEY", "TIME_KEY", "Action", "ActionError", "ActionInfo", "ActionRequest",
    "ActionUnit", "Agent", "AgentContext", "AgentParameters", "AnyAgent", "Appended", "Array",
    "BoolArray", "CheckpointError", "Clock", "CoachError", "CoachWarning", "ConfigurationError",
    "ConstantSchedule", "Directive", "DivergedError", "DivergenceParameters", "DrawableParameters",
    "End", "EnvResponse", "Environment", "EnvironmentEpisodes", "EnvironmentFault",
    "EnvironmentParameters", "EnvironmentSpaces", "EnvironmentSteps", "Evaluation",
    "ExponentialSchedule", "Fault", "FloatArray", "GoalContext", "GoalSpace", "GoalStep", "Hours",
    "InputFilter", "InputFilterParameters", "IntArray", "Judgement", "KeepingParameters", "Kind",
    "LearnerParameters", "LevelChange", "LevelDescription", "LevelPart", "LevelPartContext",
    "LevelPartParameters", "LevelPlace", "LinearSchedule", "LogRecord", "Mark", "MarkRenderable",
    "MovableParameters", "NonFiniteError", "Observation", "OptionSpace",
    "Outcome", "OutputFilter", "OutputFilterParameters", "ParameterError", "Phase",
    "PiecewiseSchedule", "Renderable", "RowNoise", "RowState", "RunError", "RunLength",
    "RunningStatistics", "Runtime", "Saved", "SavedAttribute", "Schedule", "Signals", "Sink",
    "SinkParameters", "SinkRun", "Space", "SpaceError", "State", "Stateful", "StepUnit",
    "Symmetry", "SymmetryParameters", "TimedCall",
    "TrainingReport", "TrainingSteps", "Transition", "UnknownNameError",
    "Verdict", "generator", "parameter_class",
]  # fmt: skip
