"""Success with and without certified plans, after equal steps outside and inside forks.

    python benchmarks/certified_plans.py

A graph of way-points leads a ball through the medium point maze, above a script that walks straight
to its sub-goal and knows nothing of walls. Prints a table: success over evaluation episodes, means
over seeds with each seed's rate, all simulator steps of training, and those of an evaluation's
forks. Seeds 0 to 2 were used while the feature was developed.
"""

import argparse
from statistics import mean

import numpy as np

from coach_rl import (
    CertifyParameters,
    EnvironmentEpisodes,
    EnvironmentSteps,
    GoalWorldParameters,
    GraphAgentParameters,
    GraphParameters,
    GridPlaces,
    HRLGraphManager,
    LevelParameters,
    Observation,
    Runtime,
    ScheduleParameters,
    ScriptedAgentParameters,
    Space,
)

VARIANTS: dict[str, CertifyParameters | None] = {
    "no forks": None,
    "in training, `learn`": CertifyParameters(candidates=4, learn=True, during="training"),
    "in evaluations": CertifyParameters(candidates=4, during="evaluation"),
}


def straight(observation: Observation, space: Space) -> np.ndarray:  # noqa: ARG001 - as scripts are
    """Push towards the goal."""
    away = observation["desired_goal"] - observation["observation"][:, :2]
    return np.clip(3 * away, -1, 1).astype(np.float32)


def experiment(certify: CertifyParameters | None, steps: int) -> HRLGraphManager:
    """A graph above a script.

    Args:
        certify: How the graph's way-points are tried.
        steps: Environment steps of training.
    """
    world = GoalWorldParameters(level="point_maze_medium")
    graph = LevelParameters(
        name="graph",
        agent=GraphAgentParameters(places=GridPlaces(spacing=0.5)),
        goal_space=world.task.goal_space,
        certify=certify,
    )
    low = LevelParameters(
        name="low",
        agent=ScriptedAgentParameters(policy=straight),
        goal_space=world.task.subgoal_space,
        horizon=15,
    )
    schedule = ScheduleParameters(
        training=EnvironmentSteps(steps),
        evaluation_interval=None,
        evaluation_episodes=EnvironmentEpisodes(16),
    )
    return HRLGraphManager(
        GraphParameters(levels=(graph, low), environment=world, num_envs=8, schedule=schedule)
    )


def figures(
    certify: CertifyParameters | None, seed: int, stops: list[int], episodes: int
) -> list[tuple[float, int, float]]:
    """Success, simulator steps of training, and in an evaluation's forks, at steps of a run.

    Args:
        certify: How the graph's way-points are tried.
        seed: The run's.
        stops: Environment steps at which it is evaluated.
        episodes: Episodes of an evaluation.
    """
    found = []
    with experiment(certify, stops[-1]) as manager:
        manager.create_graph(Runtime(seed=seed))
        for stop in stops:
            for _ in manager.train_and_act(
                EnvironmentSteps(stop - manager.graph.clock.environment_steps)
            ):
                pass
            evaluation = manager.evaluate(EnvironmentEpisodes(episodes))
            top = evaluation.levels[0].scalars
            found.append(
                (
                    evaluation.scalars["evaluation/success_rate"],
                    stop + (manager.graph.training.fork_steps or 0),
                    top.get("evaluation_level/fork_steps", 0.0),
                )
            )
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[100, 101, 102, 103, 104])
    parser.add_argument("--episodes", type=int, default=32)
    parser.add_argument("--steps", type=int, nargs="+", default=[250, 1_000, 4_000])
    given = parser.parse_args()
    head = ("forks", "environment steps", "success", "each seed")
    print(f"| {' | '.join(head)} | simulator steps | in an evaluation's forks |")
    print("| --- | ---: | ---: | --- | ---: | ---: |")
    for name, certify in VARIANTS.items():
        runs = [figures(certify, seed, given.steps, given.episodes) for seed in given.seeds]
        for steps, point in zip(given.steps, zip(*runs, strict=True), strict=True):
            success, training, evaluation = zip(*point, strict=True)
            each = " ".join(f"{100 * rate:.0f}" for rate in success)
            print(
                f"| {name} | {steps:,} | {mean(success):.0%} | {each} | {mean(training):,.0f} | "
                f"{mean(evaluation):,.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
