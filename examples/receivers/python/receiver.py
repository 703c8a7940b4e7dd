"""Receives events and verifies them. See ../README.md for its variables.

Needs PyJWT and cryptography, as Debian packages them: python3-jwt and python3-cryptography.
"""

import hashlib
import json
import os
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

import jwt

# The largest body of an event, with some room for who has made the change.
MAX_BYTES = 5 * 1024 * 1024
# A token is valid for 5 minutes.
MAX_AGE_SECONDS = 300


class Rejected(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


def read_attributes(headers):
    """Returns the attributes of a CloudEvent in binary mode. Values of header fields are percent-encoded."""
    attributes = {}
    for header, value in headers.items():
        name = header.lower()
        if not name.startswith("ce-"):
            continue
        if name[3:] in attributes:
            raise Rejected(400, f"{name} has more than one value")
        attributes[name[3:]] = unquote(value)
    # An empty value is none, but two of which one is empty are two.
    return {name: value for name, value in attributes.items() if value}


def digest_attributes(attributes):
    """Returns the digest that the token proves: of one line for each attribute, with the length of its value."""
    lines = (f"{name}={len(value.encode())}:{value}\n" for name, value in sorted(attributes.items()))
    return "sha256:" + hashlib.sha256("".join(lines).encode()).hexdigest()


class Verifier:
    def __init__(self, issuer, group, subscription="", require_attributes=False, tolerance_seconds=300):
        self.issuer = issuer
        self.group = group
        # With it, tokens for other subscriptions of the group are refused.
        self.subscription = subscription
        # Services before version 1.8 prove the data alone, and their tokens are accepted unless this is set.
        self.require_attributes = require_attributes
        # How far the clocks of the service and of this machine may differ in either direction.
        self.tolerance_seconds = tolerance_seconds
        self.keys = None
        self.lock = threading.Lock()
        # When the tokens that were accepted are forgotten, in the order in which they were accepted.
        self.accepted = {}

    def verify(self, headers, body):
        """Returns the attributes and the data of an event. Raises Rejected for what is none."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            raise Rejected(401, "authorization must be a bearer token")
        event = read_attributes(headers)
        if event.get("specversion") != "1.0" or not all(event.get(name) for name in ("id", "source", "type")):
            raise Rejected(400, "this is no CloudEvent of version 1.0 in binary mode")
        self._assert_proven(self._verify_token(token).get("webhook"), body, event)
        try:
            event["data"] = json.loads(body)
        except ValueError as error:
            raise Rejected(400, "the data is no JSON") from error
        # The signature is left out: whoever has one can write others that are valid.
        self._accept_once(token.rpartition(".")[0])
        return event

    def _assert_proven(self, claim, body, attributes):
        claim = claim if isinstance(claim, dict) else {}
        if claim.get("digest") != "sha256:" + hashlib.sha256(body).hexdigest():
            raise Rejected(403, "the data is not what was signed")
        if self.require_attributes and not ("attributes" in claim and "subscription" in claim):
            raise Rejected(403, "the token does not prove the attributes")
        if "attributes" in claim and claim["attributes"] != digest_attributes(attributes):
            raise Rejected(403, "the attributes are not what was signed")
        if self.subscription and claim.get("subscription", self.subscription) != self.subscription:
            raise Rejected(403, "the token is for another subscription of the group")

    def _verify_token(self, token):
        try:
            key = self._find_key(token)
            # These algorithms only: never "none", nor one with a shared secret.
            claims = jwt.decode(
                token,
                key,
                algorithms=["RS256", "ES256"],
                audience="customer",
                issuer=self.issuer,
                leeway=self.tolerance_seconds,
                options={"require": ["exp", "iat", "sub"]},
            )
        except jwt.PyJWTError as error:
            raise Rejected(403, f"the token does not prove the event: {error}") from error
        if claims["sub"] != f"webhook:{self.group}":
            raise Rejected(403, "the token is for another group")
        if time.time() - claims["iat"] > MAX_AGE_SECONDS + self.tolerance_seconds:
            raise Rejected(403, "the token is too old")
        return claims

    def _find_key(self, token):
        if self.keys is None:
            try:
                self.keys = jwt.PyJWKClient(self._discover())
                self.keys.get_jwk_set()
            except (OSError, ValueError, jwt.PyJWTError) as error:
                self.keys = None
                raise Rejected(503, "the keys of the issuer cannot be read") from error
        return self.keys.get_signing_key_from_jwt(token).key

    def _discover(self):
        url = self.issuer.rstrip("/") + "/.well-known/openid-configuration"
        with urllib.request.urlopen(url, timeout=10) as response:
            document = json.load(response)
        if document.get("issuer") != self.issuer:
            raise ValueError("the document is of another issuer")
        return document["jwks_uri"]

    def _accept_once(self, token):
        now = time.monotonic()
        with self.lock:
            for old, until in list(self.accepted.items()):
                if until > now:
                    break
                del self.accepted[old]
            if token in self.accepted:
                raise Rejected(403, "the token was used before")
            self.accepted[token] = now + MAX_AGE_SECONDS + 2 * self.tolerance_seconds


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        try:
            length = int(self.headers.get("content-length", "0"))
            if not 0 < length <= MAX_BYTES:
                raise Rejected(400, "the body is absent or too large")
            event = verifier.verify(self.headers, self.rfile.read(length))
        except Rejected as rejected:
            self.send_error(rejected.status, str(rejected).replace("\n", " "))
            return
        # An event may arrive more than once, with the same id: handle it so that this does no harm.
        line = {name: event.get(name, "") for name in ("id", "type", "subject")}
        print(json.dumps(line), flush=True)
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        """Only events are printed."""


verifier = Verifier(
    os.environ["ISSUER"],
    os.environ["GROUP"],
    subscription=os.environ.get("SUBSCRIPTION", ""),
    require_attributes=os.environ.get("REQUIRE_ATTRIBUTES") == "true",
    tolerance_seconds=int(os.environ.get("TOLERANCE_SECONDS", "300")),
)
server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8085"))), Handler)
print(json.dumps({"port": server.server_port}), file=sys.stderr, flush=True)
server.serve_forever()
