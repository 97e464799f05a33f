import ArgumentParser
import Hosting

/// The command line of Safelight.
struct SafelightCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "safelight",
        abstract: "A photo library that runs as a set of small services.",
        discussion: """
            To start, run `safelight up` in one terminal and `safelight import FOLDER` in another. Every command has \
            --json. Assets are given by their identifier or its beginning, by their file name, by their number in the \
            last listing (@3, or @2-5), or as - to read them from standard input, one per line.

            Exit status: 0 success, 1 failure, 2 wrong usage, 3 partial success; messages name what failed.
            """,
        version: ServiceVersion.current,
        groupedSubcommands: [
            CommandGroup(
                name: "Services",
                subcommands: [
                    UpCommand.self, StatusCommand.self, DoctorCommand.self, KeysCommand.self, GrantsCommand.self,
                    QuarantineCommand.self,
                ]
            ),
            CommandGroup(
                name: "Photos",
                subcommands: [
                    ImportCommand.self, FetchCommand.self, ShowCommand.self, SetCommand.self, FavoriteCommand.self,
                    HideCommand.self, DeleteCommand.self, TrashCommand.self, UntrashCommand.self, AlbumCommand.self,
                    FolderCommand.self, DuplicatesCommand.self,
                    MomentsCommand.self, ExportCommand.self, UndoCommand.self,
                ]
            ),
            CommandGroup(
                name: "Images and edits",
                subcommands: [
                    ThumbCommand.self, SheetCommand.self, WarmCommand.self, EditCommand.self, RevertCommand.self,
                    PresetCommand.self, HistoryCommand.self, CompareCommand.self, VideoCommand.self, PlayCommand.self,
                ]
            ),
            CommandGroup(
                name: "Backup and maintenance",
                subcommands: [
                    BackupCommand.self, RestoreCommand.self, LibraryMigrateCommand.self, RescanCommand.self,
                    StorageCommand.self,
                ]
            ),
            CommandGroup(
                name: "Automation",
                subcommands: [
                    PublishCommand.self, WatchCommand.self, LogCommand.self, DescribeCommand.self,
                    SamplePhotosCommand.self,
                ]
            ),
        ]
    )
}
