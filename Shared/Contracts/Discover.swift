public import JSONValue

/// `rpc.discover`: the OpenRPC document of the service.
public struct Discover: Request {
    public typealias Result = FreeForm
    public static let method = "rpc.discover"
    public init() {}
    public static let table = parameters("The OpenRPC document of this service.", blank: Discover())
}
