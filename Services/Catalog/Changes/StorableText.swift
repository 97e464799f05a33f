import PhotoModel

/// Returns text as it is stored: normalization form C, without U+0000, where SQLite would end the text.
///
/// - Parameters:
///   - name: the parameter that has the text
///   - maxBytes: the maximum length of the stored text in UTF-8 bytes; normalization can make a text longer
/// - Throws: `invalid_params` if it contains U+0000, or is too long as stored
func storable(_ text: String, _ name: String, maxBytes: Int) throws -> String {
    guard !text.utf8.contains(0) else {
        throw ChangeError.unstorableText(parameter: name)
    }
    let stored = nfc(text)
    guard stored.utf8.count <= maxBytes else {
        throw ChangeError.textTooLong(parameter: name, bytes: stored.utf8.count, limit: maxBytes)
    }
    return stored
}
