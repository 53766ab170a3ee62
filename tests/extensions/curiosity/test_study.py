"""The study of bonuses skips what has a result."""

import pytest

from benchmarks.studies import curiosity
from tests.extensions.single_runs import check_skipped

pytest.importorskip("minigrid")


@pytest.mark.drawn(one_of=4)
@pytest.mark.parametrize("name", curiosity.STUDY.jobs)
def test_result_with_the_same_parameters_is_skipped(name, tmp_path):
    check_skipped(curiosity.STUDY, name, tmp_path)


def test_committed_results_have_the_parameters_of_their_jobs():
    """The chain's runs, which are short: others may be made with later presets."""
    study = curiosity.STUDY
    done = [name for name in study.jobs if study.file(name).is_file() and "Chain" in name]
    assert done
    assert [name for name in done if study.is_done(name)] == done
