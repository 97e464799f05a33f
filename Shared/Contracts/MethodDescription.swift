public import JSONValue

/// The description of a method in the documentation (OpenRPC 1.3).
public struct MethodDescription: Sendable {
    public let name: String
    /// The description in words.
    public var summary: String { describe().summary }
    /// The JSON Schema of the parameters.
    public var params: JSON { describe().params }
    /// The JSON Schema of the result.
    public var result: JSON { describe().result }
    /// The access that an identity needs.
    public let access: MethodAccess
    /// Description of the attachments; empty if there are none.
    public let attachments: String
    /// The endpoint that a notification is pushed to; it has no response. Nil for a request.
    public let pushedTo: String?
    /// The notifications that it may send before its response.
    public var notifications: [NotificationDescription] { notificationsOf() }

    /// Makes the texts and schemas from the tables, which takes a service longer than everything else of its start and is
    /// needed for `rpc.discover` only.
    private let describe: @Sendable () -> (summary: String, params: JSON, result: JSON)
    private let notificationsOf: @Sendable () -> [NotificationDescription]

    public init<R: Request>(
        _: R.Type,
        access: MethodAccess,
        attachments: String = "",
        notifications: @escaping @autoclosure @Sendable () -> [NotificationDescription] = []
    ) {
        self.name = R.method
        self.access = access
        self.describe = { (R.table.summary, R.table.schema, R.Result.table.schema) }
        self.attachments = attachments
        self.notificationsOf = notifications
        self.pushedTo = nil
    }

    /// Describes a notification that is pushed to a separate endpoint.
    public init<N: JSONTabled>(notification method: String, _: N.Type, to endpoint: String, access: MethodAccess) {
        self.name = method
        self.access = access
        self.describe = { (N.table.summary, N.table.schema, [:]) }
        self.attachments = ""
        self.notificationsOf = { [] }
        self.pushedTo = endpoint
    }
}
