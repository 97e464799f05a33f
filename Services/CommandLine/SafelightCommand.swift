import ArgumentParser
import Hosting

/// The command line of Safelight.
struct SafelightCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "safelight",
        abstract: "A photo library that runs as a set of small services.",
        discussion: """
            Start with `safelight up` in one terminal and `safelight import FOLDER` in another. Every command takes \
            --json. Identifiers are given whole, or as - for one on each line of standard input.

            Exit status: 0 done, 1 refused, 2 wrong usage, 3 partly done, as was said.
            """,
        version: ServiceVersion.current,
        groupedSubcommands: [
            CommandGroup(
                name: "The house",
                subcommands: [
                    UpCommand.self, StatusCommand.self, DoctorCommand.self, KeysCommand.self, QuarantineCommand.self,
                ]
            ),
            CommandGroup(
                name: "Photos",
                subcommands: [
                    ImportCommand.self, FetchCommand.self, ShowCommand.self, FavoriteCommand.self, HideCommand.self,
                    DeleteCommand.self, TrashCommand.self, UntrashCommand.self, AlbumCommand.self, FolderCommand.self,
                    MomentsCommand.self, ExportCommand.self,
                ]
            ),
            CommandGroup(
                name: "Pictures",
                subcommands: [
                    ThumbCommand.self, SheetCommand.self, WarmCommand.self, EditCommand.self, RevertCommand.self,
                    PresetCommand.self, HistoryCommand.self, CompareCommand.self,
                ]
            ),
            CommandGroup(
                name: "Keeping",
                subcommands: [BackupCommand.self, RestoreCommand.self, RescanCommand.self]
            ),
            CommandGroup(
                name: "Programs",
                subcommands: [
                    PublishCommand.self, WatchCommand.self, DescribeCommand.self, SamplePhotosCommand.self,
                ]
            ),
        ]
    )
}
