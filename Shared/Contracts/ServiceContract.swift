public import JSONValue

// The requests that every service answers.

/// `rpc.discover`: the OpenRPC document of the service.
public struct Discover: Request {
    public typealias Result = FreeForm
    public static let method = "rpc.discover"
    public init() {}
    public static let table = parameters("The OpenRPC document of this service.", blank: Discover())
}

/// `figures`: counters and gauges of the service.
public struct MetricsRequest: Request {
    public typealias Result = FreeForm
    public static let method = "figures"
    public init() {}
    public static let table = parameters("Counters and gauges of the service.", blank: MetricsRequest())
}
