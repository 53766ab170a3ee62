"""The words after `--on`."""

import pytest

from coach_rl.core.errors import ConfigurationError, UnknownNameError
from coach_rl.studies.where import check_place, executor
from tests.studies.walks import walk


@pytest.mark.parametrize("place", ["local", "ray", "ray:10.0.0.1:6379", "slurm", "slurm:long"])
def test_places_are_known(place):
    check_place(place)


@pytest.mark.parametrize("place", ["moon", "local:2", "ray:", "slurm:", ""])
def test_other_places_are_refused(place):
    with pytest.raises(UnknownNameError, match="place to run"):
        check_place(place)


def test_a_cluster_that_does_not_answer_is_one_line(tmp_path):
    with pytest.raises(ConfigurationError, match="no Ray cluster answers"):
        executor("ray:127.0.0.1:1", [walk(tmp_path)])


def test_the_number_of_processes_is_for_this_machine(tmp_path):
    with pytest.raises(ConfigurationError, match="--jobs counts processes of this machine"):
        executor("slurm", [walk(tmp_path)], at_once=2)
