# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""A repository server for tests of `tenon pull` and, on another port, the store of files that it leads to.
Each file can be given faults: connections that break off, wrong lengths, wrong bytes, ranges ignored."""
import hashlib
import http.server
import json
import ssl
import threading
import time

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class File:
    """One file, and how the server misbehaves with it."""

    def __init__(self, data, **faults):
        self.data = data
        self.etag = '"%s"' % hashlib.md5(data).hexdigest()
        self.sha256 = hashlib.sha256(data).hexdigest()  # as the list of the repository says
        self.size = len(data)                           # the same
        self.linked = True        # X-Linked-Etag and X-Linked-Size
        self.cuts = []            # bytes after which connections break off, one after the other
        self.always_cut = None    # the same for all
        self.statuses = []        # answers before the file
        self.ranges = "honoured"  # or "ignored", or "wrong": 206 with other bytes
        self.announced = None     # Content-Length
        self.extra = b""          # bytes behind the end
        self.chunked = False
        self.delay = 0            # seconds between pieces of 64 KiB
        self.stall = False        # once: nothing more after the first piece
        self.before = None        # called before each answer, with the number of the answer
        self.answers = 0
        self.__dict__.update(faults)

    def replace(self, data):
        self.data = data
        self.etag = '"%s"' % hashlib.md5(data).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        hub = self.server.hub
        path, _, query = self.path.partition("?")
        hub.log.append((self.server.role, path, dict(self.headers), query))
        try:
            if self.server.role == "store":
                self.send_file(hub.blobs.get(path))
            elif path.startswith("/api/models/"):
                self.send_list(hub, path)
            elif "/resolve/" in path:
                self.send_redirect(hub, path)
            elif path.startswith("/loop"):
                self.answer(302, [("Location", self.path + "x")])
            elif path.startswith("/to/"):
                self.answer(302, [("Location", hub.targets[path])])
            else:
                self.send_file(hub.blobs.get(path))
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            self.close_connection = True

    def answer(self, status, headers=(), body=b""):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def send_list(self, hub, path):
        name = "/".join(path.split("/")[3:5])
        files = hub.repositories.get(name)
        if hub.list_statuses:
            return self.answer(hub.list_statuses.pop(0), hub.list_headers)
        if files is None:
            return self.answer(401, hub.list_headers)
        if isinstance(files, bytes):
            return self.answer(200, [("Content-Type", "application/json")], files)
        siblings = [{"rfilename": "README.md", "size": 3, "blobId": "1"}]
        for file, f in files.items():
            row = {"rfilename": file, "size": f.size, "blobId": "2"}
            if f.sha256:
                row["lfs"] = {"sha256": f.sha256, "size": f.size, "pointerSize": 135}
            siblings.append(row)
        body = json.dumps({"id": name, "sha": COMMIT, "siblings": siblings}).encode()
        return self.answer(200, [("Content-Type", "application/json")], body)

    def send_redirect(self, hub, path):
        parts = path.split("/")
        file = "/".join(parts[5:])
        f = hub.repositories.get("/".join(parts[1:3]), {}).get(file)
        if f is None or parts[4] not in (COMMIT, "main", "other"):
            return self.answer(404)
        key = f"/blob/{parts[1]}/{parts[2]}/{file}"
        hub.blobs[key] = f
        headers = [("Location", f"{hub.store_url}{key}?signature=secret")]
        if f.linked:
            headers += [("X-Linked-Etag", '"%s"' % hashlib.sha256(f.data).hexdigest()),
                        ("X-Linked-Size", str(len(f.data))), ("X-Repo-Commit", COMMIT)]
        return self.answer(302, headers)

    def send_file(self, f):
        if f is None:
            return self.answer(404)
        if f.before:
            f.before(f.answers)
        f.answers += 1
        if f.statuses:
            return self.answer(f.statuses.pop(0), [("Retry-After", "0")])
        data, first = f.data, 0
        wanted = self.headers.get("Range", "")
        if wanted and f.ranges != "ignored" and self.headers.get("If-Range", f.etag) == f.etag:
            first = int(wanted.split("=")[1].rstrip("-"))
            if f.ranges == "wrong":
                first = max(0, first - 7)
            if first >= len(data):
                return self.answer(416, [("Content-Range", f"bytes */{len(data)}")])
        self.send_response(206 if first else 200)
        if first:
            self.send_header("Content-Range", f"bytes {first}-{len(data) - 1}/{len(data)}")
        if f.etag:
            self.send_header("ETag", f.etag)
        body = data[first:] + f.extra
        if f.chunked:
            self.send_header("Transfer-Encoding", "chunked")
        elif f.announced != 0:
            self.send_header("Content-Length", str(f.announced or len(data) - first))
        self.end_headers()
        return self.send_body(f, body)

    def send_body(self, f, body):
        cut = f.always_cut if f.always_cut is not None else f.cuts.pop(0) if f.cuts else None
        if cut is not None:
            body = body[:cut]
        for at in range(0, len(body), 65536):
            piece = body[at:at + 65536]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if f.chunked else piece)
            if f.stall:
                f.stall = False
                time.sleep(4)
                self.close_connection = True
                return
            if f.delay:
                time.sleep(f.delay)
        if cut is None and f.chunked:
            self.wfile.write(b"0\r\n\r\n")
        if cut is not None or f.extra or f.announced is not None:
            self.close_connection = True


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # clients that are killed


class Hub:
    def __init__(self, certificate=None):
        self.repositories, self.blobs, self.targets, self.log = {}, {}, {}, []
        self.list_statuses, self.list_headers = [], []
        self.servers = []
        for role in ("hub", "store"):
            server = Server(("127.0.0.1", 0), Handler)
            server.hub, server.role = self, role
            if certificate:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(certificate)
                server.socket = context.wrap_socket(server.socket, server_side=True)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.servers.append(server)
        scheme = "https" if certificate else "http"
        self.url, self.store_url = (f"{scheme}://127.0.0.1:{s.server_address[1]}" for s in self.servers)

    def close(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()
