"""OpenStack Swift with its S3 interface, as four processes below one folder: the proxy, and a server each of accounts,
containers and objects, with one device and one replica.

Arguments: the folder, and `prepare`, which writes the settings, the rings and `port`, or the name of a server to run
until it is killed. It needs Debian's package python3-swift, and a file system with extended attributes. No memcached is
needed: `Nothing` replaces it.
"""

import os
import pwd
import socket
import sys

from swift.common import utils

SERVERS = ("proxy-server", "account-server", "container-server", "object-server")
folder = sys.argv[1]

COMMON = """
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
user = {user}
swift_dir = {folder}
devices = {folder}/devices
mount_check = false
workers = 0
fallocate_reserve = 0
"""
PROXY = """
[pipeline:main]
pipeline = catch_errors gatekeeper nothing listing_formats bulk s3api tempauth slo versioned_writes symlink proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
error_suppression_limit = 1000000
[filter:nothing]
paste.filter_factory = swiftserver:nothing
[filter:s3api]
use = egg:swift#s3api
location = us-east-1
storage_domain = localhost
[filter:tempauth]
use = egg:swift#tempauth
user_test_safelight = secret-of-swift .admin
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:bulk]
use = egg:swift#bulk
[filter:slo]
use = egg:swift#slo
[filter:versioned_writes]
use = egg:swift#versioned_writes
allow_object_versioning = true
[filter:symlink]
use = egg:swift#symlink
"""
STORAGE = """
[pipeline:main]
pipeline = {name}
[app:{name}]
use = egg:swift#{kind}
"""


class Nothing:
    """A cache that keeps nothing. The users of tempauth refuse to work without a cache, and need none for S3."""

    def get(self, *args, **named):
        return None

    set = delete = set_multi = get_multi = get


def nothing(settings, **local):
    """Returns the cache as a filter for the proxy."""
    def filtered(application):
        return lambda environ, start: application({**environ, "swift.cache": Nothing()}, start)
    return filtered


def prepare():
    # All are open at the same time, so that each has another port.
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in SERVERS]
    ports = {name: one.getsockname()[1] for name, one in zip(SERVERS, sockets)}
    os.makedirs(f"{folder}/devices/disk", exist_ok=True)
    try:
        os.setxattr(f"{folder}/devices", "user.test", b"1")
    except OSError as error:
        sys.exit(f"the file system of {folder} has no extended attributes ({error}); name another with TMPDIR")
    with open(f"{folder}/swift.conf", "w") as opened:
        opened.write("[swift-hash]\nswift_hash_path_suffix = test\nswift_hash_path_prefix = test\n"
                     "[storage-policy:0]\nname = one\ndefault = yes\n")
    use_folder()
    from swift.common.ring import RingBuilder
    for name in SERVERS:
        kind = name.removesuffix("-server")
        common = COMMON.format(port=ports[name], user=pwd.getpwuid(os.geteuid()).pw_name, folder=folder)
        with open(f"{folder}/{name}.conf", "w") as opened:
            opened.write(common + (PROXY if kind == "proxy" else STORAGE.format(name=name, kind=kind)))
        if kind != "proxy":
            ring = RingBuilder(part_power=4, replicas=1, min_part_hours=0)
            device = {"region": 1, "zone": 1, "ip": "127.0.0.1", "port": ports[name], "device": "disk", "weight": 1}
            ring.add_dev(device)
            ring.rebalance()
            ring.get_ring().save(f"{folder}/{kind}.ring.gz")
    with open(f"{folder}/port", "w") as opened:
        opened.write(str(ports["proxy-server"]))


def use_folder():
    """Makes Swift read its common settings from the folder instead of /etc."""
    utils.set_swift_dir(folder)


def serve(name):
    use_folder()
    from swift.common.wsgi import run_wsgi
    return run_wsgi(f"{folder}/{name}.conf", name, verbose=True)


if __name__ == "__main__":
    sys.exit(prepare() if sys.argv[2] == "prepare" else serve(sys.argv[2]))
