import ArgumentParser
import Basics
import Contracts
import Hosting
import JSONValue
import Logging
import PhotoClient
import PhotoModel

/// The names that a shell completes with the Tab key, from the live library.
///
/// The services are those of the environment. Without an answer within ``timeout`` nothing is completed, so that the
/// shell does not wait.
enum Completions {
    static let timeout = Duration.seconds(1)
    static let maxNames = 200

    /// Titles of albums, and of smart albums.
    static let albums = CompletionKind.custom { _, _, _ in
        let titles = await fromLibrary { library in
            var fetch = FetchDescription(.collections)
            fetch.collectionType = CollectionType.album.rawValue
            return try await library.collections(fetch, count: maxNames).collections.compactMap(\.title)
        }
        return titles + SmartAlbum.allCases.map(\.texts.title)
    }

    /// Titles of folders.
    static let folders = CompletionKind.custom { _, _, _ in
        await fromLibrary { library in
            var fetch = FetchDescription(.lists)
            fetch.collectionType = ListType.folder.rawValue
            return try await library.lists(fetch, count: maxNames).lists.compactMap(\.title)
        }
    }

    /// File names of assets that begin with the typed text.
    static let assets = CompletionKind.custom { _, _, prefix in
        guard !prefix.hasPrefix("@"), !prefix.hasPrefix("-") else { return [] }
        return await fromLibrary { library in try await filenames(prefix, in: library) }
    }

    /// Returns file names of assets that begin with a text, at most ``maxNames``.
    static func filenames(_ prefix: String, in library: PhotoLibrary) async throws -> [String] {
        var fetch = FetchDescription(.assets)
        fetch.predicate = ["key": "originalFilename", "op": "beginsWith", "value": .string(prefix)]
        fetch.limit = maxNames
        let page = try await library.assets(fetch, members: ["originalFilename"], count: maxNames)
        return page.assets.compactMap(\.originalFilename)
    }

    /// Names of presets.
    static let presets = CompletionKind.custom { _, _, _ in (try? PresetFolder(flag: nil).names()) ?? [] }

    private static func fromLibrary(
        _ names: @escaping @Sendable (PhotoLibrary) async throws -> [String]
    ) async -> [String] {
        guard let endpoints = try? ClientOptions.parse([]).serviceEndpoints(),
            let library = try? PhotoLibrary(
                endpoints: endpoints,
                client: "safelight",
                logger: Logger(label: "safelight", factory: { _ in SwiftLogNoOpLogHandler() })
            )
        else { return [] }
        let found = await TaskDelay.withTimeout(timeout) { try? await names(library) }
        await library.close()
        return (found ?? nil)?.filter { !$0.isEmpty } ?? []
    }
}
