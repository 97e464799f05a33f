import JSONValue
import Synchronization

/// Decides which transactions are small: they are read on the poll thread and answered on the thread of the commits.
enum SmallChange {
    /// Returns true if the requests of a transaction are few and small.
    static func areSmall(_ requests: JSON?) -> Bool {
        guard let requests = requests?.arrayValue else { return false }
        return requests.count <= fewChanges && requests.allSatisfy(isSmall)
    }

    /// The maximum number of changes of a small transaction, and of elements of a list in one.
    private static let fewChanges = 16
    /// The maximum number of bytes of a text that is read on the poll thread.
    private static let shortText = 4096
    /// The maximum number of members of a change and of its properties: a valid one has fewer, and a malformed one with
    /// more is not read on the poll thread.
    private static let fewMembers = 64

    /// Returns true if a change has neither bytes nor a list to compare with, names few objects, and has short texts.
    private static func isSmall(_ change: JSON) -> Bool {
        let members = change.objectValue?.members ?? []
        return members.count <= fewMembers
            && members.allSatisfy { name, value in
                guard name != "resources", name != "render", name != "snapshot" else { return false }
                guard let members = value.objectValue?.members else { return isShort(value) }
                return members.count <= fewMembers && members.allSatisfy { isShort($1) }
            }
    }

    private static func isShort(_ value: JSON) -> Bool {
        switch value {
        case .string(let text): text.utf8.count <= shortText
        case .array(let values): values.count <= fewChanges && values.allSatisfy(isShort)
        case .object(let object): object.members.isEmpty
        default: true
        }
    }
}

/// The executor of the task of one small change. The task begins on the thread that makes it, the poll thread, where it
/// reads the request and adds its transaction to those that wait; it continues on the thread of the commits.
///
/// So small changes of a connection wait in the order of their arrival, unless one waits for something else first, such
/// as consent. The thread of the commits, which has the most to do, does not read requests.
final class SmallChangeExecutor: TaskExecutor, Sendable {
    private let writer: WriterExecutor
    private let hasBegun: Atomic<Bool>

    /// - Parameter beginsAtOnce: false if the first step of the task may block; then the whole task runs on the thread
    ///   of the commits
    init(_ writer: WriterExecutor, beginsAtOnce: Bool = true) {
        self.writer = writer
        hasBegun = Atomic(!beginsAtOnce)
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        guard hasBegun.exchange(true, ordering: .acquiringAndReleasing) else {
            return job.runSynchronously(on: asUnownedTaskExecutor())
        }
        writer.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
