import Foundation
import JSONValue
import PhotoModel
import TestSupport
import Testing

/// Everyday commands: assets by name and number, values, undo, images that fit, and typing errors.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct EverydayCommandTests {
    private func start(_ photos: [String: [UInt8]]) throws -> SafelightFixture {
        let services = try SafelightFixture("everyday")
        for (name, bytes) in photos { try services.folder.write(bytes, to: "photos/\(name)") }
        try services.start()
        let run = try services.safelight(["import", services.folder.file("photos")])
        try #require(run.status == 0, "\(run.errors)")
        return services
    }

    /// Runs a command that must succeed, and returns what it prints.
    private func run(_ services: SafelightFixture, _ arguments: String...) throws -> String {
        let run = try services.safelight(arguments)
        try #require(run.status == 0, "\(arguments): \(run.errors)")
        return run.output
    }

    private func asset(_ services: SafelightFixture, _ name: String) throws -> JSON {
        try JSON(parsing: run(services, "show", name, "--json"))
    }

    @Test func `a command waits for a catalog that is killed after it was asked`() throws {
        let services = try SafelightFixture("restarting")
        let folder = services.folder.file("run")
        try FileManager.default.createDirectory(
            atPath: folder,
            withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700]
        )
        // Replaces the catalog: receives one request, and ends without a reply.
        let ending =
            "import sys, zmq; context = zmq.Context(); socket = context.socket(zmq.ROUTER); socket.bind(sys.argv[1]); "
            + "print('ready', flush=True); socket.recv_multipart(); context.destroy(linger=0); print('ended', flush=True)"
        let catalog = try RunningProgram(
            try Needed.python(),
            ["-u", "-c", ending, "ipc://\(folder)/catalog.sock"]
        )
        try #require(catalog.waitForOutput("ready"), "\(catalog.errorText)")
        let command = try RunningProgram(
            "safelight",
            ["fetch", "--count", "--wait", "60"],
            environment: services.environment
        )
        try #require(catalog.waitForOutput("ended"), "\(catalog.errorText)\(command.errorText)")
        try services.start([.catalog])
        #expect(command.wait(seconds: 60) == 0 && command.outputText == "0\n", "\(command.errorText)")
        #expect(services.stop() == [])
    }

    @Test func `assets are named by number, file name, beginning or identifier`() throws {
        let services = try start([
            "one.jpg": TestImages.jpeg(width: 60, height: 40), "two.jpg": TestImages.jpeg(width: 61, height: 40),
            "two.b.jpg": TestImages.jpeg(width: 62, height: 40),
        ])
        let none = try services.safelight(["favorite", "@1"])
        #expect(none.status == 2 && none.errors.contains("safelight fetch"), "\(none.errors)")
        let rows = try run(services, "fetch", "--sort", "-pixelWidth").split(separator: "\n").dropFirst()
        #expect(rows.count == 3 && rows.allSatisfy { $0.hasPrefix("@") })
        let ids = rows.compactMap { row in row.split(separator: " ").dropFirst().first.map(String.init) }
        let widths = [
            ("@1", 62), ("@3", 60), (ids[1], 61), ("one", 60), ("one.jpg", 60), ("two.b", 62), ("two", 61),
        ]
        for (text, width) in widths {
            #expect(try asset(services, text)["pixelWidth"]?.intValue == Int64(width), "\(text)")
        }
        // The identifiers begin with the same time, so only a long prefix is unique.
        let common = zip(ids[0], ids[1]).prefix { $0 == $1 }.count
        let many = try services.safelight(["show", String(ids[0].prefix(min(common, 8)))])
        #expect(many.status == 1 && many.errors.contains("multiple_identifiers"), "\(many.errors)")
        for id in ids {
            let others = ids.filter { $0 != id }
            let length = (4...27).first { count in !others.contains { $0.hasPrefix(id.prefix(count)) } } ?? 27
            let text = String(id.prefix(length))
            #expect(try asset(services, text)["id"]?.stringValue == id, "\(text)")
        }
        let unknown = try services.safelight(["show", "three.jpg"])
        #expect(unknown.status == 1 && unknown.errors.contains("identifier_not_found"), "\(unknown.errors)")
        _ = try run(services, "favorite", "@1-2")
        #expect(try run(services, "fetch", "--count", "--where", "isFavorite == YES") == "2\n")
        // A whole listing, with its heading, is accepted as input.
        try pipe(run(services, "fetch"), to: "hide", services)
        #expect(try run(services, "fetch", "--count") == "0\n")
        // Hidden assets and those in the trash are found by file name as well.
        _ = try run(services, "trash", "one")
        #expect(try run(services, "show", "one").contains("in the trash"))
        let copies = services.folder.file("copies")
        #expect(try run(services, "export", "one", "--output", copies).contains("copies/"))
        #expect(try run(services, "thumb", "one", "--size", "20", "-o", "\(copies)/one.png").contains("one.png"))
        _ = try run(services, "untrash", "one")
        // A command that finds nothing leaves the listing as it is, and one that changes nothing reports that.
        _ = try run(services, "fetch", "--hidden")
        _ = try run(services, "duplicates")
        #expect(try run(services, "show", "@1").contains("name"))
        #expect(try run(services, "favorite", "--where", "rating == 5") == "nothing to change\n")
        let presets = try services.safelight(["preset", "list", "--presets", services.folder.file("none")])
        #expect(presets.status == 0 && presets.errors.contains("preset save"), "\(presets)")
        #expect(try run(services, "album", "create", "Empty").hasSuffix("  Empty\n"))
        #expect(services.stop() == [])
    }

    private func pipe(_ input: String, to command: String, _ services: SafelightFixture) throws {
        let piped = try RunningProgram.run(
            "safelight",
            [command, "-"],
            environment: services.environment,
            input: Data(input.utf8)
        )
        #expect(piped.status == 0, "\(piped.errors)")
    }

    @Test func `a line of standard input is a whole file name`() throws {
        let services = try start([
            "IMG_1.jpg": TestImages.jpeg(width: 60, height: 40),
            "IMG_1 (2).jpg": TestImages.jpeg(width: 61, height: 40),
            "my.jpg": TestImages.jpeg(width: 62, height: 40), "my photo.jpg": TestImages.jpeg(width: 63, height: 40),
        ])
        try pipe("IMG_1 (2).jpg\n\n  my photo\r\n", to: "trash", services)
        let remaining = try run(services, "fetch", "--sort", "pixelWidth", "--json").split(separator: "\n")
        let names = try remaining.map { try JSON(parsing: String($0))["originalFilename"]?.stringValue }
        #expect(names == ["IMG_1.jpg", "my.jpg"])
        #expect(services.stop() == [])
    }

    @Test func `new albums and folders are undone, unless they were changed since`() throws {
        let services = try start(["one.jpg": TestImages.jpeg(width: 60, height: 40)])
        func lastChange() throws -> String {
            let line = try #require(try run(services, "log", "--json").split(separator: "\n").last)
            return "\(try JSON(parsing: String(line))["sequence"]?.intValue ?? 0)"
        }
        func expectConflict(_ change: String) throws {
            let undo = try services.safelight(["undo", "--change", change])
            #expect(undo.status == 1 && undo.errors.contains("(conflict)"), "\(undo)")
        }
        _ = try run(services, "folder", "create", "Trips")
        _ = try run(services, "undo")
        #expect(try run(services, "folder", "list") == "")
        _ = try run(services, "folder", "create", "Trips")
        let folder = try lastChange()
        _ = try run(services, "album", "create", "Sea", "one", "--in", "Trips")
        _ = try run(services, "undo")
        #expect(try run(services, "album", "list", "--json") == "")
        _ = try run(services, "album", "create", "Sea", "--in", "Trips")
        let album = try lastChange()
        _ = try run(services, "album", "add", "Sea", "one")
        try expectConflict(folder)
        try expectConflict(album)
        #expect(try run(services, "fetch", "--album", "Trips", "--count") == "1\n")

        _ = try run(services, "trash", "one")
        let trashed = try lastChange()
        _ = try run(services, "set", "one", "--caption", "later")
        try expectConflict(trashed)
        _ = try run(services, "untrash", "one")
        _ = try run(services, "trash", "one")
        try expectConflict(trashed)
        #expect(try run(services, "fetch", "--count") == "0\n")
        _ = try run(services, "undo")
        #expect(try run(services, "fetch", "--count") == "1\n")
        let unknown = try services.safelight(["undo", "--change", "99999"])
        #expect(unknown.status == 1 && unknown.errors.contains("the history has no change #99999"), "\(unknown)")
        #expect(services.stop() == [])
    }

    @Test func `a title that several albums or folders have is refused`() throws {
        let services = try start(["one.jpg": TestImages.jpeg(width: 60, height: 40)])
        for kind in ["album", "folder"] {
            _ = try run(services, kind, "create", "Two")
            _ = try run(services, kind, "create", "Two \(kind)s")
            let long = try services.safelight([kind, "create", String(repeating: "x", count: 5000)])
            #expect(long.status == 1 && long.errors.contains("title") && !long.errors.contains("predicate"), "\(long)")
            let taken = try services.safelight([kind, "rename", "Two \(kind)s", "Two"])
            #expect(taken.status == 1 && taken.errors.contains("(conflict)"), "\(taken)")
            _ = try run(services, kind, "rename", "Two", "Two")
            _ = try run(services, kind, "create", "Two \(kind)s", "--another")
            let refused = try services.safelight(["fetch", "--album", "Two \(kind)s"])
            #expect(refused.status == 1 && refused.errors.contains("(multiple_identifiers)"), "\(refused)")
        }
        try services.folder.write(TestImages.jpeg(width: 61, height: 40), to: "photos/two.jpg")
        let refused = try services.safelight(["import", services.folder.file("photos"), "--album", "Two albums"])
        #expect(refused.status == 1 && refused.errors.contains("(multiple_identifiers)"), "\(refused)")
        #expect(try run(services, "fetch", "--count") == "1\n")
        #expect(services.stop() == [])
    }

    @Test func `values are set, and each change is undone`() throws {
        let services = try start([
            "one.jpg": TestImages.jpeg(width: 60, height: 40), "two.jpg": TestImages.jpeg(width: 61, height: 40),
        ])
        let before = try asset(services, "one")
        let members = ["rating", "caption", "keywords", "creationDate", "creationOffset", "location", "isFavorite"]
        _ = try run(
            services,
            "set",
            "one",
            "--rating",
            "4",
            "--caption",
            "Straße",
            "--add-keyword",
            "tree",
            "--add-keyword",
            "sea",
            "--date",
            "2024-06-01T12:30:00+02:00",
            "--location",
            "-33.5,18.25"
        )
        let set = try asset(services, "one")
        #expect(set["rating"] == 4 && set["caption"] == "Straße" && set["keywords"] == ["tree", "sea"])
        #expect(set["creationOffset"] == 7200 && set["location"]?["latitude"]?.doubleValue == -33.5)
        let plan = try run(services, "undo", "--dry-run")
        #expect(plan.contains("would undo"), "\(plan)")
        #expect(try asset(services, "one")["rating"] == 4)
        _ = try run(services, "undo")
        for name in members { #expect(try asset(services, "one")[name] == before[name], "\(name)") }
        // A second undo reverts the first one.
        _ = try run(services, "undo")
        for name in members { #expect(try asset(services, "one")[name] == set[name], "\(name)") }

        _ = try run(services, "trash", "two")
        #expect(try run(services, "fetch", "--count") == "1\n")
        _ = try run(services, "undo")
        #expect(try run(services, "fetch", "--count") == "2\n")

        _ = try run(services, "album", "create", "Sea")
        _ = try run(services, "album", "add", "Sea", "one", "two")
        #expect(try run(services, "fetch", "--album", "Sea", "--count") == "2\n")
        _ = try run(services, "undo")
        #expect(try run(services, "fetch", "--album", "Sea", "--count") == "0\n")

        let first = try run(services, "edit", "one", "--crop", "0,0,0.5,1")
        #expect(first.contains("operations: none -> crop") && first.contains("now 30 x 40"), "\(first)")
        let second = try run(services, "edit", "one", "--contrast", "0.2")
        #expect(second.contains("crop -> contrast") && second.contains("safelight undo"), "\(second)")
        _ = try run(services, "undo")
        #expect(try asset(services, "one")["pixelWidth"] == 30)

        // The edits of one command are undone together, and so are the changes that undid them.
        let several = try run(services, "edit", "one", "two", "--contrast", "0.4")
        #expect(several.contains("edited 2 assets, changes #"), "\(several)")
        _ = try run(services, "undo")
        #expect(try asset(services, "one")["pixelWidth"] == 30)
        #expect(try asset(services, "two")["adjustmentFormatIdentifier"] == nil)
        _ = try run(services, "undo")
        #expect(try run(services, "fetch", "--count", "--where", "hasAdjustments == YES") == "2\n")
        _ = try run(services, "undo")

        // A change is refused if its asset was changed again since, or if it has no inverse.
        _ = try run(services, "set", "two", "--rating", "1")
        let change = try #require(
            try run(services, "log", "--json").split(separator: "\n").last.map { try JSON(parsing: String($0)) }
        )
        _ = try run(services, "set", "two", "--rating", "2")
        let stale = try services.safelight(["undo", "--change", "\(change["sequence"]?.intValue ?? 0)"])
        #expect(stale.status == 1 && stale.errors.contains("conflict"), "\(stale.errors)")
        let imported = try services.safelight(["undo", "--change", "1"])
        #expect(imported.status == 1 && imported.errors.contains("request_not_supported"), "\(imported.errors)")
        #expect(try asset(services, "two")["rating"] == 2)
        #expect(services.stop() == [])
    }

    @Test func `saved images fit into their size and have the format of their name`() throws {
        let services = try start([
            "tall.jpg": TestImages.jpeg(width: 756, height: 1008), "small.jpg": TestImages.jpeg(width: 60, height: 40),
        ])
        func size(_ file: String, _ arguments: String...) throws -> [Int] {
            let path = services.folder.file(file)
            let run = try services.safelight(["thumb"] + arguments + ["-o", path, "--json"])
            try #require(run.status == 0, "\(run.errors)")
            let json = try JSON(parsing: run.output)
            return [json["pixelWidth"], json["pixelHeight"]].map { Int($0?.intValue ?? 0) }
        }
        #expect(try size("a.jpg", "tall", "--size", "400") == [300, 400])
        #expect(try size("b.jpg", "tall", "--size", "400", "--fast") == [300, 400])
        #expect(try size("b.jpg", "tall", "--size", "300", "--fill") == [300, 300])
        #expect(try size("b.jpg", "tall", "--size", "300", "--fill", "--fast") == [300, 400])
        #expect(try size("c.png", "small", "--size", "400") == [60, 40])
        #expect(try size("d.jpg", "small", "--size", "400", "--exact") == [400, 267])
        let png = try [UInt8](Data(contentsOf: URL(filePath: services.folder.file("c.png"))))
        #expect(png.starts(with: [0x89, 0x50, 0x4E, 0x47]))
        let bitmap = try services.safelight(["thumb", "tall", "-o", services.folder.file("x.bmp")])
        #expect(bitmap.status == 2 && bitmap.errors.contains(".bmp"), "\(bitmap.errors)")
        // A text in any script is drawn, or refused with an error that names the characters that cannot be drawn.
        let mark = "textWatermark:text=© Jörg 東京"
        _ = try run(services, "edit", "tall", "--operation", mark)
        let refused = try services.safelight(["edit", "tall", "--operation", "textWatermark:text=a\u{1F4F7}"])
        #expect(refused.status != 0 && refused.errors.contains("U+1F4F7"), "\(refused.errors)")
        #expect(services.stop() == [])
    }

    @Test func `the error of a mistyped word suggests the word that was probably meant`() throws {
        let typed = [
            (["fech"], "fetch"), (["trahs", "x"], "trash"), (["favourite", "x"], "favorite"), (["stat"], "status"),
        ]
        for (words, suggestion) in typed {
            let run = try RunningProgram.run("safelight", words)
            #expect(run.status == 2 && run.errors.contains("did you mean \"\(suggestion)\""), "\(run.errors)")
        }
        let unknown = try RunningProgram.run("safelight", ["xyzzy"])
        #expect(unknown.status == 2 && unknown.errors.contains("safelight --help"), "\(unknown.errors)")
    }

    @Test func `an empty result is explained, and an album is created with its assets`() throws {
        let services = try start(["one.jpg": TestImages.jpeg(width: 60, height: 40)])
        for (words, note) in [
            (["album", "list"], "no albums"), (["history", "one"], "never edited"), (["moments", "1987"], "from 1987"),
        ] {
            let empty = try services.safelight(words)
            #expect(empty.status == 0 && empty.output == "" && empty.errors.contains(note), "\(words): \(empty)")
        }
        let undone = try services.safelight(["undo"])
        #expect(undone.status == 1 && undone.errors.contains("an import cannot be undone exactly"), "\(undone)")
        _ = try run(services, "album", "create", "Best", "one")
        #expect(try run(services, "fetch", "--album", "Best", "--count") == "1\n")
        // The library of the running catalog is not the default one.
        let environment = services.environment.filter { $0.key != "SAFELIGHT_LIBRARY" }
        let findings = try RunningProgram.run("safelight", ["doctor"], environment: environment)
        #expect(findings.output.contains(services.folder.file("library") + " exists and is writable"), "\(findings)")
        #expect(services.stop() == [])
    }

    @Test func `a shell completes albums, folders, presets and file names of the live library`() throws {
        let services = try SafelightFixture("completions")
        for (seed, name) in ["IMG_1.jpg", "IMG_2.jpg", "Sea.jpg"].enumerated() {
            try services.folder.write(TestImages.jpeg(seed: UInt64(seed)), to: "photos/" + name)
        }
        try services.start([.catalog, .changeBroker, .thumbnailer, .editor])
        _ = try run(services, "import", services.folder.file("photos"))
        _ = try run(services, "album", "create", "Summer by the sea")
        _ = try run(services, "folder", "create", "Trips")
        _ = try run(services, "preset", "save", "warm", "--temperature", "0.2")
        let script = try run(services, "--generate-completion-script", "bash")
        try services.folder.write(script.utf8, to: "completion.bash")
        #expect(try complete(services, "album", "add", "Su") == ["Summer by the sea"])
        #expect(try complete(services, "fetch", "--album", "Fav") == ["Favorites"])
        #expect(try complete(services, "album", "create", "Alps", "--in", "T") == ["Trips"])
        #expect(try complete(services, "thumb", "IMG").sorted() == ["IMG_1.jpg", "IMG_2.jpg"])
        #expect(try complete(services, "edit", "IMG_1.jpg", "--preset", "w") == ["warm"])
        #expect(try complete(services, "exp") == ["export"])

        // A title should name one album, so a second one of the same title needs an option.
        let refused = try services.safelight(["album", "create", "Summer by the sea"])
        #expect(refused.status == 1 && refused.errors.contains("--another"), "\(refused)")
        _ = try run(services, "album", "create", "Summer by the sea", "--another")
        #expect(try services.safelight(["folder", "create", "Trips"]).status == 1)
        #expect(services.stop() == [])
        // Without services, completion does not wait, and offers the smart albums.
        let start = ContinuousClock.now
        #expect(try complete(services, "album", "add", "Fa").isEmpty == false, "smart albums are known")
        #expect(ContinuousClock.now - start < .seconds(10))
    }

    /// Returns what Bash offers for the last word, with the script that `make install` installs.
    private func complete(_ services: SafelightFixture, _ words: String...) throws -> [String] {
        let script = """
            source "$0"
            COMP_WORDS=(safelight "$@"); COMP_CWORD=$#; COMP_LINE="${COMP_WORDS[*]}"; COMP_POINT=${#COMP_LINE}
            _safelight safelight "${COMP_WORDS[$COMP_CWORD]}" "${COMP_WORDS[$COMP_CWORD-1]}"
            printf '%s\\n' "${COMPREPLY[@]}"
            """
        let file = services.folder.file("completion.bash")
        var environment = services.environment
        environment["PATH"] = TestPaths.executables + ":" + (TestEnvironment.text("PATH") ?? "/usr/bin:/bin")
        let shell = try RunningProgram.run("/bin/bash", ["-c", script, file] + words, environment: environment)
        #expect(shell.status == 0, "\(shell.errors)")
        return shell.output.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
    }
}
