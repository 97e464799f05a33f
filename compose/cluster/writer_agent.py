#!/usr/bin/python3
"""Answers HAProxy's agent checks: is the catalog on a host the one that writes?

PostgreSQL knows it: the writing catalog's session holds an advisory lock. A check sends the name of a host; the answer is
"up" or "down". While the database cannot be asked, the answer is a weight, which leaves the server as it was.

usage: writer_agent.py DATABASE [PORT]
"""

import socket
import socketserver
import sys
import threading
import time

import psycopg2

# Who holds the advisory lock of Services/Catalog/Store/PostgreSQL/WriterElection.swift, by the address of the session.
WRITER = """
    SELECT host(client_addr) FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE locktype = 'advisory' AND classid = x'5AFE'::integer AND granted
"""
# The lock is not an event that a session could wait for.
POLL_SECONDS = 0.2

writer = None


def follow_writer(database):
    """Keeps `writer` current: the address of the writing catalog, or None if it is not known."""
    global writer
    connection = None
    while True:
        try:
            if connection is None:
                connection = psycopg2.connect(database)
                connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(WRITER)
                row = cursor.fetchone()
            now = row[0] if row else None
        except psycopg2.Error:
            connection, now = None, None
        if now != writer:
            print(f"the writing catalog is {now or 'not known'}", flush=True)
            writer = now
        time.sleep(POLL_SECONDS)


class AgentCheck(socketserver.StreamRequestHandler):
    """One check of HAProxy: a line with the name of a host, and a line with the answer."""

    timeout = 5

    def handle(self):
        name = self.rfile.readline(256).decode().strip()
        try:
            is_writer = socket.gethostbyname(name) == writer
        except OSError:
            is_writer = False
        if writer is None:
            answer = "100%"
        else:
            answer = "up" if is_writer else "down"
        self.wfile.write(f"{answer}\n".encode())


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


def main():
    port = int(sys.argv[2]) if len(sys.argv) > 2 else 5580
    threading.Thread(target=follow_writer, args=[sys.argv[1]], daemon=True).start()
    with Server(("127.0.0.1", port), AgentCheck) as server:
        server.serve_forever()


main()
