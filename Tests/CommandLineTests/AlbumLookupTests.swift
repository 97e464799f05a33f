import Contracts
import JSONValue
import Messaging
import PhotoClient
import PhotoModel
import TestSupport
import Testing

@testable import CommandLine

/// Albums that several commands create at the same time.
@Suite(.timeLimit(.minutes(1)))
struct AlbumLookupTests {
    @Test func `an album that another command creates at the same time is used, and no second one is created`()
        async throws
    {
        let other = ScriptedService.id("c", 1)
        let performed = AwaitableValue<[[ChangeRequest]]>([])
        let catalog = ScriptedService { request, _ throws(RPCError) in
            switch try CatalogRequest(method: request.method, params: request.params) {
            case .fetchLists:
                let root = CollectionList(id: .root, revision: Revision(Int64(3 + performed.current.count)))
                return Reply(FetchLists.Result(token: ScriptedService.token, count: 1, lists: [root]).json)
            case .fetchCollections:
                let albums = performed.current.isEmpty ? [] : [AssetCollection(id: other, revision: Revision(4))]
                let page = FetchCollections.Result(
                    token: ScriptedService.token,
                    count: albums.count,
                    collections: albums,
                    order: albums.map(\.id)
                )
                return Reply(page.json)
            case .perform(let changes):
                performed.withLock { $0.append(changes.requests) }
                throw ErrorCode.conflict.error("the folder was changed meanwhile")
            default: throw ErrorCode.methodNotFound.error("the catalog of this test has no \(request.method)")
            }
        }
        let found = try await ClientFixture.with { fixture in
            let library = fixture.library
            return try await fixture.serving(fixture.endpoints.catalog, catalog) {
                var transactions = CommandTransactions()
                return try await AlbumLookup.findOrCreate("Two", in: library, &transactions)
            }
        }
        #expect(found == other)
        #expect(
            performed.current == [
                [
                    .updateList(.init(id: .id(.root), ifRevision: Revision(3))),
                    .createCollection(.init(ref: "album", title: "Two")),
                ]
            ]
        )
    }
}
