import Basics
import CZeroMQ
import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// A client that has received the reply to its own write never reads the state before it: from no service, over no
/// connection, without `atLeast`.
///
/// Sixty edits in the short form; `SAFELIGHT_SOAK=17` and more is the long one: 1,000 edits.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct ReadYourWritesTests {
    private static let rounds = min(1000, TestEnvironment.rounds(60))

    private static func image(_ id: ObjectID) -> ImageRequest {
        ImageRequest(
            asset: id,
            targetSize: .size(width: 80, height: 80),
            resizeMode: .exact,
            deliveryMode: .highQualityFormat
        )
    }

    private static func services(_ name: String) async throws -> (
        services: SafelightFixture, writer: PhotoLibrary, reader: PhotoLibrary, ids: [ObjectID]
    ) {
        let services = try SafelightFixture(name)
        try services.start()
        let (writer, reader) = (try services.library("writer"), try services.library("reader"))
        let ids = try await TestImages.importImages(5, into: writer) {
            TestImages.jpeg(width: 120, height: 90, seed: UInt64($0 + 1))
        }.ids
        while try await reader.thumbnailer.metrics()["assets"]?["isFollowing"] != true {
            try await Task.sleep(for: .milliseconds(20))
        }
        return (services, writer, reader, ids)
    }

    /// Commits new pixels as another program does.
    private static func edit(_ id: ObjectID, seed: UInt64, _ library: PhotoLibrary) async throws -> ChangeToken {
        let edit = ChangeRequest.EditAsset(
            id: id,
            render: NewResource(type: .fullSizePhoto, source: .attachment(0)),
            adjustmentData: AdjustmentData(formatIdentifier: "org.example.a", formatVersion: "1", attachment: 1)
        )
        return try await library.perform(
            [.editAsset(edit)],
            attachments: [TestImages.jpeg(width: 120, height: 90, seed: seed), [1]]
        ).token
    }

    /// Returns the content revision in the reply to a plain socket, without the project's client.
    private static func revision(_ method: String, _ params: JSON, _ socket: ScriptSocket) throws -> String {
        let request: JSON = ["jsonrpc": "2.0", "id": 1, "method": .string(method), "params": params]
        socket.send(request.text)
        // Notifications with degraded images may precede the reply.
        var reply = JSON.null
        while reply["id"] == nil {
            let frames = try #require(socket.receive(milliseconds: 30_000))
            reply = try JSON(parsing: frames[0])
        }
        return try #require(reply["result"]?["contentRevision"]?.stringValue, "\(reply.text)")
    }

    @Test(.spec("S-90"))
    func `an edit is in every image, its data, every fetch and every edit that is requested after its reply`()
        async throws
    {
        let (services, writer, reader, ids) = try await Self.services("own-writes")
        let socket = ScriptSocket(ZMQ_DEALER, services, "thumbnailer")
        var favourites = FetchDescription(.assets)
        favourites.predicate = "isFavorite == TRUE"
        var observed = try await reader.changeBroker.ask(FetchObserve(fetch: favourites)).result.details
        var old: [String: Int] = [:]
        var slowest = Duration.zero
        for round in 0..<Self.rounds {
            let id = ids[round % ids.count]
            // The thumbnailer now has the asset and its image in memory.
            for _ in 0..<2 { _ = try await reader.image(Self.image(id)) }
            let start = ContinuousClock.now
            let written: ChangeToken
            switch round % 4 {
            case 0:
                let list = AdjustmentList(operations: [.exposure(Double(round % 40) / 20 - 1)])
                written = try await writer.editor.ask(ApplyEdit(asset: id, adjustments: list)).result.token
            case 3: written = try await writer.perform([.revertAsset(.init(id: id))]).token
            default: written = try await Self.edit(id, seed: UInt64(100 + round), writer)
            }
            slowest = max(slowest, .now - start)
            async let image = reader.image(Self.image(id)).result.contentRevision
            async let data = reader.thumbnailer.ask(ImageData(asset: id)).result.contentRevision
            async let fetched = reader.asset(id).contentRevision
            async let input = reader.editor.ask(BeginEditing(asset: id, skipsDisplaySizeImage: true, skipsInput: true))
                .result.contentRevision
            async let history = reader.editor.ask(EditHistory(asset: id)).result.contentRevision
            let params: JSON = ["asset": .string(id.text), "targetSize": ["width": 80, "height": 80]]
            let plain = try Self.revision("image.request", params, socket)
            let expected = try await fetched
            #expect(expected == Revision(written.sequence) || round % 4 == 3)
            for (name, found) in [
                ("image.request", try await image.description), ("image.data", try await data.description),
                ("editing.begin", try await input.description), ("edits.history", try await history.description),
                ("fetch.assets", expected.sequence > written.sequence ? "" : expected.description),
                ("image.request of a plain socket", plain),
            ] where found != expected.description { old[name, default: 0] += 1 }

            // Observed fetches are read from the broker's memory.
            let isFavorite = (round / ids.count).isMultiple(of: 2)
            let rated = try await writer.perform(
                [.updateAsset(.init(id: .id(id), set: AssetPatch(isFavorite: isFavorite)))]
            ).token
            let count = isFavorite ? round % ids.count + 1 : ids.count - 1 - round % ids.count
            if round.isMultiple(of: 2) {
                let details = try await reader.changeBroker.ask(
                    FetchDetails(observation: observed.observation, token: observed.token)
                ).result
                if details.token.sequence < rated.sequence || details.count != count {
                    old["fetch.details", default: 0] += 1
                }
                observed.token = details.token
            } else {
                let again = try await reader.changeBroker.ask(FetchObserve(fetch: favourites)).result.details
                if again.token.sequence < rated.sequence || again.count != count {
                    old["fetch.observe", default: 0] += 1
                }
            }
        }
        #expect(old == [:], "old answers of \(Self.rounds) edits")
        for id in ids {
            _ = try await reader.image(Self.image(id))
            _ = try await writer.perform([.deleteAssets(.init(ids: [id]))])
            let error = await #expect(throws: RPCError.self) { try await reader.image(Self.image(id)) }
            #expect(error?.errorCode == .identifierNotFound)
        }
        TestPaths.report("\(Self.rounds) edits read back at once; slowest write \(slowest)")
        await writer.close()
        await reader.close()
        #expect(services.stop() == [])
    }

    @Test(.spec("S-90"))
    func `images are current after an edit although the change-broker is stopped, and no write waits for it`()
        async throws
    {
        let (services, writer, reader, ids) = try await Self.services("own-writes-stopped")
        for round in 0..<3 {
            let id = ids[round]
            for _ in 0..<2 { _ = try await reader.image(Self.image(id)) }
            services.program(.changeBroker)?.signal(SIGSTOP)
            let written = try await Self.edit(id, seed: UInt64(50 + round), writer)
            let image = try await reader.image(Self.image(id)).result
            let again = try await reader.image(Self.image(id)).result
            services.program(.changeBroker)?.signal(SIGCONT)
            #expect(image.contentRevision == Revision(written.sequence))
            #expect(again.contentRevision == Revision(written.sequence) && again.isCacheHit)
            while try await reader.thumbnailer.metrics()["assets"]?["isFollowing"] != true {
                try await Task.sleep(for: .milliseconds(20))
            }
        }
        await writer.close()
        await reader.close()
        #expect(services.stop() == [])
    }

    @Test(.spec("S-90"))
    func `every reading method of the editor waits for the token of atLeast, and refuses one of another history`()
        async throws
    {
        let services = try SafelightFixture("editor-token")
        try services.start([.catalog, .editor])
        let library = try services.library()
        let id = try await TestImages.importImages(1, into: library) { _ in TestImages.jpeg(width: 64, height: 48) }
            .ids[0]
        let head = try await library.currentToken().token
        let socket = ScriptSocket(ZMQ_DEALER, services, "editor")
        func ask(_ method: String, _ token: ChangeToken) throws -> JSON {
            var params: JSONObject = [
                "asset": .string(id.text), "atLeast": .string(token.description), "deadlineMs": 10_000,
            ]
            if method == "edits.preview" { params["adjustments"] = AdjustmentList(operations: [.exposure(1)]).json }
            let request: JSON = ["jsonrpc": "2.0", "id": 1, "method": .string(method), "params": .object(params)]
            socket.send(request.text)
            return try JSON(parsing: try #require(socket.receive(milliseconds: 30_000))[0])
        }
        for method in ["editing.begin", "edits.preview", "edits.compare", "edits.suggest", "edits.history"] {
            let reply = try ask(method, head)
            #expect(reply["result"] != nil, "\(method): \(reply.text)")
            let other = try ask(method, ChangeToken(library: String(repeating: "0", count: 32), sequence: 1))
            #expect(other["error"]?["data"]?["name"] == "token_expired", "\(method): \(other.text)")
        }
        // The reply arrives once the change is committed.
        let next = ChangeToken(library: head.library, sequence: head.sequence + 1)
        async let history = library.editor.ask(EditHistory(asset: id, atLeast: next)).result
        let edited = try await library.editor.ask(
            ApplyEdit(asset: id, adjustments: AdjustmentList(operations: [.exposure(1)]))
        ).result
        #expect(edited.token == next)
        #expect(try await history.contentRevision == Revision(next.sequence))
        let never = ChangeToken(library: head.library, sequence: head.sequence + 1000)
        let behind = await #expect(throws: RPCError.self) {
            try await library.editor.ask(SuggestEdit(asset: id, atLeast: never), deadline: .seconds(2))
        }
        #expect(behind?.errorCode == .behind || behind?.errorCode == .deadlineExceeded)
        await library.close()
        #expect(services.stop() == [])
    }
}
