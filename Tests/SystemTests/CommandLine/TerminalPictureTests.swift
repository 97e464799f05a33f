import Foundation
import TestSupport
import Testing

/// `safelight show --picture` in terminals that a script simulates: it answers the queries, and decodes the images with
/// Pillow and ImageMagick.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct TerminalPictureTests {
    @Test func `a terminal shows the image in the protocol that it supports`() throws {
        let services = try SafelightFixture("terminal")
        try services.folder.write(TestImages.jpeg(width: 1600, height: 1000, seed: 3), to: "photos/large.jpg")
        try services.folder.write(TestImages.jpeg(width: 90, height: 60, seed: 4), to: "photos/small.jpg")
        try services.start()
        #expect(try services.safelight(["import", services.folder.file("photos")]).status == 0)
        let run = try RunningProgram.run(
            try Needed.python("PIL"),
            ["-B", "-c", Self.script, TestPaths.executables + "/safelight", services.folder.path],
            environment: services.environment,
            seconds: 120
        )
        #expect(run.status == 0, "\(run.output)\n\(run.errors)")
        #expect(run.output == "kitty iterm sixel none\n", "\(run.output)")

        let piped = try services.safelight(["show", "large", "--picture"])
        #expect(piped.status == 2 && piped.errors.contains("--graphics"), "\(piped.errors)")
        #expect(try services.safelight(["show", "large", "--graphics", "kitty"]).status == 2)
    }

    private static let script = #"""
        import base64, fcntl, io, os, pty, re, select, struct, subprocess, sys, termios
        from PIL import Image, ImageChops

        program, folder = sys.argv[1:]
        ATTRIBUTES, SIXEL = b"\x1b[?62;22c", b"\x1b[?62;4;22c"


        def terminal(answers, *arguments, environment={}, shell=()):
            """Returns the output of a command in a terminal of 800 x 600 pixels that answers the device attributes
            like this."""
            pid, line = pty.fork()
            if pid == 0:
                os.environ.update({"TERM": "xterm-256color", **environment})
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("4H", 30, 80, 800, 600))
                command = [*shell, program, "show", *arguments]
                os.execvp(command[0], command)
            written, answered = b"", False
            while True:
                try:
                    part = os.read(line, 65536)
                except OSError:
                    break
                written += part
                if b"\x1b[c" in written and not answered:
                    answered = True
                    assert b"\x1b_Gi=31" in written and b"\x1b[>q" in written, written
                    assert not termios.tcgetattr(line)[3] & termios.ECHO, "the answer would be shown"
                    for answer in answers:
                        os.write(line, answer)
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            return written.replace(b"\r\n", b"\n"), status


        def expected(name, size):
            path = f"{folder}/{name}.png"
            subprocess.run([program, "thumb", name, "--size", size, "-o", path], check=True, capture_output=True)
            return Image.open(path).convert("RGB")


        def difference(one, other):
            assert one.size == other.size, (one.size, other.size)
            histogram = ImageChops.difference(one.convert("RGB"), other).convert("L").histogram()
            return sum(value * count for value, count in enumerate(histogram)) / (one.width * one.height)


        large = expected("large", "800x300")

        written, status = terminal([b"\x1b_Gi=31;OK\x1b\\", b"\x1bP>|kitty(0.36)\x1b\\", ATTRIBUTES], "large", "--picture")
        assert status == 0 and b"large.jpg" in written, written[-500:]
        parts = re.findall(rb"\x1b_G([^;\x1b]*);([^\x1b]*)\x1b\\", written)[1:]
        assert parts[0][0].startswith(b"a=T,f=100") and all(len(data) <= 4096 for _, data in parts), parts[0][0]
        assert [keys[-3:] for keys, _ in parts] == [b"m=1"] * (len(parts) - 1) + [b"m=0"]
        image = Image.open(io.BytesIO(base64.b64decode(b"".join(data for _, data in parts))))
        assert image.format == "PNG" and difference(image, large) == 0
        print("kitty", end=" ")

        written, status = terminal([b"\x1bP>|iTerm2 3.5.0\x1b\\", SIXEL], "large", "--picture")
        keys, data = re.search(rb"\x1b\]1337;File=([^:]*):([^\x07]*)\x07", written).groups()
        assert status == 0 and b"inline=1" in keys, keys
        assert difference(Image.open(io.BytesIO(base64.b64decode(data))), large) == 0
        print("iterm", end=" ")

        # Two images, of which the smaller one is not enlarged.
        written, status = terminal([SIXEL], "large", "small", "--picture")
        pictures = re.findall(rb"\x1bP[0-9;]*q[^\x1b]*\x1b\\", written)
        assert status == 0 and len(pictures) == 2, (status, len(pictures))
        for data, picture in zip(pictures, (large, expected("small", "800x300"))):
            png = subprocess.run(["convert", "sixel:-", "png:-"], input=data, capture_output=True, check=True).stdout
            found = difference(Image.open(io.BytesIO(png)), picture)
            assert found < 12, found
        print("sixel", end=" ")

        written, status = terminal([ATTRIBUTES], "large", "--picture")
        assert status == 1 and b"this terminal shows no images" in written, (status, written)
        written, status = terminal([], "large", "--picture", environment={"TERM": "linux"})
        assert status == 1 and b"\x1b" not in written, written

        # Ctrl-C instead of an answer ends the command, and leaves the shell a terminal with an echo.
        shell = ("sh", "-c", 'trap : INT; "$@"; echo ended $?; stty -a', "sh")
        written, status = terminal([b"\x03"], "large", "--picture", shell=shell)
        assert b"ended 130" in written and re.search(rb"\secho\s", written), written
        print("none")
        """#
}
