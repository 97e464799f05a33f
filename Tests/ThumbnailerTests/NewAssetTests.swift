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
        #expect(position.token == nil, "a restart prepares all assets")
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

    @Test func `a saved position is valid only for the same renderer and sizes`() {
        let imageSet = NewAssetPreparer.imageSet([256, 1024], rendererVersion: "3")
        let text = "\(Self.token(5))\n\(imageSet)"
        #expect(NewAssetPreparer.token(in: text, of: imageSet) == Self.token(5))
        for (sides, version) in [([256], "3"), ([256, 1024], "4"), ([256, 1024, 16], "3")] {
            let other = NewAssetPreparer.imageSet(sides, rendererVersion: version)
            #expect(NewAssetPreparer.token(in: text, of: other) == nil)
        }
        for text in ["", "\(Self.token(5))", "\n\(imageSet)"] {
            #expect(NewAssetPreparer.token(in: text, of: imageSet) == nil, "the text is incomplete")
        }
    }

    @Test func `images are prepared in advance by default only if originals may be removed`() throws {
        func sides(_ text: String?, _ releases: Bool = false) throws(HostingError) -> [Int] {
            try ThumbnailerConfiguration.preparedSides(text, releasesOriginals: releases)
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
