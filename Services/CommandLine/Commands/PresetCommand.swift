import ArgumentParser
import JSONValue
import PhotoClient
import PhotoModel

/// `safelight preset`
struct PresetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "preset",
        abstract: "Manage named adjustment lists for `safelight edit --preset NAME`.",
        discussion: """
            A preset is a file with an adjustment list in the format of `safelight describe adjustments`. An edit stores \
            the values of the preset, not its name, so changing a preset later does not change existing edits.
            """,
        subcommands: [List.self, Show.self, Save.self, Take.self, Import.self, Export.self, Remove.self],
        defaultSubcommand: List.self
    )

    /// The option that selects the preset folder.
    struct PresetFolderOptions: ParsableArguments {
        @Option(
            help: ArgumentHelp(
                "Preset folder.",
                discussion:
                    "Default: SAFELIGHT_PRESETS, $XDG_CONFIG_HOME/safelight/presets or ~/.config/safelight/presets.",
                valueName: "folder"
            )
        )
        var presets: String?

        func folder() throws -> PresetFolder { try PresetFolder(flag: presets) }
    }

    /// The output format. Messages go to standard error; a preset itself is always printed as JSON.
    struct Report: ParsableArguments {
        @Flag(help: "Print JSON, one value per line.") var json = false
    }

    /// `safelight preset list`
    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List the presets with their operations.")
        @OptionGroup var folderOption: PresetFolderOptions
        @OptionGroup var report: Report

        func run() throws {
            let (folder, output) = (try folderOption.folder(), Output(json: report.json))
            let names = try folder.names()
            guard !names.isEmpty else { return output.note("no presets; `safelight preset save` saves one") }
            for name in names {
                let preset = try folder.read(name)
                try output.result(preset.json) {
                    ["\(name.printable)  \(preset.list.operations.map(\.kind.rawValue).joined(separator: ", "))"]
                }
            }
        }
    }

    /// `safelight preset show`
    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Print the adjustment list of a preset.")
        @Argument(help: "Name of the preset.", completion: Completions.presets) var name: String
        @OptionGroup var folderOption: PresetFolderOptions
        @OptionGroup var report: Report

        func run() throws {
            try Output(json: report.json).line(try folderOption.folder().read(name).list.json.prettyText)
        }
    }

    /// `safelight preset save`
    struct Save: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Save adjustments as a preset.")
        @Argument(help: "Name of the preset.", completion: Completions.presets) var name: String
        @OptionGroup var adjustments: AdjustmentOptions
        @Flag(help: "Replace an existing preset of this name.") var replace = false
        @OptionGroup var report: Report

        func run() throws {
            let folder = try adjustments.folderOption.folder()
            try folder.write(Preset(name: name, list: try adjustments.list()), replacing: replace)
        }
    }

    /// `safelight preset take`
    struct Take: LibraryCommand {
        static let configuration = CommandConfiguration(abstract: "Save the current edit of an asset as a preset.")
        @Argument(help: "Name of the preset.", completion: Completions.presets) var name: String
        @Argument(
            help: "Asset: its identifier, its file name, or @3 of the last listing.",
            completion: Completions.assets
        )
        var asset: String
        @Flag(help: "Replace an existing preset of this name.") var replace = false
        @OptionGroup var folderOption: PresetFolderOptions
        @OptionGroup var client: ClientOptions

        func run(in library: PhotoLibrary, output: Output) async throws {
            let id = try await AssetArguments.readOne(asset, in: library)
            let edited = try await library.namedAsset(id, members: ["id", "adjustmentFormatIdentifier"])
            guard edited.adjustmentFormatIdentifier == AdjustmentList.formatIdentifier else {
                throw CommandFailure(
                    message: "\(id) has no edit in this editor's format",
                    name: "request_not_supported"
                )
            }
            let limit = AdjustmentData.maxBytes
            let bytes = try await library.resource(asset: id, type: .adjustmentData).readAll(limit: limit)
            let list = try AdjustmentList(json: JSON(parsing: bytes))
            try folderOption.folder().write(Preset(name: name, list: list), replacing: replace)
        }
    }

    /// `safelight preset import`
    struct Import: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Import presets from adjustment lists (named after their files) or from `preset export` bundles."
        )
        @Argument(help: "Files to import.") var files: [String]
        @Flag(help: "Replace existing presets of the same name.") var replace = false
        @OptionGroup var folderOption: PresetFolderOptions
        @OptionGroup var report: Report

        func run() throws {
            let folder = try folderOption.folder()
            // Every preset is read and checked before the first one is written.
            let presets = try files.flatMap { try PresetFolder.presets(inFile: $0) }
            for preset in presets { try folder.check(preset, replacing: replace) }
            for (done, preset) in presets.enumerated() {
                do {
                    try folder.write(preset, replacing: replace)
                } catch {
                    throw CommandFailure(error, after: done, of: presets.count, "preset")
                }
            }
            Output(json: report.json).note("imported \(QuantityFormatter.count(presets.count, "preset"))")
        }
    }

    /// `safelight preset export`
    struct Export: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print presets as one bundle for `preset import`."
        )
        @Argument(help: "Names of the presets. Default: all.") var names: [String] = []
        @OptionGroup var folderOption: PresetFolderOptions
        @OptionGroup var report: Report

        func run() throws {
            let folder = try folderOption.folder()
            let presets = try (names.isEmpty ? try folder.names() : names).map { try folder.read($0).json }
            try Output(json: report.json).line((["version": 1, "presets": .array(presets)] as JSON).prettyText)
        }
    }

    /// `safelight preset remove`
    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Delete presets.")
        @Argument(help: "Names of the presets.") var names: [String]
        @OptionGroup var folderOption: PresetFolderOptions
        @OptionGroup var report: Report

        func run() throws {
            let folder = try folderOption.folder()
            for name in names { try folder.require(name) }
            for (done, name) in names.enumerated() {
                do {
                    try folder.remove(name)
                } catch {
                    throw CommandFailure(error, after: done, of: names.count, "preset")
                }
            }
        }
    }
}
