"""Values, functions and exceptions as bytes, for their way between the driver and the processes of steps.

cloudpickle sends what lives in ``__main__`` (a script, a notebook) by value and knows it again when it comes back, so
that a class of the script is the same class after the round trip. Everything importable goes by name.
"""

from __future__ import annotations

import importlib.util
import io
import pickle
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import cloudpickle

from fairpool.sdk.errors import ArtifactError, StepFailed

REMOTE_TRACEBACK: Final = "Traceback inside the step's own process:"
_UNPICKLABLE: Final = (pickle.PicklingError, TypeError, AttributeError, ValueError, RecursionError, NotImplementedError)
_UNREADABLE: Final = (*_UNPICKLABLE, pickle.UnpicklingError, ImportError, EOFError, IndexError, KeyError)


@dataclass(frozen=True, slots=True)
class Reference:
    """Stands in stored inputs for the result of another step. name: where that result is stored."""

    name: str


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it ships no types
    """Writes whatever says that it stands for a stored result (`__fairpool_reference__`) as a reference to it."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.references: list[Any] = []

    def persistent_id(self, value: Any) -> Reference | None:
        refer = getattr(type(value), "__fairpool_reference__", None)
        if refer is None:
            return None
        self.references.append(value)
        found: Reference = refer(value)
        return found


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: bytes, resolve: Callable[[Reference], Any]) -> None:
        super().__init__(io.BytesIO(data))
        self._resolve = resolve

    def persistent_load(self, reference: Any) -> Any:
        return self._resolve(reference)


def pack(value: Any, *, what: str) -> tuple[bytes, list[Any]]:
    """The value as bytes, and the futures inside it, which are written as references.

    what: names the value for people ("the result of step 'train'"). Raises ArtifactError for what cannot be stored.
    """
    file = io.BytesIO()
    pickler = _Pickler(file)
    try:
        pickler.dump(value)
    except _UNPICKLABLE as error:
        raise ArtifactError(
            f"{what}, of type {type(value).__qualname__}, cannot be stored: {_first_line(error)}. Steps exchange plain "
            "data, arrays, models and classes that pickle can write; open files, locks, generators and connections "
            "must be made inside the step that uses them."
        ) from error
    return file.getvalue(), pickler.references


def unpack(data: bytes, *, what: str, resolve: Callable[[Reference], Any] | None = None) -> Any:
    """The value that `pack` wrote; references are replaced by what `resolve` returns. Raises ArtifactError."""
    try:
        return _Unpickler(data, resolve or _no_references).load()
    except _UNREADABLE as error:
        raise ArtifactError(f"{what} cannot be read back: {type(error).__name__}: {_first_line(error)}") from error


def _no_references(reference: Reference) -> Any:
    raise pickle.UnpicklingError(f"a reference to {reference.name} where none belongs")


def function_reference(function: Callable[..., Any], owner: object) -> dict[str, str] | None:
    """Where a fresh interpreter finds the function by import, or None where it must be sent by value.

    owner: the step that replaced it under its name in its module.
    """
    module_name, qualname = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    module = sys.modules.get(module_name or "")
    spec = getattr(module, "__spec__", None)
    if module_name in (None, "__main__", "__mp_main__") or spec is None or not spec.has_location:
        return None
    found: Any = module
    for part in qualname.split("."):
        found = getattr(found, part, None)
    if found is not function and found is not owner:
        return None
    return {"module": str(module_name), "qualname": qualname} if _importable(str(module_name), spec) else None


def _importable(name: str, spec: Any) -> bool:
    """Whether the usual search along `sys.path` finds the same file; a module loaded in another way is not found."""
    try:
        found = importlib.util.find_spec(name) if "." not in name else _search(name)
    except (ImportError, ValueError, AttributeError):
        return False
    return found is not None and found.origin == spec.origin


def _search(name: str) -> Any:
    from importlib.machinery import PathFinder

    path: Any = None
    spec: Any = None
    for depth in range(1, name.count(".") + 2):
        spec = PathFinder.find_spec(".".join(name.split(".")[:depth]), path)
        if spec is None:
            return importlib.util.find_spec(name)
        path = spec.submodule_search_locations
    return spec


def load_function(reference: Mapping[str, str]) -> Callable[..., Any]:
    """The function that `function_reference` described; where a step took its name, the function inside the step."""
    found: Any = importlib.import_module(reference["module"])
    for part in reference["qualname"].split("."):
        found = getattr(found, part)
    inner = getattr(type(found), "__fairpool_function__", None)
    function: Callable[..., Any] = inner(found) if inner is not None else found
    return function


def pack_exception(error: BaseException, *, step: str) -> bytes:
    """An exception as bytes that surely read back: itself with its traceback as a note, or else StepFailed with both.

    step: the step's name.
    """
    text = "".join(traceback.format_exception(error)).rstrip()
    try:
        error.add_note(f"\n{REMOTE_TRACEBACK}\n{text}")
        data: bytes = cloudpickle.dumps(error)
        if type(pickle.loads(data)) is type(error):  # noqa: S301 (what was written a line above)
            return data
    except Exception:  # noqa: BLE001,S110 (a foreign class may do anything here; its text still travels)
        pass
    failed = StepFailed(f"step {step!r} raised {type(error).__qualname__}: {_first_line(error)}", step=step)
    failed.add_note(f"\n{REMOTE_TRACEBACK}\n{text}")
    return bytes(cloudpickle.dumps(failed))


def _first_line(error: BaseException) -> str:
    try:
        return (str(error) or type(error).__name__).splitlines()[0]
    except Exception:  # noqa: BLE001 (a foreign __str__)
        return type(error).__name__
