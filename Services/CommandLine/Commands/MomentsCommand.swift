import ArgumentParser
import Contracts
import JSONValue
import PhotoClient
import PhotoModel

/// `safelight moments`
struct MomentsCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "moments",
        abstract: "List moments: photos grouped by day and location.",
        discussion: "Without a year, lists the years. `safelight fetch --album ID` lists the photos of a moment."
    )

    @Argument(help: "List the moments of this year.")
    var year: Int?

    @OptionGroup var client: ClientOptions

    func check() throws {
        if let year, !(1...9999).contains(year) { throw CommandFailure.usage("\(year) is not a year from 1 to 9999") }
    }

    func run(in library: PhotoLibrary, output: Output) async throws {
        if let year, try await !hasMoments(year, in: library) {
            return output.note("no photo is from \(year); `safelight moments` lists the years")
        }
        var table = TextTable([
            .init(title: "id"), .init(title: year == nil ? "moments" : "photos", alignment: .right),
            .init(title: year == nil ? "year" : "day and location", width: 60),
        ])
        var position = 0
        while true {
            let count: Int
            if let year {
                var fetch = FetchDescription(.children)
                fetch.container = MomentList.year(year).id
                let page = try await library.collections(fetch, from: position, count: 500)
                for moment in page.collections {
                    if output.isJSON { try output.json(moment.json) }
                    let names = moment.localizedLocationNames.joined(separator: ", ")
                    let location = names.isEmpty ? moment.approximateLocation.map(QuantityFormatter.location) : names
                    let suffix = location.map { "  near " + $0 } ?? ""
                    let photos = moment.estimatedAssetCount.map { "\($0)" } ?? "-"
                    table.add([moment.id.text, photos, (moment.title ?? "-") + suffix])
                }
                count = page.count
                position += page.collections.count
                if page.collections.isEmpty { break }
            } else {
                var fetch = FetchDescription(.lists)
                fetch.collectionType = ListType.momentList.rawValue
                fetch.collectionSubtype = ListSubtype.momentListYear.rawValue
                let page = try await library.lists(fetch, from: position, count: 500)
                for list in page.lists {
                    if output.isJSON { try output.json(list.json) }
                    table.add([list.id.text, "\(list.childCount)", list.title ?? "-"])
                }
                count = page.count
                position += page.lists.count
                if page.lists.isEmpty { break }
            }
            if position >= count { break }
        }
        if !output.isJSON { try output.lines(table.lines) }
    }

    private func hasMoments(_ year: Int, in library: PhotoLibrary) async throws -> Bool {
        let fetch = try Fetch(.listIDs(IDList([MomentList.year(year).id]))).wireForm
        return try await !library.lists(fetch, from: 0, count: 1).lists.isEmpty
    }
}
