public import Messaging
public import PhotoModel

/// The statement in the file of a listed key: the access of the key's owner until the owner of the library decides
/// otherwise with `safelight grants`.
///
/// A file without a statement was made by an earlier version, or added to the folder by hand. Only the owner of
/// the library can write there, so such a file grants readWrite access, as it did before there were statements.
public struct KeyStatement: Sendable, Equatable {
    /// The access that a key file can state.
    public enum Access: String, Sendable, CaseIterable {
        case readWrite, addOnly
        /// Access to a list of assets, which the owner of the library makes with `safelight grants limit`.
        case limited
        /// Undecided: the client has to ask with `session.open`.
        case ask
        /// The key belongs to the owner of the library.
        case owner
    }

    public var access: Access
    public var consent: ConsentPolicy
    public var purpose: String

    public init(_ access: Access = .readWrite, consent: ConsentPolicy = .never, purpose: String = "") {
        self.access = access
        self.consent = consent
        self.purpose = purpose
    }

    /// Reads the statement from the metadata of a certificate. An unknown access, from a newer version, is read as
    /// `ask`, and an unknown consent as `always`.
    init(_ certificate: Certificate) {
        func value(_ name: String) -> String? { certificate.metadata.last { $0.name == name }?.value }
        access = value("access").map { Access(rawValue: $0) ?? .ask } ?? .readWrite
        consent = value("consent").map { ConsentPolicy(rawValue: $0) ?? .always } ?? .never
        purpose = value("purpose") ?? ""
    }

    /// The statement as metadata of a certificate.
    var metadata: [(name: String, value: String)] {
        var metadata = [(name: "access", value: access.rawValue), (name: "consent", value: consent.rawValue)]
        if !purpose.isEmpty { metadata.append((name: "purpose", value: purpose)) }
        return metadata
    }
}

/// An entry of a key list: a key, and the statement in its file.
public struct KeyListEntry: Sendable, Equatable {
    public let name: String
    public let publicKey: CurvePublicKey
    public let statement: KeyStatement

    /// The identity of connections with this key.
    public var identity: String { "key:\(name)" }
}
