import Foundation

/// The subject of a sample photo.
enum Scene: Sendable {
    case sea, mountains, city, dunes, forest, aurora, balloons, tiles, canyon, moon, flower, scan
}

/// Paints a scene pixel by pixel.
struct ScenePainter {
    private let scene: Scene
    private let width: Float
    private let height: Float

    init(_ scene: Scene, width: Int, height: Int) {
        self.scene = scene
        self.width = Float(width)
        self.height = Float(height)
    }

    /// Returns the colour of a pixel of the upright image.
    func colour(_ x: Int, _ y: Int) -> (UInt8, UInt8, UInt8) {
        // u increases to the right in units of the image's height, v from 0 at the top to 1 at the bottom.
        let (u, v) = (Float(x) / height, Float(y) / height)
        let middle = width / height / 2
        let grain = (Self.noise(x, y) - 0.5) * 0.02
        let tint =
            switch scene {
            case .sea: sea(u, v, middle)
            case .mountains: mountains(u, v)
            case .city: city(u, v)
            case .dunes: dunes(u, v)
            case .forest: forest(u, v)
            case .aurora: aurora(u, v)
            case .balloons: balloons(u, v)
            case .tiles: tiles(u, v)
            case .canyon: canyon(u, v)
            case .moon: moon(u, v, middle)
            case .flower: flower(u - middle, v - 0.5)
            case .scan: scan(u, v, middle)
            }
        return Tint(tint.red + grain, tint.green + grain, tint.blue + grain).bytes
    }

    // MARK: Scenes

    private func sea(_ u: Float, _ v: Float, _ middle: Float) -> Tint {
        let sky = Tint(0.98, 0.72, 0.38).mixed(with: Tint(0.32, 0.42, 0.66), (0.55 - v) * 1.9)
        let distance = hypot(u - middle, v - 0.5)
        let glow = Tint(1, 0.93, 0.72)
        if v < 0.56 { return distance < 0.09 ? glow : sky.mixed(with: glow, 0.16 / (distance + 0.16) - 0.25) }
        let ripple = sin(v * v * 240 + sin(u * 9) * 2)
        let path = max(0, 1 - abs(u - middle) / (0.06 + (v - 0.56) * 0.6)) * (0.55 + 0.45 * ripple)
        return Tint(0.12, 0.24, 0.38).scaled(1 + 0.16 * ripple).mixed(with: glow, path * 0.85)
    }

    private func mountains(_ u: Float, _ v: Float) -> Tint {
        var tint = Tint(0.42, 0.64, 0.92).mixed(with: Tint(0.86, 0.93, 0.99), v * 1.6)
        for layer in 0..<4 {
            let depth = Float(layer)
            let ridge = 0.30 + depth * 0.14 - Self.ridge(u * (2.2 - depth * 0.25) + depth * 13) * (0.26 - depth * 0.035)
            guard v > ridge else { continue }
            let rock = Tint(0.52, 0.58, 0.70).mixed(with: Tint(0.10, 0.16, 0.15), depth / 3)
            let isSnow = layer < 2 && v - ridge < 0.05 + 0.05 * Self.ridge(u * 24 + depth)
            tint = isSnow ? Tint(0.96, 0.97, 1) : rock
        }
        return tint
    }

    private func city(_ u: Float, _ v: Float) -> Tint {
        let sky = Tint(0.05, 0.05, 0.16).mixed(with: Tint(0.42, 0.18, 0.36), v * 1.2)
        for layer in 0..<3 {
            let size: Float = 0.10 + 0.03 * Float(layer)
            let column = Int(u / size)
            let roof = 0.62 - 0.42 * Self.noise(column * 7 + layer, 40 + layer) + 0.1 * Float(layer)
            guard v > roof, layer == 2 || Self.noise(column, 90 + layer) > 0.25 else { continue }
            let (fieldX, fieldY) = (u / 0.021, v / 0.019)
            let (cellX, cellY) = (Int(fieldX), Int(fieldY))
            let isGlass = fieldX - Float(cellX) > 0.4 && fieldY - Float(cellY) > 0.45
            let isLit = isGlass && Self.noise(cellX + layer * 31, cellY) > 0.55
            return isLit ? Tint(1, 0.86, 0.52) : Tint(0.09, 0.10, 0.17).scaled(1.3 - 0.3 * Float(layer))
        }
        return sky
    }

    private func dunes(_ u: Float, _ v: Float) -> Tint {
        var tint = Tint(0.30, 0.55, 0.86).mixed(with: Tint(0.90, 0.88, 0.80), v * 1.8)
        for layer in 0..<4 {
            let depth = Float(layer)
            let crest = 0.42 + depth * 0.14 + 0.09 * sin(u * (2.4 + depth * 0.7) + depth * 2.1)
            guard v > crest else { continue }
            let slope = cos(u * (2.4 + depth * 0.7) + depth * 2.1)
            let ripples = 0.04 * sin((v - crest) * 190 + u * 18)
            tint = Tint(0.93, 0.62, 0.32).mixed(with: Tint(0.55, 0.27, 0.14), 0.45 + slope * 0.5 + ripples)
        }
        return tint
    }

    private func forest(_ u: Float, _ v: Float) -> Tint {
        var tint = Tint(0.80, 0.90, 0.62).mixed(with: Tint(0.22, 0.42, 0.16), v)
        for layer in 0..<3 {
            let depth = Float(layer)
            let size: Float = 0.13 - 0.02 * depth
            let column = (u + depth * 0.05) / size
            let centre = Float(Int(column)) + 0.3 + 0.4 * Self.noise(Int(column), 7 + layer)
            let thickness: Float = 0.05 + 0.05 * depth
            guard abs(column - centre) < thickness else { continue }
            let side = (column - centre) / thickness
            tint = Tint(0.30, 0.22, 0.13).scaled(0.55 + 0.25 * depth).mixed(
                with: Tint(0.7, 0.62, 0.42),
                0.3 - side * 0.4
            )
        }
        let leaves = Self.smooth(u * 16, v * 16)
        return v < 0.34 && leaves > 0.42 + v ? Tint(0.20, 0.46, 0.12).scaled(0.6 + leaves) : tint
    }

    private func aurora(_ u: Float, _ v: Float) -> Tint {
        if v > 0.84 - 0.08 * Self.ridge(u * 3) { return Tint(0.02, 0.03, 0.05) }
        var tint = Tint(0.01, 0.03, 0.10).mixed(with: Tint(0.03, 0.11, 0.17), v)
        for band in 0..<3 {
            let number = Float(band)
            let base = 0.62 - 0.13 * number + 0.10 * sin(u * (3 + number) + number * 2)
            let height = base - v
            guard height > 0 else { continue }
            let rays = 0.6 + 0.4 * Self.smooth(u * 26 + number * 9, 3)
            let light = Tint(0.25, 0.95, 0.50).mixed(with: Tint(0.65, 0.25, 0.85), height * 2.2)
            tint = tint.mixed(with: light, rays * 0.75 * exp(-height * 5))
        }
        return tint
    }

    private func balloons(_ u: Float, _ v: Float) -> Tint {
        let colours = [
            Tint(0.90, 0.22, 0.20), Tint(0.98, 0.78, 0.16), Tint(0.16, 0.48, 0.80), Tint(0.35, 0.72, 0.34),
            Tint(0.72, 0.30, 0.66),
        ]
        for (index, colour) in colours.enumerated() {
            let size = 0.07 + 0.022 * Float(index)
            let (x, y) = (0.16 + 0.17 * Float(index), 0.58 - 0.22 * Self.noise(index, 5) - 0.05 * Float(index % 2))
            let (dx, dy) = ((u - x) / size, (v - y) / (size * 1.18))
            if dx * dx + dy * dy < 1 {
                let isStripe = Int((asin(min(1, max(-1, dx / max(0.05, (1 - dy * dy).squareRoot())))) + 2) * 3) % 2 == 0
                return (isStripe ? colour : Tint(0.97, 0.95, 0.90)).scaled(1.05 - 0.35 * dx)
            }
            if abs(dx) < 0.17, dy > 1.3, dy < 1.6 { return Tint(0.35, 0.22, 0.12) }
        }
        let ground = 0.80 - 0.05 * Self.ridge(u * 4)
        if v > ground { return Tint(0.72, 0.58, 0.44).scaled(0.8 + 0.3 * Self.smooth(u * 20, v * 20)) }
        return Tint(0.48, 0.70, 0.94).mixed(with: Tint(0.99, 0.86, 0.72), v * 1.2)
    }

    private func tiles(_ u: Float, _ v: Float) -> Tint {
        let (x, y) = (u * 5, v * 5)
        let (dx, dy) = (x - x.rounded(.down) - 0.5, y - y.rounded(.down) - 0.5)
        let (distance, angle) = (hypot(dx, dy), atan2(dy, dx))
        if max(abs(dx), abs(dy)) > 0.475 { return Tint(0.88, 0.84, 0.76) }
        let star = 0.26 + 0.08 * cos(angle * 8)
        if distance < star * 0.5 { return Tint(0.94, 0.72, 0.18) }
        if distance < star { return Tint(0.07, 0.32, 0.60) }
        if distance < star + 0.07 { return Tint(0.96, 0.95, 0.90) }
        let isEven = (Int(x) + Int(y)).isMultiple(of: 2)
        return isEven ? Tint(0.12, 0.52, 0.46) : Tint(0.68, 0.22, 0.16)
    }

    private func canyon(_ u: Float, _ v: Float) -> Tint {
        let rim = 0.26 + 0.12 * Self.smooth(u * 3, 1)
        if v < rim { return Tint(0.44, 0.62, 0.88).mixed(with: Tint(0.99, 0.80, 0.62), v * 3) }
        let layer = (v - rim + 0.05 * Self.smooth(u * 6, v * 4)) * 16
        let stripe = Self.noise(Int(layer), 3)
        let shade = 0.65 + 0.35 * Self.smooth(u * 9, v * 2)
        return Tint(0.84, 0.44, 0.26).mixed(with: Tint(0.95, 0.76, 0.54), stripe).scaled(shade * (1.15 - v * 0.4))
    }

    private func moon(_ u: Float, _ v: Float, _ middle: Float) -> Tint {
        let (dx, dy) = ((u - middle) / 0.26, (v - 0.42) / 0.26)
        let distance = hypot(dx, dy)
        guard distance < 1 else {
            let isStar = Self.noise(Int(u * 300), Int(v * 300)) > 0.9965
            return isStar
                ? Tint(0.9, 0.9, 1) : Tint(0.02, 0.02, 0.05).mixed(with: Tint(0.2, 0.2, 0.3), 0.2 / distance - 0.1)
        }
        let seas = Self.smooth(dx * 3 + 5, dy * 3 + 5) * 0.6 + Self.smooth(dx * 8 + 9, dy * 8 + 9) * 0.4
        return Tint(0.93, 0.91, 0.84).scaled((0.62 + 0.45 * seas) * (1 - 0.35 * distance * distance))
    }

    private func flower(_ x: Float, _ y: Float) -> Tint {
        let (distance, angle) = (hypot(x, y), atan2(y, x))
        if distance < 0.09 { return Tint(0.98, 0.80, 0.16).scaled(0.75 + 0.4 * Self.smooth(x * 80 + 40, y * 80 + 40)) }
        for ring in 0..<3 {
            let number = Float(ring)
            let reach = (0.20 + 0.10 * number) * (0.72 + 0.28 * cos(angle * 8 + number * 1.6))
            guard distance < reach else { continue }
            return Tint(0.96, 0.42, 0.62).mixed(with: Tint(0.62, 0.10, 0.42), number / 3 + distance - 0.1)
        }
        return Tint(0.16, 0.42, 0.20).scaled(0.6 + 0.7 * Self.smooth(x * 12 + 20, y * 12 + 20))
    }

    private func scan(_ u: Float, _ v: Float, _ middle: Float) -> Tint {
        let edge = min(u, v, middle * 2 - u, 1 - v)
        if edge < 0.05 { return Tint(0.93, 0.90, 0.82) }
        let hill: Float = 0.66 + 0.06 * sin(u * 4)
        let isHouse = abs(u - middle) < 0.2 && v > 0.46 && v < 0.74
        let isRoof = v > 0.26 && v <= 0.46 && abs(u - middle) < (v - 0.24)
        let isDoor = abs(u - middle - 0.06) < 0.04 && v > 0.58 && v < 0.74
        var grey: Float = 0.80 - 0.2 * v
        if v > hill { grey = 0.38 + 0.14 * Self.smooth(u * 30, v * 30) }
        if isHouse { grey = 0.62 }
        if isRoof { grey = 0.24 }
        if isDoor { grey = 0.16 }
        return Tint(1, 0.88, 0.68).scaled(grey * (0.85 + 0.15 * Self.smooth(u * 5, v * 5)))
    }

    // MARK: Reproducible noise

    /// Returns noise in 0...1 at a lattice point.
    private static func noise(_ x: Int, _ y: Int) -> Float {
        var mixed = UInt32(truncatingIfNeeded: x &* 374_761_393 &+ y &* 668_265_263)
        mixed = (mixed ^ mixed >> 13) &* 1_274_126_177
        return Float((mixed ^ mixed >> 16) & 0xFFFF) / 65_535
    }

    /// Returns noise in 0...1, interpolated smoothly.
    private static func smooth(_ x: Float, _ y: Float) -> Float {
        let (left, top) = (x.rounded(.down), y.rounded(.down))
        let (dx, dy) = (ease(x - left), ease(y - top))
        let (column, row) = (Int(left), Int(top))
        let above = noise(column, row) * (1 - dx) + noise(column + 1, row) * dx
        let below = noise(column, row + 1) * (1 - dx) + noise(column + 1, row + 1) * dx
        return above * (1 - dy) + below * dy
    }

    private static func ridge(_ x: Float) -> Float {
        smooth(x, 0.5) * 0.6 + smooth(x * 2.7, 4.5) * 0.28 + smooth(x * 7, 8.5) * 0.12
    }

    private static func ease(_ fraction: Float) -> Float { fraction * fraction * (3 - 2 * fraction) }
}
