/// A part of a job, as the worker reports it: it decides whom the worker's end is blamed on.
public enum WorkerPhase: String, Sendable, Equatable {
    /// The job was given to the worker, which has not begun to read the bytes; nobody's fault.
    case received
    /// Bytes that nobody trusts are being read: a worker that ends here was ended by them.
    case reading
    /// The bytes have been read: what takes long or fails now is what the request asks for.
    case working
}
