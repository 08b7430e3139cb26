"""Settings as Kubernetes and as a catalogue of instance types understand them; devices as processes see them."""

from __future__ import annotations

import pytest

from fairpool.sdk.devices import visible
from fairpool.sdk.errors import InvalidUse, NothingFits
from fairpool.sdk.instances import load_catalogue, smallest_instance_type
from fairpool.sdk.kubernetes import to_kubernetes_resources
from fairpool.sdk.settings import ResourceSettings


def test_settings_become_requests_and_limits_of_a_container():
    settings = ResourceSettings(
        cpu_count=0.5, memory="1GiB", gpu_count=2, pool_resources={"sessions": 1, "example.com/fpga": 1}
    )
    same = {"memory": "1073741824", "nvidia.com/gpu": "2", "example.com/fpga": "1"}
    assert to_kubernetes_resources(settings) == {"requests": {"cpu": "500m", **same}, "limits": same}


def test_kubernetes_cannot_give_a_part_of_a_gpu():
    with pytest.raises(NothingFits, match="counted in whole ones"):
        to_kubernetes_resources(ResourceSettings(gpu_count=0.5))


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"cpu_count": 1}, "ml.t3.medium"),
        ({"cpu_count": 4, "memory": "16GiB"}, "ml.t3.xlarge"),
        ({"gpu_count": 1}, "ml.g4dn.xlarge"),
        ({"gpu_count": 0.5, "memory": "20GB"}, "ml.g4dn.2xlarge"),
        ({"gpu_count": 8, "memory": "1TB"}, "ml.p4d.24xlarge"),
        ({"pool_resources": {"trainium": 2}}, "ml.trn1.32xlarge"),
        ({"pool_resources": {"license/matlab": 2}}, "ml.t3.medium"),
    ],
)
def test_the_smallest_entry_that_holds_the_demand_is_taken(fields, name):
    assert smallest_instance_type(ResourceSettings(**fields)).name == name


def test_a_gpu_type_narrows_the_choice():
    assert smallest_instance_type(ResourceSettings(gpu_count=1), gpu_type="h100").name == "ml.p5.48xlarge"
    with pytest.raises(NothingFits, match=r"type 'h200'; possible: a100, a100-80gb"):
        smallest_instance_type(ResourceSettings(gpu_count=1), gpu_type="h200")


def test_what_is_too_large_is_named_with_the_most_there_is():
    with pytest.raises(NothingFits, match=r"gpu 9 is more than any instance type has; the most is 8 \(ml\.g5\.48"):
        smallest_instance_type(ResourceSettings(gpu_count=9))
    with pytest.raises(NothingFits, match=r"has all of trainium 1, gpu 1 at once"):
        smallest_instance_type(ResourceSettings(gpu_count=1, pool_resources={"trainium": 1}))


def test_a_catalogue_of_ones_own_replaces_the_shipped_one(tmp_path):
    path = tmp_path / "types.yaml"
    path.write_text("types: [{name: big, cpus: 64, memory_gib: 256}, {name: small, cpus: 2, memory_gib: 4}]")
    assert smallest_instance_type(ResourceSettings(cpu_count=2), load_catalogue(path)).name == "small"


def test_a_wrong_catalogue_says_where_it_is_wrong(tmp_path):
    path = tmp_path / "types.yaml"
    path.write_text("types: [{name: big, cpus: -1, memory_gib: 256}]")
    with pytest.raises(InvalidUse, match=r"wrong at types\.0\.cpus"):
        load_catalogue(path)
    path.write_text("types: [")
    with pytest.raises(InvalidUse, match="not YAML"):
        load_catalogue(path)


def test_granted_devices_are_named_and_counted_again_for_hip():
    assert visible((1, 3), surroundings={}) == {
        "CUDA_VISIBLE_DEVICES": "1,3",
        "NVIDIA_VISIBLE_DEVICES": "1,3",
        "ROCR_VISIBLE_DEVICES": "1,3",
        "HIP_VISIBLE_DEVICES": "0,1",
    }


def test_no_devices_hide_all():
    assert set(visible((), surroundings={}).values()) == {""}


def test_devices_count_among_those_that_the_surroundings_show():
    assert visible((1,), surroundings={"CUDA_VISIBLE_DEVICES": "4, 5"})["CUDA_VISIBLE_DEVICES"] == "5"
