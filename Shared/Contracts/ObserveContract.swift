public import JSONValue
import PhotoModel

/// The form in which the change details of a result are returned.
public enum DetailsForm: String, Sendable, CaseIterable {
    /// Removed, inserted, moved and changed objects; the size is proportional to the change.
    case details
    /// Also PhotoKit's index sets and one-by-one moves (S-68).
    case rice
}

/// A result that contains the members of ``FetchDetailsResult``.
protocol DetailsCarrying {
    var carried: FetchDetailsResult { get set }
}

/// `fetch.unobserve`: ends what a connection observes (S-64).
public struct FetchUnobserve: Request {
    public typealias Result = EmptyResult
    public static let method = "fetch.unobserve"
    /// Id from fetch.observe.
    public var observation: String

    public init(observation: String) { self.observation = observation }

    public static let table = parameters(
        "Ends what this connection observes. After the last observer's call the topic carries nothing more.",
        blank: FetchUnobserve(observation: ""),
        [.required("observation", \.observation, .text(maxBytes: 64), "Id from fetch.observe.")]
    )
}
