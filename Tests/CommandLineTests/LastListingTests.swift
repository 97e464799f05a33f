import Foundation
import PhotoModel
import TestSupport
import Testing

@testable import CommandLine

/// The numbers of the last listing never name other assets than those that were printed.
@Suite(.timeLimit(.minutes(1)))
struct LastListingTests {
    private func listing(_ folder: TemporaryFolder) -> LastListing {
        LastListing { $0 == "XDG_STATE_HOME" ? folder.path : nil }
    }

    @Test func `a listing is removed if the next one cannot be written`() throws {
        let folder = try TemporaryFolder("listing")
        listing(folder).write([try #require(ObjectID("a00000000000000000000000001"))])
        // The file that would become the new listing is a folder.
        let path = folder.file("safelight/listing.\(getpid()).part")
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        let isOutdated = listing(folder).begin().isOutdated
        #expect(!isOutdated)
        let note = listing(folder).begin().note
        #expect(note == LastListing.unwritten)
        #expect(throws: CommandFailure.self) { try listing(folder).ids("@1") }
    }
}
