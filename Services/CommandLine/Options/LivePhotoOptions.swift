import ArgumentParser
import PhotoModel

/// The flags that edit the video of a Live Photo with its still.
struct LivePhotoOptions: ParsableArguments {
    @Flag(
        help: "Of Live Photos, also edit the video: each frame like the still. Photos without a video are edited alone."
    )
    var livePhoto = false

    @Option(help: "With --live-photo: volume of the video's sound, 0 (none) to 1.")
    var audioVolume: Double?

    @Option(
        help: ArgumentHelp(
            "With --live-photo: the time of the video whose frame becomes the still.",
            valueName: "seconds"
        )
    )
    var keyFrame: Double?

    func validate() throws {
        guard livePhoto || (audioVolume == nil && keyFrame == nil) else {
            throw ValidationError("--audio-volume and --key-frame need --live-photo")
        }
        if let audioVolume, !(0...1).contains(audioVolume) { throw ValidationError("--audio-volume is 0 to 1") }
        if let keyFrame, !(0...Double(LivePhotoAdjustment.maxKeyFrame) / 1e6).contains(keyFrame) {
            throw ValidationError("--key-frame is a time of the video in seconds, at most an hour")
        }
    }

    /// Returns the list with the options.
    func applied(to list: AdjustmentList) -> AdjustmentList {
        guard livePhoto else { return list }
        var list = list
        let time = keyFrame.map { Int64(($0 * 1e6).rounded()) }
        list.livePhoto = LivePhotoAdjustment(audioVolume: audioVolume, keyFrame: time).merged(onto: list.livePhoto)
        return list
    }
}
