"""The shared half of all goal worlds: storage of the goal, and the reward for reaching it."""

import sys
from abc import abstractmethod
from dataclasses import fields
from typing import ClassVar, Literal, TypeVar

import numpy as np

from coach_rl.core.errors import ParameterError, require
from coach_rl.core.goals import GoalSpace
from coach_rl.core.interfaces import Place
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import Array, BoolArray, FloatArray
from coach_rl.core.typed_values import declared_types
from coach_rl.environments.goal_reward import GoalReward
from coach_rl.environments.mujoco import MujocoState, MujocoTask
from coach_rl.environments.mujoco.engine import mujoco
from coach_rl.environments.mujoco.task import Judgement

Task = TypeVar("Task", bound="GoalTask")


@parameter_class
class GoalTask(GoalReward, MujocoTask):
    """A MuJoCo task with a goal, in the Gymnasium goal convention.

    Observations are `observation`, `achieved_goal` and `desired_goal`; every step's info has
    `is_success`. The goal is kept in `MjData.userdata`, so that it is saved and restored with the
    simulator: `reset` writes it there, and `spec` reserves as many `nuserdata`. A world with more
    state puts it behind the goal and overrides `desired_goal`.
    """

    reads: ClassVar[tuple[str, ...]] = ("qpos", "qvel", "userdata")
    place_elements: ClassVar[int] = 2
    """Number of coordinates with which observations and goals begin: 2 for x and y, 3 with z; 0 if
    they begin with something else."""
    mark_height: ClassVar[float] = 0.0
    """Height at which a goal without z is drawn, in metres above the ground."""

    terminate: bool = True
    """If True, reaching the goal ends the episode."""
    reward_type: Literal["sparse", "dense"] = "sparse"
    """sparse: reward 0 for a step that ends at the goal, else -1. dense: minus the distance to the
    goal after the step."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.xml_file == "",
            f"{type(self).__name__} builds its model from its other fields; "
            f"leave xml_file empty, got '{self.xml_file}'",
        )

    @abstractmethod
    def spec(self) -> mujoco.MjSpec:
        """The model, built from the task's parameters."""

    @property
    @abstractmethod
    def goal_space(self) -> GoalSpace:
        """Goals of the task, for the top level of a hierarchy or for hindsight."""

    @property
    @abstractmethod
    def subgoal_space(self) -> GoalSpace:
        """Goals that a level above the lowest may send."""

    @property
    def conditions(self) -> GoalSpace | None:
        """Elements of observations that decide which ways are open and are part of no goal.

        For `GraphAgentParameters.conditions`; None if nothing of the kind is observed.
        """
        return None

    @abstractmethod
    def motion(self, state: MujocoState) -> FloatArray:
        """The observation without goals, [R, O]."""

    @abstractmethod
    def achieved_goal(self, state: MujocoState) -> FloatArray:
        """The goal that each simulator's state amounts to, [R, G]."""

    def desired_goal(self, state: MujocoState) -> FloatArray:
        """The goal of each simulator's episode, [R, G]."""
        return np.asarray(state.userdata)

    def load(self) -> mujoco.MjModel:
        try:
            return self.spec().compile()
        except ValueError as error:
            raise ParameterError(f"{type(self).__name__} makes no valid model: {error}") from error

    def observation(self, state: MujocoState) -> dict[str, Array]:
        """Motion [R, O], achieved goal [R, G], desired goal [R, G]."""
        return {
            "observation": self.motion(state),
            "achieved_goal": self.achieved_goal(state),
            "desired_goal": self.desired_goal(state),
        }

    def judge(self, before: MujocoState, action: FloatArray, after: MujocoState) -> Judgement:
        del before, action
        achieved, desired = self.achieved_goal(after), self.desired_goal(after)
        success = self.reached(achieved, desired)
        worth = self._worth(achieved, desired, success)
        return worth, success & self.terminate, {"is_success": success}

    def goal_place(self, key: str, elements: tuple[int, ...], goal: FloatArray) -> Place | None:
        del key  # observations and goals begin alike
        value = dict(zip(elements, goal.tolist(), strict=True))
        if self.place_elements < 2 or not {0, 1} <= value.keys():
            return None
        height = value.get(2, self.mark_height) if self.place_elements > 2 else self.mark_height
        return value[0], value[1], height


def variant(name: str, engine: type[Task], summary: str, **settings: object) -> type[Task]:
    """A world as a row of a table: a subclass of its engine with other defaults and constants.

    AntMazeS = variant("AntMazeS", SparseAntMaze, "Two bends.", max_episode_steps=1000, maze=ANT_S)

    Args:
        name: Name of the class; the module must assign it to this name, or it cannot be pickled.
        engine: The class that it derives from.
        summary: Its docstring.
        settings: Defaults of fields, and values of class constants, by name.
    """
    types = declared_types(engine)
    annotations = {each.name: types[each.name] for each in fields(engine) if each.name in settings}
    module = sys._getframe(1).f_globals["__name__"]
    own = {"__doc__": summary, "__module__": module, "__annotations__": annotations, **settings}
    return parameter_class(type(name, (engine,), own))


def empty_scene(name: str) -> mujoco.MjSpec:
    """A model with nothing but a sky and a light."""
    spec = mujoco.MjSpec()
    spec.modelname = name
    spec.add_texture(
        name="sky",
        type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
        rgb1=[0.85, 0.9, 0.95],
        rgb2=[0.6, 0.7, 0.8],
        width=64,
        height=384,
    )
    spec.worldbody.add_light(
        pos=[-2, -2, 8],
        dir=[0.25, 0.25, -1],
        cutoff=180,
        exponent=0,
        ambient=[0.25] * 3,
        diffuse=[0.5] * 3,
        specular=[0.1] * 3,
    )
    return spec


def add_goal_disc(
    spec: mujoco.MjSpec,
    radius: float,
    rgba: tuple[float, float, float, float],
    name: str = "goal",
) -> None:
    """Add a disc to a model, as a mocap body that marks the goal."""
    spec.worldbody.add_body(name=name, mocap=True).add_site(
        pos=[0, 0, 0.05],  # clear of the floor, or both would flicker
        type=mujoco.mjtGeom.mjGEOM_CYLINDER,
        size=[radius, 0.01, 0.01],
        rgba=rgba,
    )


def set_damping(joint: mujoco.MjsJoint, damping: float) -> None:
    """Set the linear damping of a joint of an `MjSpec`.

    Newer versions of MuJoCo keep the coefficients of a polynomial there, older ones a number.
    """
    coefficients = np.size(joint.damping)
    joint.damping = damping if coefficients == 1 else [damping] + [0.0] * (coefficients - 1)


def within_thresholds(difference: Array, threshold: tuple[float, ...]) -> BoolArray:
    """Return where every element of a difference [..., G] is within its threshold, [...]."""
    return np.asarray((np.abs(difference) <= np.array(threshold)).all(axis=-1))


def require_thresholds(name: str, threshold: tuple[float, ...], elements: int) -> None:
    """Raise `ParameterError` unless there is a threshold for each element."""
    require(
        len(threshold) == elements,
        f"{name} must have {elements} numbers, got {threshold}",
    )
