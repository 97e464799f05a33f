/// The limits for a request of one method.
public struct MethodLimits: Sendable, Equatable {
    /// Maximum size of the JSON frame, in bytes.
    public var maxJSONBytes: Int
    /// True if frames may follow the JSON frame.
    public var takesAttachments: Bool
    /// True if a request may wait for an event: such requests end at once when the service stops, with `data.isStopping`.
    public var waitsForEvents: Bool
    /// The alternative to a larger message; part of the errors of requests beyond a limit.
    public var advice: String

    /// The limits of a method that declares none, and of a large request whose method cannot be read before parsing: 1
    /// MiB of JSON and no attachments.
    public static let usual = MethodLimits()
    /// No limits except those of every message.
    public static let unlimited = MethodLimits(maxJSONBytes: .max, takesAttachments: true)

    /// Makes limits; the default is 1 MiB of JSON without attachments.
    public init(
        maxJSONBytes: Int = 1 << 20,
        takesAttachments: Bool = false,
        waitsForEvents: Bool = false,
        advice: String = "split it into several requests"
    ) {
        self.maxJSONBytes = maxJSONBytes
        self.takesAttachments = takesAttachments
        self.waitsForEvents = waitsForEvents
        self.advice = advice
    }
}
