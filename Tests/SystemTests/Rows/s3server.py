"""The S3 server of moto in a process of its own, with a log of its requests and faults on demand.

Signatures are checked with botocore's own code. Arguments: the folder for its files, and the port (0: any). It writes
`port` when it is ready, appends one line of JSON for each request to `requests`, and before each request it reads
`faults`, a JSON object with any of

- `status`, `code`: the answer to all requests
- `skew`: seconds by which its clock is ahead
- `truncate`: true to send half of each object and close the connection
- `swap`: true to send other bytes of the same length
- `delay`: seconds to wait before each answer to GET
- `unconditional`: true to refuse conditions of uploads, like services that do not support them
- `plain`: true to support no checksum except `ETag`, like services with the first S3 interface
- `full`: true to refuse new objects with the error of a full store
- `unwritable`: true to refuse all uploads, like a read-only proxy
- `largest`: the maximum size of a body in bytes, like a proxy with a limit
- `rangeless`: true to answer with whole objects, like a proxy that does not support ranges
- `slow`: seconds over which each object is sent
"""

import base64
import datetime
import hashlib
import io
import json
import os
import sys
import threading
import time

from botocore.auth import SIGV4_TIMESTAMP, S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

folder, port = sys.argv[1], int(sys.argv[2])
ACCESS, SECRET, REGION = "safelight-key", "a secret that is in no log", "us-east-1"
moto = DomainDispatcherApplication(create_backend_app)


def faults():
    try:
        with open(f"{folder}/faults") as opened:
            return json.load(opened)
    except (FileNotFoundError, json.JSONDecodeError):
        return {}


class Signed(S3SigV4Auth):
    """Botocore's signature at the time of a request instead of now."""

    def _modify_request_before_signing(self, request):
        pass


def signature(environ, body):
    """Returns the value of `Authorization` that botocore computes for a request."""
    sent = environ["HTTP_AUTHORIZATION"]
    names = sent.split("SignedHeaders=")[1].split(",")[0].split(";")
    headers = {}
    for name in names:
        key = name.upper().replace("-", "_")
        headers[name] = environ.get(f"HTTP_{key}", environ.get(key, ""))
    path, _, query = environ["RAW_URI"].partition("?")
    url = f"http://{environ['HTTP_HOST']}{path}" + (f"?{query}" if query else "")
    request = AWSRequest(environ["REQUEST_METHOD"], url, headers, body)
    request.context["timestamp"] = environ["HTTP_X_AMZ_DATE"]
    request.context["payload_signing_enabled"] = True
    auth = Signed(Credentials(ACCESS, SECRET), "s3", REGION)
    canonical = auth.canonical_request(request)
    return auth.signature(auth.string_to_sign(request, canonical), request)


def refusal(start, status, code, method="GET", headers=()):
    text = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>test</Message></Error>".encode()
    start(f"{status} X", [("Content-Type", "application/xml"), ("Content-Length", str(len(text))), *headers])
    return [b"" if method == "HEAD" else text]


def stored(path):
    """Returns the file that stores an object, so that a killed server has it again."""
    return f"{folder}/objects/{path.strip('/').replace('/', '_')}"


def keep(method, path, body, status):
    """Stores the change of a request in a file, before the request is answered."""
    if "?" in path or path.count("/") < 2 or not status.startswith("2"):
        return
    if method == "PUT":
        with open(f"{stored(path)}.{threading.get_ident()}", "wb") as opened:
            opened.write(path.encode() + b"\n" + body)
        os.rename(opened.name, stored(path))
    elif method == "DELETE" and os.path.exists(stored(path)):
        os.remove(stored(path))


def application(environ, start):
    method, path = environ["REQUEST_METHOD"], environ["RAW_URI"]
    length = int(environ.get("CONTENT_LENGTH") or 0)
    body = environ["wsgi.input"].read(length) if length else b""
    fault = faults()
    with open(f"{folder}/requests", "a") as log:
        log.write(json.dumps({"method": method, "path": path, "range": environ.get("HTTP_RANGE")}) + "\n")
    if "status" in fault:
        return refusal(start, fault["status"], fault.get("code", ""), method)
    if not path.startswith("/moto-api"):
        now = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=fault.get("skew", 0))
        dated = [("Date", now.strftime("%a, %d %b %Y %H:%M:%S GMT"))]
        try:
            stamp = datetime.datetime.strptime(environ["HTTP_X_AMZ_DATE"], SIGV4_TIMESTAMP)
            stamp = stamp.replace(tzinfo=datetime.timezone.utc)
            if abs((stamp - now).total_seconds()) > 900:
                return refusal(start, 403, "RequestTimeTooSkewed", method, dated)
            sent = environ["HTTP_AUTHORIZATION"]
            if f"Credential={ACCESS}/" not in sent:
                return refusal(start, 403, "InvalidAccessKeyId", method)
            if sent.split("Signature=")[1] != signature(environ, body):
                return refusal(start, 403, "SignatureDoesNotMatch", method)
        except KeyError:
            return refusal(start, 403, "AccessDenied", method)
        if hashlib.sha256(body).hexdigest() != environ["HTTP_X_AMZ_CONTENT_SHA256"]:
            return refusal(start, 400, "XAmzContentSHA256Mismatch", method)
    if fault.get("unconditional") and "HTTP_IF_NONE_MATCH" in environ:
        return refusal(start, 501, "NotImplemented", method)
    if fault.get("full") and method in ("PUT", "POST"):
        return refusal(start, 507, "InsufficientStorage", method)
    if fault.get("unwritable") and method in ("PUT", "POST"):
        return refusal(start, 405, "MethodNotAllowed", method)
    if fault.get("plain") and method == "POST" and b"Checksum" in body:
        return refusal(start, 400, "MalformedXML", method)
    if len(body) > fault.get("largest", len(body)):
        return refusal(start, 413, "", method)
    if fault.get("rangeless"):
        environ.pop("HTTP_RANGE", None)
    environ["wsgi.input"] = io.BytesIO(body)
    answer = {}

    def begin(status, headers, info=None):
        if fault.get("plain"):
            headers = [header for header in headers if not header[0].lower().startswith("x-amz-checksum")]
        answer["status"], answer["headers"] = status, headers
        return lambda data: None

    parts = b"".join(moto(environ, begin))
    is_object = method == "GET" and "?" not in path and answer["status"].startswith("20") and path.count("/") > 1
    if is_object and fault.get("swap"):
        parts = bytes(byte ^ 1 for byte in parts)
    if is_object and fault.get("delay"):
        time.sleep(fault["delay"])
    keep(method, path, body, answer["status"])
    start(answer["status"], answer["headers"])
    if is_object and fault.get("truncate"):
        return [parts[:len(parts) // 2]]
    if is_object and fault.get("slow"):
        return slowly(parts, fault["slow"])
    return [parts]


def slowly(data, seconds):
    """Yields the bytes in twenty pieces, over some seconds."""
    step = max(1, len(data) // 20)
    for begin in range(0, len(data), step):
        yield data[begin:begin + step]
        time.sleep(seconds / 20)


class Handler(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, type, message, *args):
        pass

    def log_request(self, *args):
        pass


certificate = os.environ.get("S3_CERTIFICATE")
security = (certificate, os.environ["S3_KEY"]) if certificate else None
server = make_server("127.0.0.1", port, application, threaded=True, request_handler=Handler, ssl_context=security)
os.makedirs(f"{folder}/objects", exist_ok=True)


def put(path, body=b""):
    """Creates the bucket or an object."""
    checksum = base64.b64encode(hashlib.sha256(body).digest()).decode()
    environ = {
        "REQUEST_METHOD": "PUT", "PATH_INFO": path, "RAW_URI": path, "REQUEST_URI": path, "QUERY_STRING": "",
        "SERVER_NAME": "127.0.0.1", "SERVER_PORT": str(server.server_port), "SERVER_PROTOCOL": "HTTP/1.1",
        "HTTP_HOST": f"127.0.0.1:{server.server_port}", "wsgi.url_scheme": "http", "wsgi.input": io.BytesIO(body),
        "CONTENT_LENGTH": str(len(body)), "wsgi.errors": sys.stderr, "HTTP_X_AMZ_SDK_CHECKSUM_ALGORITHM": "SHA256",
        "HTTP_X_AMZ_CHECKSUM_SHA256": checksum,
        "HTTP_AUTHORIZATION": f"AWS4-HMAC-SHA256 Credential={ACCESS}/20260101/us-east-1/s3/aws4_request, "
                              "SignedHeaders=host, Signature=0",
    }
    got = {}
    b"".join(moto(environ, lambda status, headers, info=None: got.update(status=status)))
    assert got["status"].startswith("200"), got


put("/photos")
for name in os.listdir(f"{folder}/objects"):
    with open(f"{folder}/objects/{name}", "rb") as opened:
        path, _, body = opened.read().partition(b"\n")
    if stored(path.decode()).endswith(f"/{name}"):
        put(path.decode(), body)
with open(f"{folder}/port.new", "w") as opened:
    opened.write(str(server.server_port))
os.rename(f"{folder}/port.new", f"{folder}/port")
print("ready", flush=True)
server.serve_forever()
