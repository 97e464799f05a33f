/// The access that an identity needs to call a method; declared once, in the method's own table.
public enum MethodAccess: String, Sendable, CaseIterable {
    /// Anyone who may connect.
    case `public`
    /// Reads the library as far as the identity may see it, or edits what it sees: with a limited grant the assets of
    /// its list.
    case view
    /// Reads the whole library.
    case read
    /// Adds to the library without reading it.
    case add
    /// Changes what is in the library.
    case change
    /// The owner of the library: the user who runs the services, and keys made with `--access owner`.
    case owner
    /// Services, which act for clients.
    case service
}
