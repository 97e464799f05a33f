public import JSONValue
public import PhotoModel

/// `transient.release`: ends the lease of a transient collection or list.
public struct ReleaseTransient: Request {
    public static let method = "transient.release"
    /// Id from transient.create.
    public var id: ObjectID

    public init(id: ObjectID) { self.id = id }

    public static let table = parameters(
        "Releases a transient collection or list; succeeds if it has already expired.",
        blank: ReleaseTransient(id: .none),
        [.required("id", \.id, .id(), "Id from transient.create.")]
    )

    public typealias Result = EmptyResult
}
