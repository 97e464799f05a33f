import Contracts
import JSONValue
import PhotoModel
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(1)))
struct MethodAccessTests {
    private static let all: [(service: String, methods: [MethodDescription])] = [
        ("catalog", CatalogRequest.methods), ("thumbnailer", ThumbnailerRequest.methods),
        ("editor", EditorRequest.methods + EditorRequest.notifications), ("change-broker", ChangeBrokerRequest.methods),
    ]

    @Test func `a permission is decoded from its byte, and an unknown byte allows nothing`() {
        for role in Permission.Role.allCases {
            for consent in ConsentPolicy.allCases {
                let permission = Permission(role, consent: consent)
                #expect(Permission(byte: permission.byte) == permission)
            }
        }
        #expect(Permission(byte: 0).role == .unknown)
        for access in MethodAccess.allCases { #expect(!Permission(byte: 0x0F).allows(access)) }
    }

    @Test(.spec("T-40")) func `each role allows exactly its own methods`() {
        let allowed: [Permission.Role: Set<MethodAccess>] = [
            .unknown: [], .undecided: [.public], .restricted: [.public], .denied: [.public],
            .addOnly: [.public, .add], .limited: [.public, .add, .view],
            .readWrite: [.public, .add, .view, .read, .change],
            .service: [.public, .add, .view, .read, .change, .service],
            .owner: [.public, .add, .view, .read, .change, .owner],
            .host: Set(MethodAccess.allCases),
        ]
        for role in Permission.Role.allCases {
            for access in MethodAccess.allCases {
                let isAllowed = allowed[role]?.contains(access) == true
                #expect(Permission(role).allows(access) == isAllowed, "\(role) \(access)")
                let error = Permission(role).refusal(of: "x", needing: access, for: "key:a")
                #expect((error == nil) == isAllowed)
                if let error { #expect(error.data["identity"] == "key:a") }
            }
        }
    }

    @Test(.spec("T-41")) func `a limited grant gives the role limited, or addOnly if it is one to add`() {
        for grant in [
            Grant(identity: "key:a", status: .limited), Grant(identity: "key:a", status: .authorized, scope: .limited),
        ] {
            #expect(Permission(grant).role == .limited)
            #expect(!Permission(grant).seesEverything)
        }
        let adding = Grant(identity: "key:a", status: .limited, access: .addOnly, scope: .limited)
        #expect(Permission(adding).role == .addOnly)
    }

    @Test func `a role that only a newer catalog has is denied`() throws {
        let result = try GrantStatus.Result(json: ["role": "emperor", "consent": "never"])
        #expect(result.permission.role == .denied)
    }

    @Test(arguments: all.map(\.service)) func `the document of a service has the access of every method`(
        service: String
    ) throws {
        let methods = Self.all.first { $0.service == service }?.methods ?? []
        let document = openRPCDocument(service: service, version: "1", methods: methods)
        let described = try #require(document["methods"]?.arrayValue)
        for method in described {
            let name = method["name"]?.stringValue ?? ""
            let access = method["x-access"]?.stringValue.flatMap(MethodAccess.init)
            #expect(access != nil, "\(name)")
            if let own = methods.first(where: { $0.name == name }) { #expect(access == own.access) }
        }
        #expect(described.count == methods.count + 2)
    }
}
