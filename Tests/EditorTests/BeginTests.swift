import Contracts
import PhotoClient
import PhotoModel
import Storage
import TestSupport
import Testing

@testable import Editor

extension EditorWorkerTests {
    /// Tests of the input for programs that edit pixels themselves.
    @Suite(.timeLimit(.minutes(2)))
    struct BeginTests {
        @Test(.spec("T-49"))
        func `a program chooses between RAW and compressed original and can leave out what it does not need`()
            async throws
        {
            try await EditorFixture.open { fixture in
                let compressed = TestImages.jpeg(width: 60, height: 40, seed: 1)
                let raw = TestImages.jpeg(width: 90, height: 60, orientation: 6, seed: 2)
                let single = try fixture.catalog.add(compressed)
                let both = try fixture.catalog.add(compressed)
                let stored = try fixture.resources.put(bytes: raw)
                fixture.catalog.change(both.id, content: false) { asset in
                    asset.resources.append(
                        AssetResource(
                            type: .alternatePhoto,
                            digest: stored.digest.text,
                            size: stored.size,
                            contentType: "com.adobe.raw-image"
                        )
                    )
                }
                for (choice, bytes, orientation) in [(OriginalChoice.raw, raw, 6), (.compressed, compressed, 1)] {
                    let response = try await fixture.client.ask(BeginEditing(asset: both.id, originalChoice: choice))
                    #expect(response.result.input.map { response.attachments[$0] } == bytes)
                    #expect(response.result.version == .original && response.result.orientation == orientation)
                    #expect(response.result.displaySizeImage != nil)
                }
                let refusal = await fixture.rpcError(BeginEditing(asset: single.id, originalChoice: .raw))
                #expect(refusal?.errorCode == .invalidOptions)
                let bare = try await fixture.client.ask(
                    BeginEditing(asset: both.id, skipsDisplaySizeImage: true, skipsInput: true)
                )
                #expect(bare.attachments.isEmpty && bare.result.displaySizeImage == nil && bare.result.input == nil)
            }
        }

        @Test(.spec("T-49", "D4"))
        func `a program that can read the edit of an original gets its data with that original only`() async throws {
            try await EditorFixture.open { fixture in
                let compressed = TestImages.jpeg(width: 60, height: 40, seed: 1)
                let raw = TestImages.jpeg(width: 90, height: 60, seed: 2)
                let asset = try fixture.catalog.add(compressed)
                let other = try fixture.resources.put(bytes: raw)
                let render = try fixture.resources.put(bytes: TestImages.jpeg(width: 90, height: 60, seed: 3))
                let data = try fixture.resources.put(bytes: Array("parameters for the RAW file".utf8))
                fixture.catalog.change(asset.id, content: true) { asset in
                    for (type, file, contentType) in [
                        (ResourceType.alternatePhoto, other, "com.adobe.raw-image"),
                        (.adjustmentBasePhoto, other, "com.adobe.raw-image"),
                        (.fullSizePhoto, render, "public.jpeg"), (.adjustmentData, data, "public.data"),
                    ] {
                        asset.resources.append(
                            AssetResource(
                                type: type,
                                digest: file.digest.text,
                                size: file.size,
                                contentType: contentType
                            )
                        )
                    }
                    asset.adjustmentFormatIdentifier = "org.example"
                    asset.adjustmentFormatVersion = "1"
                }
                let handled = [HandledFormat(formatIdentifier: "org.example")]
                let cases: [(OriginalChoice?, [HandledFormat], EditBase, [UInt8], Bool)] = [
                    (nil, handled, .previous, raw, true), (.raw, handled, .previous, raw, true),
                    (.compressed, handled, .original, compressed, false), (.raw, [], .original, raw, false),
                ]
                for (choice, formats, base, bytes, hasData) in cases {
                    let begin = BeginEditing(
                        asset: asset.id,
                        canHandle: formats,
                        originalChoice: choice,
                        skipsDisplaySizeImage: true
                    )
                    let response = try await fixture.client.ask(begin)
                    #expect(response.result.version == base && response.result.inputToken.base == base)
                    #expect(response.result.input.map { response.attachments[$0] } == bytes)
                    #expect((response.result.adjustmentData != nil) == hasData)
                    #expect((response.result.formatIdentifier != nil) == hasData)
                }
            }
        }

        @Test(.spec("T-18"))
        func `an asset in the trash can be edited, in accordance with its allowed operations`() async throws {
            try await EditorFixture.open { fixture in
                let asset = try fixture.catalog.add(TestImages.jpeg(width: 60, height: 40, seed: 1))
                fixture.catalog.change(asset.id, content: false) { $0.trashedDate = 1 }
                #expect(fixture.catalog.asset(asset.id)?.allowedOperations.contains(.content) == true)
                let input = try await fixture.ask(BeginEditing(asset: asset.id))
                #expect(input.contentRevision == asset.contentRevision && input.input != nil)
                let adjustments = AdjustmentList(operations: [.exposure(0.5)])
                _ = try await fixture.ask(ApplyEdit(asset: asset.id, adjustments: adjustments))
                #expect(fixture.catalog.asset(asset.id)?.hasAdjustments == true)
            }
        }
    }
}
