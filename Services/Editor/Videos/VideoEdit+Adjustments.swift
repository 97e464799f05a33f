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
            var changes = FrameChanges(geometry: geometry, width: adjustments.width, height: adjustments.height)
            if adjustments.recolours {
                // Called once beforehand, so that an error is thrown here.
                var grey: [UInt16] = [32_768, 32_768, 32_768]
                try adjustments.recolour(&grey)
                changes.recolour = { colours in try? adjustments.recolour(&colours) }
            }
            if let overlay = adjustments.overlay {
                changes.overlay = Overlay(
                    x: overlay.x,
                    y: overlay.y,
                    width: overlay.width,
                    height: overlay.height,
                    pixels: overlay.pixels
                )
            }
            frameChanges = changes
        }
        (start, end) = try Self.part(list, of: info)
        for operation in operations {
            switch operation.kind {
            case .speed: speed *= operation.number()
            case .volume: volume *= operation.number()
            default: break
            }
        }
        if let audioVolume = list.livePhoto?.audioVolume { volume *= audioVolume }
        speed = min(Self.speeds.upperBound, max(Self.speeds.lowerBound, speed))
        volume = min(Self.volumes.upperBound, max(Self.volumes.lowerBound, volume))
    }

    /// Returns the part of a video that a list keeps, in microseconds; `end` is nil for the end of the video.
    static func part(
        _ list: AdjustmentList,
        of info: VideoInfo
    ) throws(WorkerJobError) -> (start: Int64, end: Int64?) {
        guard let range = list.operations.last(where: { $0.kind == .timeRange && !$0.isNeutral }) else {
            return (0, nil)
        }
        let start = Int64((range.number("start") * 1e6).rounded())
        let end = Int64((range.number("end") * 1e6).rounded())
        guard info.duration == 0 || start < info.duration else {
            throw WorkerJobError.partAfterEnd(start: start, of: info.duration)
        }
        return (start, end < info.duration ? end : nil)
    }
}
