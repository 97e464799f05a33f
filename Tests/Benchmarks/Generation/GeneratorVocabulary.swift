/// The properties of a camera that appear in a photo's metadata.
struct Camera: Sendable {
    let make: String
    let model: String
    let lens: String?
    let width: Int
    let height: Int
    let contentType: String
    let prefix: String
    let suffix: String
}

/// The values that the generator chooses from.
enum GeneratorVocabulary {
    static let cameras = [
        Camera(
            make: "Apple",
            model: "iPhone 12",
            lens: "iPhone 12 back camera",
            width: 4032,
            height: 3024,
            contentType: "public.heic",
            prefix: "IMG_",
            suffix: ".HEIC"
        ),
        Camera(
            make: "Apple",
            model: "iPhone 6s",
            lens: "iPhone 6s back camera",
            width: 4032,
            height: 3024,
            contentType: "public.jpeg",
            prefix: "IMG_",
            suffix: ".JPG"
        ),
        Camera(
            make: "Canon",
            model: "Canon EOS 80D",
            lens: "EF-S18-135mm f/3.5-5.6 IS USM",
            width: 6000,
            height: 4000,
            contentType: "public.jpeg",
            prefix: "IMG_",
            suffix: ".JPG"
        ),
        Camera(
            make: "NIKON CORPORATION",
            model: "NIKON D750",
            lens: "24.0-120.0 mm f/4.0",
            width: 6016,
            height: 4016,
            contentType: "public.jpeg",
            prefix: "DSC_",
            suffix: ".JPG"
        ),
        Camera(
            make: "FUJIFILM",
            model: "X-T3",
            lens: "XF23mmF1.4 R",
            width: 6240,
            height: 4160,
            contentType: "public.jpeg",
            prefix: "DSCF",
            suffix: ".JPG"
        ),
        Camera(
            make: "SONY",
            model: "ILCE-7M3",
            lens: "FE 85mm F1.8",
            width: 6000,
            height: 4000,
            contentType: "public.jpeg",
            prefix: "DSC0",
            suffix: ".JPG"
        ),
        Camera(
            make: "samsung",
            model: "SM-G960F",
            lens: nil,
            width: 4032,
            height: 3024,
            contentType: "public.jpeg",
            prefix: "2018_",
            suffix: ".jpg"
        ),
    ]
    static let keywords = [
        "family", "beach", "mountain", "birthday", "Zürich", "café", "garden", "dog", "cat", "snow", "forest", "river",
        "city", "night", "concert", "wedding", "holiday", "train", "boat", "museum", "food", "market", "sunset",
        "portrait", "school", "football", "bicycle", "harbour", "castle", "autumn",
    ]
    static let occasions = [
        "Summer", "Winter", "Birthday", "Wedding", "Weekend", "Trip to the sea", "Hike", "Christmas", "School",
        "Garden",
        "Été", "Grandma's visit", "Concert", "New home",
    ]
}
