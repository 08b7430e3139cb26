"""Where the inputs, outputs and checkpoints of steps lie: a folder, or any place that fsspec can name by a URL.

A value is written whole or not at all, so that a process that is killed while it saves leaves the value of before.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import Any, Final, Protocol

from fairpool.sdk.errors import ArtifactError

ARTIFACTS_ENV: Final = "FAIRPOOL_ARTIFACTS"
"""Environment variable with the artifact store's folder or URL, where the stack names none."""

ATOMIC_ON_WRITE: Final = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "memory", "oss", "r2"})
"""Protocols of stores where an object appears whole when its upload ends; elsewhere a rename makes it so."""


class ArtifactStore(Protocol):
    """Bytes by name below one root."""

    root: str

    def write(self, name: str, data: bytes) -> str:
        """Store `data` under `name`, whole or not at all, and return where."""

    def read(self, name: str) -> bytes | None:
        """The bytes under `name`, or None where nothing was stored."""


class FolderStore:
    """A folder on this machine, or on a file system that all machines mount."""

    def __init__(self, root: str) -> None:
        self.root = str(Path(root).expanduser().absolute())

    def write(self, name: str, data: bytes) -> str:
        """Write beside, then rename: a reader sees the old value or the new one, never a part."""
        target = Path(self.root, name)
        beside = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                with beside.open("xb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                beside.replace(target)
            except BaseException:
                beside.unlink(missing_ok=True)
                raise
        except OSError as error:
            raise ArtifactError(
                f"cannot store {len(data)} bytes at {target}: {error.strerror or error}; free some room, or choose "
                f"another place with {ARTIFACTS_ENV}"
            ) from error
        return str(target)

    def read(self, name: str) -> bytes | None:
        """The bytes under `name`, or None where nothing was stored."""
        try:
            return Path(self.root, name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ArtifactError(f"cannot read {self.root}/{name}: {error.strerror or error}") from error


class RemoteStore:
    """A place that fsspec can name, such as ``s3://bucket/prefix``."""

    def __init__(self, root: str) -> None:
        import fsspec

        self.root = root.rstrip("/")
        self._protocol = root.partition("://")[0]
        try:
            self._files: Any = fsspec.core.url_to_fs(self.root)[0]
        except (ImportError, ValueError) as error:
            raise ArtifactError(f"cannot use {root} as artifact store: {error}") from error

    def write(self, name: str, data: bytes) -> str:
        """Upload whole; where the store could show a part of it, upload beside and rename."""
        target = f"{self.root}/{name}"
        folder, _, last = target.rpartition("/")
        try:
            self._files.makedirs(folder, exist_ok=True)
            if self._protocol in ATOMIC_ON_WRITE:
                self._files.pipe_file(target, data)
            else:
                beside = f"{folder}/.{last}.{uuid.uuid4().hex}"
                self._files.pipe_file(beside, data)
                self._files.mv(beside, target)
        except OSError as error:
            raise ArtifactError(f"cannot store {len(data)} bytes at {target}: {error}") from error
        return target

    def read(self, name: str) -> bytes | None:
        """The bytes under `name`, or None where nothing was stored."""
        try:
            found: bytes = self._files.cat_file(f"{self.root}/{name}")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ArtifactError(f"cannot read {self.root}/{name}: {error}") from error
        return found


def open_store(root: str) -> ArtifactStore:
    """The store at a folder (also ``file://…``) or at a URL that fsspec knows. Raises ArtifactError."""
    protocol, separator, path = root.partition("://")
    if not separator:
        return FolderStore(root)
    return FolderStore(path) if protocol in ("file", "local") else RemoteStore(root)
