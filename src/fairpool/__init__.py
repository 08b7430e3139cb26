"""Fairpool: fair GPU and compute sharing for AI and ML teams.

Importing the package loads nothing; each public name is loaded when it is first used. Their types are in
`__init__.pyi`.
"""

from __future__ import annotations

import importlib

__all__ = [
    "ArtifactError",
    "ByteUnit",
    "Hold",
    "HoldError",
    "InvalidUse",
    "Job",
    "Launch",
    "LocalOrchestrator",
    "NothingFits",
    "Orchestrator",
    "Pipeline",
    "ResourceSettings",
    "SdkError",
    "ServerError",
    "Stack",
    "StackError",
    "Step",
    "StepAborted",
    "StepCancelled",
    "StepContext",
    "StepError",
    "StepFailed",
    "StepFuture",
    "StepLost",
    "StepPreempted",
    "StepRejected",
    "StepRetryConfig",
    "StepTimedOut",
    "UpstreamFailed",
    "WaitTimedOut",
    "get_step_context",
    "hold",
    "pipeline",
    "smallest_instance_type",
    "step",
    "to_kubernetes_resources",
    "unmapped",
    "wait",
]

_OTHERS = {
    "ByteUnit": "units",
    "Hold": "holds",
    "Job": "orchestrators.base",
    "Launch": "orchestrators.base",
    "LocalOrchestrator": "orchestrators.local",
    "Orchestrator": "orchestrators.base",
    "Pipeline": "pipelines",
    "ResourceSettings": "settings",
    "Stack": "stacks",
    "Step": "steps",
    "StepContext": "context",
    "StepFuture": "futures",
    "StepRetryConfig": "retry",
    "get_step_context": "context",
    "hold": "holds",
    "pipeline": "pipelines",
    "smallest_instance_type": "instances",
    "step": "steps",
    "to_kubernetes_resources": "kubernetes",
    "unmapped": "steps",
    "wait": "futures",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # What is not listed is an error of the SDK.
    found: object = getattr(importlib.import_module(f"fairpool.sdk.{_OTHERS.get(name, 'errors')}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
