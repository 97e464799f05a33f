import ArgumentParser
import Foundation
import ImageFormats
import Contracts
import JSONValue
import PhotoModel
import SystemPackage

/// The flags that describe an edit.
struct AdjustmentOptions: ParsableArguments {
    @Option(parsing: .unconditional, help: "Exposure in stops, -5 to 5.")
    var exposure: Double?

    @Option(parsing: .unconditional, help: "Color temperature, -1 (cooler) to 1 (warmer).")
    var temperature: Double?

    @Option(parsing: .unconditional, help: "Contrast, -1 to 1.")
    var contrast: Double?

    @Option(parsing: .unconditional, help: "Saturation, -1 (gray) to 1.")
    var saturation: Double?

    @Flag(help: "Convert to black and white.")
    var blackAndWhite = false

    @Option(help: ArgumentHelp("Apply a colour look-up table: a .cube file or a HALD CLUT (PNG).", valueName: "file"))
    var lut: String?

    @Option(help: "Strength of the look-up table, 0 to 1. Default: 1.")
    var lutStrength: Double?

    @Option(parsing: .unconditional, help: "Rotate clockwise by 90, 180 or 270 degrees.")
    var rotate: Int?

    @Option(help: "Flip: horizontal or vertical.")
    var flip: String?

    @Option(parsing: .unconditional, help: "Rotate clockwise by -45 to 45 degrees and crop the corners.")
    var straighten: Double?

    @Option(help: ArgumentHelp("Crop to a rectangle, in fractions of the sides from 0 to 1.", valueName: "x,y,w,h"))
    var crop: String?

    @Option(
        name: .customLong("operation"),
        help: ArgumentHelp(
            "Another operation, for example sharpen:amount=1,radius=2; may be repeated. `safelight describe "
                + "adjustments` lists all operations.",
            valueName: "name:member=value,…"
        )
    )
    var others: [String] = []

    @Option(
        name: .customLong("list"),
        help: ArgumentHelp("Read an adjustment list (version 1) from a file; - for standard input.", valueName: "file")
    )
    var listFile: String?

    @Option(
        help: ArgumentHelp("Start with the operations of a preset; may be repeated.", valueName: "name"),
        completion: Completions.presets
    )
    var preset: [String] = []

    @OptionGroup var folderOption: PresetCommand.PresetFolderOptions

    /// Returns the adjustment list of the flags.
    ///
    /// The operations are in the documented order: rotate, flip, straighten, crop, then exposure, temperature,
    /// contrast, saturation, black-and-white and the look-up table. For another order, users pass a list.
    ///
    /// - Parameter mayBeEmpty: true if a list without operations is allowed
    func list(mayBeEmpty: Bool = false) throws -> AdjustmentList {
        let operations = try operations()
        if let listFile {
            guard operations.isEmpty, preset.isEmpty else {
                throw CommandFailure.usage("--list cannot be combined with other adjustment flags")
            }
            return try Self.read(listFile)
        }
        let folder = try folderOption.folder()
        let first = try preset.flatMap { try folder.read($0).list.operations.map(\.json) }
        guard !operations.isEmpty || !first.isEmpty || mayBeEmpty else {
            throw CommandFailure.usage("no adjustment is given; use for example --exposure 0.5 (--help lists all)")
        }
        return try AdjustmentList(json: ["version": 1, "operations": .array(first + operations)])
    }

    /// Reads an adjustment list from a file, or from standard input for `-`.
    static func read(_ file: String) throws -> AdjustmentList {
        let bytes = try InputFile.read(file, limit: AdjustmentData.maxBytes)
        let json: JSON
        do throws(JSONError) {
            json = try JSON(parsing: bytes)
        } catch {
            throw CommandFailure.usage("\(file.printable) is not JSON: \(error)")
        }
        return try AdjustmentList(json: json)
    }

    private func operations() throws -> [JSON] {
        guard lut != nil || lutStrength == nil else { throw CommandFailure.usage("--lut-strength needs --lut") }
        var operations: [JSON] = []
        func add(_ name: String, _ value: JSON?) {
            if let value { operations.append(["operation": .string(name), "value": value]) }
        }
        add("rotate", rotate.map { JSON($0) })
        add("flip", flip.map { .string($0) })
        add("straighten", straighten.map { .double($0) })
        if let crop { operations.append(Self.crop(crop)) }
        add("exposure", exposure.map { .double($0) })
        add("temperature", temperature.map { .double($0) })
        add("contrast", contrast.map { .double($0) })
        add("saturation", saturation.map { .double($0) })
        if blackAndWhite { operations.append(["operation": "blackAndWhite"]) }
        if let lut { operations.append(try Self.readTable(lut, strength: lutStrength ?? 1)) }
        return operations + others.map(Self.operation)
    }

    /// Reads a look-up table. A .cube file is converted to a PNG, which has a fraction of its size.
    static func readTable(_ file: String, strength: Double) throws -> JSON {
        var bytes = try InputFile.read(file, limit: ColourTable.largestFile)
        if !bytes.starts(with: [0x89, 0x50, 0x4E, 0x47]) {
            do throws(ColourTableError) { bytes = try ColourTable(cube: bytes).png } catch {
                throw CommandFailure.usage(
                    "\(file.printable) is neither a .cube file nor a PNG: \(error.description.printable)"
                )
            }
        }
        let table = Data(bytes).base64EncodedString()
        guard table.utf8.count <= AdjustmentKind.maxTableCharacters else {
            throw CommandFailure(
                message: "\(file.printable) takes \(bytes.count) bytes, and a look-up table may have at most "
                    + "\(AdjustmentKind.maxTableCharacters / 4 * 3); use one with fewer points or with 8 bits",
                name: ErrorCode.limitExceeded.rawValue
            )
        }
        return ["operation": "lut", "value": .double(strength), "table": .string(table)]
    }

    /// Parses an operation without checking it; `AdjustmentList` reports what is wrong with it.
    private static func operation(_ text: String) -> JSON {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        var operation: JSONObject = ["operation": .string(parts[0])]
        guard parts.count == 2 else { return .object(operation) }
        for member in parts[1].split(separator: ",") {
            let pair = member.split(separator: "=", maxSplits: 1).map(String.init)
            let value = pair.count == 2 ? pair[1] : ""
            operation[pair.first ?? ""] =
                Int64(value).map { .int($0) } ?? Double(value).map { .double($0) } ?? .string(value)
        }
        return .object(operation)
    }

    /// Parses a rectangle without checking it; `AdjustmentList` reports what is wrong with it.
    private static func crop(_ text: String) -> JSON {
        var operation: JSONObject = ["operation": "crop"]
        let parts = text.split(separator: ",", omittingEmptySubsequences: false)
        for (index, part) in parts.enumerated() {
            let name = index < 4 ? ["x", "y", "width", "height"][index] : "part \(index + 1)"
            operation[name] = Double(part).map { .double($0) } ?? .string(String(part))
        }
        for name in ["x", "y", "width", "height"].dropFirst(parts.count) { operation[name] = .string("missing") }
        return .object(operation)
    }
}
