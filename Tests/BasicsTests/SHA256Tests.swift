import Basics
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(1)))
struct SHA256Tests {
    /// The examples of FIPS 180-4, and the digest of no bytes.
    @Test(
        arguments: [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
            ),
        ]
    )
    func `the examples of the standard have the published digests`(text: String, digest: String) {
        #expect(SHA256.hash(data: text.utf8).hexadecimal == digest)
    }

    @Test func `bytes added in pieces have the digest of the whole, and a copy continues independently`() {
        var random = SeededRandom(named: "sha pieces")
        for _ in 0..<50 {
            let bytes = random.bytes(Int.random(in: 0...5000, using: &random))
            var hash = SHA256()
            var position = 0
            while position < bytes.count {
                let end = min(bytes.count, position + Int.random(in: 1...700, using: &random))
                hash.update(data: bytes[position..<end])
                position = end
            }
            var copy = hash
            copy.update(data: [1])
            #expect(hash.finalize() == SHA256.hash(data: bytes))
            #expect(copy.finalize() == SHA256.hash(data: bytes + [1]))
        }
    }
}
