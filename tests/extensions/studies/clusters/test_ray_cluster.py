"""Wrong addresses of a Ray cluster, and no Ray; what it does with jobs: tests/faults."""

import sys

import pytest

from coach_rl.core.errors import ConfigurationError
from coach_rl.extensions.studies.clusters.ray_cluster import RayCluster


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("127.0.0.1:1", r"no Ray cluster answers at 127\.0\.0\.1:1: .*docs/cluster\.md"),
        ("no.such.host.invalid:6379", r"no Ray cluster answers at no\.such\.host\.invalid:6379"),
        ("127.0.0.1:99999", "no Ray cluster answers at"),
        ("head", "address is HOST:PORT, got 'head'"),
        ("ray://head:10001", "join the cluster with `ray start --address=HOST:PORT`"),
    ],
)
def test_an_address_where_no_cluster_is_gets_one_line(address, message):
    with pytest.raises(ConfigurationError, match=message) as caught:
        RayCluster(address)
    assert "\n" not in str(caught.value)


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigurationError, match=r"needs Ray; .*\[ray\]"):
        RayCluster()
