import Glibc
import Logging
import Messaging
import Synchronization

/// The lists of a key folder, kept in memory and read again when their folder changed.
final class KeyRegister: Sendable {
    private struct List {
        var names: [String: String] = [:]
        /// The folder as it was when it was read; nil: to be read again.
        var stamp: Stamp?
    }

    /// A folder's last change. One that is younger than the file system's clock can tell apart is no proof: something
    /// may change again under the same time.
    private struct Stamp: Equatable {
        var inode: UInt64
        var seconds: Int
        var nanoseconds: Int
    }

    private let folder: KeyFolder
    private let logger: Logger
    private let lists = Mutex<[KeyList: List]>([:])

    init(folder: KeyFolder, logger: Logger) {
        self.folder = folder
        self.logger = logger
    }

    /// The name of a key on a list; nil where it is not there, or where the list cannot be read.
    func name(of publicKey: String, on list: KeyList) -> String? {
        lists.withLock { lists in
            var current = lists[list] ?? List()
            refresh(&current, list)
            lists[list] = current
            return current.names[publicKey]
        }
    }

    /// Whether a name stands for the same key on two lists.
    func isSame(_ name: String, on one: KeyList, and other: KeyList) -> Bool {
        lists.withLock { lists in
            let keys = [one, other].map { list in
                var current = lists[list] ?? List()
                refresh(&current, list)
                lists[list] = current
                return Set(current.names.filter { $0.value == name }.keys)
            }
            return keys[0].count == 1 && keys[0] == keys[1]
        }
    }

    private func refresh(_ current: inout List, _ list: KeyList) {
        var status = stat()
        guard lstat(folder.folder(of: list), &status) == 0, status.st_uid == geteuid(), status.st_mode & 0o022 == 0
        else {
            current = List()
            return
        }
        let stamp = Stamp(
            inode: UInt64(status.st_ino),
            seconds: status.st_mtim.tv_sec,
            nanoseconds: status.st_mtim.tv_nsec
        )
        guard current.stamp != stamp else { return }
        do throws(KeyError) {
            let (keys, problems) = try folder.read(list)
            for problem in problems { logger.warning("a key is left out", metadata: ["reason": "\(problem)"]) }
            current.names = Dictionary(keys.map { ($0.key.text, $0.name) }) { first, _ in first }
            var now = timespec()
            clock_gettime(CLOCK_REALTIME, &now)
            current.stamp = now.tv_sec - stamp.seconds > 1 ? stamp : nil
        } catch {
            logger.error("a list of keys cannot be read: nobody on it is admitted", metadata: ["reason": "\(error)"])
            current = List()
        }
    }
}
