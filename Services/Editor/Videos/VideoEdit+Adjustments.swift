import Hosting
import Imaging
import JSONValue
import PhotoModel
import Video

extension AdjustmentList {
    /// Returns the list for a result with a longest side in pixels; nil for the size that it has.
    func fitted(to side: Int?) -> AdjustmentList {
        guard let side, let resize = try? Adjustment(.resize, ["width": JSON(side), "height": JSON(side)]) else {
            return self
        }
        var list = self
        list.operations.append(resize)
        return list
    }
}

extension VideoEdit {
    /// Creates the changes that a list means for a video.
    ///
    /// - Throws: ``WorkerJobError`` for operations that videos do not have, and for a part that the video does not
    ///   have; `ImagingError`
    init(_ list: AdjustmentList, _ info: VideoInfo) throws {
        if let kind = VideoAdjustments.unsupported(list) { throw WorkerJobError.operationOfPhotos(kind) }
        self.init()
        let operations = list.operations.filter { !$0.isNeutral }
        if operations.contains(where: { $0.kind.stage != .video }) {
            let adjustments = try VideoAdjustments(list, width: info.pixelWidth, height: info.pixelHeight)
            let geometry: Geometry =
                switch adjustments.geometry {
                case .part(let x, let y, let width, let height, let orientation):
                    .part(x: x, y: y, width: width, height: height, orientation: orientation)
                case .corners(let points): .corners(points)
                }
            var picture = Picture(geometry: geometry, width: adjustments.width, height: adjustments.height)
            if adjustments.recolours {
                // Once beforehand, so that an error is thrown.
                var grey: [UInt16] = [32_768, 32_768, 32_768]
                try adjustments.recolour(&grey)
                picture.recolour = { colours in try? adjustments.recolour(&colours) }
            }
            if let mark = adjustments.overlay {
                picture.overlay = Overlay(
                    x: mark.x,
                    y: mark.y,
                    width: mark.width,
                    height: mark.height,
                    pixels: mark.pixels
                )
            }
            self.picture = picture
        }
        for operation in operations {
            switch operation.kind {
            case .timeRange:
                start = Int64((operation.number("start") * 1e6).rounded())
                let last = Int64((operation.number("end") * 1e6).rounded())
                end = last < info.duration ? last : nil
            case .speed: speed *= operation.number()
            case .volume: volume *= operation.number()
            default: break
            }
        }
        if let ofLivePhoto = list.livePhoto?.audioVolume { volume *= ofLivePhoto }
        guard info.duration == 0 || start < info.duration else {
            throw WorkerJobError.partBehindEnd(start: start, of: info.duration)
        }
        speed = min(Self.speeds.upperBound, max(Self.speeds.lowerBound, speed))
        volume = min(Self.volumes.upperBound, max(Self.volumes.lowerBound, volume))
    }
}
