public import JSONValue

/// `figures`: counters and gauges of the service.
public struct MetricsRequest: Request {
    public typealias Result = FreeForm
    public static let method = "figures"
    public init() {}
    public static let table = parameters("Counters and gauges of the service.", blank: MetricsRequest())
}
