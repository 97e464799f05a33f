"""Tests of atomic writes of files."""

import os
import stat
import tempfile
import threading
import unittest
from unittest import mock

import safelight
from safelight.progress import Progress, save_bytes, save_parts


class SavingTests(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)

    def content(self, name):
        with open(f"{self.folder}/{name}", "rb") as file:
            return file.read()

    def test_a_file_is_synced_before_it_is_renamed_and_its_folder_afterwards(self):
        path = f"{self.folder}/x"
        steps = []
        sync, replace = os.fsync, os.replace

        def traced_sync(descriptor):
            is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
            # All bytes are written by now, and none are left in a buffer: the size is that of the whole file.
            steps.append("sync folder" if is_folder else f"sync {os.fstat(descriptor).st_size} bytes")
            sync(descriptor)

        def traced_replace(source, target):
            steps.append(f"rename to {target}")
            replace(source, target)

        with mock.patch("os.fsync", traced_sync), mock.patch("os.replace", traced_replace):
            save_parts(path, [b"ab", b"c"], 3)
            save_bytes(path, b"abcd")
            with mock.patch.dict(os.environ, SAFELIGHT_PRESETS=self.folder):
                safelight.save_preset("warm")
        preset = os.path.getsize(f"{self.folder}/warm.json")
        self.assertEqual(steps, [
            "sync 3 bytes", f"rename to {path}", "sync folder",
            "sync 4 bytes", f"rename to {path}", "sync folder",
            f"sync {preset} bytes", f"rename to {self.folder}/warm.json", "sync folder",
        ])
        self.assertEqual(self.content("x"), b"abcd")

    def test_a_file_that_cannot_be_synced_keeps_its_old_bytes(self):
        save_bytes(f"{self.folder}/x", b"old")
        with mock.patch("os.fsync", side_effect=OSError(5, "Input/output error")):
            with self.assertRaises(OSError):
                save_bytes(f"{self.folder}/x", b"new")
        self.assertEqual((self.content("x"), os.listdir(self.folder)), (b"old", ["x"]))

    def test_a_pipe_is_written_and_not_replaced(self):
        path = f"{self.folder}/pipe"
        os.mkfifo(path)
        received = []

        def read():
            with open(path, "rb") as file:
                received.append(file.read())

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        progress = []
        save_parts(path, [b"ab", b"c"], 3, progress.append)
        self.assertTrue(stat.S_ISFIFO(os.stat(path).st_mode))
        reader.join(10)
        self.assertEqual(received, [b"abc"])
        self.assertEqual(progress, [Progress(2, 3, path), Progress(3, 3, path)])
        self.assertEqual(os.listdir(self.folder), ["pipe"])

    def test_a_device_stays_a_device(self):
        # Through a link, because a mistake would replace the device of the whole machine.
        os.symlink("/dev/null", f"{self.folder}/null")
        with mock.patch("os.replace", side_effect=AssertionError("it is replaced")):
            save_bytes(f"{self.folder}/null", b"abc")
        self.assertTrue(stat.S_ISCHR(os.stat(f"{self.folder}/null").st_mode))

    def test_a_link_stays_a_link_and_its_file_is_replaced(self):
        os.mkdir(f"{self.folder}/elsewhere")
        for name in ["there", "not there yet"]:
            os.symlink(f"elsewhere/{name}", f"{self.folder}/{name}")
        save_bytes(f"{self.folder}/elsewhere/there", b"old")
        for name in ["there", "not there yet"]:
            save_bytes(f"{self.folder}/{name}", b"new")
            self.assertTrue(os.path.islink(f"{self.folder}/{name}"))
            self.assertEqual(self.content(f"elsewhere/{name}"), b"new")
        self.assertEqual(sorted(os.listdir(f"{self.folder}/elsewhere")), ["not there yet", "there"])

    def test_a_folder_is_not_replaced(self):
        os.mkdir(f"{self.folder}/x")
        with self.assertRaises(IsADirectoryError):
            save_bytes(f"{self.folder}/x", b"abc")
        self.assertEqual(os.listdir(self.folder), ["x"])


if __name__ == "__main__":
    unittest.main()
