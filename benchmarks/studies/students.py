"""Recurrent students without velocities that learn from a trained agent: hopper, three seeds.

python -m benchmarks.studies.students --hours 2                # every job in turn
python -m benchmarks.studies.students --hours 2 hopper_seed0   # one of them

Each result, a file below `benchmarks/results/students/`, has the curve, and 100 greedy episodes of
the student's last networks beside 100 of its teacher from the same seed. A job whose file has the
same parameters is skipped.
"""

from pathlib import Path

from benchmarks.studies.single_runs import Job, Result, SingleRuns, evaluations, final_episodes

EPISODES = 100
"""Episodes of a final evaluation."""


def read(job: Job, folder: Path) -> Result:
    """The curve of a student, and episodes of its final networks and of its teacher."""
    teacher = Path(f"trained:Mujoco_PPO/{job.panel['level']}")
    student = final_episodes(folder, EPISODES)
    taught = final_episodes(teacher, EPISODES)
    return {
        "curve": evaluations(folder),
        "final": student,
        "teacher": taught,
        "share_of_the_teacher": student["return"] / taught["return"],
    }


STUDY = SingleRuns(
    name="students",
    jobs={
        f"hopper_seed{seed}": Job(
            preset="Mujoco_Distillation", seed=seed, panel={"level": "hopper"}
        )
        for seed in range(3)
    },
    read=read,
)

if __name__ == "__main__":
    STUDY.main(__doc__.splitlines()[0])
