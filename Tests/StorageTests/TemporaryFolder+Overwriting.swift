import Glibc
import TestSupport

extension TemporaryFolder {
    /// Writes bytes at a position of a file, which is created if it is missing; its other bytes do not change.
    func overwrite(_ name: String, _ bytes: [UInt8], at offset: Int) {
        let file = open("\(path)/\(name)", O_WRONLY | O_CREAT, 0o644)
        pwrite(file, bytes, bytes.count, off_t(offset))
        close(file)
    }
}
