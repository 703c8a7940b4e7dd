"""Walks through every call on groups with clients generated for Python, and
through their errors, and checks each answer whole.

Needs stubs generated from proto/ on PYTHONPATH, and in the environment BASE
(address of the service), TOKEN (API token) and GROUP (uid of a group of its
holder); ERROR_DOMAIN as the service has it, unless that follows from BASE.
Prints a line per step; a failed step does not keep the next from being tried.
What it makes it deletes again.
"""

import importlib
import os
import pathlib
import re
import sys
import time
from urllib.parse import urlsplit

import grpc
from google.protobuf import empty_pb2, field_mask_pb2
from google.rpc import error_details_pb2, status_pb2

from chainguard.annotations import annotations_pb2 as annotations
from chainguard.capabilities import capabilities_pb2 as capabilities
from chainguard.platform.common import uidp_pb2 as common
from chainguard.platform.iam.v2beta1 import groups_pb2 as pb
from chainguard.platform.iam.v2beta1 import groups_pb2_grpc
from chainguard.platform.ping.v2beta1 import ping_pb2, ping_pb2_grpc
from google.api import annotations_pb2 as api
from google.api import field_behavior_pb2 as behavior

BASE = urlsplit(os.environ["BASE"])
ROOT = os.environ["GROUP"]
TOKEN = [("authorization", "Bearer " + os.environ["TOKEN"])]
DOMAIN = os.environ.get("ERROR_DOMAIN") or "iam." + BASE.hostname
TIMEOUT_S = 10

# What a proxy in the environment is for is not this.
channel = grpc.insecure_channel(BASE.netloc, options=[("grpc.enable_http_proxy", 0)])
groups = groups_pb2_grpc.GroupsServiceStub(channel)
ping = ping_pb2_grpc.PingServiceStub(channel)

steps = []
# What earlier steps made, by name.
made = {}


def step(function):
    """Adds a step, named by what its function says of itself."""
    steps.append(function)
    return function


def call(method, request, metadata=TOKEN):
    return method(request, metadata=metadata, timeout=TIMEOUT_S)


def equal(got, want):
    if got != want:
        raise AssertionError(f"want: {want!r}\n  got:  {got!r}")


def filtered(**fields):
    return common.UIDPFilter(**fields)


def create(name, parent, description=""):
    """Creates a group, checks it whole and remembers it by `name`."""
    sent = pb.Group(name=name, description=description)
    begun = time.time()
    got = call(groups.CreateGroup, pb.CreateGroupRequest(parent=parent, group=sent))
    below = re.escape(parent) + "/[0-9a-f]{16}" if parent else "[0-9a-f]{40}"
    if not re.fullmatch(below, got.uid):
        raise AssertionError(f"{got.uid} is no uid below {parent!r}")
    want = pb.Group(uid=got.uid, name=name, description=description)
    want.create_time.CopyFrom(got.create_time)
    want.update_time.CopyFrom(got.create_time)
    equal(got, want)
    created = got.create_time
    if not abs(created.seconds - begun) < 60 or created.nanos % 1_000_000 != 0:
        raise AssertionError(f"{created.ToJsonString()} is not now, in milliseconds")
    made[name] = got
    # Groups made in one millisecond have no order in time.
    while time.time_ns() // 1_000_000 <= created.ToMilliseconds():
        pass


def page(want, total, skipped=0, more=False, **fields):
    """Lists groups and checks the page whole; returns the token of the next."""
    got = call(groups.ListGroups, pb.ListGroupsRequest(**fields))
    token = got.next_page_token
    equal(token != "", more)
    envelope = {"total_count": total, "skipped": skipped, "next_page_token": token}
    equal(got, pb.ListGroupsResponse(groups=[made[name] for name in want], **envelope))
    equal(got.HasField("total_count"), True)
    return token


def update(name, want, mask=None, /, **fields):
    """Updates a group that was made as `name`, checks it whole and remembers it."""
    before = made[name]
    request = pb.UpdateGroupRequest(group=pb.Group(uid=before.uid, **fields))
    if mask is not None:
        request.update_mask.CopyFrom(field_mask_pb2.FieldMask(paths=mask))
    got = call(groups.UpdateGroup, request)
    after = pb.Group()
    after.CopyFrom(before)
    for field, value in want.items():
        setattr(after, field, value)
    after.update_time.CopyFrom(got.update_time)
    equal(got, after)
    if not got.update_time.ToNanoseconds() >= before.update_time.ToNanoseconds():
        raise AssertionError("the time of the update went back")
    equal(call(groups.GetGroup, pb.GetGroupRequest(uid=before.uid)), after)
    made[name] = after


def delete(name):
    equal(call(groups.DeleteGroup, pb.DeleteGroupRequest(uid=made[name].uid)), empty_pb2.Empty())


def refused(method, request, code, message, *details, metadata=TOKEN, counts=None):
    """Makes a call that must fail, and decodes google.rpc.Status of its trailers."""
    try:
        got = call(method, request, metadata)
    except grpc.RpcError as error:
        equal((error.code(), error.details()), (code, message))
        carried = [value for key, value in error.trailing_metadata() if key == "grpc-status-details-bin"]
        equal(len(carried), 1)
        status = status_pb2.Status.FromString(carried[0])
    else:
        raise AssertionError(f"it was answered: {got!r}")
    equal((status.code, status.message), (code.value[0], message))
    want = [error_details_pb2.ErrorInfo(reason=code.name, domain=DOMAIN, metadata=counts), *details]
    types = ["type.googleapis.com/" + expected.DESCRIPTOR.full_name for expected in want]
    equal([detail.type_url for detail in status.details], types)
    for packed, expected in zip(status.details, want):
        got = type(expected)()
        equal(packed.Unpack(got), True)
        equal(got, expected)


@step
def all_that_was_generated_can_be_imported():
    top = pathlib.Path(os.environ["PYTHONPATH"])
    files = sorted(top.rglob("*_pb2*.py"))
    for file in files:
        importlib.import_module(".".join(file.relative_to(top).with_suffix("").parts))
    equal(len(files) > 20, True)


@step
def options_of_the_protos_can_be_read():
    service = pb.DESCRIPTOR.services_by_name["GroupsService"]
    options = service.methods_by_name["UpdateGroup"].GetOptions()
    rule = options.Extensions[api.http]
    equal((rule.patch, rule.body), ("/iam/v2beta1/groups/{group.uid=**}", "group"))
    rights = options.Extensions[annotations.iam].enabled
    equal(list(rights.capabilities), [capabilities.CAP_IAM_GROUPS_UPDATE])
    uid = pb.Group.DESCRIPTOR.fields_by_name["uid"].GetOptions()
    equal(list(uid.Extensions[behavior.field_behavior]), [behavior.OUTPUT_ONLY])
    equal(uid.Extensions[annotations.iam_scope], True)


@step
def ping_without_a_token():
    equal(call(ping.Ping, ping_pb2.PingRequest(), None), ping_pb2.PingResponse(response="pong"))


@step
def create_a_root():
    create("python walk", "", "a root of its own")


@step
def create_a_child():
    create("walk", ROOT, "Größe – 50 %")


@step
def create_more_below_it():
    create("beta", made["walk"].uid, "second")
    create("alpha", made["walk"].uid, "first")
    create("deep", made["beta"].uid)


@step
def get():
    for name in ("python walk", "walk", "deep"):
        equal(call(groups.GetGroup, pb.GetGroupRequest(uid=made[name].uid)), made[name])


@step
def list_what_lies_below():
    below = filtered(descendants_of=made["walk"].uid)
    page(["beta", "alpha", "deep"], 3, uidp=below, order_by="created_at")


@step
def list_children():
    within = filtered(children_of=made["walk"].uid)
    page(["alpha", "beta"], 2, uidp=within, order_by="name")
    page(["beta", "alpha"], 2, uidp=within, order_by="name desc")


@step
def list_by_name():
    page(["deep"], 1, uidp=filtered(descendants_of=made["walk"].uid), name="deep")
    page([], 0, uidp=filtered(children_of=made["walk"].uid), name="deep")


@step
def list_page_after_page():
    asked = {"uidp": filtered(descendants_of=made["walk"].uid), "order_by": "created_at desc", "page_size": 2}
    token = page(["deep", "alpha"], 3, more=True, **asked)
    page(["beta"], 3, page_token=token, **asked)


@step
def list_from_a_place_on():
    asked = {"uidp": filtered(descendants_of=made["walk"].uid), "order_by": "created_at"}
    page(["alpha"], 3, skipped=1, more=True, page_size=1, skip=1, **asked)
    page([], 3, skipped=3, skip=3, **asked)


@step
def update_what_is_there():
    update("alpha", {"description": "changed"}, description="changed")


@step
def update_what_the_mask_names():
    update("alpha", {"name": "gamma"}, ["name"], name="gamma", description="ignored")


@step
def update_and_clear():
    update("alpha", {"name": "delta", "description": ""}, ["name", "description"], name="delta")


@step
def create_without_a_name():
    rule = "name must match ^[a-z0-9 ._-]{1,}$"
    violation = error_details_pb2.BadRequest.FieldViolation(field="name", description=f"{rule}: name is required")
    refused(
        groups.CreateGroup,
        pb.CreateGroupRequest(parent=ROOT, group=pb.Group()),
        grpc.StatusCode.INVALID_ARGUMENT,
        f"Invalid argument: name: {rule}",
        error_details_pb2.BadRequest(field_violations=[violation]),
    )


@step
def delete_what_is_not_empty():
    rule = "cannot delete group with child groups"
    violation = error_details_pb2.PreconditionFailure.Violation(type="RESOURCE_NOT_EMPTY", description=rule)
    refused(
        groups.DeleteGroup,
        pb.DeleteGroupRequest(uid=made["walk"].uid),
        grpc.StatusCode.FAILED_PRECONDITION,
        f"Precondition failed: {rule}",
        error_details_pb2.PreconditionFailure(violations=[violation]),
        counts={"groups": "2"},
    )


@step
def list_without_a_token():
    refused(
        groups.ListGroups,
        pb.ListGroupsRequest(),
        grpc.StatusCode.UNAUTHENTICATED,
        "Unauthenticated: authorization: a valid bearer token is required",
        metadata=None,
    )


@step
def delete_from_the_leaves_up():
    for name in ("deep", "beta", "alpha", "walk"):
        delete(name)
    page([], 0, uidp=filtered(descendants_of=ROOT), name="walk")


@step
def delete_the_root():
    delete("python walk")


@step
def get_what_is_gone():
    uid = made["walk"].uid
    refused(
        groups.GetGroup,
        pb.GetGroupRequest(uid=uid),
        grpc.StatusCode.NOT_FOUND,
        f"Not found: group: there is no group {uid}",
        error_details_pb2.ResourceInfo(resource_type="iam.chainguard.dev/Group", resource_name=uid),
    )


def run():
    failed = 0
    for function in steps:
        name = function.__name__.replace("_", " ")
        try:
            function()
            print(f"ok {name}")
        # Whatever goes wrong in a step is that step's.
        except Exception as error:
            failed += 1
            print(f"FAILED {name}\n  {type(error).__name__}: {error}")
    channel.close()
    return 1 if failed else 0


sys.exit(run())
