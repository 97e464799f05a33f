import Contracts
import JSONValue
import Messaging
import PhotoModel
import TestSupport
import Testing

@testable import PhotoClient

/// A publisher with an editor endpoint that accepts everything and a catalog whose responses a test defines.
@Suite(.timeLimit(.minutes(2)), .serialized)
struct EditPublisherTests {
    private func edit(_ number: Int) -> PublishEdit {
        PublishEdit(id: "e\(number)", asset: assetID(1), adjustments: AdjustmentList(operations: [.exposure(0.5)]))
    }

    /// The catalog's state of each edit; nil if it does not know the edit.
    private typealias StateLookup = @Sendable (String) -> PublishedEditState?

    /// Runs a test with an editor endpoint that accepts pushes, a catalog, and no change-broker.
    private func with(
        _ state: @escaping StateLookup,
        while body: @escaping @Sendable (PhotoLibrary, RecordedList<String>) async throws -> Void
    ) async throws {
        try await ClientFixture.with { fixture in
            let pushed = RecordedList<String>()
            let thread = try PollThread(name: "test-editor")
            let puller = try Puller(address: fixture.endpoints.edits[0], thread: thread)
            let reading = Task {
                for await message in puller.messages {
                    if case .edit(let edit, _) = PublishedEditMessage(frames: message.frames) { pushed.add(edit.id) }
                }
            }
            let library = fixture.library
            try await fixture.serving(fixture.endpoints.changeBroker) { (_, _) throws(RPCError) in
                throw ErrorCode.accessDenied.error("no feed here")
            } while: {
                try await fixture.serving(fixture.endpoints.catalog) { (request, _) throws(RPCError) in
                    var result = EditsStatus.Result(edits: [], unknown: [])
                    for id in try EditsStatus(params: request.params).ids {
                        if let state = state(id) {
                            let edit = PublishedEdit(id: id, asset: assetID(1), state: state)
                            result.edits.append(EditStatus(edit: edit, sequence: 1, digest: ""))
                        } else {
                            result.unknown.append(id)
                        }
                    }
                    return Reply(result.json)
                } while: {
                    try await body(library, pushed)
                }
            }
            await thread.shutdown()
            await reading.value
        }
    }

    @Test func `an edit is sent again until it is accepted, and each of its states is delivered once`() async throws {
        let requests = RecordedList<String>()
        try await with { id in
            switch requests.add(id) {
            case ...2: nil
            case 3...4: .accepted
            default: .applied
            }
        } while: { library, pushed in
            let publisher = try EditPublisher(library: library)
            async let running: Void = publisher.run()
            try await publisher.publish(edit(1))
            await publisher.finish()
            var reported: [PublishedEditState] = []
            for await status in publisher.updates { reported.append(status.edit.state) }
            try await running
            #expect(reported == [.accepted, .applied])
            #expect(pushed.all.count >= 3, "once, and after each response that it is unknown")
            #expect(Set(pushed.all) == ["e1"])
        }
    }

    @Test func `publishing waits while status updates are not read`() async throws {
        try await with { _ in
            .applied
        } while: { library, pushed in
            let window = 4
            let publisher = try EditPublisher(library: library, window: window)
            async let running: Void = publisher.run()
            let published = RecordedList<Int>()
            let publishing = Task {
                for number in 0..<40 {
                    try await publisher.publish(edit(number))
                    published.add(number)
                }
                await publisher.finish()
            }
            // Status updates are not read, so publishing stops with a full window of them.
            while await publisher.pendingUpdates.count < window, !Task.isCancelled { await Task.yield() }
            for _ in 0..<200 { await Task.yield() }
            #expect(published.all.count <= 2 * window)
            #expect(await publisher.pendingUpdates.count <= 3 * window)
            var reported: [String] = []
            for await status in publisher.updates { reported.append(status.edit.id) }
            try await publishing.value
            try await running
            #expect(Set(reported) == Set((0..<40).map { "e\($0)" }))
            #expect(reported.count == 40)
            #expect(pushed.all.count >= 40)
        }
    }

    @Test func `the id of an open edit is refused with id_reused`() async throws {
        try await with { _ in
            nil
        } while: { library, _ in
            let publisher = try EditPublisher(library: library)
            let running = Task { try await publisher.run() }
            try await publisher.publish(edit(1))
            let error = await #expect(throws: RPCError.self) { try await publisher.publish(edit(1)) }
            #expect(error?.errorCode == .idReused)
            running.cancel()
            try await running.value
        }
    }

    @Test func `stopping ends status updates and waiting callers, and states can be requested`() async throws {
        let accepted = RecordedList<String>()
        try await with {
            accepted.all.contains($0) ? .accepted : nil
        } while: { library, _ in
            let publisher = try EditPublisher(library: library, window: 2)
            let running = Task { try await publisher.run() }
            try await publisher.publish(edit(1))
            try await publisher.publish(edit(2))
            let waiting = Task { try await publisher.publish(edit(3)) }
            running.cancel()
            try await running.value
            waiting.cancel()
            let error = await #expect(throws: RPCError.self) { try await waiting.value }
            #expect(error?.errorCode == .userCancelled)

            accepted.add("e1")
            await publisher.requestStates(deadline: .seconds(10))
            var reported: [String] = []
            for await status in publisher.updates { reported.append("\(status.edit.id) \(status.edit.state)") }
            #expect(reported == ["e1 accepted"])
            #expect(await publisher.open == 2, "one is unknown, one is not finished")
        }
    }
}
