import Foundation
import Contracts
import JSONValue
import PhotoClient
import PhotoModel
import Synchronization

/// A photo library: `PHPhotoLibrary`. It authorizes programs, performs changes and notifies observers of changes.
///
/// ``shared()`` connects to the services that the environment names. A program that needs other services calls
/// ``connect(_:)`` first.
public final class PHPhotoLibrary: Sendable {
    let connection: LibraryConnection
    let observers: ChangeObservers
    let availability: AvailabilityObservers

    private static let current = Mutex<PHPhotoLibrary?>(nil)

    private init(_ configuration: Configuration) throws {
        connection = try LibraryConnection(configuration)
        observers = ChangeObservers(connection)
        availability = AvailabilityObservers(connection)
    }

    /// Returns the library of this process. The first call connects to the services of the environment; requests wait
    /// for services that do not run yet.
    ///
    /// If the environment names an address that cannot be used, or no more sockets are available, this stops the
    /// program: there is no library to return. ``connect(_:)`` throws instead.
    public class func shared() -> PHPhotoLibrary {
        current.withLock { library in
            if let library { return library }
            do {
                let new = try PHPhotoLibrary(Configuration())
                library = new
                return new
            } catch {
                // A failed precondition would not print the reason in release builds.
                fatalError("PHPhotoLibrary: cannot connect: \(error)")
            }
        }
    }

    /// Makes another library the shared one. Fetch results and objects of the previous one keep their connection.
    ///
    /// - Throws: local errors only: an address or a key is malformed, or no more sockets are available
    @discardableResult
    public class func connect(_ configuration: Configuration) throws -> PHPhotoLibrary {
        let new = try PHPhotoLibrary(configuration)
        let previous = current.withLock { library in
            defer { library = new }
            return library
        }
        previous?.observers.stop()
        previous?.availability.stop()
        return new
    }

    /// Removes all observers and closes the connections. Requests in progress fail.
    public func close() async {
        observers.stop()
        availability.stop()
        connection.isClosed.store(true, ordering: .relaxed)
        await connection.client.close()
    }
}
