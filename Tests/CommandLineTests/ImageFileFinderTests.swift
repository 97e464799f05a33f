import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import CommandLine

@Suite(.timeLimit(.minutes(5)))
struct ImageFileFinderTests {
    private func make(_ names: [String], in folder: URL) throws {
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
            try make(
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

    @Test func `a file is found whose name is not UTF-8`() throws {
        try withFolder { folder in
            // In Latin 1 and in no encoding; both become the same text.
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
        }
    }

    @Test func `a named file is returned whatever its extension, also through a link`() throws {
        try withFolder { folder in
            try make(["notes.txt"], in: folder)
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
            try make(
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
                let made = path.withUnsafeBytes { bytes in
                    bytes.assumingMemoryBound(to: CChar.self).baseAddress.map { creat($0, 0o600) } ?? -1
                }
                try #require(made >= 0)
                close(made)
            }
            var finder = ImageFileFinder()
            try finder.add(folder.path)
            #expect(finder.count() == 2)
            #expect(finder.rest().compactMap(\.exactText).count == 1)
        }
    }

    @Test func `both files are found whose names differ only in the form of a character`() throws {
        try withFolder { folder in
            for name in ["\u{E9}.jpg", "e\u{301}.jpg"] {
                let made = creat("\(folder.path)/\(name)", 0o600)
                try #require(made >= 0)
                close(made)
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
