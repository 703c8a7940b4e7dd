"""A workload exchanges its token, creates a group, binds a role, lists groups, and reads a typed error. See README.md."""

import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

import grpc
from google.rpc import error_details_pb2, status_pb2

from chainguard.platform.common import uidp_pb2
from chainguard.platform.iam.v2 import groups_pb2, groups_pb2_grpc
from chainguard.platform.iam.v2 import role_bindings_pb2, role_bindings_pb2_grpc
from chainguard.platform.iam.v2 import roles_pb2, roles_pb2_grpc
from chainguard.platform.oidc import oidc_pb2, oidc_pb2_grpc

TIMEOUT_S = 10


def connect(url):
    """A channel to the service: with TLS, or without it to this machine."""
    address = urlsplit(url)
    if address.scheme == "https":
        return grpc.secure_channel(f"{address.hostname}:{address.port or 443}", grpc.ssl_channel_credentials())
    if address.hostname not in ("127.0.0.1", "localhost"):
        raise ValueError("a token must not be sent in cleartext to another machine")
    return grpc.insecure_channel(address.netloc)


def bearer(token):
    return [("authorization", f"Bearer {token}")]


def exchange(channel, url, identity, upstream):
    """An API token of the identity for the workload's own token."""
    sts = oidc_pb2_grpc.SecurityTokenServiceStub(channel)
    request = oidc_pb2.ExchangeRequest(aud=[url], identity=identity)
    return sts.Exchange(request, metadata=bearer(upstream), timeout=TIMEOUT_S).token


def list_children(groups, parent, metadata):
    """All groups directly below another, page by page."""
    request = groups_pb2.ListGroupsRequest(uidp=uidp_pb2.UIDPFilter(children_of=parent), order_by="name", page_size=50)
    while True:
        page = groups.ListGroups(request, metadata=metadata, timeout=TIMEOUT_S)
        yield from page.groups
        if not page.next_page_token:
            return
        request.page_token = page.next_page_token


def field_violations(error):
    """What an error says of fields of the request."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            for detail in status_pb2.Status.FromString(value).details:
                bad_request = error_details_pb2.BadRequest()
                if detail.Unpack(bad_request):
                    yield from bad_request.field_violations


def main():
    url, identity, parent = (os.environ[name] for name in ("ARBOR_API", "IDENTITY", "GROUP"))
    with connect(url) as channel:
        upstream = Path(os.environ["TOKEN_FILE"]).read_text().strip()
        metadata = bearer(exchange(channel, url, identity, upstream))
        print("exchanged a token")

        groups = groups_pb2_grpc.GroupsServiceStub(channel)
        wanted = groups_pb2.Group(name="team of python", description="made by an example")
        request = groups_pb2.CreateGroupRequest(parent=parent, group=wanted)
        group = groups.CreateGroup(request, metadata=metadata, timeout=TIMEOUT_S)
        print("created", group.uid)

        roles = roles_pb2_grpc.RolesServiceStub(channel)
        found = roles.ListRoles(roles_pb2.ListRolesRequest(name="viewer"), metadata=metadata, timeout=TIMEOUT_S)
        bindings = role_bindings_pb2_grpc.RoleBindingsServiceStub(channel)
        wanted = role_bindings_pb2.RoleBinding(identity_uid=identity, role_uid=found.roles[0].uid)
        request = role_bindings_pb2.CreateRoleBindingRequest(parent=group.uid, role_binding=wanted)
        binding = bindings.CreateRoleBinding(request, metadata=metadata, timeout=TIMEOUT_S)
        print("bound the role viewer:", binding.uid)

        for child in list_children(groups, parent, metadata):
            print(child.name)

        request = groups_pb2.CreateGroupRequest(parent=parent, group=groups_pb2.Group(name="Not/Allowed"))
        try:
            groups.CreateGroup(request, metadata=metadata, timeout=TIMEOUT_S)
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.INVALID_ARGUMENT:
                raise
            for violation in field_violations(error):
                print(f"{error.code().name}: {violation.description}")
        else:
            sys.exit("an error of the API was expected")


main()
