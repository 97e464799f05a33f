// The definitions of the operations on the time and the sound of films.

extension AdjustmentKind {
    /// The longest film in seconds; an end at or after the end of the film is that of the film.
    public static let longestFilm = 86_400.0

    var declaredFilm: Declared {
        switch self {
        case .timeRange:
            (
                "Keeps the part of a film from start to end; times are those of the film as imported.",
                [
                    Self.slider(0...Self.longestFilm, "seconds", name: "start"),
                    Self.slider(
                        0...Self.longestFilm,
                        "seconds",
                        name: "end",
                        byDefault: Self.longestFilm,
                        neutral: Self.longestFilm
                    ),
                ]
            )
        case .speed:
            (
                "Plays a film faster (above 1) or slower; the pitch of the sound stays.",
                [Self.slider(0.1...16, "times", byDefault: 1, neutral: 1)]
            )
        default:
            (
                "Multiplies the sound of a film; 0 removes its sound track.",
                [Self.slider(0...4, "times", byDefault: 1, neutral: 1)]
            )
        }
    }
}
