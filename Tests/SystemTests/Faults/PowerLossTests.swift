import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import Synchronization
import TestSupport
import Testing

/// A power failure at any time, after which only synced data remains.
///
/// A small shared library is preloaded (`LD_PRELOAD`) into a real catalog. It copies the content of each file when the
/// file is synced, and the names of each folder when the folder is synced. The catalog is killed while it works, and a
/// folder is created from the copies: it has no byte and no name that was not synced. That is the minimum that a filesystem
/// must preserve; most preserve more.
@Suite(.serialized, .timeLimit(.minutes(20)))
struct PowerLossTests {
    private static let source = """
        #define _GNU_SOURCE
        #include <dirent.h>
        #include <dlfcn.h>
        #include <fcntl.h>
        #include <ftw.h>
        #include <pthread.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <sys/stat.h>
        #include <unistd.h>
        #define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
        static const char *library(void) { return getenv("POWER_LIBRARY"); }
        static int counter;
        /* Two threads may keep the same file: the one that has read it last replaces the other's copy. */
        static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;
        /* The new file gets its name when it is complete. */
        static FILE *begin(char *partial) {
            snprintf(partial, 512, "%s/part-%d-%d", getenv("POWER_KEPT"), getpid(), __sync_add_and_fetch(&counter, 1));
            return fopen(partial, "we");
        }
        static void finish(FILE *file, const char *partial, const char *kind, unsigned long long inode) {
            char path[512];
            fclose(file);
            snprintf(path, sizeof path, "%s/%s-%llu", getenv("POWER_KEPT"), kind, inode);
            rename(partial, path);
        }
        static void keep_file(const char *path, unsigned long long inode) {
            char partial[512], bytes[65536];
            int from = open(path, O_RDONLY | O_CLOEXEC);
            if (from < 0) return;
            FILE *to = begin(partial);
            ssize_t count;
            while ((count = read(from, bytes, sizeof bytes)) > 0) fwrite(bytes, 1, (size_t)count, to);
            close(from);
            finish(to, partial, "file", inode);
        }
        static void keep_folder(const char *path, unsigned long long inode) {
            char partial[512], entry[1024];
            DIR *folder = opendir(path);
            if (!folder) return;
            FILE *to = begin(partial);
            struct dirent *next;
            while ((next = readdir(folder))) {
                struct stat status;
                if (!strcmp(next->d_name, ".") || !strcmp(next->d_name, "..")) continue;
                snprintf(entry, sizeof entry, "%s/%s", path, next->d_name);
                if (lstat(entry, &status) != 0) continue;
                fprintf(to, "%c %llu %s\\n", S_ISDIR(status.st_mode) ? 'd' : 'f', (unsigned long long)status.st_ino,
                        next->d_name);
            }
            closedir(folder);
            finish(to, partial, "folder", inode);
        }
        static void keep_one(const char *path, unsigned long long inode, int is_folder) {
            pthread_mutex_lock(&order);
            if (is_folder) keep_folder(path, inode);
            else keep_file(path, inode);
            pthread_mutex_unlock(&order);
        }
        static int keep_all(const char *path, const struct stat *status, int type, struct FTW *place) {
            (void)place;
            if (type == FTW_D || type == FTW_F) keep_one(path, status->st_ino, type == FTW_D);
            return 0;
        }
        static void keep(int file) {
            char link[64], path[512];
            struct stat status;
            if (!library() || fstat(file, &status) != 0) return;
            snprintf(link, sizeof link, "/proc/self/fd/%d", file);
            ssize_t count = readlink(link, path, sizeof path - 1);
            if (count <= 0) return;
            path[count] = 0;
            if (strncmp(path, library(), strlen(library())) != 0) return;
            if (S_ISDIR(status.st_mode)) keep_one(path, status.st_ino, 1);
            if (S_ISREG(status.st_mode)) keep_one(link, status.st_ino, 0);
        }
        int fsync(int file) { int done = REAL(fsync)(file); if (done == 0) keep(file); return done; }
        int fdatasync(int file) { int done = REAL(fdatasync)(file); if (done == 0) keep(file); return done; }
        int syncfs(int file) {
            int done = REAL(syncfs)(file);
            if (done == 0 && library()) nftw(library(), keep_all, 32, FTW_PHYS);
            return done;
        }
        """

    /// Creates a folder of the synced data. A name that was synced without its content has an empty file.
    private static func restore(_ inode: UInt64, from copies: String, to path: String) throws {
        try FileManager.default.createDirectory(
            atPath: path,
            withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700]
        )
        let listing = (try? String(contentsOfFile: "\(copies)/folder-\(inode)", encoding: .utf8)) ?? ""
        for line in listing.split(separator: "\n") {
            let parts = line.split(separator: " ", maxSplits: 2)
            guard parts.count == 3, let child = UInt64(parts[1]) else { continue }
            let target = path + "/" + parts[2]
            if parts[0] == "d" {
                try restore(child, from: copies, to: target)
            } else if FileManager.default.fileExists(atPath: "\(copies)/file-\(child)") {
                try FileManager.default.copyItem(atPath: "\(copies)/file-\(child)", toPath: target)
            } else {
                _ = FileManager.default.createFile(atPath: target, contents: nil)
            }
        }
    }

    /// The transactions that were acknowledged: titles of albums and digests of photos.
    private final class Acknowledged: Sendable {
        let titles = AwaitableValue<Set<String>>([])
        let photos = Mutex<[ObjectID: [UInt8]]>([:])
    }

    /// Changes the library until the catalog is killed.
    private static func changeLibrary(_ number: Int, _ library: PhotoLibrary, _ acknowledged: Acknowledged) async {
        for step in 0..<10_000 {
            let title = "\(number)-\(step)"
            do throws(RPCError) {
                if step % 3 == 2 {
                    let bytes = TestImages.jpeg(width: 32, height: 24, seed: UInt64(number * 10_000 + step))
                    let file = NewResource(source: .attachment(0))
                    let create = ChangeRequest.createAsset(.init(ref: "a", resources: [file]))
                    let result = try await library.catalog.ask(
                        PerformChanges(requests: [create]),
                        attachments: [bytes],
                        deadline: .seconds(20)
                    ).result
                    if let id = result.id("a") { acknowledged.photos.withLock { $0[id] = bytes } }
                } else {
                    let create = ChangeRequest.createCollection(.init(ref: "c", title: title))
                    _ = try await library.catalog.ask(PerformChanges(requests: [create]), deadline: .seconds(20))
                    acknowledged.titles.withLock { _ = $0.insert(title) }
                }
            } catch {
                return
            }
        }
    }

    @Test func `after a power failure the database is intact and has all acknowledged transactions`() async throws {
        let tools = try TemporaryFolder("power-tools")
        let preloaded = try PreloadedLibrary.compile(Self.source, "power", in: tools)
        var random = SeededRandom(named: "power failures")
        for round in 0..<TestEnvironment.rounds(4) {
            let folder = try TemporaryFolder("power")
            let (path, copies) = (folder.file("library"), folder.file("kept"))
            try FileManager.default.createDirectory(atPath: copies, withIntermediateDirectories: true)
            let services = try SafelightFixture(
                "power",
                environment: [
                    "SAFELIGHT_LIBRARY": path, "LD_PRELOAD": preloaded, "POWER_LIBRARY": path, "POWER_KEPT": copies,
                ]
            )
            try services.start([.catalog])
            let library = try services.library()
            let acknowledged = Acknowledged()
            let minimum = Int.random(in: 20...120, using: &random)
            await withTaskGroup(of: Void.self) { group in
                group.addTask {
                    await withTaskGroup(of: Void.self) { workers in
                        for number in 0..<6 {
                            workers.addTask { await Self.changeLibrary(number, library, acknowledged) }
                        }
                    }
                }
                group.addTask {
                    await acknowledged.titles.wait { $0.count >= minimum }
                    services.killHard(.catalog)
                    await library.close()
                }
                // If all workers have failed, there is nothing left to wait for.
                _ = await group.next()
                group.cancelAll()
            }
            #expect(acknowledged.titles.current.count >= minimum, "the catalog failed before it was killed")
            let inode = try #require(
                try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber] as? NSNumber
            )
            let remaining = folder.file("left")
            try Self.restore(inode.uint64Value, from: copies, to: remaining)
            if round == 0 {
                // The check detects a loss, here that of a log that was not synced.
                let worse = folder.file("worse")
                try FileManager.default.copyItem(atPath: remaining, toPath: worse)
                try FileManager.default.removeItem(atPath: worse + "/library.sqlite-wal")
                if let (services, library) = try? await Self.open(worse) {
                    #expect(try await !Self.findMissingAlbums(library, acknowledged).isEmpty)
                    await library.close()
                    #expect(services.stop() == [])
                } else {
                    // All data was in the log: the catalog does not mistake the empty database for a new library.
                    let start = ["serve", "--library", worse, "--run", folder.file("run")]
                    let refused = try RunningProgram.run(
                        "catalog",
                        start,
                        environment: ["SAFELIGHT_STATE": folder.file("state")],
                        seconds: 20
                    )
                    #expect(refused.errors.contains("the database is empty"), "\(refused.errors)")
                }
            }
            try await Self.check(remaining, acknowledged, "round \(round)")
            let (titles, photos) = (acknowledged.titles.current.count, acknowledged.photos.withLock { $0.count })
            TestPaths.report("power failed after \(titles) albums and \(photos) photos were acknowledged")
        }
    }

    /// Compares a library with the transactions that were acknowledged.
    private static func check(_ folder: String, _ acknowledged: Acknowledged, _ label: String) async throws {
        let (services, library) = try await open(folder)
        let missing = try await findMissingAlbums(library, acknowledged)
        #expect(missing.isEmpty, "\(label): acknowledged albums are missing: \(missing)")
        for (id, bytes) in acknowledged.photos.withLock({ $0 }) {
            let read = try await library.catalog.ask(ReadResource(asset: id, type: .photo))
            #expect(read.attachments.flatMap { $0 } == bytes, "\(label): the bytes of \(id)")
        }
        await library.close()
        #expect(services.stop() == [])
        try DatabaseCheck.expectIntact(folder + "/library.sqlite", label)
    }

    private static func open(_ folder: String) async throws -> (SafelightFixture, PhotoLibrary) {
        let services = try SafelightFixture("power-left", environment: ["SAFELIGHT_LIBRARY": folder])
        try services.start([.catalog])
        return (services, try services.library())
    }

    /// Returns the acknowledged albums that a library does not have.
    private static func findMissingAlbums(_ library: PhotoLibrary, _ acknowledged: Acknowledged) async throws
        -> Set<String>
    {
        var titles: Set<String> = []
        var count = 0
        while case let page = try await library.collections(albums, from: count, count: 1000), !page.collections.isEmpty
        {
            titles.formUnion(page.collections.compactMap(\.title))
            count += page.collections.count
        }
        return acknowledged.titles.current.subtracting(titles)
    }

    private static var albums: FetchDescription {
        var albums = FetchDescription(.collections)
        albums.collectionType = "album"
        return albums
    }
}
