import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// A disk that fails at the n-th call on the database's files, for increasing n. A small shared library is
/// preloaded (`LD_PRELOAD`) into a real catalog. It makes one of the C library's calls fail, or all from that one on.
/// `SAFELIGHT_SOAK` covers more calls.
@Suite(.serialized, .timeLimit(.minutes(20)))
struct DiskFaultTests {
    /// The preloaded library. A control file names the call, the error and whether it persists; calls on
    /// `library.sqlite` and its WAL are counted.
    private static let source = """
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <errno.h>
        #include <fcntl.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <unistd.h>
        static int calls;
        /* 0: let it through, -1: fail with errno, 1: write half */
        static int fault(int file) {
            char link[64], path[512], text[64];
            const char *trigger = getenv("FAULT_TRIGGER");
            if (!trigger) return 0;
            snprintf(link, sizeof link, "/proc/self/fd/%d", file);
            ssize_t count = readlink(link, path, sizeof path - 1);
            if (count <= 0) return 0;
            path[count] = 0;
            if (!strstr(path, "/library.sqlite")) return 0;
            int control = open(trigger, O_RDONLY | O_CLOEXEC);
            if (control < 0) return 0;
            count = read(control, text, sizeof text - 1);
            close(control);
            if (count <= 0) return 0;
            text[count] = 0;
            int at, error, persists;
            if (sscanf(text, "%d %d %d", &at, &error, &persists) != 3) return 0;
            int now = __sync_add_and_fetch(&calls, 1);
            if (persists ? now < at : now != at) return 0;
            if (error == 0) return 1;
            errno = error;
            return -1;
        }
        #define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
        #define WRITE(name, offset)                                                                  \\
            ssize_t name(int file, const void *bytes, size_t count, offset at) {                     \\
                int failure = fault(file);                                                           \\
                if (failure < 0) return -1;                                                          \\
                if (failure > 0 && count > 1) count /= 2;                                            \\
                return REAL(name)(file, bytes, count, at);                                           \\
            }
        WRITE(pwrite, off_t)
        WRITE(pwrite64, off64_t)
        ssize_t write(int file, const void *bytes, size_t count) {
            int failure = fault(file);
            if (failure < 0) return -1;
            if (failure > 0 && count > 1) count /= 2;
            return REAL(write)(file, bytes, count);
        }
        int fsync(int file) { return fault(file) < 0 ? -1 : REAL(fsync)(file); }
        int fdatasync(int file) { return fault(file) < 0 ? -1 : REAL(fdatasync)(file); }
        int ftruncate(int file, off_t size) { return fault(file) < 0 ? -1 : REAL(ftruncate)(file, size); }
        int ftruncate64(int file, off64_t size) { return fault(file) < 0 ? -1 : REAL(ftruncate64)(file, size); }
        """

    private static func request(_ title: String) -> PerformChanges {
        PerformChanges(
            requests: [.createCollection(.init(ref: "a", title: title))],
            client: "test",
            transaction: title
        )
    }

    enum Kind: String, CaseIterable, Sendable {
        case error = "EIO"
        case full = "ENOSPC"
        case half = "half a write"

        var number: Int32 {
            switch self {
            case .error: EIO
            case .full: ENOSPC
            case .half: 0
            }
        }
    }

    @Test(arguments: Kind.allCases)
    func `whichever call fails, everything acknowledged is stored and nothing is applied twice`(
        _ kind: Kind
    ) async throws {
        let tools = try TemporaryFolder("faults")
        let faults = try PreloadedLibrary.compile(Self.source, "faults", in: tools)
        let trigger = tools.file("trigger")
        let faulty = try SafelightFixture("faulty", environment: ["LD_PRELOAD": faults, "FAULT_TRIGGER": trigger])
        let intact = try SafelightFixture(
            "intact",
            environment: [
                "SAFELIGHT_RUN": faulty.folder.file("run"), "SAFELIGHT_LIBRARY": faulty.folder.file("library"),
            ]
        )
        let library = try faulty.library()
        try intact.start([.catalog])
        _ = try await library.catalog.ask(Self.request("first"))
        #expect(intact.stop() == [])

        var (titles, refused, ended, acknowledged) = (["first"], 0, 0, 0)
        let calls = 12 * TestEnvironment.rounds(1)
        // The first calls are those of a new log, so they fail in a catalog that has just started with an intact
        // database. Later ones fail in the catalog that was started and checked after the previous fault.
        let firstCalls = 4
        var isRunning = false
        for call in 1...calls {
            for persists in [false, true] where persists == false || call % 4 == 1 {
                let what = "\(kind.rawValue) at call \(call)\(persists ? " and after" : "")"
                if !isRunning { try faulty.start([.catalog]) }
                _ = try await library.catalog.health()
                try tools.write("\(call) \(kind.number) \(persists ? 1 : 0)\n".utf8, to: "trigger")
                // Several requests, so that later calls are reached; each is sent once.
                var outcomes: [(title: String, isAcknowledged: Bool)] = []
                for number in 0..<3 {
                    let title = "\(kind.rawValue) \(call) \(persists) \(number)"
                    do throws(RPCError) {
                        _ = try await library.catalog.ask(Self.request(title), deadline: .seconds(3))
                        outcomes.append((title, true))
                        acknowledged += 1
                    } catch {
                        #expect(error.errorCode != .busy && error.errorCode != .invalidParams, "\(what): \(error)")
                        outcomes.append((title, false))
                        refused += 1
                    }
                }
                unlink(trigger)
                if faulty.program(.catalog)?.isRunning == false { ended += 1 }
                // The catalog is killed too, so that the next start recovers from the write-ahead log.
                faulty.killHard(.catalog)
                isRunning = call > firstCalls
                try (isRunning ? faulty : intact).start([.catalog])
                let storedTitles = try await Self.titles(library)
                #expect(Set(storedTitles).count == storedTitles.count, "\(what): an album exists twice")
                #expect(storedTitles.starts(with: titles), "\(what): earlier albums are missing or out of order")
                for (title, isAcknowledged) in outcomes where isAcknowledged {
                    #expect(storedTitles.contains(title), "\(what): acknowledged but lost")
                }
                // Sent again with its transaction id, each is applied exactly once.
                for (title, _) in outcomes { _ = try await library.catalog.ask(Self.request(title)) }
                titles = try await Self.titles(library)
                #expect(
                    Set(titles).count == titles.count && outcomes.allSatisfy { titles.contains($0.title) },
                    "\(what)"
                )
                #expect(try await library.currentToken().token.sequence == Int64(titles.count), "\(what)")
                if !isRunning { #expect(intact.stop() == [], "\(what)") }
            }
        }
        #expect(faulty.stop() == [])
        TestPaths.report(
            "\(kind.rawValue): \(acknowledged) acknowledged, \(refused) refused, the catalog ended \(ended) times"
        )
        if kind != .half { #expect(refused > 0) }
        await library.close()
        try DatabaseCheck.expectIntact(faulty.folder.file("library/library.sqlite"))
    }

    /// Returns the albums' titles in order of creation.
    private static func titles(_ library: PhotoLibrary) async throws -> [String] {
        var records: [ChangeRecord] = []
        let start = try await library.currentToken()
        var token = start.oldest
        while true {
            let page = try await library.catalog.ask(ChangesSince(token: token, limit: 500)).result
            records += try page.records.map { try ChangeRecord(json: $0) }
            token = page.token
            guard page.hasMore else { break }
        }
        return records.flatMap { $0.collections.compactMap { $0.after?.title } }
    }
}
