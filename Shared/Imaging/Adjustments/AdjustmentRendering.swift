import CMagickWand
import CPixels
import Foundation
public import ImageFormats
public import PhotoModel

/// Renders an adjustment list from the bytes of the original (S-85 to S-92).
///
/// The stages run in the order of `AdjustmentKind.Stage`. Geometry is composed into one resampling (none for crops,
/// quarter turns and flips) and comes first, so that the other stages process only the remaining pixels. Colour is
/// composed into one pass on 16-bit pixels, together with the stage finish if there is no detail stage between them.
public enum AdjustmentRendering {
    /// Renders a list.
    ///
    /// The result has its orientation applied and contains no metadata; `MetadataWriter.transfer` of the module
    /// Metadata adds it. If pixels are only moved they keep the colour space of the image, and its profile is embedded.
    /// Everything else is computed in sRGB, or with the same formulas in Display P3 if the image has that profile,
    /// which is then embedded. The colours and watermarks of the list are sRGB in both cases.
    ///
    /// - Parameters:
    ///   - bytes: the original
    ///   - list: the adjustments; a neutral list re-encodes the original pixels
    ///   - format: a format that can be encoded
    ///   - quality: 1...100 for JPEG, WebP and AVIF
    ///   - maximumSide: the maximum side of a preview in pixels; only the pixels that it needs are decoded
    ///   - limits: limits on the original
    ///   - engine: the engine that renders the list; the engine of the list itself is ignored
    /// - Returns: the encoded image
    /// - Throws: `ImagingError`
    public static func render(
        _ bytes: [UInt8],
        _ list: AdjustmentList,
        format: ImageFormat = .jpeg,
        quality: Int = 92,
        maximumSide: Int? = nil,
        limits: PixelLimits = PixelLimits(),
        engine: RenderEngine = .fused
    ) throws(ImagingError) -> RenderedImage {
        try render(
            bytes,
            list,
            format: format,
            quality: quality,
            maximumSide: maximumSide,
            limits: limits,
            engine: engine,
            usesBands: true
        )
    }

    /// Renders a list. Tests set `usesBands` to false to render the whole image at once.
    static func render(
        _ bytes: [UInt8],
        _ list: AdjustmentList,
        format: ImageFormat = .jpeg,
        quality: Int = 92,
        maximumSide: Int? = nil,
        limits: PixelLimits = PixelLimits(),
        engine: RenderEngine = .fused,
        usesBands: Bool
    ) throws(ImagingError) -> RenderedImage {
        let list = list.ofPhotos
        let side = maximumSide ?? format.maxSide
        try RenditionOptions(target: .size(width: side, height: side), format: format, quality: quality).validate()
        ImagingLibrary.enter(.reading)
        let header = try ImageProbe.header(of: bytes, limits: limits)
        let geometry = AdjustmentGeometry(list.operations, width: header.pixelWidth, height: header.pixelHeight)
        let full = (width: geometry.width, height: geometry.height)
        // Some effects change single pixels. A preview shows them only if it is reduced from the full result.
        let isReducedAtEnd = list.operations.contains { !$0.isNeutral && MagickEffects.needsFullSize($0.kind) }
        let renderedSide = min(isReducedAtEnd ? format.maxSide : side, format.maxSide)
        let framed = MagickEffects.framedSize(list.operations, full)
        let maxSide = min(side, format.maxSide)
        let output =
            max(full.width, full.height) > renderedSide
            ? RenditionGeometry.fitted(full, renderedSide, renderedSide) : full
        let shrink = max(Double(output.width) / Double(full.width), Double(output.height) / Double(full.height))
        let scale = geometry.scale * shrink
        // Moving pixels does not change their number, so even a difference of one pixel needs scaling.
        let part = geometry.visiblePart
        let oriented = geometry.orientation >= 5 ? (part.height, part.width) : (part.width, part.height)
        let isScaled = !geometry.isResampled && (oriented.0 != output.width || oriented.1 != output.height)
        let isSmaller = scale < 0.999 || isScaled
        // A full render by ImageMagick starts from all pixels, as `convert` does.
        let canDecodeLess = engine == .fused || maximumSide != nil
        let eighths =
            isSmaller && header.kind == .jpeg && canDecodeLess
            ? DecodeScale.eighthsOfPreview(ratio: 1 / scale) : DecodeScale.full
        if usesBands, engine == .fused || !isSmaller, header.kind == .jpeg, format == .jpeg,
            JPEGBandTranscoder.supports(list.operations, geometry, engine)
        {
            guard header.isComplete else { throw .truncated }
            let job = JPEGBandTranscoder.Job(
                header: header,
                geometry: geometry,
                work: list.operations.filter { $0.kind.stage != .geometry && !$0.isNeutral },
                eighths: eighths,
                output: output,
                isSmaller: isSmaller,
                quality: quality,
                engine: engine
            )
            if let image = try JPEGBandTranscoder.render(bytes, job, limits: limits) { return image }
        }
        let wand = try Decoder.decode(
            bytes,
            header,
            eighths: eighths,
            scale: isSmaller ? 2 * scale : 1,
            limits: limits
        )
        ImagingLibrary.enter(.working)
        return try render(
            wand,
            list.operations,
            geometry,
            Frame(
                header: header,
                output: output,
                scale: scale,
                isSmaller: isSmaller,
                shrink: shrink,
                engine: engine,
                seconds: limits.seconds,
                result: max(framed.width, framed.height) > maxSide
                    ? RenditionGeometry.fitted(framed, maxSide, maxSide) : framed,
                maxSide: maxSide
            ),
            format: format,
            quality: quality
        )
    }

    /// The sizes of a render.
    private struct Frame {
        let header: ImageHeader
        let output: (width: Int, height: Int)
        /// Pixels of the output per pixel of the source.
        let scale: Double
        let isSmaller: Bool
        /// Pixels of the output per pixel of the full result.
        let shrink: Double
        let engine: RenderEngine
        /// The time limit for ImageMagick's calls, in seconds.
        let seconds: Double
        /// The size of the output with its borders, if it is known before rendering.
        let result: (width: Int, height: Int)
        /// The maximum side of the result.
        let maxSide: Int

        /// Returns the size that the result must have.
        func size(of actual: (width: Int, height: Int), after operations: [Adjustment]) -> (width: Int, height: Int) {
            guard operations.contains(where: { MagickPlan.resizing.contains($0.kind) }) else { return result }
            return max(actual.width, actual.height) > maxSide
                ? RenditionGeometry.fitted(actual, maxSide, maxSide) : actual
        }
    }

    private static func render(
        _ source: consuming Wand,
        _ operations: [Adjustment],
        _ geometry: AdjustmentGeometry,
        _ frame: Frame,
        format: ImageFormat,
        quality: Int
    ) throws(ImagingError) -> RenderedImage {
        var wand = source
        // The estimated seconds of the calls to ImageMagick so far.
        var spent = 0.0
        var isEightBit = MagickGetImageDepth(wand.pointer) <= 8 && !frame.isSmaller && !geometry.isResampled
        if MagickGetImageColorspace(wand.pointer) == CMYKColorspace {
            try ColourProfile.convertToSRGB(wand)
            isEightBit = false
        }
        if frame.engine == .imagemagick {
            let calls = MagickPlan.geometry(
                geometry,
                upright: (frame.header.pixelWidth, frame.header.pixelHeight),
                decoded: (wand.width, wand.height),
                output: frame.output,
                scale: frame.scale
            )
            wand = try run(calls, on: wand, frame, &spent)
        } else if !geometry.isResampled {
            try moveWithoutLoss(wand, geometry, frame.header)
            try wand.resize(frame.output.width, frame.output.height)
        } else {
            let across = max(1, Int((Double(frame.header.pixelWidth) * frame.scale).rounded()))
            let down = max(1, Int((Double(frame.header.pixelHeight) * frame.scale).rounded()))
            if frame.isSmaller { try wand.resize(across, down) }
            wand = try resampled(wand, geometry, frame.header, frame.output)
        }
        let work = operations.filter { $0.kind.stage != .geometry && !$0.isNeutral }
        var keepsProfile = work.isEmpty
        if !work.isEmpty {
            keepsProfile = ColourProfile.profile(of: wand).map(ColourProfile.isDisplayP3) ?? false
            if !keepsProfile {
                if let profile = wand.profile("icc"), !ColourProfile.isSRGB(profile) { isEightBit = false }
                if MagickGetImageColorspace(wand.pointer) == LabColorspace { isEightBit = false }
                try ColourProfile.convertToSRGB(wand)
            }
            try wand.attempt("preparing", MagickTransformImageColorspace(wand.pointer, sRGBColorspace))
            if frame.engine == .imagemagick {
                for part in MagickPlan.parts(work) {
                    let calls = try MagickPlan.recolouring(
                        part,
                        width: wand.width,
                        height: wand.height,
                        shrink: frame.shrink,
                        hasAlpha: wand.hasAlpha,
                        inDisplayP3: keepsProfile
                    )
                    wand = try run(calls, on: wand, frame, &spent)
                }
            } else {
                wand = try recolour(wand, work, frame, isEightBit: isEightBit, inDisplayP3: keepsProfile, &spent)
            }
            let result = frame.size(of: (wand.width, wand.height), after: work)
            if wand.width != result.width || wand.height != result.height {
                try wand.resize(result.width, result.height)
            }
        }
        if keepsProfile, MagickGetImageColorspace(wand.pointer) == sRGBColorspace,
            let profile = wand.profile("icc"), ICCProfile(profile)?.colourSpace == "GRAY"
        {
            // Programs ignore a grey profile of an image with three components.
            try ColourProfile.convertToSRGB(wand)
        }
        let data = try Encoder.encode(
            wand,
            format: format,
            quality: quality,
            keepsProfile: keepsProfile,
            keepsDepth: true
        )
        return RenderedImage(
            bytes: data,
            format: format,
            pixelWidth: wand.width,
            pixelHeight: wand.height,
            isUpscaled: false
        )
    }

    /// Runs the stages after geometry.
    private static func recolour(
        _ source: consuming Wand,
        _ operations: [Adjustment],
        _ frame: Frame,
        isEightBit: Bool,
        inDisplayP3: Bool,
        _ spent: inout Double
    ) throws(ImagingError) -> Wand {
        var wand = source
        func adjustments(_ stage: AdjustmentKind.Stage) -> [Adjustment] {
            operations.filter { $0.kind.stage == stage }.map { inDisplayP3 ? $0.inDisplayP3 : $0 }
        }
        let detail = AdjustmentDetail(operations, scale: frame.shrink)
        try detail.apply(.cleaning, to: wand)
        let isExact = isEightBit && !detail.has(.cleaning)
        let effects = adjustments(.effect)
        if detail.has(.detail) || !effects.isEmpty {
            try AdjustmentColour(operations.filter { $0.kind.stage == .colour }, isEightBit: isExact).apply(to: wand)
            try detail.apply(.detail, to: wand)
            wand = try apply(effects, to: wand, frame, &spent)
            try AdjustmentColour(operations.filter { $0.kind.stage == .finish }, isEightBit: false).apply(to: wand)
        } else {
            try AdjustmentColour(operations, isEightBit: isExact).apply(to: wand)
        }
        for operation in operations where operation.kind.stage == .overlay {
            try AdjustmentOverlay.apply(operation, to: wand, inDisplayP3: inDisplayP3)
        }
        let frames = adjustments(.frame)
        try MagickEffects.check(frames, (wand.width, wand.height))
        return try apply(frames, to: wand, frame, &spent)
    }

    /// Carries out effects, each for the size of the previous result.
    private static func apply(
        _ effects: [Adjustment],
        to source: consuming Wand,
        _ frame: Frame,
        _ spent: inout Double
    ) throws(ImagingError) -> Wand {
        var wand = source
        for effect in effects {
            let calls = MagickEffects.calls(effect, width: wand.width, height: wand.height, scale: frame.shrink)
            wand = try run(calls, on: wand, frame, &spent)
        }
        return wand
    }

    /// Makes calls to ImageMagick if their estimated time and memory are within the limits.
    private static func run(
        _ calls: [MagickCall],
        on wand: consuming Wand,
        _ frame: Frame,
        _ spent: inout Double
    ) throws(ImagingError) -> Wand {
        guard !calls.isEmpty else { return wand }
        let pixels = max(wand.width * wand.height, frame.output.width * frame.output.height)
        spent += try MagickCost.check(calls, pixels: pixels, seconds: frame.seconds - spent)
        return try MagickRunner.run(calls, on: wand)
    }

    /// Returns an image with the geometry applied. The image belongs to the one with this header and may have fewer
    /// pixels.
    static func transformed(
        _ image: borrowing Wand,
        _ geometry: AdjustmentGeometry,
        _ header: ImageHeader
    ) throws(ImagingError) -> Wand {
        let across = Double(image.width) / Double(header.pixelWidth)
        let down = Double(image.height) / Double(header.pixelHeight)
        let swapsSides = geometry.orientation >= 5
        let output = (
            width: max(1, Int((Double(geometry.width) * (swapsSides ? down : across)).rounded())),
            height: max(1, Int((Double(geometry.height) * (swapsSides ? across : down)).rounded()))
        )
        guard !geometry.isResampled else { return try resampled(image, geometry, header, output) }
        let wand = try image.copy()
        try moveWithoutLoss(wand, geometry, header)
        try wand.stretch(output.width, output.height)
        return wand
    }

    /// Crops, rotates by quarter turns and flips.
    private static func moveWithoutLoss(
        _ wand: borrowing Wand,
        _ geometry: AdjustmentGeometry,
        _ header: ImageHeader
    ) throws(ImagingError) {
        let full = (width: header.pixelWidth, height: header.pixelHeight)
        try wand.crop(geometry.visiblePart(in: (wand.width, wand.height), of: full))
        try wand.apply(orientation: geometry.orientation)
    }

    /// Returns an image of the output's size, whose pixels are mapped to the source.
    private static func resampled(
        _ source: borrowing Wand,
        _ geometry: AdjustmentGeometry,
        _ header: ImageHeader,
        _ output: (width: Int, height: Int)
    ) throws(ImagingError) -> Wand {
        let map = geometry.scaled(
            source: (
                Double(source.width) / Double(header.pixelWidth), Double(source.height) / Double(header.pixelHeight)
            ),
            result: (Double(output.width) / Double(geometry.width), Double(output.height) / Double(geometry.height))
        )
        let result = try source.copy()
        try result.attempt("extending", MagickExtentImage(result.pointer, output.width, output.height, 0, 0))
        MagickResetImagePage(result.pointer, "")
        let (width, height) = (source.width, source.height)
        let hasAlpha: Int32 = source.hasAlpha ? 1 : 0
        var failure: ImagingError?
        try source.withPixels { from, _ in
            let start = UInt(bitPattern: from)
            do throws(ImagingError) {
                try result.withPixels { to, _ in
                    let end = UInt(bitPattern: to)
                    RowBands.run(output.height, pixels: output.width * output.height) { first, rows in
                        guard let from = UnsafePointer<UInt16>(bitPattern: start),
                            let to = UnsafeMutablePointer<UInt16>(bitPattern: end)
                        else { return }
                        safelight_resample(
                            from,
                            width,
                            height,
                            to + 4 * output.width * first,
                            output.width,
                            rows,
                            first,
                            map,
                            hasAlpha,
                            lanczos
                        )
                    }
                }
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return result
    }

    /// The taps of a three-lobed Lanczos filter for each phase; each row sums to 1.
    private static let lanczos: [Float] = (0...Int(SAFELIGHT_LANCZOS_PHASES)).flatMap { phase in
        let taps = (0..<Int(SAFELIGHT_LANCZOS_TAPS)).map { tap in
            LanczosTaps.lanczos(Double(phase) / Double(SAFELIGHT_LANCZOS_PHASES) + 2 - Double(tap))
        }
        let sum = taps.reduce(0, +)
        return taps.map { Float($0 / sum) }
    }
}
