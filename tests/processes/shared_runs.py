"""Small experiments, and a program that runs them in the processes of torchrun."""

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from coach_rl.agents.ddpg_agent import DDPGAgentParameters
from coach_rl.agents.dqn_agent import DQNAgentParameters
from coach_rl.agents.off_policy_agent import LearningParameters
from coach_rl.agents.ppo_agent import PPOAgentParameters, PPOAlgorithmParameters
from coach_rl.agents.sac_agent import SACAgentParameters
from coach_rl.architectures.q_network import QNetworkParameters
from coach_rl.core.errors import CoachError, EnvironmentFault
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.gymnasium import GymnasiumParameters
from coach_rl.environments.toy import PointMassParameters
from coach_rl.graph_managers import BasicGraphParameters, BasicRLGraphManager, ScheduleParameters
from coach_rl.processes import joined_processes
from coach_rl.sessions.data_parallel import follow_experiment, follow_resumed
from coach_rl.sessions.session import resume_experiment, run_experiment
from coach_rl.sessions.settings import RunSettings

TASK = Runtime(seed=3, device="cpu")
SETTINGS = RunSettings(tensorboard=False, final_episodes=EnvironmentEpisodes(2))
STOP, END = EnvironmentSteps(1_152), EnvironmentSteps(1_536)
DOORS = GymnasiumParameters(
    level="tests.environments.masked_environments:Doors",
    kwargs={"sizes": (3, 4)},
    action_mask="info:action_mask",
)
LEARNING = LearningParameters(batch=64, updates_per_step=1 / 16, learning_starts=128)


def experiment(agent, **changes):
    schedule = ScheduleParameters(
        training=END,
        heatup=EnvironmentSteps(128),
        evaluation_interval=EnvironmentSteps(512),
        evaluation_episodes=EnvironmentEpisodes(2),
        progress_interval=EnvironmentSteps(512),
    )
    described = {"environment": PointMassParameters(), "num_envs": 64, "schedule": schedule}
    return BasicGraphParameters(agent=agent, **{**described, **changes})


EXPERIMENTS = {
    "ppo": experiment(
        PPOAgentParameters(
            algorithm=PPOAlgorithmParameters(
                rollout=EnvironmentSteps(256), epochs=2, minibatch=64, scale_returns=True
            ),
        )
    ),
    "ddpg": experiment(DDPGAgentParameters(learning=LEARNING, normalise_observations=5.0)),
    "sac": experiment(SACAgentParameters(learning=LEARNING)),
    "masked ppo": experiment(
        PPOAgentParameters(
            algorithm=PPOAlgorithmParameters(rollout=EnvironmentSteps(256), epochs=2, minibatch=64)
        ),
        environment=DOORS,
    ),
    "masked dqn": experiment(
        DQNAgentParameters(learning=LEARNING, network=QNetworkParameters(dueling=True)),
        environment=DOORS,
    ),
    "masked sac": experiment(SACAgentParameters(learning=LEARNING), environment=DOORS),
}
RESUMED = ("ppo", "sac")


@parameter_class
class BreakingParameters:
    """Point masses whose environment breaks in the second process, at the fifth step."""

    level: str = "breaking"
    how: str = "fault"

    def build(self, *, num_envs):
        environment = PointMassParameters().build(num_envs=num_envs)
        steps, recv = 0, environment.recv

        def breaking():
            nonlocal steps
            steps += 1
            if steps == 5 and os.environ.get("RANK") == "1":
                if self.how == "kill":
                    os.kill(os.getpid(), 9)
                raise EnvironmentFault("a wheel came off")
            return recv()

        environment.recv = breaking
        return environment


def run(parameters, root, group):
    """Run an experiment in this process, or follow the one that does."""
    manager = BasicRLGraphManager(parameters)
    if group.rank:
        follow_experiment(manager, TASK, group=group, on_start=lambda folder: None)
    else:
        run_experiment(manager, TASK, name="run", root=root, settings=SETTINGS, group=group)


def resume(root, group):
    """Resume the only run below a folder, to the end."""
    group.gather(None)  # the folder is there
    (folder,) = (root / "run").iterdir()
    changes = {"schedule.training": END}
    if group.rank:
        follow_resumed(changes=changes, group=group, on_start=lambda folder: None)
    else:
        resume_experiment(folder, changes=changes, settings=SETTINGS, group=group)


def stopping(parameters):
    """The experiment, over before its end."""
    return replace(parameters, schedule=replace(parameters.schedule, training=STOP))


def main(folder):
    with joined_processes() as group:
        for name, parameters in EXPERIMENTS.items():
            run(parameters, folder / name, group)
        for name in RESUMED:
            stopped = folder / f"stopped_{name}"
            run(stopping(EXPERIMENTS[name]), stopped, group)
            if not group.rank:
                shutil.copytree(stopped, folder / f"resumed_{name}", symlinks=True)
            resume(folder / f"resumed_{name}", group)
        different = replace(TASK, seed=group.rank)
        broken = replace(EXPERIMENTS["ppo"], environment=BreakingParameters())
        for name, call in {
            "seeds": lambda: follow_experiment(
                BasicRLGraphManager(EXPERIMENTS["ppo"]), different, group=group, on_start=print
            ),
            "fault": lambda: run(broken, folder / "broken", group),
        }.items():
            try:
                call()
            except CoachError as error:
                (folder / f"{name}_{group.rank}.txt").write_text(str(error))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
