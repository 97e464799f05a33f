public import JSONValue
public import PhotoModel

/// The permission of an identity: its role, and the changes that the owner is asked about. It fits into one byte, so
/// that it can be read without a lock.
public struct Permission: Sendable, Hashable {
    /// The roles of identities.
    public enum Role: UInt8, Sendable, CaseIterable {
        /// Not known yet: the catalog has not confirmed the role.
        case unknown
        /// The owner has not decided.
        case undecided
        case restricted
        case denied
        /// May add, but not read.
        case addOnly
        /// Sees and changes the assets of its list, and adds to it.
        case limited
        case readWrite
        /// A service of this library on another machine.
        case service
        /// A key of the owner.
        case owner
        /// The user who runs the services on this machine: owner and service.
        case host
    }

    /// The role.
    public var role: Role
    /// The changes that the owner is asked about.
    public var consent: ConsentPolicy

    public init(_ role: Role, consent: ConsentPolicy = .never) {
        self.role = role
        self.consent = consent
    }

    /// Creates the permission that a grant gives.
    public init(_ grant: Grant) {
        let role: Role =
            switch grant.status {
            case .notDetermined: .undecided
            case .restricted: .restricted
            case .denied: .denied
            case .authorized where grant.scope == .all: grant.access == .addOnly ? .addOnly : .readWrite
            case .authorized, .limited: grant.access == .addOnly ? .addOnly : .limited
            }
        self.init(role, consent: grant.consent)
    }

    /// The permission as one byte: the role, and the consent in the upper half.
    public var byte: UInt8 {
        let consent: UInt8 =
            switch consent {
            case .never: 0
            case .destructive: 1
            case .always: 2
            }
        return role.rawValue | consent << 4
    }

    /// Creates a permission from a byte; the role of an unknown byte is ``Role/unknown``.
    public init(byte: UInt8) {
        let consent: ConsentPolicy =
            switch byte >> 4 {
            case 0: .never
            case 1: .destructive
            default: .always
            }
        self.init(Role(rawValue: byte & 0xF) ?? .unknown, consent: consent)
    }

    /// True if the identity sees the whole library.
    public var seesEverything: Bool { role >= .readWrite }

    /// Returns true if the role may call methods that need an access.
    public func allows(_ access: MethodAccess) -> Bool {
        switch access {
        case .public: role != .unknown
        case .add: role >= .addOnly
        case .view: role >= .limited
        case .read, .change: role >= .readWrite
        case .owner: role == .owner || role == .host
        case .service: role == .service || role == .host
        }
    }

    /// Returns the error for an identity that may not call a method; nil if it may.
    public func refusal(of method: String, needing access: MethodAccess, for identity: String) -> RPCError? {
        guard !allows(access) else { return nil }
        let data: JSONObject = ["identity": .string(identity), "access": .string(access.rawValue)]
        switch role {
        case .unknown:
            return ErrorCode.unavailable.error("the catalog has not confirmed what \(identity) may do; try again", data)
        case .undecided:
            return ErrorCode.notDetermined.error(
                "\(identity) has no access yet: call session.open of the catalog with a purpose, and wait for the "
                    + "owner of the library to decide (safelight grants pending)",
                data
            )
        case .restricted:
            return ErrorCode.accessRestricted.error("\(identity) cannot be given access to this library", data)
        case .denied:
            return ErrorCode.accessDenied.error("the owner of the library has denied access to \(identity)", data)
        case .limited where access == .read || access == .change:
            return ErrorCode.accessDenied.error(
                "\(identity) sees the assets of its list only; \(method) needs access to the whole library",
                data
            )
        case .addOnly where access == .view || access == .read || access == .change:
            return ErrorCode.accessDenied.error(
                "\(identity) may add to the library only; \(method) needs readWrite access",
                data
            )
        case .addOnly, .limited, .readWrite, .service, .owner, .host:
            return ErrorCode.accessDenied.error(
                "\(method) is for \(access == .service ? "services" : "the owner of the library") only, and \(identity) "
                    + "is not one",
                data
            )
        }
    }
}

extension Permission.Role: Comparable {
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
