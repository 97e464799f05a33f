/// Finds the word that was probably meant by a misspelled one.
enum SpellingSuggestion {
    /// Returns the nearest of some words, if no more than a third of the letters differ; else the only one that begins
    /// with the word.
    static func nearest(to word: String, of words: [String]) -> String? {
        let longer = words.filter { $0.hasPrefix(word) }
        if longer.count == 1 { return longer[0] }
        let maxDistance = max(1, word.count / 3)
        let near = words.map { (word: $0, distance: distance(word, $0)) }.filter { $0.distance <= maxDistance }
        return near.min { $0.distance < $1.distance }?.word
    }

    /// Returns the number of insertions, deletions, replacements and swaps of neighbours between two words.
    static func distance(_ first: String, _ second: String) -> Int {
        let (a, b) = (Array(first), Array(second))
        var rows = [Array(0...b.count)]
        for i in a.indices {
            var row = [i + 1]
            for j in b.indices {
                let isSame = a[i] == b[j]
                var best = min(rows[i][j + 1] + 1, row[j] + 1, rows[i][j] + (isSame ? 0 : 1))
                if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { best = min(best, rows[i - 1][j - 1] + 1) }
                row.append(best)
            }
            rows.append(row)
        }
        return rows[a.count][b.count]
    }
}
