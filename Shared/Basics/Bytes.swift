/// Bytes in memory, for example of a file, a message frame or an image.
public typealias Bytes = [UInt8]
