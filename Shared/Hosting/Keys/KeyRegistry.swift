import Basics
import Messaging
import Glibc
import Logging
import Synchronization

/// The key lists of a key folder, cached and read again when a folder has changed.
final class KeyRegistry: Sendable {
    private struct List {
        var names: [String: String] = [:]
        /// The keys by name.
        var keys: [String: KeyListEntry] = [:]
        /// The state of the folder when it was read; nil to read it again.
        var stamp: Stamp?
        var log = LogThrottle()

        /// Counts a problem; returns true if it is to be logged.
        mutating func countProblem() -> Bool { log.count(at: MonotonicClock.system.nowMicroseconds()) != nil }
    }

    /// The last change of a folder. A change that is more recent than the resolution of the file system's clock is not
    /// cached, because another change may have the same time. A time in the future, after the clock was set back, is
    /// cached.
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

    /// Returns the name of a key on a list; nil if it is not on the list, or if the list cannot be read.
    func name(of publicKey: String, on list: KeyList) -> String? {
        lists.withLock { lists in
            var current = lists[list] ?? List()
            refresh(&current, list)
            lists[list] = current
            return current.names[publicKey]
        }
    }

    /// Returns whether a name has the same single key on two lists.
    func isSame(_ name: String, on first: KeyList, and second: KeyList) -> Bool {
        lists.withLock { lists in
            let keys = [first, second].map { list in
                var current = lists[list] ?? List()
                refresh(&current, list)
                lists[list] = current
                return Set(current.names.filter { $0.value == name }.keys)
            }
            return keys[0].count == 1 && keys[0] == keys[1]
        }
    }

    /// Returns the key with a name, from the first list that has it.
    func key(named name: String) -> KeyListEntry? { keys { $0[name].map { [$0] } ?? [] }.first }

    /// Returns all keys of clients, each name once.
    func keys() -> [KeyListEntry] {
        let all = keys { Array($0.values) }
        return Dictionary(all.map { ($0.name, $0) }) { first, _ in first }.values.sorted { $0.name < $1.name }
    }

    private func keys(_ select: ([String: KeyListEntry]) -> [KeyListEntry]) -> [KeyListEntry] {
        lists.withLock { lists in
            [KeyList.requests, .feed, .edits].flatMap { list in
                var current = lists[list] ?? List()
                refresh(&current, list)
                lists[list] = current
                return select(current.keys)
            }
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
            if !problems.isEmpty, current.countProblem() {
                for problem in problems { logger.warning("key ignored", metadata: ["error": "\(problem)"]) }
            }
            current.names = Dictionary(keys.map { ($0.publicKey.text, $0.name) }) { first, _ in first }
            current.keys = Dictionary(keys.map { ($0.name, $0) }) { first, _ in first }
            var now = timespec()
            clock_gettime(CLOCK_REALTIME, &now)
            current.stamp = abs(now.tv_sec - stamp.seconds) > 1 ? stamp : nil
        } catch {
            if current.countProblem() {
                logger.error("key list cannot be read, all of its keys are refused", metadata: ["error": "\(error)"])
            }
            current = List(log: current.log)
        }
    }
}
