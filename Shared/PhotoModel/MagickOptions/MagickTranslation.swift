import JSONValue

/// The state of a translation: the settings so far, and the operations made from them and the operators.
struct MagickTranslation {
    /// The size of the image at a point of the text.
    enum Size {
        /// Every size; for checks before there is an image.
        case any
        case known(width: Int, height: Int)
        case unknown(because: String)
    }

    private(set) var operations: [Adjustment] = []
    /// The option that made each operation.
    private var options: [String] = []
    var size: Size

    // MARK: Settings

    var gravity = "northwest"
    var fill: String?
    var background = "#ffffff"
    var border = "#dfdfdf"
    var matte = "#bdbdbd"
    var fuzz = 0.0
    var mayDither = true
    /// True if the canvas of a cropped image was not reset: offsets would count from the old one.
    var hasPage = false

    init(size: Size) { self.size = size }

    /// Appends an operation.
    ///
    /// - Throws: an error if a value is out of range, or if the stages of the editor would carry out the operation
    ///   before another one that precedes it
    mutating func add(_ kind: AdjustmentKind, _ members: JSONObject, _ operand: MagickOperand) throws(MagickOptionError)
    {
        let next: Adjustment
        do throws(AdjustmentError) { next = try Adjustment(kind, members) } catch {
            throw operand.refusal(
                because: "gives the operation \(kind.rawValue) a value that it does not have: \(error.description)"
            )
        }
        guard operations.count < AdjustmentList.maximumCount else {
            throw operand.refusal(because: "is one operation too many: a list has \(AdjustmentList.maximumCount)")
        }
        for (before, option) in zip(operations, options)
        where next.kind.stage.rank < before.kind.stage.rank && !Self.commutes(before.kind, with: next.kind) {
            throw MagickOptionError(
                operand.option,
                "cannot follow \(option): the stage \(next.kind.stage.rawValue) is carried out before the stage "
                    + "\(before.kind.stage.rawValue); write it in front, or make two edits"
            )
        }
        operations.append(next)
        options.append(operand.option.text)
    }

    /// Returns true if the result is the same in both orders.
    private static func commutes(_ before: AdjustmentKind, with next: AdjustmentKind) -> Bool {
        let isPixelwise =
            before.stage == .colour || [.posterize, .solarize, .colorize, .colourTint].contains(before)
        switch next {
        case .crop: return isPixelwise
        // The effects in the list do not depend on the orientation.
        case .rotate, .flip:
            return isPixelwise
                || [
                    .blur, .unsharpMask, .median, .edge, .normalize, .equalize, .contrastStretch, .trim, .border,
                ].contains(before)
        default: return false
        }
    }

    /// Returns the current size.
    ///
    /// - Returns: nil if the text is checked for every size
    func sides(_ operand: MagickOperand) throws(MagickOptionError) -> (width: Int, height: Int)? {
        switch size {
        case .any: return nil
        case .known(let width, let height): return (width, height)
        case .unknown(let reason):
            throw MagickOptionError(operand.option, "depends on the size of the image, and \(reason)")
        }
    }

    mutating func forgetSize(after option: String) {
        size = .unknown(because: "\(option) leaves a size that is not known before it is carried out")
    }

    mutating func setSize(_ width: Int, _ height: Int) {
        if case .known = size { size = .known(width: width, height: height) }
    }
}

extension AdjustmentKind.Stage {
    /// The position in the order of the stages.
    fileprivate var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}
