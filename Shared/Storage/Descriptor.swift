import CProcess
import Glibc

/// An open file that is closed when it goes out of scope.
///
/// All system calls of this module on open files are here, so that `errno` is read before other code can change it.
struct Descriptor: ~Copyable {
    let number: Int32

    init(owning number: Int32) {
        self.number = number
    }

    init(opening path: String, _ flags: Int32, mode: mode_t = 0) throws(StorageError) {
        let number = withRetries { Glibc.open(path, flags | O_CLOEXEC, mode) }
        guard number >= 0 else { throw .system(errno, "open \(path)") }
        self.number = number
    }

    deinit { _ = Glibc.close(number) }

    /// Transfers ownership of the descriptor: the caller must close it.
    consuming func release() -> Int32 {
        let number = number
        discard self
        return number
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64? = nil) throws(StorageError) {
        var done = 0
        while done < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
            let count = withRetries {
                if let offset {
                    Glibc.pwrite(number, rest.baseAddress, rest.count, off_t(offset) + off_t(done))
                } else {
                    Glibc.write(number, rest.baseAddress, rest.count)
                }
            }
            guard count >= 0 else { throw .system(errno, "write") }
            done += count
        }
    }

    func write(_ bytes: some Sequence<UInt8>, at offset: Int64? = nil) throws(StorageError) {
        let result = Array(bytes).withUnsafeBytes { buffer in
            Result { () throws(StorageError) in try write(buffer, at: offset) }
        }
        try result.get()
    }

    /// Reads until the buffer is full or the file ends; returns the number of bytes read.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(StorageError) -> Int {
        var done = 0
        while done < buffer.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
            let count = withRetries { Glibc.pread(number, rest.baseAddress, rest.count, off_t(offset) + off_t(done)) }
            guard count >= 0 else { throw .system(errno, "read") }
            if count == 0 { break }
            done += count
        }
        return done
    }

    /// Returns at most `count` bytes from an offset; fewer only at the end of the file.
    func read(count: Int, at offset: Int64) throws(StorageError) -> [UInt8] {
        var failure: StorageError?
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, used in
            do throws(StorageError) {
                used = try read(into: UnsafeMutableRawBufferPointer(buffer), at: offset)
            } catch {
                failure = error
                used = 0
            }
        }
        if let failure { throw failure }
        return bytes
    }

    /// Returns at most `count` bytes from the current file offset; empty at the end of the file.
    func next(upTo count: Int) throws(StorageError) -> [UInt8] {
        var problem: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, used in
            let result = withRetries { Glibc.read(number, buffer.baseAddress, count) }
            problem = result < 0 ? errno : 0
            used = max(result, 0)
        }
        guard problem == 0 else { throw .system(problem, "read") }
        return bytes
    }

    func status() throws(StorageError) -> stat {
        var status = stat()
        guard fstat(number, &status) == 0 else { throw .system(errno, "stat") }
        return status
    }

    func setMode(_ mode: mode_t) throws(StorageError) {
        guard fchmod(number, mode) == 0 else { throw .system(errno, "chmod") }
    }

    func sync() throws(StorageError) {
        guard withRetries({ fsync(number) }) == 0 else { throw .system(errno, "fsync") }
    }

    /// Syncs everything that was written to the file's filesystem, by this process and by others.
    func syncFilesystem() throws(StorageError) {
        guard withRetries({ safelight_sync_filesystem(number) }) == 0 else { throw .system(errno, "syncfs") }
    }

    func syncData() throws(StorageError) {
        guard withRetries({ fdatasync(number) }) == 0 else { throw .system(errno, "fdatasync") }
    }
}

/// Repeats a system call while it is interrupted by a signal.
func withRetries<Number: FixedWidthInteger>(_ call: () -> Number) -> Number {
    while true {
        let result = call()
        if result != -1 || errno != EINTR { return result }
    }
}
