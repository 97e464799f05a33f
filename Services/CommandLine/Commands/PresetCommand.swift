import ArgumentParser
import JSONValue
import PhotoClient
import PhotoModel

/// `safelight preset`
struct PresetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "preset",
        abstract: "Keep lists of adjustments under names, for `safelight edit --preset NAME`.",
        discussion: """
            A preset is a file with an adjustment list, as `safelight describe adjustments` tells; its values stand in \
            every edit that was made with it, so that changing a preset changes no picture.
            """,
        subcommands: [List.self, Show.self, Save.self, Take.self, Import.self, Export.self, Remove.self],
        defaultSubcommand: List.self
    )

    /// Where the presets are.
    struct Place: ParsableArguments {
        @Option(
            help: ArgumentHelp(
                "The folder of presets.",
                discussion:
                    "SAFELIGHT_PRESETS, else $XDG_CONFIG_HOME/safelight/presets, else ~/.config/safelight/presets.",
                valueName: "folder"
            )
        )
        var presets: String?

        func folder() throws -> PresetFolder { try PresetFolder(flag: presets) }
    }

    /// How to report; what is kept and forgotten is told on standard error, a preset itself is always JSON.
    struct Report: ParsableArguments {
        @Flag(help: "Write JSON: a line for each.") var json = false
    }

    /// `safelight preset list`
    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Print the names, and what each does.")
        @OptionGroup var place: Place
        @OptionGroup var report: Report

        func run() throws {
            let (folder, output) = (try place.folder(), Output(json: report.json))
            for name in try folder.names() {
                let preset = try folder.read(name)
                try output.result(preset.json) {
                    ["\(name.printable)  \(preset.list.operations.map(\.kind.rawValue).joined(separator: ", "))"]
                }
            }
        }
    }

    /// `safelight preset show`
    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Print a preset's list.")
        @Argument(help: "Its name.") var name: String
        @OptionGroup var place: Place
        @OptionGroup var report: Report

        func run() throws {
            try Output(json: report.json).line(try place.folder().read(name).list.json.prettyText)
        }
    }

    /// `safelight preset save`
    struct Save: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Keep adjustments under a name.")
        @Argument(help: "Its name.") var name: String
        @OptionGroup var adjustments: AdjustmentOptions
        @Flag(help: "In place of one of that name.") var replace = false
        @OptionGroup var report: Report

        func run() throws {
            let folder = try adjustments.place.folder()
            try folder.write(Preset(name: name, list: try adjustments.list()), replacing: replace)
        }
    }

    /// `safelight preset take`
    struct Take: LibraryCommand {
        static let configuration = CommandConfiguration(abstract: "Keep the edit of an asset under a name.")
        @Argument(help: "Its name.") var name: String
        @Argument(help: "The asset's identifier.") var asset: String
        @Flag(help: "In place of one of that name.") var replace = false
        @OptionGroup var place: Place
        @OptionGroup var client: ClientOptions

        func check() throws { _ = try Identifiers.one(asset) }

        func run(in library: PhotoLibrary, output: Output) async throws {
            let asset = try await library.asset(try Identifiers.one(asset))
            guard asset.adjustmentFormatIdentifier == AdjustmentList.formatIdentifier else {
                throw CommandFailure(
                    message: "\(asset.id) has no edit that this editor made",
                    name: "request_not_supported"
                )
            }
            let limit = AdjustmentData.maxBytes
            let bytes = try await library.resource(asset: asset.id, type: .adjustmentData).readAll(limit: limit)
            let list = try AdjustmentList(json: JSON(parsing: bytes))
            try place.folder().write(Preset(name: name, list: list), replacing: replace)
        }
    }

    /// `safelight preset import`
    struct Import: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Take presets from files: lists named after their files, or what `preset export` wrote."
        )
        @Argument(help: "Files.") var files: [String]
        @Flag(help: "In place of those of the same name.") var replace = false
        @OptionGroup var place: Place
        @OptionGroup var report: Report

        func run() throws {
            let folder = try place.folder()
            // All are read and checked before one is written.
            let presets = try files.flatMap { try PresetFolder.presets(inFile: $0) }
            for preset in presets { try PresetFolder.check(preset.name) }
            for preset in presets { try folder.write(preset, replacing: replace) }
            Output(json: report.json).note("took \(Quantities.count(presets.count, "preset"))")
        }
    }

    /// `safelight preset export`
    struct Export: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print presets as one bundle that `preset import` reads; all where none is named."
        )
        @Argument(help: "Names.") var names: [String] = []
        @OptionGroup var place: Place
        @OptionGroup var report: Report

        func run() throws {
            let folder = try place.folder()
            let presets = try (names.isEmpty ? try folder.names() : names).map { try folder.read($0).json }
            try Output(json: report.json).line((["version": 1, "presets": .array(presets)] as JSON).prettyText)
        }
    }

    /// `safelight preset remove`
    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Forget presets.")
        @Argument(help: "Names.") var names: [String]
        @OptionGroup var place: Place
        @OptionGroup var report: Report

        func run() throws {
            let folder = try place.folder()
            for name in names { try folder.remove(name) }
        }
    }
}
