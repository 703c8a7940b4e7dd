"""Calls methods of GroupsService by grpcio: reads a call per line of JSON from standard
input, and writes what it came to as another. Needs stubs generated from proto/ on
PYTHONPATH, and in the environment BASE (address of the service).
"""

import json
import os
import sys
from urllib.parse import urlsplit

import grpc
from google.protobuf import json_format, symbol_database
from google.rpc import error_details_pb2, status_pb2

from chainguard.platform.iam.v2beta1 import groups_pb2 as pb

TIMEOUT_S = 10
SERVICE = pb.DESCRIPTOR.services_by_name["GroupsService"]
messages = symbol_database.Default()

# What a proxy in the environment is for is not this.
channel = grpc.insecure_channel(urlsplit(os.environ["BASE"]).netloc, options=[("grpc.enable_http_proxy", 0)])


def message_class(descriptor):
    return messages.GetPrototype(descriptor)


def request_of(descriptor, fields):
    """A message from an init object, whose field masks are lists of paths of any spelling."""
    mask = fields.pop("updateMask", None)
    request = json_format.ParseDict(fields, message_class(descriptor)())
    if mask is not None:
        request.update_mask.paths.extend(mask["paths"])
    return request


def detail_of(detail):
    """A detail as JSON; its type is known by its import above."""
    return json_format.MessageToDict(detail)


def failure_of(error):
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            status = status_pb2.Status.FromString(value)
            # The status is told twice; clients read either.
            if (status.code, status.message) != (error.code().value[0], error.details()):
                raise AssertionError(f"{error.details()!r} is not {status.message!r}")
            return {
                "code": error.code().name,
                "message": error.details(),
                "details": [detail_of(detail) for detail in status.details],
            }
    return {"code": error.code().name, "message": error.details(), "details": []}


def outcome_of(call):
    name = call["method"]
    # A method that is not served is called with messages of one that is.
    method = SERVICE.methods_by_name.get(name) or SERVICE.methods_by_name["DeleteGroup"]
    unary = channel.unary_unary(
        f"/{SERVICE.full_name}/{name}",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=message_class(method.output_type).FromString,
    )
    token = call.get("token")
    metadata = [] if token is None else [("authorization", f"Bearer {token}")]
    try:
        answer = unary(request_of(method.input_type, call["request"]), metadata=metadata, timeout=TIMEOUT_S)
    except grpc.RpcError as error:
        return failure_of(error)
    return {"code": "OK", "result": json_format.MessageToDict(answer)}


for line in sys.stdin:
    print(json.dumps(outcome_of(json.loads(line))), flush=True)
