"""One document of each kind that says every field, and none as it would be anyway."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Data = Mapping[str, Any]

FULL: dict[str, Data] = {
    "component": {
        "kind": "component",
        "type": "step_operator",
        "name": "k8s",
        "flavor": "mine:K8s",
        "config": {"x": [1, {"y": None}]},
        "description": "clusters",
    },
    "user": {
        "kind": "user",
        "name": "alice",
        "role": "operator",
        "display_name": "Alice",
        "email": "alice@example.com",
        "description": "on call",
    },
    "team": {"kind": "team", "name": "red", "members": ["alice"], "description": "vision"},
    "service-account": {
        "kind": "service-account",
        "name": "ci",
        "role": "viewer",
        "teams": ["red"],
        "description": "nightly",
    },
    "pool": {
        "kind": "pool",
        "name": "gpus",
        "capacity": {"license/matlab": 2},
        "nodes": [
            {
                "name": "n1",
                "capacity": {"gpu": 4},
                "state": "cordoned",
                "gpu_type": "A100",
                "labels": {"rack": "1"},
            }
        ],
        "ordering": "fifo",
        "backfill": False,
        "placement": "spread",
        "max_bypass_s": 5,
        "components": ["local"],
        "description": "training",
    },
    "profile": {
        "kind": "profile",
        "name": "half",
        "demand": {"gpu": 0.5},
        "pools": ["gpus"],
        "defaults": {"preemptible": False, "max_runtime_s": 60, "labels": {"tier": "small"}},
        "description": "small",
    },
    "vault": {
        "kind": "vault",
        "name": "red",
        "environment": {"A": {"value": "1", "locked": True}},
        "image": {"value": "registry/train:1"},
        "storage_url": {"value": "s3://red", "locked": True},
        "description": "for red",
    },
    "policy": {
        "kind": "policy",
        "pool": "gpus",
        "subject": "team:red",
        "priority": 3,
        "reserved": {"gpu": 0.5},
        "limit": {"gpu": 2, "license/matlab": 0},
        "weight": 2.5,
        "dedicated": True,
        "grace_s": 7,
        "min_runtime_s": 8,
        "profiles": ["half"],
        "schedule": [
            {
                "start": "0 20 * * 1-5",
                "duration_s": 36000,
                "timezone": "Europe/Berlin",
                "reserved": {"gpu": 0.25},
                "limit": {"gpu": 1, "license/matlab": 0},
                "priority": -1,
                "weight": 1.5,
                "grace_s": 9,
            }
        ],
    },
    "webhook": {
        "kind": "webhook",
        "name": "chat",
        "url": "https://hooks.example.org/kn0wn-by-this",
        "events": ["request.preempted", "request.waiting"],
        "waiting_longer_than_s": 60,
        "pool": "gpus",
        "team": "red",
        "enabled": False,
        "description": "tells the team",
    },
    "stack": {
        "kind": "stack",
        "name": "prod",
        "orchestrator": "local",
        "step_operators": ["k8s"],
        "artifact_store": "local",
        "description": "for real",
    },
}
