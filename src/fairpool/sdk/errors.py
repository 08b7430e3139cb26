"""The SDK's errors, split by who must act.

SdkError
├── InvalidUse              the program uses the SDK in a way that cannot work: mend the program
├── ServerError             the server cannot be reached, or refused a call
│   ├── Unreachable         it did not answer, or could not be started; the same call may be made again
│   └── Refused             it answered no; making the call again changes nothing
├── StackError              a stack, a component or an orchestrator that does not exist or cannot be used
├── ArtifactError           a value that cannot be stored, sent or read back
├── NothingFits             a demand that no entry of an instance-type catalogue can hold
├── HoldError               resources that `hold` asked for and did not get, or had to give back
└── StepError               a step that has no result
    ├── StepFailed          it failed, and its own exception could not travel; the text of it did
    ├── StepRejected        its request can never be granted (S17)
    │   └── WaitTimedOut    its request waited for longer than `wait_timeout` (S36)
    ├── StepPreempted       it had to let go, and its retry settings allow no further attempt (S32)
    ├── StepTimedOut        it ran for longer than `max_runtime`
    ├── StepCancelled       it, or its run, was cancelled
    ├── StepLost            its lease lapsed or an operator ended its request, so its resources are no longer its own
    └── UpstreamFailed      a step whose result it takes failed, so it was not run

StepAborted is no error: it is how a running step is told to end, and passes through `except Exception`.
"""

from __future__ import annotations


class SdkError(Exception):
    """Base of everything that the SDK raises on purpose."""


class InvalidUse(SdkError, ValueError):
    """The program uses the SDK in a way that cannot work; the message says what would."""


class ServerError(SdkError):
    """The server cannot be reached, or refused a call."""


class Unreachable(ServerError):
    """The server did not answer, or could not be started; the same call may be made again."""


class Refused(ServerError):
    """The server refused a call; making it again changes nothing. code: the HTTP status."""

    def __init__(self, message: str, *, code: int) -> None:
        super().__init__(message)
        self.code = code


class StackError(SdkError):
    """A stack, a component or an orchestrator does not exist or cannot be used."""


class ArtifactError(SdkError):
    """A value cannot be stored, sent to another process, or read back."""


class NothingFits(SdkError):
    """No entry of an instance-type catalogue holds the demand; the message names what is too large."""


class HoldError(SdkError):
    """What `hold` asked for was rejected, cancelled or lost. request: the id of the request, where there is one."""

    def __init__(self, message: str, *, request: str | None = None) -> None:
        super().__init__(message)
        self.request = request


class StepError(SdkError):
    """A step has no result. step: its name. request: the id of its last request, where there is one."""

    def __init__(self, message: str, *, step: str = "", request: str | None = None) -> None:
        super().__init__(message)
        self.step = step
        self.request = request

    def __reduce__(self) -> tuple[object, ...]:
        return (_again, (type(self), self.args[0], self.step, self.request), self.__dict__)


def _again(kind: type[StepError], message: str, step: str, request: str | None) -> StepError:
    return kind(message, step=step, request=request)


class StepFailed(StepError):
    """A step failed and its own exception could not travel, or its process died; the message says what is known."""


class StepRejected(StepError):
    """A step's request can never be granted; the message holds a reason per candidate (S17)."""


class WaitTimedOut(StepRejected):
    """A step's request waited for longer than its `wait_timeout` (S36)."""


class StepPreempted(StepError):
    """A step had to let go of its resources and may not try again (S32)."""


class StepTimedOut(StepError):
    """A step ran for longer than its `max_runtime`."""


class StepCancelled(StepError):
    """A step, or the run it belongs to, was cancelled."""


class StepLost(StepError):
    """A step's resources are no longer its own: its lease lapsed, or an operator ended its request."""


class UpstreamFailed(StepError):
    """A step was not run because a step whose result it takes failed."""


class StepAborted(BaseException):
    """Raised inside a step that is told to end; the step ends as aborted, not as failed.

    Derives from BaseException so that `except Exception` in training code does not keep a step from ending.
    """
