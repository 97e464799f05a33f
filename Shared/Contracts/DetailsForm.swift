/// The form in which the change details of a result are returned.
public enum DetailsForm: String, Sendable, CaseIterable {
    /// Removed, inserted, moved and changed objects; the size is proportional to the change.
    case details
    /// Also PhotoKit's index sets and one-by-one moves (S-68).
    case rice
}
