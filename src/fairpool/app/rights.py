"""Who may do what: one table, by route and role. What is not in it, nobody but an admin may do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from fairpool.app.authz import Principal, Right, Role


@dataclass(frozen=True, slots=True)
class Rights:
    """How far each role may use a route."""

    admin: Right
    operator: Right
    member: Right
    viewer: Right

    def of(self, role: Role) -> Right:
        """How far that role may."""
        by_role = {
            Role.ADMIN: self.admin,
            Role.OPERATOR: self.operator,
            Role.MEMBER: self.member,
            Role.VIEWER: self.viewer,
        }
        return by_role[role]


_ANYBODY: Final = Rights(Right.ALL, Right.ALL, Right.ALL, Right.ALL)
_TO_READ: Final = Rights(Right.ALL, Right.ALL, Right.OWN, Right.ALL)
_TO_WATCH: Final = Rights(Right.ALL, Right.ALL, Right.NO, Right.ALL)
_TO_OPERATE: Final = Rights(Right.ALL, Right.ALL, Right.NO, Right.NO)
_TO_WORK: Final = Rights(Right.ALL, Right.ALL, Right.OWN, Right.NO)
_TO_ADMINISTER: Final = Rights(Right.ALL, Right.NO, Right.NO, Right.NO)
_FOR_ITS_MAKER: Final = Rights(Right.OWN, Right.OWN, Right.OWN, Right.NO)
_FOR_THE_INSTALLATION: Final = Rights(Right.NO, Right.NO, Right.NO, Right.NO)
_OF_ONES_OWN: Final = Rights(Right.OWN, Right.OWN, Right.OWN, Right.OWN)
_FOR_ONESELF: Final = Rights(Right.ALL, Right.OWN, Right.OWN, Right.OWN)

RIGHTS: Final[Mapping[str, Rights]] = MappingProxyType(
    {
        "pool_list": _TO_READ,
        "pool_create": _TO_OPERATE,
        "pool_get": _TO_READ,
        "pool_update": _TO_OPERATE,
        "pool_delete": _TO_OPERATE,
        "pool_history": _TO_READ,
        "node_update": _TO_OPERATE,
        "policy_list": _TO_READ,
        "policy_create": _TO_OPERATE,
        "policy_get": _TO_READ,
        "policy_update": _TO_OPERATE,
        "policy_delete": _TO_OPERATE,
        "policy_history": _TO_READ,
        "profile_list": _TO_READ,
        "profile_create": _TO_OPERATE,
        "profile_get": _TO_READ,
        "profile_update": _TO_OPERATE,
        "profile_delete": _TO_OPERATE,
        "queue_list": _TO_READ,
        "queue_get": _TO_READ,
        "vault_list": _TO_WORK,
        "vault_create": _TO_ADMINISTER,
        "vault_get": _TO_WORK,
        "vault_update": _TO_ADMINISTER,
        "vault_delete": _TO_ADMINISTER,
        "vault_history": _TO_OPERATE,
        "vault_rotate": _TO_ADMINISTER,
        "plan": _TO_WATCH,
        "apply": _TO_OPERATE,
        "schema_list": _ANYBODY,
        "schema_get": _ANYBODY,
        "component_list": _ANYBODY,
        "component_create": _TO_OPERATE,
        "component_get": _ANYBODY,
        "component_update": _TO_OPERATE,
        "component_delete": _TO_OPERATE,
        "stack_list": _ANYBODY,
        "stack_create": _TO_OPERATE,
        "stack_get": _ANYBODY,
        "stack_update": _TO_OPERATE,
        "stack_delete": _TO_OPERATE,
        "stack_activate": _TO_OPERATE,
        "request_list": _TO_READ,
        "request_create": _TO_WORK,
        "request_bulk": _TO_WORK,
        "request_check": _TO_WORK,
        "request_get": _TO_READ,
        "request_explain": _TO_READ,
        "request_environment": _FOR_ITS_MAKER,
        "request_history": _TO_READ,
        "request_cancel": _TO_WORK,
        "request_release": _TO_WORK,
        "lease_renew": _TO_WORK,
        "lease_bulk": _TO_WORK,
        "run_list": _TO_READ,
        "run_create": _TO_WORK,
        "run_get": _TO_READ,
        "run_update": _TO_WORK,
        "step_create": _TO_WORK,
        "step_get": _TO_READ,
        "step_update": _TO_WORK,
        "user_list": _TO_READ,
        "user_create": _TO_ADMINISTER,
        "user_get": _TO_READ,
        "user_update": _TO_ADMINISTER,
        "user_delete": _TO_ADMINISTER,
        "team_list": _TO_READ,
        "team_create": _TO_ADMINISTER,
        "team_get": _TO_READ,
        "team_update": _TO_ADMINISTER,
        "team_delete": _TO_ADMINISTER,
        "team_member_add": _TO_ADMINISTER,
        "team_member_remove": _TO_ADMINISTER,
        "service_account_list": _TO_READ,
        "service_account_create": _TO_ADMINISTER,
        "service_account_get": _TO_READ,
        "service_account_update": _TO_ADMINISTER,
        "service_account_delete": _TO_ADMINISTER,
        "token_list": _FOR_ONESELF,
        "token_create": _FOR_ONESELF,
        "token_revoke": _FOR_ONESELF,
        "sign_in_options": _ANYBODY,
        "sign_in_begin": _ANYBODY,
        "sign_in_callback": _ANYBODY,
        "sign_in_device": _ANYBODY,
        "sign_in_poll": _ANYBODY,
        "sign_in_exchange": _ANYBODY,
        "workspace_list": _OF_ONES_OWN,
        "workspace_create": _FOR_THE_INSTALLATION,
        "workspace_get": _OF_ONES_OWN,
        "workspace_update": _FOR_THE_INSTALLATION,
        "workspace_delete": _FOR_THE_INSTALLATION,
        "webhook_list": _TO_OPERATE,
        "webhook_create": _TO_OPERATE,
        "webhook_get": _TO_OPERATE,
        "webhook_update": _TO_OPERATE,
        "webhook_delete": _TO_OPERATE,
        "webhook_secret": _TO_OPERATE,
        "webhook_test": _TO_OPERATE,
        "history": _TO_READ,
        "events": _TO_READ,
        "settings_get": _ANYBODY,
        "settings_update": _TO_ADMINISTER,
        "server_info": _ANYBODY,
        "openapi": _ANYBODY,
        "whoami": _ANYBODY,
        "sign_out": _FOR_ONESELF,
        "health": _ANYBODY,
        "ready": _ANYBODY,
        "metrics": _TO_WATCH,
    }
)
"""By the name of the route."""

OF_INSTALLATION: Final = frozenset(name for name in RIGHTS if name.startswith("workspace_"))
"""Routes about workspaces, of which a role in one of them does not make anybody the master: who holds the
installation's own token may use them with all."""


def right_of_caller(route: str, principal: Principal) -> Right:
    """How far whoever calls may use that route."""
    if principal.subject is None and route in OF_INSTALLATION:
        return Right.ALL
    return right_of(route, principal.role)


def right_of(route: str, role: Role) -> Right:
    """How far that role may use that route."""
    rights = RIGHTS.get(route)
    if rights is None:
        return Right.ALL if role is Role.ADMIN else Right.NO
    return rights.of(role)


def roles_for(route: str) -> tuple[Role, ...]:
    """The roles that may use that route at least with what is theirs."""
    return tuple(role for role in Role if right_of(route, role) is not Right.NO)
