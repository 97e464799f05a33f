import PhotoModel

/// An immutable snapshot of an object of the library: `PHObject`, the base class of everything that is fetched.
///
/// Two objects are equal if they have the same identifier, also if one is a newer snapshot or a placeholder (S-01,
/// T-28).
public class PHObject: Hashable, @unchecked Sendable {
    /// The identifier of the object, which never changes.
    public let localIdentifier: String
    /// Retains the interest in the fetch of this object, so that observers are notified of its changes.
    let interest: Interest?
    /// The history from which the object was read; nil if it was not read from the library.
    let history: String?

    init(_ id: ObjectID, _ interest: Interest?, history: String?) {
        localIdentifier = id.text
        self.interest = interest
        self.history = history
    }

    var id: ObjectID { ObjectID(localIdentifier) ?? .none }

    public static func == (left: PHObject, right: PHObject) -> Bool { left.localIdentifier == right.localIdentifier }

    public func hash(into hasher: inout Hasher) { hasher.combine(localIdentifier) }
}

/// An object that a change request will create, or has created: `PHObjectPlaceholder`.
///
/// The object will have its identifier. If the changes fail, no object has it.
public final class PHObjectPlaceholder: PHObject, @unchecked Sendable {}
