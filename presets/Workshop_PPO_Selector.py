"""A selector above three agents of the workshop: one walks, one presses, one pushes."""

from dataclasses import dataclass, replace

import coach_rl as rl
from coach_rl.presets.panels import arrives, ppo_optimizer
from coach_rl.presets.workshop_robots import RobotPanel, View, ant, world


@dataclass(frozen=True, kw_only=True)
class Panel(RobotPanel):
    """Settings to change with -cp."""

    walk: str | None = None
    """Run of `Workshop_PPO` with this robot that has learned to walk; its agent only acts. None: it
    learns here."""
    press: str | None = None
    """The same for pressing the plate."""
    push: str | None = None
    """The same for pushing the block."""
    horizon: int = 10
    """Steps for which the selected agent acts."""
    preempt: bool = False
    """If True, the selector decides at every step."""
    steps: int = 300_000
    learning_rate: float = 1e-3
    """Learning rate of the selector, and of a ball's agents."""


def ppo(panel: Panel, rollout: int, discount: float) -> rl.PPOAgentParameters:
    """An agent of any level."""
    return rl.PPOAgentParameters(
        algorithm=rl.PPOAlgorithmParameters(
            rollout=rl.EnvironmentSteps(rollout),
            epochs=6,
            minibatch=256,
            discount=discount,
            entropy_coefficient=0.001,
        ),
        optimizer=ppo_optimizer(panel.learning_rate),
    )


def selecting(panel: Panel) -> rl.PPOAgentParameters:
    """The selector; above an ant it doesn't observe the ant's body."""
    if panel.robot == "ball":
        return ppo(panel, rollout=1024, discount=0.95)
    agent = ppo(panel, rollout=256, discount=0.95)
    algorithm = replace(
        agent.algorithm,
        epochs=10,
        minibatch=64,
        learning_rate_schedule=rl.LinearSchedule(start=1.0, end=0.05),
    )
    body = rl.ObservationReductionBySubPartsNameFilter(
        names=rl.WORKSHOP_OBSERVED, sub_parts=rl.ANT_OBSERVED, method="discard"
    )
    seen = rl.InputFilter(observation={"observation": (body,)})
    return replace(agent, algorithm=algorithm, input_filter=seen)


def graph_manager(panel: Panel) -> rl.GraphManager:
    """A selector learns which of three agents, trained elsewhere, acts for the next steps."""
    parts: dict[View, str | None] = {
        "walk": panel.walk,
        "press": panel.press,
        "push": panel.push,
    }
    selector = rl.LevelParameters(name="select", agent=selecting(panel))
    acting = (
        rl.LevelParameters(
            name=name,
            agent=ppo(panel, rollout=4096, discount=0.97) if panel.robot == "ball" else ant(name),
            horizon=panel.horizon,
            load=None if run is None else f"{run}:main",
            frozen=run is not None,
        )
        for name, run in parts.items()
    )
    return rl.GraphManager(
        rl.GraphParameters(
            levels=(selector, *acting),
            arrangement=rl.LevelGraph(
                below={selector.name: tuple(parts)},
                preempt=(selector.name,) if panel.preempt else (),
            ),
            environment=world(panel.robot, "all"),
            num_envs=panel.num_envs,
            schedule=panel.schedule(panel.interval(20_000), evaluation_episodes=100),
            validation=arrives(0.9, within=panel.steps),
        )
    )
