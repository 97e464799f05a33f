public import JSONValue

/// The description of a method in the documentation (OpenRPC 1.3).
public struct MethodDescription: Sendable {
    public let name: String
    public let summary: String
    public let params: JSON
    public let result: JSON
    /// The access that an identity needs.
    public let access: MethodAccess
    /// Description of the attachments; empty if there are none.
    public let attachments: String
    /// The endpoint that a notification is pushed to; it has no response. Nil for a request.
    public let pushedTo: String?
    /// The notifications that it may send before its response.
    public let notifications: [NotificationDescription]

    public init<R: Request>(
        _: R.Type,
        access: MethodAccess,
        attachments: String = "",
        notifications: [NotificationDescription] = []
    ) {
        self.name = R.method
        self.access = access
        self.summary = R.table.summary
        self.params = R.table.schema
        self.result = R.Result.table.schema
        self.attachments = attachments
        self.notifications = notifications
        self.pushedTo = nil
    }

    /// Describes a notification that is pushed to a separate endpoint.
    public init<N: JSONTabled>(notification method: String, _: N.Type, to endpoint: String, access: MethodAccess) {
        self.name = method
        self.access = access
        self.summary = N.table.summary
        self.params = N.table.schema
        self.result = [:]
        self.attachments = ""
        self.notifications = []
        self.pushedTo = endpoint
    }
}
