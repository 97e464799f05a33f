/// A generated image with camera metadata. It has the same bytes on every machine.
public struct SamplePhoto: Sendable {
    /// The path of its file, relative to the target folder.
    public let path: String
    /// Pixels as displayed, with orientation applied.
    public let width: Int
    public let height: Int
    /// The EXIF orientation 1...8; 0 writes none.
    public let orientation: Int
    /// `DateTimeOriginal`, "2019:07:14 05:41:12".
    public let date: String?
    /// `OffsetTimeOriginal`, "+02:00".
    public let offset: String?
    /// `SubSecTimeOriginal`, "123".
    public let subsec: String?
    /// Degrees north, degrees east, and metres.
    public let place: (latitude: Double, longitude: Double, altitude: Double)?
    /// The camera model; nil writes none.
    public let camera: String?
    let scene: Scene

    init(
        _ path: String,
        _ scene: Scene,
        _ width: Int,
        _ height: Int,
        orientation: Int,
        date: String? = nil,
        offset: String? = nil,
        subsec: String? = nil,
        place: (latitude: Double, longitude: Double, altitude: Double)? = nil,
        camera: String? = nil
    ) {
        self.path = path
        self.scene = scene
        self.width = width
        self.height = height
        self.orientation = orientation
        self.date = date
        self.offset = offset
        self.subsec = subsec
        self.place = place
        self.camera = camera
    }

    /// The file that a camera would write: a JPEG whose stored pixels are rotated according to its orientation.
    public var jpeg: [UInt8] {
        let swapsSides = Orientations.swapsSides(orientation)
        let painter = ScenePainter(scene, width: width, height: height)
        let segments = exif.map { [$0.segment] } ?? []
        return JPEGEncoder.encode(
            width: swapsSides ? height : width,
            height: swapsSides ? width : height,
            segments: segments
        ) { x, y in
            let position = Orientations.displayed(x, y, width: width, height: height, orientation: orientation)
            return painter.colour(position.x, position.y)
        }
    }

    private var exif: ExifBlock? {
        guard orientation > 0 || date != nil || place != nil || camera != nil else { return nil }
        var exif = ExifBlock()
        if let camera {
            exif.main.append(.ascii(0x010F, "Safelight"))
            exif.main.append(.ascii(0x0110, camera))
        }
        if orientation > 0 { exif.main.append(.short(0x0112, orientation)) }
        if let date { exif.photo.append(.ascii(0x9003, date)) }
        if let offset { exif.photo.append(.ascii(0x9011, offset)) }
        if let subsec { exif.photo.append(.ascii(0x9291, subsec)) }
        if let place {
            exif.setLocation(latitude: place.latitude, longitude: place.longitude, altitude: place.altitude)
        }
        return exif
    }

    /// Twelve images that cover every orientation, landscape, portrait, square and panorama formats, different years
    /// and time zones, with and without location, and one without any metadata.
    public static let dozen: [SamplePhoto] = [
        SamplePhoto(
            "01-sunrise.jpg",
            .sea,
            720,
            480,
            orientation: 1,
            date: "2019:07:14 05:41:12",
            offset: "+02:00",
            subsec: "250",
            place: (54.1825, 7.8853, 12),
            camera: "Darkroom One"
        ),
        SamplePhoto(
            "02-mountains.jpg",
            .mountains,
            720,
            480,
            orientation: 3,
            date: "2020:02:09 10:15:00",
            offset: "+01:00",
            place: (46.5475, 7.9851, 3454),
            camera: "Darkroom One"
        ),
        SamplePhoto(
            "03-city.jpg",
            .city,
            480,
            720,
            orientation: 6,
            date: "2021:11:05 21:03:44",
            offset: "+09:00",
            subsec: "5",
            place: (35.6595, 139.7005, 34),
            camera: "Enlarger 35"
        ),
        SamplePhoto(
            "04-dunes.jpg",
            .dunes,
            720,
            405,
            orientation: 2,
            date: "2018:03:21 17:20:31",
            offset: "+02:00",
            place: (-24.7300, 15.3400, 590),
            camera: "Enlarger 35"
        ),
        SamplePhoto(
            "journey/05-forest.jpg",
            .forest,
            480,
            720,
            orientation: 8,
            date: "2022:05:30 12:00:00",
            offset: "+03:00",
            place: (61.9241, 25.7482, 120),
            camera: "Enlarger 35"
        ),
        SamplePhoto(
            "journey/06-aurora.jpg",
            .aurora,
            720,
            480,
            orientation: 4,
            date: "2023:12:24 23:59:59",
            offset: "+00:00",
            subsec: "999",
            place: (64.1466, -21.9426, 15),
            camera: "Darkroom Two"
        ),
        SamplePhoto(
            "journey/07-balloons.jpg",
            .balloons,
            560,
            560,
            orientation: 5,
            date: "2017:09:16 06:32:10",
            offset: "+03:00",
            place: (38.6431, 34.8289, 1100),
            camera: "Darkroom Two"
        ),
        SamplePhoto(
            "journey/08-tiles.jpg",
            .tiles,
            560,
            560,
            orientation: 7,
            date: "2016:10:02 15:45:00",
            offset: "+01:00",
            place: (31.6295, -7.9811, 466),
            camera: "Darkroom Two"
        ),
        SamplePhoto(
            "09-canyon-panorama.jpg",
            .canyon,
            1200,
            300,
            orientation: 1,
            date: "2024:08:12 19:30:00",
            offset: "-07:00",
            place: (36.0544, -112.1401, 2100),
            camera: "Darkroom Two"
        ),
        SamplePhoto("10-moon.jpg", .moon, 480, 640, orientation: 1, date: "2014:01:16 04:52:30", camera: "Box Brownie"),
        SamplePhoto(
            "11-flower.jpg",
            .flower,
            560,
            560,
            orientation: 1,
            date: "2015:04:04 11:11:11",
            offset: "+05:30",
            place: (12.9716, 77.5946, 920),
            camera: "Box Brownie"
        ),
        SamplePhoto("12-scan.jpg", .scan, 600, 400, orientation: 0),
    ]
}
