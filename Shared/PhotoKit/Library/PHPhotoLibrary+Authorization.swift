import Dispatch
import PhotoClient
import Contracts
import JSONValue
import PhotoModel
import Synchronization

public enum PHAuthorizationStatus: Int, Sendable, CaseIterable {
    case notDetermined = 0
    case restricted = 1
    case denied = 2
    case authorized = 3
    case limited = 4
}

public enum PHAccessLevel: Int, Sendable, CaseIterable {
    case addOnly = 1
    case readWrite = 2
}

extension PHPhotoLibrary {
    /// Asks the owner of the library for access; the handler is called with the decision, at once if there is one
    /// (S-10).
    ///
    /// The owner of the services' sockets is authorized without being asked.
    public class func requestAuthorization(_ handler: @escaping @Sendable (PHAuthorizationStatus) -> Void) {
        requestAuthorization(for: .readWrite, handler: handler)
    }

    /// Asks for an access level, as ``requestAuthorization(_:)`` does.
    public class func requestAuthorization(
        for accessLevel: PHAccessLevel,
        handler: @escaping @Sendable (PHAuthorizationStatus) -> Void
    ) {
        let connection = shared().connection
        connection.start {
            let status = await connection.authorize(accessLevel)
            connection.callbacks.async { handler(status) }
        }
    }

    /// Asks for an access level and returns the decision.
    public class func requestAuthorization(for accessLevel: PHAccessLevel) async -> PHAuthorizationStatus {
        await shared().connection.authorize(accessLevel)
    }

    /// Returns the decision about reading and writing, without asking the owner.
    public class func authorizationStatus() -> PHAuthorizationStatus { authorizationStatus(for: .readWrite) }

    /// Returns the decision about an access level, without asking the owner.
    public class func authorizationStatus(for accessLevel: PHAccessLevel) -> PHAuthorizationStatus {
        let connection = shared().connection
        let status = try? connection.wait { () async throws(RPCError) in await connection.status(accessLevel) }
        return status ?? .notDetermined
    }
}

extension LibraryConnection {
    /// Waits for the owner's decision.
    func authorize(_ level: PHAccessLevel) async -> PHAuthorizationStatus {
        while !Task.isCancelled {
            do throws(RPCError) {
                let session = try await askCatalog(openSession(level))
                let status = Self.status(session, level)
                // The catalog answers notDetermined at the deadline of the request.
                if status != .notDetermined { return status }
            } catch {
                guard error.isTransient, !isClosed.load(ordering: .relaxed) else { return Self.status(error) }
            }
        }
        return .notDetermined
    }

    /// Returns the decision. A read fails if there is none; without that check, opening a session would ask the owner.
    func status(_ level: PHAccessLevel) async -> PHAuthorizationStatus {
        do throws(RPCError) {
            do throws(RPCError) {
                _ = try await askCatalog(CurrentToken())
            } catch {
                // A program that may only add is not allowed to read.
                guard level == .addOnly, error.errorCode == .accessDenied else { throw error }
            }
            return Self.status(try await askCatalog(openSession(level)), level)
        } catch {
            return Self.status(error)
        }
    }

    private func openSession(_ level: PHAccessLevel) -> OpenSession {
        OpenSession(
            client: configuration.client,
            purpose: configuration.purpose,
            access: AccessLevel(number: level.rawValue) ?? .readWrite
        )
    }

    private static func status(_ session: OpenSession.Result, _ level: PHAccessLevel) -> PHAuthorizationStatus {
        // Access to read and write includes access to add. The reverse is not true.
        if session.status == .authorized, session.access.number < level.rawValue { return .denied }
        return PHAuthorizationStatus(rawValue: session.status.number) ?? .notDetermined
    }

    private static func status(_ error: RPCError) -> PHAuthorizationStatus {
        switch error.errorCode {
        case .accessDenied: .denied
        case .accessRestricted: .restricted
        default: .notDetermined
        }
    }
}
