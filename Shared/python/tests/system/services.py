"""The four services as real processes, with a folder of their own."""

import contextlib
import os
import select
import shutil
import signal
import subprocess
import tempfile

from PIL import Image

from safelight import Library

EXECUTABLES = os.path.abspath(os.getenv("SAFELIGHT_EXECUTABLES", ".build/debug"))
SERVICES = ("catalog", "change-broker", "thumbnailer", "editor")


@contextlib.contextmanager
def as_ordinary_user():
    """Runs the block without the rights of root, who can read all files."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


class Services:
    """Starts, kills and stops the services of one library."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="safelight-python-", dir="/tmp")
        self.run = f"{self.folder}/run"
        self.environment = {
            **os.environ,
            "SAFELIGHT_RUN": self.run,
            "SAFELIGHT_LIBRARY": f"{self.folder}/library",
            "SAFELIGHT_PRESETS": f"{self.folder}/presets",
            "XDG_CACHE_HOME": f"{self.folder}/cache",
            "PATH": EXECUTABLES + ":" + os.environ["PATH"],
        }
        self.processes = {}

    def start(self, *names):
        for name in names or SERVICES:
            with open(f"{self.folder}/{name}.log", "ab") as log:
                process = subprocess.Popen(
                    [f"{EXECUTABLES}/{name}", "--ready-fd", "1"], env=self.environment, stdout=subprocess.PIPE,
                    stderr=log,
                )
            self.processes[name] = process
            if not select.select([process.stdout], [], [], 60)[0] or b"ready" not in process.stdout.readline():
                raise RuntimeError(f"{name} did not become ready:\n{self.log(name)}")
        return self

    def kill(self, name):
        process = self.processes.pop(name)
        process.kill()
        process.wait()
        process.stdout.close()

    def stop(self):
        for name in reversed(SERVICES):
            process = self.processes.pop(name, None)
            if process:
                process.send_signal(signal.SIGTERM)
                status = process.wait(timeout=30)
                process.stdout.close()
                if status != 0:
                    raise RuntimeError(f"{name} ended with {status}:\n{self.log(name)}")
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self, name):
        with open(f"{self.folder}/{name}.log", errors="replace") as file:
            return file.read()[-4000:]

    def write_photos(self, count=12):
        """Writes photos named photo1.jpg and so on, taken on the first days of May 2024. Returns their folder."""
        folder = f"{self.folder}/photos"
        os.makedirs(folder)
        for number in range(1, count + 1):
            self.write_photo(f"{folder}/photo{number}.jpg", number, f"2024:05:{number:02} 12:00:00")
        return folder

    def write_photo(self, path, number, date=None):
        """Writes a photo that differs for each number; `date` is its capture date in EXIF."""
        exif = Image.Exif()
        if date:
            exif.get_ifd(0x8769)[0x9003] = date
        image = Image.linear_gradient("L").resize((640, 480)).rotate(number * 25)
        image = Image.merge("RGB", (image, image.transpose(Image.Transpose.ROTATE_180), image))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        image.save(path, exif=exif)

    def write_video(self, name="film.mp4", seconds=3):
        """Writes a video of moving bars. Returns its path."""
        path = f"{self.folder}/{name}"
        subprocess.run(
            ["ffmpeg", "-loglevel", "error", "-nostdin",
             "-f", "lavfi", "-i", f"testsrc=duration={seconds}:size=320x240",
             "-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p", path],
            check=True,
        )
        return path

    def library(self, client="test", wait=30.0):
        return Library(self.run, client=client, wait=wait)
