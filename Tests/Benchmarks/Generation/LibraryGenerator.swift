import Basics
import PhotoModel
import TestSupport

/// Generates the transactions of a library with plausible metadata and no pixels. The same seed generates the same
/// transactions.
///
/// Photos belong to sessions: one location, one camera, a few dozen photos within an hour or two, imported days later.
/// Albums are created first and filled with whole sessions.
struct LibraryGenerator: Sendable {
    let assets: Int
    let library: String
    private var random: SeededRandom
    private var locations: [Location]
    private var albums: [AssetCollection] = []
    private var lastKeys: [Int: OrderKey] = [:]
    private var remainingAlbums: Int
    /// The sizes of the first albums.
    private let sizes: [Int]
    /// The percentage of assets in the trash.
    private let trash: Double
    private var root: CollectionList?
    private var assetCount = 0
    private var sequence: Int64 = 0
    private var session: Session?
    /// The identifier of the burst to which frames were added last.
    private var lastBurst: String?
    private var moments = MomentTotals()
    private var day: Int64
    private let dayStep: Double

    /// The number of assets or albums that a transaction adds: with their changed albums and moments it stays below the
    /// limit of a transaction.
    private let batchSize = 900
    private static let start: Int64 = 1_262_304_000_000_000
    private static let years = 15.0
    /// The date at which assets were moved to the trash: in the year 2100, so that the trash is not emptied.
    private static let trashDate: Int64 = 4_102_444_800_000_000

    /// A transaction and its record.
    struct Batch: Sendable {
        let record: ChangeRecord
        let bytes: [UInt8]
        let assetsSoFar: Int
    }

    private struct Session {
        var location: Location?
        var camera: Camera
        var time: Int64
        var offset: Int
        var remaining: Int
        var album: Int?
        var keywords: [String]
        var burst: (identifier: String, remaining: Int)?
    }

    /// - Parameters:
    ///   - albums: the number of albums in addition to those of fixed sizes
    ///   - sizes: the sizes of albums whose members are spread evenly over the library
    ///   - trash: the percentage of assets in the trash
    ///   - library: the identifier of the empty library's history
    init(
        assets: Int,
        albums: Int,
        sizes: [Int] = [],
        trash: Double = 0,
        seed: UInt64,
        library: String,
        root: CollectionList
    ) {
        var random = SeededRandom(seed: seed)
        self.assets = assets
        self.library = library
        self.remainingAlbums = albums + sizes.count
        self.sizes = sizes
        self.trash = trash
        self.root = root
        self.locations = (0..<60).map { _ in
            Location(
                latitude: Double.random(in: -55...65, using: &random),
                longitude: Double.random(in: -170...175, using: &random),
                altitude: Double.random(in: 0...900, using: &random).rounded()
            )
        }
        self.day = Self.start
        self.dayStep = Self.years * 365.25 * 86_400e6 / max(1, Double(assets) / 28)
        self.random = random
    }

    /// Returns the next transaction; nil if the library is complete.
    mutating func next() -> Batch? {
        if remainingAlbums > 0 { return nextAlbums() }
        guard assetCount < assets else { return nil }
        sequence += 1
        var record = newRecord()
        var changedAlbums: [Int: (before: AssetCollection, after: AssetCollection)] = [:]
        var date: Int64 = 0
        for _ in 0..<min(batchSize, assets - assetCount) {
            let asset = nextAsset(&changedAlbums)
            date = max(date, asset.addedDate)
            record.assets.append(EntityChange(before: nil, after: asset))
            assetCount += 1
        }
        for (index, versions) in changedAlbums.sorted(by: { $0.key < $1.key }) {
            var change = versions
            change.after.revision = Revision(sequence)
            change.after.modificationDate = date
            albums[index] = change.after
            record.collections.append(EntityChange(before: change.before, after: change.after))
        }
        let derived = moments.add(record.assets.compactMap(\.after), sequence: sequence, date: date)
        record.collections += derived.moments
        record.lists += derived.lists
        record.date = date
        return batch(record)
    }

    private func newRecord() -> ChangeRecord {
        ChangeRecord(
            sequence: sequence,
            library: library,
            date: Self.start,
            origin: ChangeOrigin(identity: "generator")
        )
    }

    private func batch(_ record: ChangeRecord) -> Batch {
        Batch(record: record, bytes: record.bytes, assetsSoFar: assetCount)
    }

    // MARK: Albums

    private mutating func nextAlbums() -> Batch {
        sequence += 1
        var record = newRecord()
        let count = min(batchSize, remainingAlbums)
        remainingAlbums -= count
        let keys = OrderKey.keys(count: count, after: albums.last?.parentKey)
        for key in keys {
            var album = AssetCollection(
                id: ObjectID(.assetCollection, milliseconds: Self.start / 1000, using: &random),
                revision: Revision(sequence)
            )
            let number = albums.count
            album.title =
                number < sizes.count
                ? "Album of \(sizes[number])"
                : "\(random.pick(GeneratorVocabulary.occasions)) \(number - sizes.count + 1)"
            album.parent = .root
            album.parentKey = key
            album.creationDate = Self.start
            album.modificationDate = Self.start
            album.estimatedAssetCount = 0
            albums.append(album)
            record.collections.append(EntityChange(before: nil, after: album))
        }
        if let before = root {
            var after = before
            after.childCount += count
            after.revision = Revision(sequence)
            after.modificationDate = Self.start
            root = after
            record.lists = [EntityChange(before: before, after: after)]
        }
        return batch(record)
    }

    // MARK: Assets

    private mutating func nextSession() -> Session {
        day += Int64(Double.random(in: 0.2...1.8, using: &random) * dayStep)
        let location = random.chance(85) ? random.pick(locations) : nil
        let hour = Int64((12 + random.normal() * 4) * 3600)
        return Session(
            location: location,
            camera: random.pick(GeneratorVocabulary.cameras),
            time: day + max(0, min(86_000, hour)) * 1_000_000,
            offset: location.map { Int(($0.longitude / 15).rounded()) * 3600 } ?? 0,
            remaining: Int.random(in: 1...55, using: &random),
            album: albums.count > sizes.count && random.chance(50)
                ? Int.random(in: sizes.count..<albums.count, using: &random) : nil,
            keywords: random.chance(30)
                ? (0..<Int.random(in: 1...3, using: &random)).map { _ in random.pick(GeneratorVocabulary.keywords) }
                : [],
            burst: nil
        )
    }

    private mutating func nextAsset(
        _ changedAlbums: inout [Int: (before: AssetCollection, after: AssetCollection)]
    ) -> Asset {
        var session = self.session ?? nextSession()
        defer {
            session.remaining -= 1
            self.session = session.remaining > 0 ? session : nil
        }
        if let burst = session.burst, burst.remaining > 0 {
            session.time += 100_000
        } else {
            session.time += Int64(Double.random(in: 2...120, using: &random) * 1_000_000)
            session.burst =
                random.chance(0.5)
                ? ("b" + String(random.nextHexadecimal().prefix(16)), Int.random(in: 3...9, using: &random)) : nil
        }
        let added = session.time + Int64.random(in: 1...5, using: &random) * 86_400_000_000
        let revision = Revision(sequence)
        var asset = Asset(
            id: ObjectID(.asset, milliseconds: added / 1000, using: &random),
            revision: revision,
            contentRevision: revision
        )
        asset.creationDate = session.time
        asset.creationOffset = session.offset
        asset.addedDate = added
        asset.modificationDate = added
        asset.contentModificationDate = added
        setMedium(of: &asset, session.camera)
        if let location = session.location {
            asset.location = Location(
                latitude: location.latitude + random.normal() * 0.02,
                longitude: location.longitude + random.normal() * 0.02,
                altitude: location.altitude
            )
        }
        if var burst = session.burst {
            asset.burstIdentifier = burst.identifier
            asset.representsBurst = assetCount == 0 || burst.identifier != lastBurst
            lastBurst = burst.identifier
            burst.remaining -= 1
            session.burst = burst.remaining > 0 ? burst : nil
        }
        asset.isFavorite = random.chance(5)
        asset.isHidden = random.chance(1)
        asset.rating = random.chance(12) ? Int.random(in: 1...5, using: &random) : 0
        asset.keywords = session.keywords.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
        if random.chance(4) {
            asset.caption =
                "\(random.pick(GeneratorVocabulary.occasions)), \(random.pick(GeneratorVocabulary.keywords))"
        }
        if trash > 0, random.chance(trash) { asset.trashedDate = Self.trashDate }
        if let album = session.album { addToAlbum(album, &asset, &changedAlbums) }
        for (index, size) in sizes.enumerated() where (assetCount + 1) * size / assets > assetCount * size / assets {
            addToAlbum(index, &asset, &changedAlbums)
        }
        return asset
    }

    private mutating func setMedium(of asset: inout Asset, _ camera: Camera) {
        let isVideo = random.chance(4)
        let isRotated = random.chance(30)
        let (long, short) = isVideo ? (1920, 1080) : (camera.width, camera.height)
        asset.mediaType = isVideo ? .video : .image
        asset.playbackStyle = isVideo ? .video : .image
        asset.contentType = isVideo ? "public.mpeg-4" : camera.contentType
        asset.duration = isVideo ? Int64.random(in: 2_000_000...180_000_000, using: &random) : 0
        asset.pixelWidth = isRotated ? short : long
        asset.pixelHeight = isRotated ? long : short
        asset.cameraMake = camera.make
        asset.cameraModel = camera.model
        asset.lensModel = camera.lens
        if !isVideo {
            if random.chance(2) { asset.mediaSubtypes.insert(.photoPanorama) }
            if random.chance(8) { asset.mediaSubtypes.insert(.photoHDR) }
        }
        let number = String(assetCount % 10_000)
        let stem = camera.prefix + String(repeating: "0", count: 4 - number.count) + number
        asset.originalFilename = stem + (isVideo ? ".MP4" : camera.suffix)
        asset.resources = [
            AssetResource(
                type: isVideo ? .video : .photo,
                digest: random.nextHexadecimal() + random.nextHexadecimal(),
                size: Int64.random(in: 1_500_000...14_000_000, using: &random),
                contentType: asset.contentType,
                originalFilename: asset.originalFilename,
                pixelWidth: asset.pixelWidth,
                pixelHeight: asset.pixelHeight,
                duration: isVideo ? asset.duration : nil
            )
        ]
    }

    /// Adds an asset at the end of an album.
    private mutating func addToAlbum(
        _ index: Int,
        _ asset: inout Asset,
        _ changedAlbums: inout [Int: (before: AssetCollection, after: AssetCollection)]
    ) {
        let album = changedAlbums[index]?.after ?? albums[index]
        let key = OrderKey.after(lastKeys[index])
        lastKeys[index] = key
        asset.memberships.append(Membership(collection: album.id, key: key))
        var after = album
        after.estimatedAssetCount = (after.estimatedAssetCount ?? 0) + 1
        if let date = asset.creationDate {
            after.startDate = min(after.startDate ?? date, date)
            after.endDate = max(after.endDate ?? date, date)
        }
        changedAlbums[index] = (changedAlbums[index]?.before ?? album, after)
    }
}

extension SeededRandom {
    /// Returns a number with an approximately normal distribution, mean 0 and standard deviation 1.
    fileprivate mutating func normal() -> Double {
        (0..<6).reduce(0.0) { sum, _ in sum + Double.random(in: -1...1, using: &self) } / 1.4
    }
}
