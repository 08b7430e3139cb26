"""The calls about the workspaces of an installation."""

from __future__ import annotations

from fairpool.client.calls import Calls
from fairpool.wire.workspace import WorkspaceCreate, WorkspaceDeletion, WorkspaceUpdate, WorkspaceView


class WorkspaceCalls(Calls):
    """Workspaces: made and deleted with the installation's own token alone."""

    def workspaces(self) -> list[WorkspaceView]:
        """The workspaces that the caller sees."""
        return list(self.pages("workspace_list", WorkspaceView))

    def workspace(self, ref: str) -> WorkspaceView:
        """One workspace."""
        return self.transport.call("workspace_get", WorkspaceView, path={"ref": ref})

    def create_workspace(self, body: WorkspaceCreate) -> WorkspaceView:
        """A new workspace."""
        return self.transport.call("workspace_create", WorkspaceView, body=body)

    def update_workspace(self, ref: str, body: WorkspaceUpdate) -> WorkspaceView:
        """A workspace is described otherwise."""
        return self.transport.call("workspace_update", WorkspaceView, path={"ref": ref}, body=body)

    def delete_workspace(self, ref: str, *, dry_run: bool = False) -> WorkspaceDeletion:
        """A workspace begins to go; what goes along. It is gone once it is not found any more."""
        return self.transport.call("workspace_delete", WorkspaceDeletion, path={"ref": ref}, query={"dry_run": dry_run})
