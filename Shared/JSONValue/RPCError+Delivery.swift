/// The part of an error that says whether the request was carried out, for clients that can send it to another
/// instance.
extension RPCError {
    /// Makes the `connection_lost` of a request that was not sent.
    public static func unsent(to address: String) -> RPCError {
        var error = connectionLost("there is no connection to \(address); the request was not sent")
        error.data["isUnsent"] = true
        return error
    }

    /// The same error with `data.isStopping`: another instance of the service can carry out the request now.
    public var ofStoppingService: RPCError {
        var error = self
        error.data["isStopping"] = true
        return error
    }

    /// The error of a request that ended because the service is stopping.
    public static var endedByStop: RPCError {
        interrupted("the service is stopping; send the request again").ofStoppingService
    }

    /// The `connection_lost` of a client that its own program has closed.
    public static var ofClosedClient: RPCError {
        var error = connectionLost("the client is closed")
        error.data["isClosed"] = true
        return error
    }

    /// True if the program itself has closed the client.
    public var isOfClosedClient: Bool { data["isClosed"] == true }

    /// True if a catalog refused a change because another one writes the library.
    public var isOfStandby: Bool { data["standby"] == true }

    /// True if the service refused or ended the request because it is stopping.
    public var isOfStoppingService: Bool { data["isStopping"] == true }

    /// True if the instance of the service was lost; another instance may carry out the request.
    public var isOfLostInstance: Bool { name == "connection_lost" || isOfStoppingService }

    /// True if it is certain that the request was not carried out: it was not sent, or a service that is stopping
    /// refused it.
    public var isUnsent: Bool { data["isUnsent"] == true || (isOfStoppingService && name == "busy") }
}
