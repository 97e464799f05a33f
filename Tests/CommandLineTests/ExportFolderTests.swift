import Basics
import Contracts
import Foundation
import PhotoModel
import TestSupport
import Testing

@testable import CommandLine

/// The names of exported files.
@Suite(.timeLimit(.minutes(1)))
struct ExportFolderTests {
    private func file(_ name: String, _ content: String) -> ExportFolder.File {
        let bytes = Array(content.utf8)
        return .init(name: name, digest: SHA256.hash(data: bytes).hexadecimal, size: Int64(bytes.count))
    }

    private func export(_ files: [(name: String, content: String)], to folder: inout ExportFolder) throws -> [String] {
        let destinations = try folder.destinations(of: files.map { file($0.name, $0.content) })
        for (destination, file) in zip(destinations, files) where !destination.isPresent {
            #expect(!FileManager.default.fileExists(atPath: destination.path))
            try Data(file.content.utf8).write(to: URL(filePath: destination.path))
        }
        return destinations.map { URL(filePath: $0.path).lastPathComponent + ($0.isPresent ? " exists" : "") }
    }

    @Test func `files have their original names, numbered where another file has the name`() throws {
        let temporary = try TemporaryFolder("export-folder")
        for round in 1...2 {
            var folder = try ExportFolder(temporary.file("out"))
            let suffix = round == 1 ? "" : " exists"
            #expect(try export([("IMG_1.jpg", "one")], to: &folder) == ["IMG_1.jpg" + suffix])
            #expect(try export([("IMG_1.jpg", "two")], to: &folder) == ["IMG_1 (2).jpg" + suffix])
            // The same content, but another asset, exported in the same run.
            #expect(try export([("img_1.JPG", "one")], to: &folder) == ["img_1 (3).JPG" + suffix])
            #expect(
                try export([("IMG_1.jpg", "three"), ("IMG_1.mov", "video")], to: &folder)
                    == ["IMG_1 (4).jpg", "IMG_1 (4).mov"].map { $0 + suffix }
            )
            #expect(try export([("IMG_2", "no extension")], to: &folder) == ["IMG_2" + suffix])
            #expect(try export([("IMG_2", "another")], to: &folder) == ["IMG_2 (2)" + suffix])
        }
    }

    @Test func `a photo and a video or raw file of another asset get different stems`() throws {
        let temporary = try TemporaryFolder("export-folder")
        for round in 1...2 {
            var folder = try ExportFolder(temporary.file("out"))
            let suffix = round == 1 ? "" : " exists"
            #expect(try export([("P.JPG", "photo")], to: &folder) == ["P.JPG" + suffix])
            #expect(try export([("P.MP4", "video")], to: &folder) == ["P (2).MP4" + suffix])
            #expect(try export([("P.dng", "raw")], to: &folder) == ["P (2).dng" + suffix])
            #expect(try export([("P.png", "other")], to: &folder) == ["P.png" + suffix])
            let live = [("L.HEIC", "still"), ("L.MOV", "its video"), ("L.DNG", "its raw file")]
            #expect(try export(live, to: &folder) == ["L.HEIC", "L.MOV", "L.DNG"].map { $0 + suffix })
        }
        // The files are exported alone, in another run.
        var folder = try ExportFolder(temporary.file("out"))
        #expect(try export([("P.MP4", "video")], to: &folder) == ["P (2).MP4 exists"])
        #expect(try export([("L.MP4", "another video")], to: &folder) == ["L (2).MP4"])
    }

    @Test func `a file that exists under a lower number than the previous file is not written again`() throws {
        let temporary = try TemporaryFolder("export-folder")
        var folder = try ExportFolder(temporary.file("out"))
        #expect(try export([("a.jpg", "one")], to: &folder) == ["a.jpg"])
        #expect(try export([("a.jpg", "second")], to: &folder) == ["a (2).jpg"])
        // An older photo of the same name, imported since, comes first.
        folder = try ExportFolder(temporary.file("out"))
        #expect(try export([("a.jpg", "the older one")], to: &folder) == ["a (3).jpg"])
        #expect(try export([("a.jpg", "one")], to: &folder) == ["a.jpg exists"])
        #expect(try export([("a.jpg", "second")], to: &folder) == ["a (2).jpg exists"])
        #expect(try export([("a.jpg", "one")], to: &folder) == ["a (4).jpg"])
    }

    @Test func `a sidecar has the number of its photo, and replaces no file`() throws {
        let temporary = try TemporaryFolder("export-folder")
        func exportSidecar(_ sidecar: String) throws -> [String] {
            var folder = try ExportFolder(temporary.file("out"))
            var sidecarFile = file("a.jpg", sidecar)
            sidecarFile.suffix = ".xmp"
            let destinations = try folder.destinations(of: [file("a.jpg", "photo"), sidecarFile])
            for (destination, content) in zip(destinations, ["photo", sidecar]) where !destination.isPresent {
                try temporary.write(Array(content.utf8), to: "out/" + URL(filePath: destination.path).lastPathComponent)
            }
            return destinations.map { URL(filePath: $0.path).lastPathComponent + ($0.isPresent ? " exists" : "") }
        }
        try temporary.write(Array("mine".utf8), to: "out/a.jpg.xmp")
        #expect(try exportSidecar("made") == ["a (2).jpg", "a (2).jpg.xmp"])
        #expect(try exportSidecar("made") == ["a (2).jpg exists", "a (2).jpg.xmp exists"])
        #expect(try String(contentsOfFile: temporary.file("out/a.jpg.xmp"), encoding: .utf8) == "mine")
    }

    @Test func `a new sidecar replaces an earlier one, unless the earlier one was modified`() throws {
        let temporary = try TemporaryFolder("export-folder")
        var asset = Asset(id: ScriptedService.id("a", 1))
        let step = EditStep(step: 1, kind: .edit, sequence: 7, date: 0, identity: "uid:1")
        func export(_ steps: [EditStep]) throws -> [String] {
            let history = EditHistory.Result(
                asset: asset.id,
                contentRevision: Revision(7),
                steps: steps,
                isComplete: false
            )
            var sidecarFile = file("a.jpg", "")
            sidecarFile.suffix = ".xmp"
            let sidecar = Array(XMPSidecar.packet(asset, adjustmentData: [], history: history).utf8)
            sidecarFile.sidecar = sidecar
            var folder = try ExportFolder(temporary.file("out"))
            let destinations = try folder.destinations(of: [file("a.jpg", "photo"), sidecarFile])
            let contents = [Array("photo".utf8), sidecar]
            for (destination, content) in zip(destinations, contents) where !destination.isPresent {
                try temporary.write(content, to: "out/" + URL(filePath: destination.path).lastPathComponent)
            }
            return destinations.map { destination in
                URL(filePath: destination.path).lastPathComponent
                    + (destination.isPresent ? " exists" : destination.replaces ? " is replaced" : "")
            }
        }
        asset.rating = 5
        #expect(try export([step]) == ["a.jpg", "a.jpg.xmp"])
        #expect(try export([step]) == ["a.jpg exists", "a.jpg.xmp exists"])
        // The history of the library no longer has the edit.
        #expect(try export([]) == ["a.jpg exists", "a.jpg.xmp exists"])
        asset.rating = 4
        #expect(try export([]) == ["a.jpg exists", "a.jpg.xmp is replaced"])
        #expect(try export([]) == ["a.jpg exists", "a.jpg.xmp exists"])
        // Another program keeps the properties that it does not know.
        let text = try String(contentsOfFile: temporary.file("out/a.jpg.xmp"), encoding: .utf8)
        try temporary.write(text.replacing("xmp:Rating=\"4\"", with: "xmp:Rating=\"1\"").utf8, to: "out/a.jpg.xmp")
        asset.rating = 3
        #expect(try export([]) == ["a (2).jpg", "a (2).jpg.xmp"])
        // The photo of another asset with the same bytes.
        asset.id = ScriptedService.id("a", 2)
        #expect(try export([]) == ["a (3).jpg", "a (3).jpg.xmp"])
    }

    @Test func `files of the user, folders and links are not replaced`() throws {
        let temporary = try TemporaryFolder("export-folder")
        try FileManager.default.createDirectory(
            atPath: temporary.file("out/b.jpg"),
            withIntermediateDirectories: true
        )
        try Data("mine".utf8).write(to: URL(filePath: temporary.file("out/a.jpg")))
        try FileManager.default.createSymbolicLink(
            atPath: temporary.file("out/c.jpg"),
            withDestinationPath: temporary.file("out/a.jpg")
        )
        var folder = try ExportFolder(temporary.file("out"))
        #expect(try export([("a.jpg", "note")], to: &folder) == ["a (2).jpg"])
        #expect(try export([("b.jpg", "b")], to: &folder) == ["b (2).jpg"])
        #expect(try export([("c.jpg", "mine")], to: &folder) == ["c (2).jpg"])
        #expect(try String(contentsOfFile: temporary.file("out/a.jpg"), encoding: .utf8) == "mine")
    }

    @Test func `names are safe, not hidden and not too long`() {
        #expect(ExportFolder.safe("../a/b\u{1b}.jpg") == "_._a_b_.jpg")
        #expect(ExportFolder.safe(".htaccess") == "_htaccess")
        #expect(ExportFolder.safe("") == "file")
        let long = ExportFolder.safe(String(repeating: "ü", count: 300) + ".jpeg")
        #expect(long.utf8.count <= ExportFolder.maxNameBytes && long.hasSuffix("ü.jpeg"))
    }

    @Test func `ten thousand photos with the same name are numbered`() throws {
        let temporary = try TemporaryFolder("export-folder")
        var folder = try ExportFolder(temporary.file("out"))
        for number in 1...10_000 {
            let destination = try folder.destinations(of: [file("IMG.jpg", "\(number)")])[0]
            #expect(destination.path.hasSuffix(number == 1 ? "IMG.jpg" : "IMG (\(number)).jpg"))
        }
    }
}
