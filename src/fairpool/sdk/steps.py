"""`step`: a function that runs in a process of its own once the resources that it needs are its own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from fairpool.sdk.context import running_step
from fairpool.sdk.errors import InvalidUse
from fairpool.sdk.futures import StepFuture
from fairpool.sdk.retry import StepRetryConfig
from fairpool.sdk.settings import ResourceSettings, SettingsLike, read_settings

# `fairpool.sdk.runs` is loaded when a run begins: the processes of steps load this module, and begin none.
if TYPE_CHECKING:
    from fairpool.sdk.runs import Run

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Unmapped(Generic[T]):
    """A value that `map` gives to every call as it is. Made by `unmapped`."""

    value: T


def unmapped(value: T) -> Unmapped[T]:
    """Give `value` to every call that `map` makes, though it is a list."""
    return Unmapped(value)


class Step(Generic[P, R]):
    """A step of a pipeline. Made by `step`; immutable, `with_options` makes another.

    Called in a pipeline it runs and returns its result; called outside, it is a run of its own; called inside another
    step, it is an ordinary function call there.
    """

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str,
        settings: ResourceSettings,
        retry: StepRetryConfig,
        step_operator: str | None,
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.name = name
        self.settings = settings
        if not isinstance(retry, StepRetryConfig):
            raise InvalidUse(f"step {name!r}: retry is {retry!r}; possible: StepRetryConfig(max_retries=3)")
        self.retry = retry
        self.step_operator = step_operator

    def __repr__(self) -> str:
        return f"<Step {self.name}>"

    def __fairpool_function__(self) -> Callable[P, R]:
        return self.function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run it and return its result. Raises what the step raised, or StepError where it has no result."""
        if running_step() is not None:
            return self.function(*args, **kwargs)
        from fairpool.sdk.runs import current_run

        run = current_run()
        if run is not None:
            return self._begin(run, args, kwargs).result()
        return self._alone(args, kwargs)

    def submit(self, *args: Any, **kwargs: Any) -> StepFuture[R]:
        """Begin it and return at once; futures among the arguments are waited for before it asks for resources."""
        if running_step() is not None:
            return self._in_place(args, kwargs)
        from fairpool.sdk.runs import Run, current_run, status_of

        run = current_run()
        if run is not None:
            return self._begin(run, args, kwargs)
        run = Run(self.name, stack=None, settings=ResourceSettings())
        try:
            future = self._begin(run, args, kwargs)
        except BaseException as error:
            run.close(*status_of(error))
            raise
        run.close_with(future)
        return future

    def map(self, *args: Any, **kwargs: Any) -> list[StepFuture[R]]:
        """Begin one call per element: lists, tuples, ranges and iterators are walked side by side.

        Text, dictionaries, arrays and everything else goes to each call as it is, and so does `unmapped([…])`.
        Raises InvalidUse where nothing is to be walked, or the lengths differ.
        """
        named: dict[int | str, Any] = dict(enumerate(args))
        named.update(kwargs.items())
        walked = {key: list(value) for key, value in named.items() if _is_walked(value)}
        if not walked:
            raise InvalidUse(f"{self.name}.map needs a list, tuple, range or iterator to walk; use submit for one call")
        lengths = {len(values) for values in walked.values()}
        if len(lengths) > 1:
            shown = ", ".join(f"{_argument(self.function, key)}: {len(values)}" for key, values in walked.items())
            raise InvalidUse(f"{self.name}.map walks its arguments side by side, and their lengths differ ({shown})")
        futures = []
        for index in range(lengths.pop()):
            each = {key: walked[key][index] if key in walked else _whole(value) for key, value in named.items()}
            futures.append(
                self.submit(
                    *(value for key, value in each.items() if isinstance(key, int)),
                    **{key: value for key, value in each.items() if isinstance(key, str)},
                )
            )
        return futures

    def with_options(
        self,
        *,
        name: str | None = None,
        settings: SettingsLike = None,
        retry: StepRetryConfig | None = None,
        step_operator: str | None = None,
    ) -> Step[P, R]:
        """The same step with other options; settings override field by field, what is left out stays."""
        return Step(
            self.function,
            name=name or self.name,
            settings=read_settings(settings, of=f"step {self.name!r}").merged_over(self.settings),
            retry=retry or self.retry,
            step_operator=step_operator or self.step_operator,
        )

    def _begin(self, run: Run, args: tuple[Any, ...], kwargs: dict[str, Any]) -> StepFuture[R]:
        try:
            inspect.signature(self.function).bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"step {self.name!r}: {error}") from None
        return run.submit(
            self.function,
            self,
            (args, kwargs),
            name=self.name,
            settings=self.settings,
            retry=self.retry,
            step_operator=self.step_operator,
        )

    def _alone(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        from fairpool.sdk.runs import Run, inside, signals_end_it, status_of

        run = Run(self.name, stack=None, settings=ResourceSettings())
        with inside(run), signals_end_it():
            try:
                result = self._begin(run, args, kwargs).result()
            except BaseException as error:
                run.cancel("interrupted")
                run.close(*status_of(error))
                raise
            run.close(*status_of(None))
            return result

    def _in_place(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> StepFuture[R]:
        future: StepFuture[R] = StepFuture(name=self.name, label=self.name, output="", cancel=lambda: None)
        try:
            result = self.function(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 (a future keeps what was raised for whoever asks for its result)
            future._settle(error=error)
        else:
            future._settle(load=lambda: result)
        return future


def _is_walked(value: object) -> bool:
    if isinstance(value, str | bytes | bytearray | Unmapped):
        return False
    return isinstance(value, list | tuple | range | Iterator) or (
        isinstance(value, Sequence) and isinstance(value, Iterable)
    )


def _whole(value: object) -> object:
    return value.value if isinstance(value, Unmapped) else value


def _argument(function: Callable[..., Any], key: int | str) -> str:
    names = list(inspect.signature(function).parameters)
    return names[key] if isinstance(key, int) and key < len(names) else str(key)


@overload
def step(function: Callable[P, R], /) -> Step[P, R]: ...
@overload
def step(
    *,
    name: str | None = None,
    settings: SettingsLike = None,
    retry: StepRetryConfig | None = None,
    step_operator: str | None = None,
) -> Callable[[Callable[P, R]], Step[P, R]]: ...
def step(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    settings: SettingsLike = None,
    retry: StepRetryConfig | None = None,
    step_operator: str | None = None,
) -> Step[P, R] | Callable[[Callable[P, R]], Step[P, R]]:
    """Make a function a step of pipelines, which runs in a process of its own with the resources that it needs.

    name: the function's, if left out. settings: ``{"resources": ResourceSettings(…)}``; what it leaves out comes from
    the pipeline. retry: how often it is tried again. step_operator: the stack's component to run it on, instead of
    its orchestrator.
    """

    def made(function: Callable[P, R]) -> Step[P, R]:
        chosen = name or getattr(function, "__name__", "step").strip("<>")
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            raise InvalidUse(f"{chosen!r} cannot be a step: steps are plain functions that return a value")
        if not callable(function):
            raise InvalidUse(f"{function!r} cannot be a step: steps are functions")
        if not chosen.isprintable() or "/" in chosen or not 0 < len(chosen) <= 100 or chosen.startswith("."):
            raise InvalidUse(f"a step cannot be named {chosen[:120]!r}; possible: up to 100 printable characters but /")
        return Step(
            function,
            name=chosen,
            settings=read_settings(settings, of=f"step {chosen!r}"),
            retry=retry or StepRetryConfig(),
            step_operator=step_operator,
        )

    return made if function is None else made(function)
