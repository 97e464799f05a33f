import Contracts
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import Catalog

@Suite(.timeLimit(.minutes(1)))
struct ServiceIdentitiesTests {
    @Test func `only the catalog's own user and listed services act for other clients`() {
        let services = ServiceIdentities(ownUID: 1000) { $0 == "key:editor" }
        for identity in ["uid:1000", "key:editor"] {
            #expect(throws: Never.self) { try services.check(identity, for: "onBehalfOf") }
        }
        for identity in ["uid:1001", "uid:0", "uid:10000", "key:ann", "key:uid:1000", "loopback", ""] {
            #expect(throws: CatalogError.notAService(identity, request: "onBehalfOf")) {
                try services.check(identity, for: "onBehalfOf")
            }
        }
    }
}
