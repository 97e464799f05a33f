import CMagickWand

/// Makes the calls of a plan with MagickWand.
enum MagickRunner {
    /// An image of a list; copies share its pixels until one of them changes.
    private final class ListImage {
        let wand: Wand

        init(_ wand: consuming Wand) { self.wand = wand }

        func copy() throws(ImagingError) -> ListImage { ListImage(try wand.copy()) }
    }

    /// Returns the result of the calls for an image.
    static func run(_ calls: [MagickCall], on wand: consuming Wand) throws(ImagingError) -> Wand {
        guard !calls.isEmpty else { return wand }
        let profile = wand.profile("icc")
        var list = [ListImage(wand)]
        try run(calls, &list, enclosing: [])
        guard list.count == 1 else { throw .invalidOptions("a plan ended with \(list.count) images") }
        let result = try list[0].wand.copy()
        // Some effects lose the profile, and so does a conversion to another colour space and back.
        if result.profile("icc") == nil { result.setProfile(profile) }
        return result
    }

    private static func run(
        _ calls: [MagickCall],
        _ list: inout [ListImage],
        enclosing: [ListImage]
    ) throws(ImagingError) {
        for call in calls {
            switch call {
            case .image(let image): list.append(ListImage(try image.makeWand()))
            case .copy(let indices):
                for index in indices { list.append(try enclosing[index].copy()) }
            case .delete(let indices):
                for index in indices.sorted(by: >) { list.remove(at: index) }
            case .group(let inner):
                var group: [ListImage] = []
                try run(inner, &group, enclosing: list)
                list += group
            case .clut, .hald, .composite:
                guard list.count == 2 else { throw .invalidOptions("a composition of \(list.count) images") }
                try compose(call, list[0].wand, list[1].wand)
                list.removeLast()
            case .separate:
                var channels: [ListImage] = []
                for image in list {
                    for channel in [RedChannel, GreenChannel, BlueChannel] {
                        let copy = try image.copy()
                        try copy.wand.attempt("separating", MagickSeparateImageChannel(copy.wand.pointer, channel))
                        channels.append(copy)
                    }
                }
                list = channels
            case .combineLuma: list = [ListImage(try combined(list))]
            default:
                for image in list { try change(image.wand, call) }
            }
        }
    }

    private static let colours = ChannelType(RedChannel.rawValue | GreenChannel.rawValue | BlueChannel.rawValue)

    private static func combined(_ list: [ListImage]) throws(ImagingError) -> Wand {
        let all = try Wand()
        for image in list { try all.attempt("combining", MagickAddImage(all.pointer, image.wand.pointer)) }
        MagickResetIterator(all.pointer)
        guard let result = MagickCombineImages(all.pointer, colours) else { throw all.failure("combining") }
        defer { DestroyMagickWand(result) }
        let wand = try Wand(copying: result)
        try wand.attempt("combining", MagickSetImageColorspace(wand.pointer, Rec709YCbCrColorspace))
        try wand.attempt("combining", MagickTransformImageColorspace(wand.pointer, sRGBColorspace))
        return wand
    }

    private static func compose(
        _ call: MagickCall,
        _ wand: borrowing Wand,
        _ source: borrowing Wand
    ) throws(ImagingError) {
        switch call {
        case .clut:
            try wand.attempt("looking up", MagickClutImageChannel(wand.pointer, colours, source.pointer))
        case .hald:
            try wand.attempt("looking up", MagickHaldClutImageChannel(wand.pointer, colours, source.pointer))
        case .composite(let composition):
            var (x, y) = (0, 0)
            let operation: CompositeOperator
            switch composition {
            case .blend(let weight):
                operation = BlendCompositeOp
                MagickSetImageArtifact(wand.pointer, "compose:args", "\(100 * weight)")
            case .multiply: operation = MultiplyCompositeOp
            case .copyOpacity: operation = CopyOpacityCompositeOp
            case .mathematics(let a, let b, let c, let d):
                operation = MathematicsCompositeOp
                MagickSetImageArtifact(wand.pointer, "compose:args", "\(a),\(b),\(c),\(d)")
            case .over(let left, let top):
                operation = OverCompositeOp
                (x, y) = (left, top)
            }
            try wand.attempt("composing", MagickCompositeImage(wand.pointer, source.pointer, operation, x, y))
        default: break
        }
    }

    /// Makes a call that changes one image.
    private static func change(_ wand: borrowing Wand, _ call: MagickCall) throws(ImagingError) {
        let pointer = wand.pointer
        switch call {
        case .crop(let rect): try wand.crop(rect)
        case .orient(let orientation): try wand.apply(orientation: orientation)
        case .resize(let width, let height, let filter):
            guard width != wand.width || height != wand.height else { return }
            try wand.attempt("resizing", MagickResizeImage(pointer, width, height, filter.type, 1))
        case .project(let map, let width, let height):
            GetImageFromMagickWand(pointer)?.pointee.filter = LanczosFilter
            MagickSetImageVirtualPixelMethod(pointer, EdgeVirtualPixelMethod)
            MagickSetImageArtifact(pointer, "distort:viewport", "\(width)x\(height)+0+0")
            let numbers = MagickScript.projection(map)
            try wand.attempt(
                "resampling",
                MagickDistortImage(pointer, PerspectiveProjectionDistortion, numbers.count, numbers, MagickFalse)
            )
            MagickDeleteImageArtifact(pointer, "distort:viewport")
            GetImageFromMagickWand(pointer)?.pointee.filter = UndefinedFilter
            MagickResetImagePage(pointer, "")
        case .matrix(let matrix):
            try withKernel(MagickScript.kernel(matrix, columns: matrix.count / 3)) { kernel in
                MagickColorMatrixImage(pointer, kernel)
            }
        case .convolve(let weights, let isColumn):
            try withKernel(MagickScript.lineKernel(weights, isColumn: isColumn)) { kernel in
                MagickMorphologyImage(pointer, ConvolveMorphology, 1, kernel)
            }
        case .grey(let grey):
            guard let image = GetImageFromMagickWand(pointer), GrayscaleImage(image, grey.method) == MagickTrue
            else { throw wand.failure("preparing") }
            try wand.attempt("preparing", MagickSetImageColorspace(pointer, sRGBColorspace))
        case .hue:
            try wand.attempt("preparing", MagickTransformImageColorspace(pointer, HSLColorspace))
            try wand.attempt("preparing", MagickSetImageColorspace(pointer, sRGBColorspace))
        case .luma:
            // A PNG of linear light sets another method, with which the three channels would be decoded when they are
            // combined again.
            GetImageFromMagickWand(pointer)?.pointee.intensity = Rec709LumaPixelIntensityMethod
            try wand.attempt("preparing", MagickTransformImageColorspace(pointer, Rec709YCbCrColorspace))
        case .colour: try wand.attempt("preparing", MagickTransformImageColorspace(pointer, sRGBColorspace))
        case .selectiveBlur(let threshold):
            try wand.attempt("smoothing", MagickSelectiveBlurImage(pointer, 2, 1.5, 65_535 * threshold))
        case .effect(let effect): try effect.apply(to: wand)
        case .alphaOff:
            try wand.attempt("preparing", MagickSetImageAlphaChannel(pointer, DeactivateAlphaChannel))
        default: break
        }
    }

    private static func withKernel(
        _ text: String,
        _ body: (UnsafePointer<KernelInfo>) -> MagickBooleanType
    ) throws(ImagingError) {
        guard let kernel = AcquireKernelInfo(text) else { throw .invalidOptions("a kernel is not valid") }
        defer { DestroyKernelInfo(kernel) }
        guard body(kernel) == MagickTrue else { throw .undecodable(reason: "a convolution failed") }
    }
}

extension MagickCall.Grey {
    var method: PixelIntensityMethod {
        switch self {
        case .luma: Rec709LumaPixelIntensityMethod
        case .brightness: BrightnessPixelIntensityMethod
        case .lightness: LightnessPixelIntensityMethod
        }
    }
}

extension MagickCall.Filter {
    var type: FilterTypes {
        switch self {
        case .lanczos: LanczosFilter
        case .triangle: TriangleFilter
        case .box: BoxFilter
        }
    }
}
