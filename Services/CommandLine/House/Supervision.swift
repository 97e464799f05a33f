/// How a service knows that `safelight up` holds its standard input open.
enum Supervision {
    static let variable = "SAFELIGHT_SUPERVISED"
}
