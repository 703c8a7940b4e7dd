"""Calls any method by grpcio: reads a call per line of JSON from standard input, and
writes what it came to as another. Needs stubs generated from proto/ on PYTHONPATH, and
in the environment BASE (address of the service).
"""

import importlib
import json
import os
import sys
from urllib.parse import urlsplit

import grpc
from google.protobuf import json_format, symbol_database
from google.rpc import error_details_pb2, status_pb2

TIMEOUT_S = 10
messages = symbol_database.Default()

# What a proxy in the environment is for is not this.
channel = grpc.insecure_channel(urlsplit(os.environ["BASE"]).netloc, options=[("grpc.enable_http_proxy", 0)])


def message_class(descriptor):
    return messages.GetPrototype(descriptor)


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
    file = importlib.import_module(call["file"].replace("/", ".") + "_pb2").DESCRIPTOR
    service = file.services_by_name[call["service"]]
    method = service.methods_by_name[call["method"]]
    unary = channel.unary_unary(
        f"/{service.full_name}/{method.name}",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=message_class(method.output_type).FromString,
    )
    request = json_format.ParseDict(call["request"], message_class(method.input_type)())
    token = call.get("token")
    metadata = [] if token is None else [("authorization", f"Bearer {token}")]
    try:
        answer = unary(request, metadata=metadata, timeout=TIMEOUT_S)
    except grpc.RpcError as error:
        return failure_of(error)
    return {"code": "OK", "result": json_format.MessageToDict(answer)}


for line in sys.stdin:
    print(json.dumps(outcome_of(json.loads(line))), flush=True)
