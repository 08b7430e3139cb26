"""`pipeline`: an ordinary function that calls steps."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, TypeVar, overload

from fairpool.sdk.context import running_step
from fairpool.sdk.errors import InvalidUse
from fairpool.sdk.settings import ResourceSettings, SettingsLike, read_settings, unknown

# Loaded when a run begins: the processes of steps load this module, and begin none.
if TYPE_CHECKING:
    from fairpool.sdk.runs import Run
    from fairpool.sdk.stacks import Stack

P = ParamSpec("P")
R = TypeVar("R")
OnFailure = Literal["finish", "cancel"]


class Pipeline(Generic[P, R]):
    """A pipeline. Made by `pipeline`; immutable, `with_options` makes another.

    Calling it executes the function here; the steps that it calls run elsewhere. It returns when all of its steps have
    ended, also those whose futures were not used. A step's exception that nobody looked at is raised at the end.
    Called inside another pipeline, it is a part of that one's run; inside a step, an ordinary function call.
    """

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str,
        settings: ResourceSettings,
        stack: Stack | str | None,
        on_failure: OnFailure,
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.name = name
        self.settings = settings
        self.stack = stack
        self.on_failure = on_failure

    def __repr__(self) -> str:
        return f"<Pipeline {self.name}>"

    def __fairpool_function__(self) -> Callable[P, R]:
        return self.function

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        """Run it and return what the function returns.

        ``stack="prod"`` (unless the function itself takes a `stack`) chooses where its steps run, this time.
        """
        if "stack" in kwargs and "stack" not in inspect.signature(self.function).parameters:
            return self.with_options(stack=kwargs.pop("stack"))(*args, **kwargs)
        if running_step() is not None:
            return self.function(*args, **kwargs)
        from fairpool.sdk.runs import Run, current_run, inside, settings_over, signals_end_it

        outer = current_run()
        if outer is not None:
            with settings_over(outer, self.settings):
                return self.function(*args, **kwargs)
        try:
            inspect.signature(self.function).bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"pipeline {self.name!r}: {error}") from None
        run = Run(self.name, stack=self.stack, settings=self.settings)
        with inside(run), signals_end_it():
            return self._execute(run, *args, **kwargs)

    def _execute(self, run: Run, *args: Any, **kwargs: Any) -> R:
        from fairpool.sdk.runs import status_of

        try:
            result = self.function(*args, **kwargs)
            run.wait()
            failure = run.unseen_failure()
            if failure is not None:
                raise failure
        except Exception as error:
            if self.on_failure == "cancel":
                run.cancel("another part of the pipeline failed")
            self._finish(run)
            run.close(*status_of(error))
            raise
        except BaseException as error:
            run.cancel("the run was interrupted")
            run.close(*status_of(error))
            raise
        run.close(*status_of(None))
        return result

    def _finish(self, run: Run) -> None:
        from fairpool.sdk.runs import status_of

        try:
            run.wait()
        except BaseException as error:
            run.cancel("the run was interrupted")
            run.close(*status_of(error))
            raise

    def with_options(
        self,
        *,
        name: str | None = None,
        settings: SettingsLike = None,
        stack: Stack | str | None = None,
        on_failure: OnFailure | None = None,
    ) -> Pipeline[P, R]:
        """The same pipeline with other options; settings override field by field, what is left out stays."""
        return Pipeline(
            self.function,
            name=name or self.name,
            settings=read_settings(settings, of=f"pipeline {self.name!r}").merged_over(self.settings),
            stack=stack or self.stack,
            on_failure=_checked(on_failure or self.on_failure),
        )


def _checked(on_failure: str) -> OnFailure:
    if on_failure not in ("finish", "cancel"):
        raise InvalidUse(unknown("on_failure", on_failure, ["finish", "cancel"]))
    return on_failure  # type: ignore[return-value]  # the check above says so


@overload
def pipeline(function: Callable[P, R], /) -> Pipeline[P, R]: ...
@overload
def pipeline(
    *,
    name: str | None = None,
    settings: SettingsLike = None,
    stack: Stack | str | None = None,
    on_failure: OnFailure = "finish",
) -> Callable[[Callable[P, R]], Pipeline[P, R]]: ...
def pipeline(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    settings: SettingsLike = None,
    stack: Stack | str | None = None,
    on_failure: OnFailure = "finish",
) -> Pipeline[P, R] | Callable[[Callable[P, R]], Pipeline[P, R]]:
    """Make a function a pipeline: ordinary Python that calls steps.

    settings: ``{"resources": ResourceSettings(…)}`` for steps that do not say otherwise. stack: where it runs.
    on_failure: when the function fails, steps that were already submitted ``finish`` (their work is not lost), or are
    ended (``cancel``).
    """

    def made(function: Callable[P, R]) -> Pipeline[P, R]:
        chosen = name or getattr(function, "__name__", "pipeline").strip("<>")
        if not callable(function):
            raise InvalidUse(f"{function!r} cannot be a pipeline: pipelines are functions")
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            raise InvalidUse(f"{chosen!r} cannot be a pipeline: pipelines are plain functions")
        return Pipeline(
            function,
            name=chosen,
            settings=read_settings(settings, of=f"pipeline {chosen!r}"),
            stack=stack,
            on_failure=_checked(on_failure),
        )

    return made if function is None else made(function)
