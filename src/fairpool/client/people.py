"""The calls about users, teams, service accounts and their tokens."""

from __future__ import annotations

from fairpool.client.calls import Calls
from fairpool.wire.people import (
    NewToken,
    ServiceAccountCreate,
    ServiceAccountDeletion,
    ServiceAccountUpdate,
    ServiceAccountView,
    TeamCreate,
    TeamDeletion,
    TeamUpdate,
    TeamView,
    TokenCreate,
    TokenView,
    UserCreate,
    UserDeletion,
    UserUpdate,
    UserView,
)


class PeopleCalls(Calls):
    """Who may use the server, and as whom."""

    def users(self, *, at: str | None = None) -> list[UserView]:
        """The users that the caller sees; with `at` as they were at that moment."""
        return list(self.pages("user_list", UserView, query={"at": at}))

    def user(self, ref: str, *, at: str | None = None) -> UserView:
        """One user; with `at` as it was at that moment."""
        return self.transport.call("user_get", UserView, path={"ref": ref}, query={"at": at})

    def create_user(self, body: UserCreate) -> UserView:
        """A new user."""
        return self.transport.call("user_create", UserView, body=body)

    def update_user(self, ref: str, body: UserUpdate, *, version: int | None = None) -> UserView:
        """A user changes."""
        return self.transport.call("user_update", UserView, path={"ref": ref}, body=body, version=version)

    def delete_user(self, ref: str, *, dry_run: bool = False) -> UserDeletion:
        """A user goes; what goes along."""
        return self.transport.call("user_delete", UserDeletion, path={"ref": ref}, query={"dry_run": dry_run})

    def teams(self, *, at: str | None = None) -> list[TeamView]:
        """The teams that the caller sees; with `at` as they were at that moment."""
        return list(self.pages("team_list", TeamView, query={"at": at}))

    def team(self, ref: str, *, at: str | None = None) -> TeamView:
        """One team; with `at` as it was at that moment."""
        return self.transport.call("team_get", TeamView, path={"ref": ref}, query={"at": at})

    def create_team(self, body: TeamCreate) -> TeamView:
        """A new team."""
        return self.transport.call("team_create", TeamView, body=body)

    def update_team(self, ref: str, body: TeamUpdate, *, version: int | None = None) -> TeamView:
        """A team changes, or is renamed."""
        return self.transport.call("team_update", TeamView, path={"ref": ref}, body=body, version=version)

    def delete_team(self, ref: str, *, dry_run: bool = False) -> TeamDeletion:
        """A team goes; what goes along."""
        return self.transport.call("team_delete", TeamDeletion, path={"ref": ref}, query={"dry_run": dry_run})

    def add_to_team(self, ref: str, user: str) -> TeamView:
        """A user is in a team from now on."""
        return self.transport.call("team_member_add", TeamView, path={"ref": ref, "user": user})

    def remove_from_team(self, ref: str, user: str) -> TeamView:
        """A user is in a team no more."""
        return self.transport.call("team_member_remove", TeamView, path={"ref": ref, "user": user})

    def service_accounts(self, *, at: str | None = None) -> list[ServiceAccountView]:
        """The service accounts that the caller sees; with `at` as they were at that moment."""
        return list(self.pages("service_account_list", ServiceAccountView, query={"at": at}))

    def service_account(self, ref: str, *, at: str | None = None) -> ServiceAccountView:
        """One service account; with `at` as it was at that moment."""
        return self.transport.call("service_account_get", ServiceAccountView, path={"ref": ref}, query={"at": at})

    def create_service_account(self, body: ServiceAccountCreate) -> ServiceAccountView:
        """A new service account."""
        return self.transport.call("service_account_create", ServiceAccountView, body=body)

    def update_service_account(
        self, ref: str, body: ServiceAccountUpdate, *, version: int | None = None
    ) -> ServiceAccountView:
        """A service account changes."""
        return self.transport.call(
            "service_account_update", ServiceAccountView, path={"ref": ref}, body=body, version=version
        )

    def delete_service_account(self, ref: str, *, dry_run: bool = False) -> ServiceAccountDeletion:
        """A service account goes; what goes along."""
        return self.transport.call(
            "service_account_delete", ServiceAccountDeletion, path={"ref": ref}, query={"dry_run": dry_run}
        )

    def tokens(self, owner: str | None = None) -> list[TokenView]:
        """The tokens that the caller sees, of one owner where one is named."""
        return list(self.pages("token_list", TokenView, query={"owner": owner}))

    def create_token(self, body: TokenCreate) -> NewToken:
        """A new token; its text is told this once."""
        return self.transport.call("token_create", NewToken, body=body)

    def revoke_token(self, ref: str) -> TokenView:
        """A token lets nobody in any more."""
        return self.transport.call("token_revoke", TokenView, path={"ref": ref})
