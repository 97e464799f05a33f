"""The programs of `compose/examples` that use the package, run as users run them."""

import contextlib
import hashlib
import hmac
import http.server
import io
import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

import zmq
from PIL import Image

import safelight
from services import Services

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../../compose/examples")


class Program:
    """A running program, whose lines can be awaited."""

    def __init__(self, services, name, *arguments):
        command = [sys.executable, "-B", "-u", f"{EXAMPLES}/{name}", *arguments]
        self.lines, self.arrived = [], threading.Condition()
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            command, env=services.environment, stdout=subprocess.PIPE, stderr=self.errors, text=True
        )
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.arrived:
                self.lines.append(line.strip())
                self.arrived.notify_all()

    def wait_for(self, condition):
        with self.arrived:
            if not self.arrived.wait_for(lambda: condition(self.lines), 30):
                self.errors.seek(0)
                raise AssertionError(f"the program printed {self.lines} and {self.errors.read()}")

    def kill(self):
        """Kills the program. Returns the lines of its errors."""
        self.process.send_signal(signal.SIGKILL)
        return self.end()

    def end(self):
        """Waits for the end of the program. Returns the lines of its errors."""
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()
        with self.errors:
            self.errors.seek(0)
            return self.errors.read().splitlines()


class MirrorTests(unittest.TestCase):
    def mirror(self, name, *lists):
        """Runs the program with a file in its folder. Returns the files at each pause, and at the end."""
        library = mock.Mock()
        library.live.return_value = [None]
        library.fetch.side_effect = lists
        pauses = []
        with tempfile.TemporaryDirectory() as folder:
            open(f"{folder}/{name}", "w").close()
            with mock.patch("safelight.Library", return_value=library), \
                    mock.patch("time.sleep", lambda _: pauses.append(sorted(os.listdir(folder)))), \
                    mock.patch("sys.argv", ["mirror_favorites.py", folder]), \
                    contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                runpy.run_path(f"{EXAMPLES}/mirror_favorites.py")
            return [*pauses, sorted(os.listdir(folder))]

    def asset(self, digit, *thumbnails):
        image = mock.Mock(save=lambda path: open(path, "w").close())
        asset = mock.Mock(id="a" + digit * 26, content_revision="r2", original_filename="one.jpg")
        asset.thumbnail.side_effect = [*thumbnails, image]
        return asset

    def test_a_favourite_that_failed_once_is_saved_later(self):
        asset = self.asset("0", safelight.UnavailableError())
        before = f"{asset.id}-r1.jpg"
        self.assertEqual(
            self.mirror(before, safelight.UnavailableError(), [asset], [asset]),
            [[before], [before], [f"{asset.id}-r2.jpg"]],
        )

    def test_a_favourite_that_fails_does_not_delay_the_others(self):
        failing = self.asset("0", *[safelight.DeadlineExceededError()] * 2)
        other, later = self.asset("1"), self.asset("2")
        self.assertEqual(
            self.mirror("other.txt", [failing, other], [failing, later], [later]),
            [[f"{other.id}-r2.jpg", "other.txt"], [f"{later.id}-r2.jpg", "other.txt"],
             [f"{later.id}-r2.jpg", "other.txt"]],
        )


class AutoEditTests(unittest.TestCase):
    def test_a_photo_is_edited_later_if_the_editor_is_away_or_does_not_run_yet(self):
        later = mock.Mock(id="a1", original_filename="later.jpg", memberships=[mock.Mock(collection="c1")])
        later.edit.side_effect = [
            safelight.NotRunningError(), safelight.UnavailableError(),
            safelight.UserCancelledError(data={"isStopping": True}), mock.Mock(),
        ]
        refused = mock.Mock(id="a2", original_filename="refused.jpg", memberships=later.memberships)
        refused.edit.side_effect = [safelight.MissingResourceError()]
        library = mock.Mock(token="ab.1")
        library.albums.get.return_value = mock.Mock(id="c1")
        library.changes.return_value = [
            mock.Mock(token=f"ab.{number}", sequence=number, assets=[mock.Mock(id=asset.id, before=None, after=asset)])
            for number, asset in ((2, later), (3, refused))
        ]
        positions = []
        replace = os.replace

        def traced_replace(source, target):
            replace(source, target)
            with open(target) as file:
                positions.append((file.read(), later.edit.call_count, synced.call_count))

        with tempfile.TemporaryDirectory() as folder:
            with mock.patch("safelight.Library", return_value=library), \
                    mock.patch("safelight.load_preset"), mock.patch("time.sleep"), \
                    mock.patch("os.replace", traced_replace), mock.patch("os.fsync") as synced, \
                    mock.patch("sys.argv", ["auto_edit_album.py", "Auto", "warm", f"{folder}/position"]), \
                    contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.redirect_stderr(io.StringIO()):
                runpy.run_path(f"{EXAMPLES}/auto_edit_album.py")
        edited = [line for line in printed.getvalue().splitlines() if line.startswith("edited")]
        self.assertEqual(edited, ["edited later.jpg"])
        self.assertEqual({one.kwargs["transaction"] for one in later.edit.call_args_list}, {"auto-edit 2 a1"})
        # The file is synced before it is renamed, and its folder afterwards.
        self.assertEqual(positions, [("ab.1", 0, 1), ("ab.2", 4, 3), ("ab.3", 4, 5)])


A1, A2 = ("a" + 26 * digit for digit in "12")


class PublishEditsTests(unittest.TestCase):
    """`publish_edits.py` with a catalog, an editor and a feed in this program."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.environment = {**os.environ, "SAFELIGHT_RUN": folder.name}
        context = zmq.Context()
        self.addCleanup(context.destroy, 0)
        self.catalog, self.editor, self.feed = map(context.socket, (zmq.ROUTER, zmq.PULL, zmq.PUB))
        for socket, name in (self.catalog, "catalog"), (self.editor, "edits"), (self.feed, "feed"):
            socket.bind(f"ipc://{folder.name}/{name}.sock")

    def run_script(self, known, live, *lines):
        """Runs the script with lines of its input. Edits that the catalog does not know are applied when they are
        pushed, after the live messages. Returns the status, the output, the errors, and the ids that were pushed."""
        program = subprocess.Popen(
            [sys.executable, "-B", "-u", f"{EXAMPLES}/publish_edits.py"], env=self.environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        program.stdin.write("".join(json.dumps(line) + "\n" for line in lines))
        program.stdin.close()
        pushed = []
        while program.poll() is None:
            for change in live:
                message = {"change": change, "sequence": 5}
                self.feed.send_multipart([b"edit." + change["id"].encode(), json.dumps(message).encode()])
            if self.editor.poll(20):
                edit = json.loads(self.editor.recv())["params"]
                pushed.append(edit["id"])
                known[edit["id"]] = {"id": edit["id"], "asset": edit["asset"], "state": "applied", "sequence": 9}
            if self.catalog.poll(20):
                *envelope, body = self.catalog.recv_multipart()
                ids = json.loads(body)["params"]["ids"]
                unknown = [id for id in ids if id not in known]
                result = {"edits": [known[id] for id in ids if id in known], "unknown": unknown}
                self.catalog.send_multipart([*envelope, json.dumps({"id": 1, "result": result}).encode()])
        with program.stdout, program.stderr:
            return program.returncode, program.stdout.read(), program.stderr.read(), pushed

    def line(self, id, asset):
        return {"id": id, "asset": asset, "adjustments": {"version": 1, "operations": []}}

    def test_an_id_that_was_used_for_an_edit_of_another_asset_is_reported(self):
        known = {"best.0": {"id": "best.0", "asset": A2, "state": "applied", "sequence": 3}}
        status, output, _, pushed = self.run_script(known, [], self.line("best.0", A1), self.line("best.1", A2))
        self.assertEqual((status, pushed), (1, ["best.1"]))
        self.assertEqual(
            sorted(line.strip() for line in output.splitlines()),
            [f"best.0 failed 3 id_reused an edit of {A2} was published with this id before; use a new id for each edit",
             "best.1 applied 9"],
        )

    def test_a_live_message_about_an_edit_of_another_client_is_ignored(self):
        other = {"id": "one", "asset": A2, "state": "applied"}
        status, output, _, pushed = self.run_script({}, [other], self.line("one", A1))
        self.assertEqual((status, output.split(), set(pushed)), (0, ["one", "applied", "9"], {"one"}))

    def test_two_lines_with_one_id_are_refused(self):
        status, output, problem, pushed = self.run_script({}, [], self.line("one", A1), self.line("one", A2))
        self.assertEqual((status, output, problem, pushed), (1, "", "two lines have the id one\n", []))

    def test_a_line_without_an_asset_identifier_is_reported_and_nothing_is_sent(self):
        for asset in ["@1", "c" + 26 * "0", None]:
            status, output, problem, pushed = self.run_script({}, [], self.line("one", A1), self.line("two", asset))
            expected = "line 2: asset: expected the identifier of an asset\n"
            self.assertEqual((status, output, problem, pushed), (1, "", expected, []))


class ExampleTests(unittest.TestCase):
    def setUp(self):
        self.services = Services().start()
        self.library = self.services.library()
        self.library.import_files(self.services.write_photos(4))
        self.assets = self.library.fetch(sort="creationDate")[:]

    def tearDown(self):
        self.library.close()
        self.services.stop()

    def test_each_photo_of_an_album_is_edited_once(self):
        os.environ["SAFELIGHT_PRESETS"] = self.services.environment["SAFELIGHT_PRESETS"]
        safelight.save_preset("warm", temperature=0.2)
        arguments = ("auto_edit_album.py", "Holidays", "warm", f"{self.services.folder}/position")
        program = Program(self.services, *arguments)
        program.wait_for(lambda lines: "editing what is added to Holidays" in lines)
        album = self.library.albums["Holidays"]
        with self.library.changing() as changes:
            changes.add(album, self.assets[:1])
        program.wait_for(lambda lines: "edited photo1.jpg" in lines)
        program.kill()
        with self.library.changing() as changes:
            changes.add(album, self.assets[1:2])
        self.services.kill("change-broker")
        program = Program(self.services, *arguments)
        self.services.start("change-broker")
        program.wait_for(lambda lines: "edited photo2.jpg" in lines)
        program.kill()
        for asset, edits in zip(self.assets, (1, 1, 0)):
            self.assertEqual([step.client for step in asset.history()], ["auto-edit"] * edits)
        self.assertEqual(self.assets[1].history()[0].adjustments["operations"][0]["operation"], "temperature")

    def test_the_album_of_edits_is_created_again_and_a_lost_position_is_reported(self):
        os.environ["SAFELIGHT_PRESETS"] = self.services.environment["SAFELIGHT_PRESETS"]
        safelight.save_preset("warm", temperature=0.2)
        title = "Holidays " * 20
        arguments = ("auto_edit_album.py", title, "warm", f"{self.services.folder}/position")
        for _ in range(2):
            program = Program(self.services, *arguments)
            program.wait_for(lambda lines: any(line.startswith("editing") for line in lines))
            program.kill()
            with self.library.changing() as changes:
                changes.delete(self.library.albums[title])
        with self.library.changing() as changes:
            for _ in range(2):
                changes.create_album(title)
        (problem,) = Program(self.services, *arguments).end()
        self.assertIn("2 albums are called", problem)
        position = f"{self.services.folder}/position"
        self.services.environment["SECRET"] = "a secret"
        editing = ("auto_edit_album.py", "New", "warm", position)
        for arguments in (editing, ("post_changes.py", "http://127.0.0.1:1", position)):
            safelight.save_bytes(position, f"{32 * '0'}.5".encode())
            (problem,) = Program(self.services, *arguments).end()
            self.assertIn(f"remove {position}", problem)

    def test_a_folder_mirrors_the_favourites(self):
        folder = f"{self.services.folder}/favourites"
        program = Program(self.services, "mirror_favorites.py", folder)
        program.wait_for(lambda lines: lines[-1:] == ["0 favourites"])
        with self.library.changing() as changes:
            for asset in self.assets[:2]:
                changes.update(asset, is_favorite=True)
        program.wait_for(lambda lines: lines[-1:] == ["2 favourites"])
        before = sorted(os.listdir(folder))
        self.assertEqual([name[:27] for name in before], sorted(asset.id for asset in self.assets[:2]))
        self.assets[0].edit(exposure=1)
        program.wait_for(lambda lines: len(lines) == 3)
        self.assertEqual(len(set(before) & set(os.listdir(folder))), 1)
        with self.library.changing() as changes:
            changes.update(self.assets[0], is_favorite=False)
        program.wait_for(lambda lines: lines[-1:] == ["1 favourites"])
        self.assertEqual(len(os.listdir(folder)), 1)
        program.kill()

    def test_files_written_to_a_watched_folder_are_imported(self):
        folder = f"{self.services.folder}/incoming"
        os.makedirs(folder)
        self.services.write_photo(f"{folder}/before.jpg", 20)
        program = Program(self.services, "watch_folder.py", folder, "Incoming")
        program.wait_for(lambda lines: "imported before.jpg" in lines and f"watching {folder}" in lines)
        os.makedirs(f"{folder}/2024/May")
        self.services.write_photo(f"{folder}/2024/May/below.jpg", 21)
        program.wait_for(lambda lines: "imported below.jpg" in lines)
        self.services.write_photo(f"{self.services.folder}/moved.jpg", 22)
        os.rename(f"{self.services.folder}/moved.jpg", f"{folder}/moved.jpg")
        program.wait_for(lambda lines: "imported moved.jpg" in lines)
        # Written in two parts: imported when it is closed, and not before.
        self.services.write_photo(f"{self.services.folder}/slow.jpg", 23)
        with open(f"{self.services.folder}/slow.jpg", "rb") as source, open(f"{folder}/slow.jpg", "wb") as target:
            target.write(source.read(1000))
            target.flush()
            self.services.write_photo(f"{folder}/meanwhile.jpg", 24)
            program.wait_for(lambda lines: "imported meanwhile.jpg" in lines)
            self.assertNotIn("imported slow.jpg", program.lines)
            target.write(source.read())
        program.wait_for(lambda lines: "imported slow.jpg" in lines)
        self.services.kill("catalog")
        self.services.write_photo(f"{folder}/down.jpg", 25)
        self.services.start("catalog")
        program.wait_for(lambda lines: "imported down.jpg" in lines)
        # The trash of a file manager is ignored; a file that is saved later is imported.
        self.services.write_photo(f"{folder}/.Trash-1000/files/deleted.jpg", 26)
        self.services.write_photo(f"{folder}/last.jpg", 27)
        program.wait_for(lambda lines: "imported last.jpg" in lines)
        program.kill()
        names = {asset.original_filename for asset in self.library.albums["Incoming"].fetch()}
        saved = ("before", "below", "moved", "slow", "meanwhile", "down", "last")
        self.assertEqual(names, {f"{name}.jpg" for name in saved})

    def test_the_files_of_one_photo_that_arrive_one_after_the_other_are_one_asset(self):
        folder, source = f"{self.services.folder}/incoming", f"{self.services.folder}/source"
        os.makedirs(folder)
        os.makedirs(source)
        for number, name in enumerate(("live.jpg", "late.jpg", "dl.jpg", "tagged.jpg"), 30):
            self.services.write_photo(f"{source}/{name}", number)
        for name in ("source/live.mov", "source/late.mov"):
            self.services.write_video(name, 1)
        with open(f"{source}/tagged.jpg.xmp", "w") as file:
            file.write(
                '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
                '<rdf:Description xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmp:Rating="4"/></rdf:RDF></x:xmpmeta>'
            )
        program = Program(self.services, "watch_folder.py", folder)
        program.wait_for(lambda lines: f"watching {folder}" in lines)

        def copy(name, to=None):
            shutil.copyfile(f"{source}/{name}", f"{folder}/{to or name}")

        # Photo, sidecar and video with pauses, in both orders; a download that is renamed when it is complete.
        for name in ("live.jpg", "live.mov", "tagged.jpg.xmp", "tagged.jpg"):
            copy(name)
            time.sleep(0.7)
        copy("dl.jpg", "dl.jpg.part")
        with open(f"{folder}/notes.txt", "w") as file:
            file.write("no photo")
        program.wait_for(lambda lines: {"imported live.jpg", "imported tagged.jpg"} <= set(lines))
        os.rename(f"{folder}/dl.jpg.part", f"{folder}/dl.jpg")
        program.wait_for(lambda lines: "imported dl.jpg" in lines)
        # The video arrives after its photo was imported, and is added to its asset.
        copy("late.jpg")
        program.wait_for(lambda lines: "imported late.jpg" in lines)
        copy("late.mov")
        copy("tagged.jpg.xmp")
        self.services.write_photo(f"{folder}/last.jpg", 40)
        program.wait_for(lambda lines: "imported last.jpg" in lines)
        self.assertEqual(program.kill(), ["tagged.jpg.xmp: not applied, because the library has the photo already"])
        assets = self.library.fetch("NOT originalFilename BEGINSWITH 'photo'", sort="originalFilename")
        self.assertEqual(
            [(asset.original_filename, asset.rating, [one.type for one in asset.resources]) for asset in assets],
            [("dl.jpg", 0, ["photo"]), ("last.jpg", 0, ["photo"]), ("late.jpg", 0, ["photo", "pairedVideo"]),
             ("live.jpg", 0, ["photo", "pairedVideo"]), ("tagged.jpg", 4, ["photo"])],
        )

    def test_changes_are_posted_in_order_with_a_signature(self):
        received, arrived = [], threading.Condition()

        class Receiver(http.server.BaseHTTPRequestHandler):
            # The first two requests are refused, as by a receiver that is restarted and by a proxy that redirects.
            refusals = [503, 301]

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                refused = Receiver.refusals.pop(0) if Receiver.refusals else None
                # Before the reply: after it the sender may send the next change, which another thread receives.
                with arrived:
                    received.append((refused, self.headers, body))
                    arrived.notify_all()
                self.send_response(refused or 204)
                if refused == 301:
                    self.send_header("Location", "/elsewhere")
                self.end_headers()

            def do_GET(self):
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        def wait_for(count):
            with arrived:
                if not arrived.wait_for(lambda: len([one for one in received if not one[0]]) >= count, 30):
                    raise AssertionError(f"{len(received)} requests")

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        threading.Thread(target=server.serve_forever).start()
        self.services.environment["SECRET"] = "a secret"
        arguments = ("post_changes.py", f"http://127.0.0.1:{server.server_port}/", f"{self.services.folder}/posted")
        program = Program(self.services, *arguments)
        program.wait_for(lambda lines: any(line.startswith("sending") for line in lines))
        first = self.change_caption("one")
        wait_for(1)
        program.wait_for(lambda lines: f"sent {first}" in lines)
        program.kill()
        second, third = self.change_caption("two"), self.change_caption("three")
        program = Program(self.services, *arguments)
        wait_for(3)
        program.kill()
        server.shutdown()
        server.server_close()
        self.assertEqual([one[0] for one in received], [503, 301, None, None, None])
        self.assertEqual([json.loads(one[2])["sequence"] for one in received[2:]], [first, second, third])
        for _, headers, body in received:
            signature = hmac.new(b"a secret", body, hashlib.sha256).hexdigest()
            self.assertEqual(headers["X-Safelight-Signature"], f"sha256={signature}")
            self.assertEqual(headers["X-Safelight-Sequence"], str(json.loads(body)["sequence"]))

    def change_caption(self, caption):
        with self.library.changing() as changes:
            changes.update(self.assets[0], caption=caption)
        return changes.outcome.sequence

    def test_a_sheet_of_the_last_day_is_saved(self):
        folder = f"{self.services.folder}/sheets"
        command = ["sh", f"{EXAMPLES}/nightly_sheet.sh", folder]
        run = subprocess.run(command, env=self.services.environment, capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        (name,) = os.listdir(folder)
        self.assertIn(f"{folder}/{name}: 4 images", run.stdout)
        with Image.open(f"{folder}/{name}") as sheet:
            self.assertGreater(sheet.width, 4 * 200)


if __name__ == "__main__":
    unittest.main()
