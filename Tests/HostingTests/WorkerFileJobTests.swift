import Glibc
import Testing

@testable import Hosting

/// The files without names that workers send their results to.
@Suite(.timeLimit(.minutes(1)))
struct WorkerFileJobTests {
    @Test func `a folder that is missing is made`() throws {
        let folder = TemporaryFolder()
        defer { for name in ["/cache/films", "/cache"] { rmdir(folder.path + name) } }
        for _ in 0..<2 {
            let file = try WorkerFileJob.makeFile(in: folder.path + "/cache/films")
            #expect(write(file, [1, 2, 3], 3) == 3)
            close(file)
            #expect(rmdir(folder.path + "/cache/films") == 0 && rmdir(folder.path + "/cache") == 0)
        }
    }
}
