"""The public names, for type checkers: `__init__.py` loads each when it is first used."""

from fairpool.sdk.context import StepContext, get_step_context
from fairpool.sdk.errors import (
    ArtifactError,
    HoldError,
    InvalidUse,
    NothingFits,
    SdkError,
    ServerError,
    StackError,
    StepAborted,
    StepCancelled,
    StepError,
    StepFailed,
    StepLost,
    StepPreempted,
    StepRejected,
    StepTimedOut,
    UpstreamFailed,
    WaitTimedOut,
)
from fairpool.sdk.futures import StepFuture, wait
from fairpool.sdk.holds import Hold, hold
from fairpool.sdk.instances import smallest_instance_type
from fairpool.sdk.kubernetes import to_kubernetes_resources
from fairpool.sdk.orchestrators.base import Job, Launch, Orchestrator
from fairpool.sdk.orchestrators.local import LocalOrchestrator
from fairpool.sdk.pipelines import Pipeline, pipeline
from fairpool.sdk.retry import StepRetryConfig
from fairpool.sdk.settings import ResourceSettings
from fairpool.sdk.stacks import Stack
from fairpool.sdk.steps import Step, step, unmapped
from fairpool.sdk.units import ByteUnit

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
