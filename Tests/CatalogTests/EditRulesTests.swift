import Contracts
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import Catalog

/// Tests of the version that an editor receives as input, and of the base that its commit stores.
@Suite(.timeLimit(.minutes(1)))
struct EditRulesTests {
    private func handles(_ format: String) -> (String, String) -> Bool { { identifier, _ in identifier == format } }

    private func digest(_ asset: Asset?, _ type: ResourceType) -> Int? {
        asset?.resource(type).flatMap { Int($0.digest) }
    }

    /// Begins and commits an edit as a program that reads only its own format; returns its input.
    private func edit(
        _ library: inout InMemoryLibrary,
        _ id: ObjectID,
        as format: String,
        _ seed: Int
    ) throws -> (base: EditBase, input: Int?, hasData: Bool) {
        let asset = try #require(library.asset(id))
        let input = try #require(asset.editingInput(handles: handles(format)))
        let token = EditInputToken(
            asset: id,
            contentRevision: asset.contentRevision,
            base: input.base,
            digest: input.resource.digest
        )
        try library.perform([.edit(id, format, seed, token: token)])
        return (input.base, Int(input.resource.digest), input.hasAdjustmentData)
    }

    @Test(.spec("S-85", "S-86", "S-90", "S-91", "D4", "P-27"))
    func `an editor that can read the last edit gets the same base again, any other one the current render`() throws {
        var library = InMemoryLibrary()
        let id = try library.add(1)
        var input = try edit(&library, id, as: "A", 10)
        #expect(input == (.original, 1, false), "without an edit: the original")
        #expect(
            digest(library.asset(id), .adjustmentBasePhoto) == nil && digest(library.asset(id), .fullSizePhoto) == 10
        )

        input = try edit(&library, id, as: "A", 11)
        #expect(input == (.original, 1, true), "resumed from the original")
        #expect(
            digest(library.asset(id), .adjustmentBasePhoto) == nil && digest(library.asset(id), .fullSizePhoto) == 11
        )

        input = try edit(&library, id, as: "B", 12)
        #expect(input == (.current, 11, false), "B cannot read A's data: the current render without data")
        #expect(
            digest(library.asset(id), .adjustmentBasePhoto) == 11 && digest(library.asset(id), .fullSizePhoto) == 12
        )

        input = try edit(&library, id, as: "B", 13)
        #expect(input == (.previous, 11, true), "the base of its last edit, not the original")
        #expect(
            digest(library.asset(id), .adjustmentBasePhoto) == 11 && digest(library.asset(id), .fullSizePhoto) == 13
        )

        input = try edit(&library, id, as: "A", 14)
        #expect(input == (.current, 13, false), "the data is in B's format now")
        #expect(
            digest(library.asset(id), .adjustmentBasePhoto) == 13 && digest(library.asset(id), .fullSizePhoto) == 14
        )

        try library.perform(.revertAsset(.init(id: id)))
        let reverted = try #require(library.asset(id))
        #expect(!reverted.hasAdjustments && reverted.resources.map(\.type) == [.photo])
        #expect(try edit(&library, id, as: "B", 15) == (.original, 1, false))
    }

    @Test(.spec("S-91", "T-49", "D4"))
    func `an edit of either original of a pair is resumed from that original`() throws {
        var library = InMemoryLibrary()
        let id = try library.add(1)
        let raw = PreparedResource.bytes(2, .alternatePhoto, nil).digest
        library.snapshot.assets[id]?.resources.append(
            AssetResource(type: .alternatePhoto, digest: raw, size: 1, contentType: "com.adobe.raw-image")
        )
        func editingInput(of choice: OriginalChoice?, as format: String = "A") throws -> (
            base: EditBase, resource: AssetResource, hasAdjustmentData: Bool
        ) {
            let asset = try #require(library.asset(id))
            guard let choice else { return try #require(asset.editingInput(handles: handles(format))) }
            return try #require(asset.editingInput(of: choice, handles: handles(format)))
        }
        func begin(of choice: OriginalChoice? = nil, as format: String = "A") throws -> (EditBase, Int?, Bool) {
            let input = try editingInput(of: choice, as: format)
            return (input.base, Int(input.resource.digest), input.hasAdjustmentData)
        }
        func commit(_ seed: Int, of choice: OriginalChoice? = nil) throws {
            let (asset, input) = (try #require(library.asset(id)), try editingInput(of: choice))
            let token = EditInputToken(
                asset: id,
                contentRevision: asset.contentRevision,
                base: input.base,
                digest: input.resource.digest
            )
            try library.perform([.edit(id, "A", seed, token: token)])
        }

        var input = try begin(of: .raw)
        #expect(input == (.original, 2, false))
        try commit(10, of: .raw)
        for choice in [nil, OriginalChoice.raw] {
            input = try begin(of: choice)
            #expect(input == (.previous, 2, true), "the RAW file, on which the parameters are based")
        }
        input = try begin(of: .compressed)
        #expect(input == (.original, 1, false))
        input = try begin(of: .raw, as: "B")
        #expect(input == (.original, 2, false), "B cannot read A's data")

        for (seed, choice) in [(11, nil), (12, .raw)] as [(Int, OriginalChoice?)] {
            try commit(seed, of: choice)
            #expect(digest(library.asset(id), .adjustmentBasePhoto) == 2, "resumed, the base stays")
            #expect(digest(library.asset(id), .fullSizePhoto) == seed)
        }
        try commit(13, of: .compressed)
        #expect(digest(library.asset(id), .adjustmentBasePhoto) == nil)
        input = try begin()
        #expect(input == (.original, 1, true))

        try commit(14, of: .raw)
        try library.perform(.revertAsset(.init(id: id, base: .raw)))
        #expect(library.asset(id)?.resources.map(\.type) == [.alternatePhoto, .photo])
        try commit(15, of: .raw)
        input = try begin()
        #expect(input == (.original, 2, true), "the RAW file is presented now and needs no base")
    }

    @Test(.spec("S-86", "S-88"))
    func `a newer version of a format is read only by editors that list it`() throws {
        let formats = [HandledFormat(formatIdentifier: "A", minimumVersion: "1.2", maximumVersion: "1.10")]
        for (version, isRead) in [("1.2", true), ("1.9", true), ("1.10", true), ("1.11", false), ("1.1", false)] {
            #expect(formats.contains { $0.includes("A", version) } == isRead, "\(version)")
        }
        #expect(!formats[0].includes("B", "1.2"))
        #expect(HandledFormat(formatIdentifier: "A").includes("A", "anything"))
        #expect(!HandledFormat(formatIdentifier: "A", formatVersion: "2").includes("A", "2.0"))
    }

    @Test(.spec("S-90"))
    func `a token of other pixels, of another asset or of other bytes is refused`() throws {
        var library = InMemoryLibrary()
        let (id, other) = (try library.add(1), try library.add(2))
        let asset = try #require(library.asset(id))
        let token = EditInputToken(
            asset: id,
            contentRevision: asset.contentRevision,
            base: .original,
            digest: try #require(asset.originalResource?.digest)
        )
        #expect(EditInputToken(token.description) == token)
        var short = token
        short.digest = "1"
        #expect(EditInputToken(short.description) == nil, "a digest has 64 digits")
        for (target, change, name) in [
            (other, { _ in }, "invalid_params"), (id, { $0.digest = "9" }, "conflict"),
            (id, { $0.base = .previous }, "conflict"),
        ] as [(ObjectID, (inout EditInputToken) -> Void, String)] {
            var changed = token
            change(&changed)
            let error = #expect(throws: RPCError.self) {
                try library.perform([.edit(target, "A", 5, token: changed)])
            }
            #expect(error?.name == name)
        }
        try library.perform([.edit(id, "A", 6, token: token)])
        let late = #expect(throws: RPCError.self) { try library.perform([.edit(id, "A", 7, token: token)]) }
        #expect(late?.name == "conflict")
        #expect(late?.data["contentRevision"]?.stringValue == library.asset(id)?.contentRevision.description)
    }

    @Test(.spec("T-26"))
    func `a revert chooses between a RAW and a compressed original`() throws {
        var library = InMemoryLibrary()
        let id = try library.add(1)
        #expect(throws: RPCError.self) { try library.perform(.revertAsset(.init(id: id, base: .raw))) }
        var asset = try #require(library.asset(id))
        asset.resources.append(
            AssetResource(type: .alternatePhoto, digest: "2", size: 1, contentType: "com.adobe.raw-image")
        )
        library.snapshot.assets[id] = asset
        try library.perform([.edit(id, "A", 5)])
        try library.perform(.revertAsset(.init(id: id, base: .raw)))
        #expect(digest(library.asset(id), .photo) == 2 && digest(library.asset(id), .alternatePhoto) == 1)
        #expect(library.asset(id)?.contentType == "com.adobe.raw-image")
        #expect(library.asset(id)?.originalResourceChoice == .raw)
        #expect(library.asset(id)?.json["originalResourceChoice"] == "raw")
        try library.perform(.revertAsset(.init(id: id, base: .compressed)))
        #expect(digest(library.asset(id), .photo) == 1)
    }
}
