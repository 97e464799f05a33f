import CMagickWand
import Foundation
import ImageFormats
public import PhotoModel

/// Writes adjustment lists as files for other programs.
public enum AdjustmentDescription {
    /// The points on an axis of the cube in a .cube file, a number that all programs support.
    static let cubePoints = 33

    /// Returns the colour operations of a list as a .cube file.
    ///
    /// - Throws: `ImagingError`
    public static func cube(_ list: AdjustmentList, title: String) throws(ImagingError) -> [UInt8] {
        try table(list, points: cubePoints).cube(title: title)
    }

    /// Returns the colour operations of a list as a HALD CLUT of level 8, a PNG of 16 bits.
    ///
    /// - Throws: `ImagingError`
    public static func hald(_ list: AdjustmentList) throws(ImagingError) -> [UInt8] {
        try table(list, points: MagickImage.level * MagickImage.level).png
    }

    private static func table(_ list: AdjustmentList, points: Int) throws(ImagingError) -> ColourTable {
        let colour = list.operations.filter { $0.kind.stage == .colour }
        let wand = try MagickImage.cube(of: points, try AdjustmentColour(colour, isEightBit: false).steps)
        guard let table = ColourTable(points: points, isCube: true, values: try wand.colours()) else {
            throw .invalidOptions("a cube of \(points) points is not possible")
        }
        return table
    }

    /// Returns a shell script that renders the list from the original with ImageMagick's program `convert`, as the
    /// engine `imagemagick` does: `sh edit.sh INPUT OUTPUT`. The script contains tables and masks as Base64.
    ///
    /// - Throws: `ImagingError`
    public static func script(
        _ bytes: [UInt8],
        _ list: AdjustmentList,
        quality: Int = 92,
        limits: PixelLimits = PixelLimits()
    ) throws(ImagingError) -> [UInt8] {
        let list = list.ofPhotos
        ImagingLibrary.enter(.reading)
        let header = try ImageProbe.header(of: bytes, limits: limits)
        let wand = try Decoder.decode(bytes, header, eighths: DecodeScale.full, scale: 1, limits: limits)
        ImagingLibrary.enter(.working)
        var script = MagickScript()
        // ImageMagick 6 does not read the orientation of PNG and WebP. Programs that develop raw files for it apply
        // theirs.
        if header.needsOrientation, header.kind != .tiff, header.kind != .raw {
            script.orientation = header.orientation
        }
        let geometry = AdjustmentGeometry(list.operations, width: header.pixelWidth, height: header.pixelHeight)
        let full = (width: geometry.width, height: geometry.height)
        let maxSide = ImageFormat.jpeg.maxSide
        let output = max(full.width, full.height) > maxSide ? RenditionGeometry.fitted(full, maxSide, maxSide) : full
        let shrink = max(Double(output.width) / Double(full.width), Double(output.height) / Double(full.height))
        let profile = ColourProfile.profile(of: wand)
        let isCMYK = MagickGetImageColorspace(wand.pointer) == CMYKColorspace
        if profile == nil, wand.profile("icc") != nil { script.words += ["+profile", "icc"] }
        if isCMYK { try script.convertToSRGB(hasProfile: profile != nil) }
        try script.add(
            MagickPlan.geometry(
                geometry,
                upright: (header.pixelWidth, header.pixelHeight),
                decoded: (wand.width, wand.height),
                output: output,
                scale: geometry.scale * shrink
            )
        )
        let work = list.operations.filter { $0.kind.stage != .geometry && !$0.isNeutral }
        if !work.isEmpty {
            let keepsProfile = profile.map { ColourProfile.isDisplayP3($0) || ColourProfile.isSRGB($0) } ?? true
            if !isCMYK { try script.convertToSRGB(hasProfile: !keepsProfile) }
            var size = output
            var applied = list.operations.filter { $0.kind.stage == .geometry }
            for part in MagickPlan.parts(work) {
                if applied.contains(where: { MagickPlan.resizing.contains($0.kind) }) {
                    // The size is known only when the operations are carried out.
                    let image = try AdjustmentRendering.render(
                        bytes,
                        AdjustmentList(operations: applied),
                        quality: 1,
                        limits: limits,
                        engine: .imagemagick
                    )
                    size = (image.pixelWidth, image.pixelHeight)
                }
                try script.add(
                    MagickPlan.recolouring(
                        part,
                        width: size.width,
                        height: size.height,
                        shrink: shrink,
                        hasAlpha: wand.hasAlpha,
                        inDisplayP3: !isCMYK && profile.map(ColourProfile.isDisplayP3) == true
                    )
                )
                applied += part
            }
            // Some calls lose the profile. After the others, assigning it again changes nothing.
            if keepsProfile, !isCMYK, let profile { script.assign(profile) }
        }
        if wand.hasAlpha { script.words += ["-background", "white", "-alpha", "remove", "-alpha", "off"] }
        script.words += ["-quality", "\(quality)", "-sampling-factor", quality >= 90 ? "1x1" : "2x2"]
        return Array(script.text.utf8)
    }
}
