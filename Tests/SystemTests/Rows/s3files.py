"""An S3 server that is fast enough for measurements: objects are files, and no signature or checksum is checked.

Arguments: the folder for its files, and the port (0: any). It writes `port` when it is ready and appends one line of
JSON for each request to `requests`. The list of objects is in memory only. Every bucket exists. Zeros are not written,
so that objects from sparse files neither fill nor slow down a disk that a real store would not share.

It knows PUT with `If-None-Match`, GET with one range, HEAD, DELETE, uploads in parts and ListObjectsV2 in one page. It
reports the SHA-256 that a client has announced as if it had computed it.
"""

import base64
import datetime
import hashlib
import json
import os
import socket
import sys
import threading
import urllib.parse

folder, port = sys.argv[1], int(sys.argv[2])
NAMESPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
MAX_HEAD_BYTES = 64 << 10
ZEROS = bytes(1 << 20)
lock = threading.Lock()
objects, uploads, numbers = {}, {}, iter(range(1, sys.maxsize))
log = open(f"{folder}/requests", "a", buffering=1)
data = f"{folder}/data"
os.makedirs(data, exist_ok=True)


class Stored:
    """The bytes of an object: a list of files, because parts are not copied when the upload is completed."""

    def __init__(self, files, checksum):
        self.files, self.checksum = files, checksum
        self.size = sum(size for _, size in files)
        self.tag = f'"{next(numbers):032x}"'
        self.date = datetime.datetime.now(datetime.timezone.utc)

    def remove(self):
        for path, _ in self.files:
            os.unlink(path)

    def send(self, connection, first, end):
        for path, size in self.files:
            begin, stop = max(first, 0), min(end, size)
            if begin < stop:
                with open(path, "rb") as opened:
                    while begin < stop:
                        count = os.sendfile(connection.fileno(), opened.fileno(), begin, stop - begin)
                        if count == 0:
                            raise ConnectionError
                        begin += count
            first, end = first - size, end - size


class Connection:
    def __init__(self, connection):
        self.connection, self.rest = connection, b""
        self.buffer = memoryview(bytearray(1 << 20))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def serve(self):
        try:
            while self.request():
                pass
        except (ConnectionError, TimeoutError):
            pass
        finally:
            self.connection.close()

    def request(self):
        """Answers one request. Returns False at the end of the connection."""
        while b"\r\n\r\n" not in self.rest:
            piece = self.connection.recv(MAX_HEAD_BYTES)
            if not piece or len(self.rest) > MAX_HEAD_BYTES:
                return False
            self.rest += piece
        head, _, self.rest = self.rest.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        self.method, target, _ = first.split(" ")
        self.headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            self.headers[name.lower()] = value.strip()
        self.path, _, query = target.partition("?")
        self.path = urllib.parse.unquote(self.path)
        self.query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        log.write(json.dumps({"method": self.method, "path": target, "range": self.headers.get("range")}) + "\n")
        if self.headers.get("expect", "").lower() == "100-continue":
            self.connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        self.answer()
        return True

    # Bodies

    def pieces(self):
        left = int(self.headers.get("content-length", 0))
        if self.rest:
            piece, self.rest = self.rest[:left], self.rest[left:]
            left -= len(piece)
            yield piece
        while left:
            count = self.connection.recv_into(self.buffer, min(left, len(self.buffer)))
            if count == 0:
                raise ConnectionError
            left -= count
            yield self.buffer[:count]

    def save(self):
        """Writes the body to a new file. Returns its path and size."""
        path, size = f"{data}/{next(numbers)}", 0
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            for piece in self.pieces():
                size += len(piece)
                if bytes(piece) == ZEROS[:len(piece)]:
                    os.lseek(descriptor, len(piece), os.SEEK_CUR)
                    continue
                while len(piece):
                    piece = piece[os.write(descriptor, piece):]
            os.ftruncate(descriptor, size)
        finally:
            os.close(descriptor)
        return path, size

    def reply(self, status, headers=(), body=b"", length=None):
        length = len(body) if length is None else length
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {length}", *(f"{name}: {value}" for name, value in headers)]
        self.connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    def refuse(self, status, code):
        for _ in self.pieces():
            pass
        text = f"<Error><Code>{code}</Code></Error>".encode()
        self.reply(status, [("Content-Type", "application/xml")], b"" if self.method == "HEAD" else text)

    # Requests

    def answer(self):
        if self.path.count("/") == 1 or self.path.endswith("/"):
            return self.list()
        if "uploads" in self.query or "uploadId" in self.query:
            return self.parts()
        if self.method == "PUT":
            return self.put()
        stored = objects.get(self.path)
        if self.method == "DELETE":
            with lock:
                stored = objects.pop(self.path, None)
            if stored:
                stored.remove()
            return self.reply("204 No Content")
        if stored is None:
            return self.refuse("404 Not Found", "NoSuchKey")
        self.get(stored)

    def put(self):
        if self.headers.get("if-none-match") and self.path in objects:
            return self.refuse("412 Precondition Failed", "PreconditionFailed")
        stored = Stored([self.save()], self.headers.get("x-amz-checksum-sha256"))
        self.replace(stored)
        self.reply("200 OK", [("ETag", stored.tag)])

    def replace(self, stored):
        with lock:
            before, objects[self.path] = objects.get(self.path), stored
        if before:
            before.remove()

    def get(self, stored):
        headers = [
            ("ETag", stored.tag), ("Last-Modified", stored.date.strftime("%a, %d %b %Y %H:%M:%S GMT")),
            ("Accept-Ranges", "bytes"),
        ]
        status, first, end = "200 OK", 0, stored.size
        if "range" in self.headers:
            begin, _, last = self.headers["range"].removeprefix("bytes=").partition("-")
            first, end = int(begin), min(int(last) + 1 if last else stored.size, stored.size)
            status = "206 Partial Content"
            headers.append(("Content-Range", f"bytes {first}-{end - 1}/{stored.size}"))
        elif stored.checksum and self.headers.get("x-amz-checksum-mode", "").upper() == "ENABLED":
            headers.append(("x-amz-checksum-sha256", stored.checksum))
        self.reply(status, headers, length=end - first)
        if self.method == "GET":
            stored.send(self.connection, first, end)

    def parts(self):
        if "uploads" in self.query:
            upload = str(next(numbers))
            uploads[upload] = {}
            text = f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
            return self.reply("200 OK", body=text.encode())
        upload = self.query["uploadId"]
        if upload not in uploads:
            return self.refuse("404 Not Found", "NoSuchUpload")
        if self.method == "PUT":
            checksum = self.headers.get("x-amz-checksum-sha256")
            uploads[upload][int(self.query["partNumber"])] = (self.save(), checksum)
            return self.reply("200 OK", [("ETag", f'"{next(numbers):032x}"')])
        for _ in self.pieces():
            pass
        found = [part for _, part in sorted(uploads.pop(upload).items())]
        if self.method == "DELETE":
            Stored([file for file, _ in found], None).remove()
            return self.reply("204 No Content")
        hashes = [base64.b64decode(checksum) for _, checksum in found if checksum]
        whole = None
        if len(hashes) == len(found):
            whole = f"{base64.b64encode(hashlib.sha256(b''.join(hashes)).digest()).decode()}-{len(found)}"
        stored = Stored([file for file, _ in found], whole)
        self.replace(stored)
        text = f"<CompleteMultipartUploadResult><ETag>{stored.tag}</ETag></CompleteMultipartUploadResult>"
        self.reply("200 OK", body=text.encode())

    def list(self):
        bucket = self.path.strip("/")
        start = f"/{bucket}/{self.query.get('prefix', '')}"
        with lock:
            found = sorted((path, stored) for path, stored in objects.items() if path.startswith(start))
        rows = "".join(
            f"<Contents><Key>{path.removeprefix(f'/{bucket}/')}</Key><Size>{stored.size}</Size>"
            f"<ETag>{stored.tag}</ETag>"
            f"<LastModified>{stored.date.strftime('%Y-%m-%dT%H:%M:%S.000Z')}</LastModified></Contents>"
            for path, stored in found
        )
        text = (
            f"<ListBucketResult {NAMESPACE}><Name>{bucket}</Name><KeyCount>{len(found)}</KeyCount>"
            f"<IsTruncated>false</IsTruncated>{rows}</ListBucketResult>"
        )
        self.reply("200 OK", [("Content-Type", "application/xml")], text.encode())


listener = socket.create_server(("127.0.0.1", port), backlog=128)
with open(f"{folder}/port.new", "w") as opened:
    opened.write(str(listener.getsockname()[1]))
os.rename(f"{folder}/port.new", f"{folder}/port")
print("ready", flush=True)
while True:
    connection, _ = listener.accept()
    threading.Thread(target=Connection(connection).serve, daemon=True).start()
