import Contracts
import Foundation
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Wall clocks that are years ahead at one start, or jump.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct ClockJumpTests {
    /// The path of libfaketime in the loader's directories; nil if it is not installed.
    private static let faketime: String? = {
        let folders = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"]
        return folders.map { $0 + "/faketime/libfaketime.so.1" }.first(where: FileManager.default.fileExists)
    }()

    @Test func `a clock set far ahead at one start empties neither the trash nor the history`() async throws {
        let faketime = try Needed.found(Self.faketime, "libfaketime")
        let services = try SafelightFixture("clock")
        try services.start([.catalog])
        let library = try services.library()
        let result = try await library.perform(
            [.createAsset(.init(ref: "p", resources: [NewResource(source: .attachment(0))]))],
            attachments: [TestImages.jpeg(width: 32, height: 24, seed: 1)]
        )
        let id = try #require(result.id("p"))
        _ = try await library.perform([.trashAssets(.init(ids: [id]))])
        let before = try await library.currentToken()
        await library.close()
        #expect(services.stop() == [])

        let ahead = try SafelightFixture(
            "ahead",
            environment: [
                "SAFELIGHT_LIBRARY": services.folder.file("library"), "LD_PRELOAD": faketime, "FAKETIME": "+3650d",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1",
            ]
        )
        let catalog = try RunningProgram("catalog", [], environment: ahead.environment)
        #expect(catalog.wait { $0.errorText.contains("ahead of the elapsed time") }, "\(catalog.errorText)")
        let late = try ahead.library()
        for number in 0..<3 {
            _ = try await late.perform([.createCollection(.init(ref: "a", title: "\(number)"))])
        }
        let after = try await late.currentToken()
        #expect(after.oldest == before.oldest && after.token.sequence == before.token.sequence + 3)
        #expect(try await late.catalog.ask(ChangesSince(token: before.oldest)).result.records.count == 5)
        await late.close()
        catalog.signal(SIGTERM)
        #expect(catalog.wait(seconds: 20) == 0, "\(catalog.errorText)")

        // With the right clock the library is unchanged.
        try services.start([.catalog])
        let right = try services.library()
        #expect(try await right.currentToken().oldest == before.oldest)
        _ = try await right.perform([.restoreAssets(.init(ids: [id]))])
        #expect(try await right.asset(id).isRecentlyAdded)
        await right.close()
        #expect(services.stop() == [])
    }

    /// A library that is preloaded into services: it shifts the wall clock by the seconds in a file, and no other
    /// clock. (libfaketime also shifts the absolute times of timers on the monotonic clock.)
    private static let source = """
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <fcntl.h>
        #include <stdlib.h>
        #include <sys/mman.h>
        #include <sys/time.h>
        #include <time.h>
        #include <unistd.h>
        /* The seconds by which the wall clock is off, in a file that the test writes. */
        static volatile const long *offset;
        __attribute__((constructor)) static void begin(void) {
            const char *path = getenv("CLOCK_OFFSET");
            int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
            if (file < 0) return;
            void *map = mmap(0, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
            close(file);
            if (map != MAP_FAILED) offset = map;
        }
        #define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
        int clock_gettime(clockid_t clock, struct timespec *now) {
            static __typeof__(&clock_gettime) real;
            if (!real) real = REAL(clock_gettime);
            int result = real(clock, now);
            if (result == 0 && offset && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += *offset;
            return result;
        }
        int gettimeofday(struct timeval *restrict now, void *restrict zone) {
            int result = REAL(gettimeofday)(now, zone);
            if (result == 0 && offset) now->tv_sec += *offset;
            return result;
        }
        time_t time(time_t *out) {
            struct timespec now;
            clock_gettime(CLOCK_REALTIME, &now);
            if (out) *out = now.tv_sec;
            return now.tv_sec;
        }
        """

    @Test func `a jump of the wall clock while the services run ends, expires and reorders nothing`() throws {
        let clock = try TemporaryFolder("jumps")
        try clock.write([UInt8](repeating: 0, count: MemoryLayout<Int>.size), to: "offset")
        let library = try PreloadedLibrary.compile(Self.source, "clock", in: clock)
        let services = try SafelightFixture(
            "jumps",
            environment: ["LD_PRELOAD": library, "CLOCK_OFFSET": clock.file("offset")]
        )
        try services.folder.write(TestImages.jpeg(width: 32, height: 24, seed: 1), to: "1.jpg")
        try services.start([.catalog, .changeBroker, .thumbnailer])
        let python = try Needed.python("zmq")
        var environment = services.environment
        environment["LD_PRELOAD"] = nil
        environment["FILES"] = services.folder.path
        let script = TestPaths.package + "/Tests/SystemTests/Rows/clock.py"
        let run = try RunningProgram.run(python, ["-B", script], environment: environment, seconds: 100)
        #expect(run.status == 0, "\(run.errors)\n\(services.logs)")
        #expect(run.output.contains("the_clock_jumps") && !run.output.contains("problem"), "\(run.output)")
        #expect(services.stop() == [])
        withExtendedLifetime(clock) {}
    }
}
