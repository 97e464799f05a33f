import Foundation
import Glibc
import SystemPackage
import TestSupport
import Testing

@testable import CommandLine

@Suite(.timeLimit(.minutes(5)))
struct ImageFileFinderTests {
    private func createFiles(_ names: [String], in folder: URL) throws {
        for name in names {
            let file = folder.appending(path: name)
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(),
                withIntermediateDirectories: true
            )
            try Data([0xFF, 0xD8, 0xFF, 0]).write(to: file)
        }
    }

    private func withFolder(_ body: (URL) throws -> Void) throws {
        let folder = try TemporaryFolder("finder")
        try body(folder.url.resolvingSymlinksInPath())
        withExtendedLifetime(folder) {}
    }

    @Test func `folders are searched in name order without links, hidden files and files that are not images`() throws {
        try withFolder { folder in
            try createFiles(
                [
                    "b.JPG", "a.jpg", "Z.png", "sub/deep/x.heic", "sub/a.tiff", ".hidden.jpg", ".git/a.jpg",
                    "notes.txt",
                    "unknown", "movie.mp4",
                ],
                in: folder
            )
            try Data("just words\n".utf8).write(to: folder.appending(path: "README"))
            let files = FileManager.default
            try files.createSymbolicLink(
                at: folder.appending(path: "link.jpg"),
                withDestinationURL: folder.appending(path: "a.jpg")
            )
            try files.createSymbolicLink(at: folder.appending(path: "loop"), withDestinationURL: folder)
            var finder = ImageFileFinder()
            try finder.add(folder.path)
            let found = finder.rest().map { String($0.string.dropFirst(folder.path.count + 1)) }
            #expect(found == ["Z.png", "a.jpg", "b.JPG", "movie.mp4", "unknown", "sub/a.tiff", "sub/deep/x.heic"])
            #expect(finder.others == 2)
        }
    }

    @Test func `a named file is found if its name is not UTF-8`() throws {
        try withFolder { folder in
            // The names are in Latin 1 and in no encoding; both are converted to the same text.
            let files = [[0xE9], [0xFF]].map { name in
                (Array((folder.path + "/x").utf8) + name + Array(".jpg".utf8) + [0]).map { CChar(bitPattern: $0) }
            }
            for file in files {
                let descriptor = try #require(fopen(file, "w"))
                fclose(descriptor)
            }
            let text = folder.path + "/x\u{FFFD}.jpg"
            var arguments = ArgumentBytes([Array("safelight\0".utf8).map { CChar(bitPattern: $0) }] + files)
            var finder = ImageFileFinder()
            for _ in files { try finder.add(text, bytes: arguments.next(text)) }
            #expect(finder.rest().map { path in path.withPlatformString { strlen($0) } } == files.map { $0.count - 1 })
            #expect(arguments.next(text) == nil && arguments.next("safelight") == nil)
            #expect(arguments.changedText == nil && ArgumentBytes(files).changedText == text)
            // For all other commands, the text would name another file.
            let given = ArgumentBytes(files)
            #expect(throws: Never.self) { try given.check(["import", text]) }
            let refused = #expect(throws: CommandFailure.self) { try given.check(["backup", text]) }
            #expect(refused?.status == .usage)
            #expect(throws: Never.self) { try ArgumentBytes([]).check(["backup", "x"]) }
        }
    }

    @Test func `a named file is returned whatever its extension, also through a link`() throws {
        try withFolder { folder in
            try createFiles(["notes.txt"], in: folder)
            try FileManager.default.createSymbolicLink(
                at: folder.appending(path: "link"),
                withDestinationURL: folder.appending(path: "notes.txt")
            )
            var finder = ImageFileFinder()
            try finder.add(folder.appending(path: "link").path)
            #expect(finder.rest().map(\.string) == [folder.appending(path: "notes.txt").path])
        }
    }

    @Test func `the folders of libraries are skipped`() throws {
        try withFolder { folder in
            try createFiles(
                [
                    "a.jpg", "own/library.sqlite", "own/resources/ab/cd/abcd", "server/head",
                    "server/resources/ab/cd/abcd", "site/resources/b.jpg", "site/head/c.jpg",
                ],
                in: folder
            )
            var finder = ImageFileFinder()
            try finder.add(folder.path)
            let found = finder.rest().map { String($0.string.dropFirst(folder.path.count + 1)) }
            #expect(found == ["a.jpg", "site/head/c.jpg", "site/resources/b.jpg"])
            let skipped = finder.libraries.map { String($0.path.string.dropFirst(folder.path.count + 1)) }
            #expect(skipped == ["own", "server"] && finder.libraries.allSatisfy { !$0.isNamed })
            // A folder that the user names is marked, so that the import can report that nothing was imported.
            var own = ImageFileFinder()
            try own.add(folder.appending(path: "own").path)
            #expect(own.rest().isEmpty && own.libraries.map(\.isNamed) == [true])
        }
    }

    @Test func `files that a shell names one by one are grouped like the files of a folder`() throws {
        try withFolder { folder in
            let names = [
                "A.dng", "A.jpg", "A.dng.xmp", "IMG_1.JPG", "IMG_1.MOV", "x.xmp", "sub/IMG_1.MOV", "sub/IMG_1.MOV.xmp",
                "sub/IMG_1.xmp",
            ]
            try createFiles(names, in: folder)
            var finder = ImageFileFinder()
            for name in names + ["A.jpg"] { try finder.add(folder.appending(path: name).path) }
            var items: [ImportItem] = []
            while let item = finder.next() { items.append(item) }
            func path(_ name: String) -> FilePath { FilePath(folder.appending(path: name).path) }
            #expect(items.map(\.main) == ["A.jpg", "IMG_1.JPG", "sub/IMG_1.MOV"].map(path))
            #expect(items.first?.alternate == path("A.dng") && items.first?.sidecar == path("A.dng.xmp"))
            #expect(items.first?.separateItems.map(\.sidecar) == [nil, path("A.dng.xmp")])
            #expect(items.dropFirst().first?.pairedVideo == path("IMG_1.MOV"))
            // The other sidecar of the video is not used.
            #expect(finder.unmatchedSidecars == [path("x.xmp")] && finder.others == 1)
        }
    }

    @Test func `files that cannot be read are reported`() throws {
        try withFolder { folder in
            // A folder in which the paths of some files are longer than the system allows.
            let part = String(repeating: "d", count: 200)
            var path = FilePath(folder.path)
            var descriptor = open(folder.path, O_RDONLY | O_DIRECTORY)
            while path.string.utf8.count + part.utf8.count < 4080 {
                try #require(mkdirat(descriptor, part, 0o700) == 0)
                let next = openat(descriptor, part, O_RDONLY | O_DIRECTORY)
                close(descriptor)
                (descriptor, path) = (next, path.appending(part))
            }
            let names = ["a", "b"].map { $0 + String(repeating: "x", count: 200) + ".jpg" }
            func find() throws -> (found: [FilePath], unreadable: [FilePath]) {
                var finder = ImageFileFinder()
                try finder.add(folder.path)
                let found = finder.rest()
                #expect(finder.unreadable.allSatisfy { $0.reason == .fileNameTooLong })
                return (found, finder.unreadable.map(\.path))
            }
            for name in names { close(openat(descriptor, name, O_WRONLY | O_CREAT, 0o600)) }
            // None of the files can be read: the folder is reported.
            let none = try find()
            #expect(none.found.isEmpty && none.unreadable == [path])
            close(openat(descriptor, "c.jpg", O_WRONLY | O_CREAT, 0o600))
            let one = try find()
            #expect(one.found == [path.appending("c.jpg")])
            #expect(one.unreadable == names.map { path.appending($0) })
            // Their paths are too long for the removal of the temporary folder.
            for name in names { unlinkat(descriptor, name, 0) }
            close(descriptor)
        }
    }

    @Test func `a folder that can be listed but not entered is reported`() async throws {
        let folder = try TemporaryFolder("finder")
        try folder.write([0xFF, 0xD8, 0xFF, 0], to: "locked/a.jpg")
        try folder.write([0xFF, 0xD8, 0xFF, 0], to: "locked/b.jpg")
        chmod(folder.path, 0o755)
        chmod(folder.file("locked"), 0o444)
        defer { chmod(folder.file("locked"), 0o755) }
        await #expect(processExitsWith: .success) { [path = folder.path as String] in
            // Root may enter every folder.
            if geteuid() == 0, setgid(65534) != 0 || setuid(65534) != 0 { _exit(2) }
            var finder = ImageFileFinder()
            try finder.add(path)
            let isEmpty = finder.rest().isEmpty
            let isNamed = finder.unreadable.map(\.path.string) == [path + "/locked"]
            let isDenied = finder.unreadable.map(\.reason) == [.permissionDenied]
            // `_exit`, because the leak sanitizer cannot inspect a process that has changed its user.
            _exit(isEmpty && isNamed && isDenied ? 0 : 1)
        }
    }

    @Test func `a missing path is an error`() {
        var finder = ImageFileFinder()
        #expect(throws: CommandFailure.self) { try finder.add("/nowhere/at/all") }
    }

    @Test func `files with names that are not UTF-8 or contain line breaks are found`() throws {
        try withFolder { folder in
            for name in [[0x61, 0xFF, 0x2E, 0x6A, 0x70, 0x67], Array("two\nlines.jpg".utf8)] as [[UInt8]] {
                let path = Array(folder.path.utf8) + [0x2F] + name + [0]
                let descriptor = path.withUnsafeBytes { bytes in
                    bytes.assumingMemoryBound(to: CChar.self).baseAddress.map { creat($0, 0o600) } ?? -1
                }
                try #require(descriptor >= 0)
                close(descriptor)
            }
            var finder = ImageFileFinder()
            try finder.add(folder.path)
            #expect(finder.count() == 2)
            #expect(finder.rest().compactMap(\.exactText).count == 1)
        }
    }

    @Test func `two files whose names differ only in the Unicode normalization are both found`() throws {
        try withFolder { folder in
            for name in ["\u{E9}.jpg", "e\u{301}.jpg"] {
                let descriptor = creat("\(folder.path)/\(name)", 0o600)
                try #require(descriptor >= 0)
                close(descriptor)
            }
            var finder = ImageFileFinder()
            try finder.add(folder.path)
            #expect(finder.count() == 2)
            #expect(Set(finder.rest()).count == 2)
        }
    }

    @Test func `text is distinguished from binary data`() {
        #expect(ImageFileNames.isText(Array("Grüße\n\t".utf8)))
        #expect(ImageFileNames.isText([]))
        #expect(!ImageFileNames.isText([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]))
        #expect(!ImageFileNames.isText([0xFF, 0xD8, 0xFF, 0xE0, 0]))
    }
}

extension ImageFileFinder {
    /// Returns the main files of all remaining items.
    mutating func rest() -> [FilePath] {
        var paths: [FilePath] = []
        while let item = next() { paths.append(item.main) }
        return paths
    }
}
