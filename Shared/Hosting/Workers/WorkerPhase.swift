/// A phase of a job, reported by the worker. It decides whether a failure is attributed to the bytes or the request.
public enum WorkerPhase: String, Sendable, Equatable {
    /// The worker has the job but has not begun to read the bytes; a failure is attributed to neither.
    case received
    /// Untrusted bytes are being read; a failure is attributed to them.
    case reading
    /// The bytes have been read; a failure or timeout is attributed to the request.
    case working
}
