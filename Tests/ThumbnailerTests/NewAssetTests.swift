import Hosting
import PhotoModel
import Testing

@testable import Thumbnailer

@Suite(.timeLimit(.minutes(1)))
struct NewAssetTests {
    private static func token(_ sequence: Int64) -> ChangeToken {
        ChangeToken(library: String(repeating: "1", count: 32), sequence: sequence)
    }

    @Test func `the position is before the first change that is being processed`() {
        var position = FeedPosition()
        #expect(position.token == nil)
        position.begin(5)
        #expect(position.token == nil, "a restart begins anew")
        position.receive(Self.token(5))
        #expect(position.token == Self.token(4))
        position.begin(6)
        position.begin(6)
        position.receive(Self.token(6))
        #expect(position.count == 3)
        position.end(6)
        position.end(5)
        #expect(position.token == Self.token(5), "of two assets one is not ready")
        position.end(6)
        #expect(position.token == Self.token(6))
        position.receive(Self.token(9))
        #expect(position.token == Self.token(9))
        #expect(position.count == 0)
    }

    @Test func `a position is of the renderer and the sizes of then`() {
        let made = NewAssetPreparer.made([256, 1024], rendererVersion: "3")
        let text = "\(Self.token(5))\n\(made)"
        #expect(NewAssetPreparer.token(in: text, made: made) == Self.token(5))
        for (sides, version) in [([256], "3"), ([256, 1024], "4"), ([256, 1024, 16], "3")] {
            let other = NewAssetPreparer.made(sides, rendererVersion: version)
            #expect(NewAssetPreparer.token(in: text, made: other) == nil)
        }
        for text in ["", "\(Self.token(5))", "\n\(made)"] {
            #expect(NewAssetPreparer.token(in: text, made: made) == nil, "not all images were made")
        }
    }

    @Test func `sizes are made in advance by default only where originals are given up`() throws {
        func sides(_ text: String?, _ givesUp: Bool = false) throws(HostingError) -> [Int] {
            try ThumbnailerConfiguration.preparedSides(text, givesUpOriginals: givesUp)
        }
        #expect(try sides(nil) == [])
        #expect(try sides(nil, true) == [256])
        #expect(try sides("none", true) == [])
        #expect(try sides("256,1024") == [256, 1024])
        for text in ["", "15", "8193", "256,", "256 ", "a", "16,16,16,16,16,16,16,16,16"] {
            #expect(throws: HostingError.self, "\(text)") { try sides(text) }
        }
    }
}
