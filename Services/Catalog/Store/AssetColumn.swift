import PhotoModel

/// A column of the table `asset` and the property of the asset that it stores.
struct AssetColumn: Sendable {
    let name: String
    private let value: Value

    private enum Value: Sendable {
        case integer(@Sendable (Asset) -> Int64?)
        case number(@Sendable (Asset) -> Double?)
        case text(@Sendable (Asset) -> String?)
        /// A folded copy of a text. Folding is expensive, and done only if the text is written.
        case folded(@Sendable (Asset) -> String?)
    }

    init(_ name: String, integer: @escaping @Sendable (Asset) -> Int64?) {
        (self.name, value) = (name, .integer(integer))
    }

    init(_ name: String, flag: @escaping @Sendable (Asset) -> Bool) {
        (self.name, value) = (name, .integer { flag($0) ? 1 : 0 })
    }

    init(_ name: String, number: @escaping @Sendable (Asset) -> Double?) {
        (self.name, value) = (name, .number(number))
    }

    init(_ name: String, text: @escaping @Sendable (Asset) -> String?) {
        (self.name, value) = (name, .text(text))
    }

    init(_ name: String, folded: @escaping @Sendable (Asset) -> String?) {
        (self.name, value) = (name, .folded(folded))
    }

    /// Returns true if two states of an asset may have different values in the column.
    func differs(_ one: Asset, _ other: Asset) -> Bool {
        switch value {
        case .integer(let property): property(one) != property(other)
        case .number(let property): property(one) != property(other)
        case .text(let property), .folded(let property): property(one) != property(other)
        }
    }

    func bind(_ asset: Asset, to statement: inout SQLStatement) {
        switch value {
        case .integer(let property): statement.bind(property(asset))
        case .number(let property): statement.bind(property(asset))
        case .text(let property): statement.bind(property(asset))
        case .folded(let property): statement.bind(property(asset).map(folded))
        }
    }
}
