/// What a request of one method may bring.
public struct MethodLimits: Sendable, Equatable {
    /// Bytes of the JSON frame.
    public var maxJSONBytes: Int
    /// Whether frames may follow the JSON frame.
    public var takesAttachments: Bool

    /// What a method may bring that declares nothing else, and a large request whose method cannot be read before it is
    /// parsed: 1 MiB of JSON.
    public static let usual = MethodLimits()
    /// Nothing but the limits of a message.
    public static let unlimited = MethodLimits(maxJSONBytes: .max, takesAttachments: true)

    public init(maxJSONBytes: Int = 1 << 20, takesAttachments: Bool = false) {
        self.maxJSONBytes = maxJSONBytes
        self.takesAttachments = takesAttachments
    }
}
