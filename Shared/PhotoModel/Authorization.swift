// PhotoKit's terms of authorization, with their own names and numbers.

/// PhotoKit's `PHAuthorizationStatus`.
public enum AuthorizationStatus: String, NumberedName {
    case notDetermined, restricted, denied, authorized, limited

    public var number: Int {
        switch self {
        case .notDetermined: 0
        case .restricted: 1
        case .denied: 2
        case .authorized: 3
        case .limited: 4
        }
    }
}

/// PhotoKit's `PHAccessLevel`.
public enum AccessLevel: String, NumberedName {
    case addOnly, readWrite

    public var number: Int {
        switch self {
        case .addOnly: 1
        case .readWrite: 2
        }
    }
}

/// The part of the library to which a grant gives access.
public enum GrantScope: String, Sendable, CaseIterable {
    case all, limited
}

/// The changes that need the consent of the owner, one decision for each transaction (S-13).
public enum ConsentPolicy: String, Sendable, CaseIterable {
    /// No changes.
    case never
    /// Changes that delete, trash, edit or revert an existing object.
    case destructive
    /// All changes.
    case always
}
