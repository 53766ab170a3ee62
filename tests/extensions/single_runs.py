"""What the tests of studies of single runs share."""

import json
from dataclasses import replace


def check_skipped(study, name, folder):
    """Check that a job is skipped where a result has its parameters, and only there."""
    study = replace(study, results=folder)
    assert not study.is_done(name)
    parameters = study.jobs[name].parameters()
    study.file(name).parent.mkdir()
    study.file(name).write_text(json.dumps({"parameters": parameters}))
    assert study.is_done(name)
    parameters["experiment"]["num_envs"] = 77
    study.file(name).write_text(json.dumps({"parameters": parameters}))
    assert not study.is_done(name)


def short_result(study, job, folder):
    """The result of a short job, which is trained once, and holds no name of this machine."""
    short = replace(study, jobs={"short": job}, results=folder / "results")
    made = short.train("short", folder, 600.0)
    assert short.train("short", folder, 600.0) == made
    text = short.write("short", made).read_text()
    assert str(folder) not in text
    assert short.is_done("short")
    result = json.loads(text)
    assert result["parameters"] == job.parameters()
    return result
