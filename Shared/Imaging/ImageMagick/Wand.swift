import CMagickWand
import CPixels
import Foundation

/// An image in ImageMagick's memory, freed by `deinit`.
struct Wand: ~Copyable {
    let pointer: OpaquePointer

    /// Creates a wand without pixels. The first one starts ImageMagick with the project's policy.
    init() throws(ImagingError) {
        ImagingLibrary.start()
        guard let pointer = NewMagickWand() else { throw .undecodable(reason: "out of memory") }
        self.pointer = pointer
    }

    /// Creates an opaque sRGB image whose pixels have to be written.
    static func blank(_ width: Int, _ height: Int) throws(ImagingError) -> Wand {
        let wand = try Wand()
        guard let pixel = NewPixelWand() else { throw .undecodable(reason: "out of memory") }
        defer { DestroyPixelWand(pixel) }
        try wand.attempt("beginning", MagickNewImage(wand.pointer, width, height, pixel))
        return wand
    }

    /// Creates an image that shares its pixels with another one until either changes.
    init(copying pointer: OpaquePointer) throws(ImagingError) {
        guard let copy = CloneMagickWand(pointer) else { throw .undecodable(reason: "out of memory") }
        self.pointer = copy
    }

    deinit { DestroyMagickWand(pointer) }

    /// True if red, green and blue are the same in every pixel. All pixels are examined.
    var isGrey: Bool {
        guard let image = GetImageFromMagickWand(pointer) else { return false }
        return IsGrayImage(image, &image.pointee.exception) == MagickTrue
    }

    func copy() throws(ImagingError) -> Wand { try Wand(copying: pointer) }

    var width: Int { MagickGetImageWidth(pointer) }
    var height: Int { MagickGetImageHeight(pointer) }
    var hasAlpha: Bool { MagickGetImageAlphaChannel(pointer) == MagickTrue }

    /// Throws an error if a call failed.
    func attempt(_ action: String, _ status: MagickBooleanType) throws(ImagingError) {
        guard status != MagickTrue else { return }
        throw failure(action)
    }

    /// Returns the error of the last call.
    ///
    /// ImageMagick sometimes fails without a message, so the action is always included.
    func failure(_ action: String) -> ImagingError {
        var severity = UndefinedException
        var text = ""
        if let message = MagickGetException(pointer, &severity) {
            text = Self.readable(message)
            MagickRelinquishMemory(message)
        }
        if severity == ResourceLimitError || severity == ResourceLimitFatalError {
            return .tooLarge(width: width, height: height, limit: Int(clamping: MagickGetResourceLimit(MemoryResource)))
        }
        // The policy does not allow ImageMagick to store pixels in files.
        if severity == CacheError || severity == CacheFatalError {
            return .tooMuchWork("\(action): ImageMagick needs more memory than there is; give a smaller image")
        }
        return .undecodable(reason: text.isEmpty ? Self.unexplained(action) : "\(action): \(text)")
    }

    /// Returns the reason in ``failure(_:)`` if ImageMagick has no message.
    static func unexplained(_ action: String) -> String { "\(action) failed" }

    /// Returns a message without the file name and the source line that ImageMagick adds.
    private static func readable(_ message: UnsafePointer<CChar>) -> String {
        let text = String(cString: message)
        let end = text.range(of: " `")?.lowerBound ?? text.range(of: " @ ")?.lowerBound ?? text.endIndex
        return String(text[..<end])
    }

    /// The error message of the last call; nil if it had none. A call with an error may still have returned a result.
    var error: String? {
        var severity = UndefinedException
        guard let message = MagickGetException(pointer, &severity) else { return nil }
        defer { MagickRelinquishMemory(message) }
        return severity.rawValue >= ErrorException.rawValue ? String(cString: message) : nil
    }

    /// Reads the first frame, only with the given coder. Returns false on failure.
    func read(_ bytes: [UInt8], by coder: String) -> Bool {
        MagickSetFormat(pointer, coder)
        // The name is fixed, so that ImageMagick derives nothing from the file's own name.
        MagickSetFilename(pointer, "\(coder):picture[0]")
        return bytes.withUnsafeBytes { MagickReadImageBlob(pointer, $0.baseAddress, $0.count) } == MagickTrue
    }

    func resize(_ width: Int, _ height: Int) throws(ImagingError) {
        guard width != self.width || height != self.height else { return }
        if try reduce(width, height) { return }
        try attempt("resizing", MagickResizeImage(pointer, width, height, LanczosFilter, 1))
    }

    /// Scales down with the same filter as ImageMagick, but several times faster. Returns false if the image would
    /// become larger or does not have three colour channels.
    private func reduce(_ width: Int, _ height: Int) throws(ImagingError) -> Bool {
        let before = (width: self.width, height: self.height)
        guard width > 0, height > 0, width <= before.width, height <= before.height,
            MagickGetImageColorspace(pointer) != CMYKColorspace, let image = GetImageFromMagickWand(pointer)
        else { return false }
        // An unnecessary call to SetImageStorageClass would copy all pixels.
        if image.pointee.storage_class != DirectClass, SetImageStorageClass(image, DirectClass) != MagickTrue {
            throw failure("resizing")
        }
        guard
            let pixels = GetVirtualPixels(image, 0, 0, before.width, before.height, &image.pointee.exception),
            let reduced = CloneImage(image, width, height, MagickTrue, &image.pointee.exception)
        else { throw failure("resizing") }
        defer { DestroyImage(reduced) }
        guard let output = QueueAuthenticPixels(reduced, 0, 0, width, height, &reduced.pointee.exception) else {
            throw failure("resizing")
        }
        LanczosTaps(from: before.width, to: width).with { across in
            LanczosTaps(from: before.height, to: height).with { down in
                withUnsafeTemporaryAllocation(of: Float.self, capacity: 4 * before.width) { sums in
                    safelight_reduce(
                        UnsafeRawPointer(pixels).assumingMemoryBound(to: UInt16.self),
                        before.width,
                        across,
                        down,
                        UnsafeMutableRawPointer(output).assumingMemoryBound(to: UInt16.self),
                        image.pointee.matte == MagickTrue ? 1 : 0,
                        sums.baseAddress
                    )
                }
            }
        }
        guard SyncAuthenticPixels(reduced, &reduced.pointee.exception) == MagickTrue,
            let holder = NewMagickWandFromImage(reduced)
        else { throw failure("resizing") }
        defer { DestroyMagickWand(holder) }
        try attempt("resizing", MagickRemoveImage(pointer))
        try attempt("resizing", MagickAddImage(pointer, holder))
        return true
    }

    func crop(_ rect: PixelRect) throws(ImagingError) {
        guard rect != PixelRect(x: 0, y: 0, width: width, height: height) else { return }
        try attempt("cropping", MagickCropImage(pointer, rect.width, rect.height, rect.x, rect.y))
        MagickResetImagePage(pointer, "")
    }

    /// Crops to the centre.
    func cropCentre(_ size: (width: Int, height: Int)) throws(ImagingError) {
        let origin = (x: (width - size.width) / 2, y: (height - size.height) / 2)
        try crop(PixelRect(x: origin.x, y: origin.y, width: size.width, height: size.height))
    }

    /// Applies the EXIF orientation 1...8; the result is upright.
    func apply(orientation: Int) throws(ImagingError) {
        MagickSetImageOrientation(pointer, OrientationType(rawValue: UInt32(orientation)))
        if orientation != 1 { try attempt("rotating", MagickAutoOrientImage(pointer)) }
        MagickSetImageOrientation(pointer, TopLeftOrientation)
        MagickResetImagePage(pointer, "")
    }

    /// Calls `body` with all pixels, each blue, green, red, opacity in 16 bits, to be read or changed in place.
    func withPixels(_ body: (UnsafeMutablePointer<UInt16>, Int) -> Void) throws(ImagingError) {
        body(try writablePixels(), width * height)
        try syncPixels()
    }

    /// Returns the pixels for writing. The pointer is valid until ``syncPixels()``. The image must not be used
    /// otherwise before that call.
    func writablePixels() throws(ImagingError) -> UnsafeMutablePointer<UInt16> {
        guard let image = GetImageFromMagickWand(pointer) else { throw .undecodable(reason: "no image") }
        guard SetImageStorageClass(image, DirectClass) == MagickTrue,
            let pixels = GetAuthenticPixels(image, 0, 0, width, height, &image.pointee.exception)
        else { throw failure("reading pixels") }
        return UnsafeMutableRawPointer(pixels).assumingMemoryBound(to: UInt16.self)
    }

    /// Ends the writing of the pixels of ``writablePixels()``.
    func syncPixels() throws(ImagingError) {
        guard let image = GetImageFromMagickWand(pointer),
            SyncAuthenticPixels(image, &image.pointee.exception) == MagickTrue
        else { throw failure("writing pixels") }
    }

    /// Calls `body` with all pixels for reading. Pixels that are shared with another image stay shared.
    func withPixelsForReading(_ body: (UnsafePointer<UInt16>, Int) -> Void) throws(ImagingError) {
        guard let image = GetImageFromMagickWand(pointer),
            image.pointee.storage_class == DirectClass || SetImageStorageClass(image, DirectClass) == MagickTrue,
            let pixels = GetVirtualPixels(image, 0, 0, width, height, &image.pointee.exception)
        else { throw failure("reading pixels") }
        body(UnsafeRawPointer(pixels).assumingMemoryBound(to: UInt16.self), width * height)
    }

    /// Sets the pixels from interleaved 8-bit or 16-bit samples.
    func constitute(
        _ samples: UnsafeRawPointer?,
        width: Int,
        height: Int,
        hasAlpha: Bool = false,
        isDeep: Bool = false
    ) throws(ImagingError) {
        let (channels, storage) = (hasAlpha ? "RGBA" : "RGB", isDeep ? ShortPixel : CharPixel)
        try attempt("decoding", MagickConstituteImage(pointer, width, height, channels, storage, samples))
        setDepth(isDeep ? 16 : 8)
    }

    /// Sets the declared bit depth without converting the pixels.
    func setDepth(_ bits: Int) {
        GetImageFromMagickWand(pointer)?.pointee.depth = bits
    }

    /// Sets the colour profile. If there are no bytes, the current profile is kept.
    func setProfile(_ bytes: [UInt8]?) {
        guard let bytes, !bytes.isEmpty else { return }
        MagickSetImageProfile(pointer, "icc", bytes, bytes.count)
    }

    func profile(_ name: String) -> [UInt8]? {
        var length = 0
        guard let bytes = MagickGetImageProfile(pointer, name, &length) else { return nil }
        defer { MagickRelinquishMemory(bytes) }
        return length > 0 ? Array(UnsafeBufferPointer(start: bytes, count: length)) : nil
    }
}

/// A rectangle in whole pixels.
struct PixelRect: Hashable {
    var x: Int
    var y: Int
    var width: Int
    var height: Int
}
