/// Options of ImageMagick's `convert` that are accepted or refused. The accepted ones are for an image of 240 by 160
/// pixels.
public enum MagickFragments {
    public struct Refused: Sendable {
        public let text: String
        /// A part of the error.
        public let errorPart: String

        init(_ text: String, _ errorPart: String) {
            self.text = text
            self.errorPart = errorPart
        }
    }

    public static let accepted: [String] = [
        "-modulate 100,130 -unsharp 0x1 -rotate 90", "-rotate 90", "-rotate -90", "-rotate 180 -flip", "-rotate 450",
        "-flip",
        "-flop", "-transpose", "-transverse", "-crop 100x60+20+30", "-crop 50%x25%+10+20",
        "-gravity center -crop 80%x80%+0+0 +repage", "-gravity southeast -crop 101x61+5+7", "-crop 100x+0+10",
        "-crop 200x150+10+5 +repage -crop 50%x50%+1+2", "-shave 12x7", "-resize 50%", "-resize '120x120>'",
        "-resize 100x100", "-resize x80", "-resize 100x60^", "-resize 120x80!", "-filter Lanczos -resize 33%",
        "-rotate 90 -resize 80x100 -flop", "-auto-orient -crop 120x80+0+0 +repage -resize 60x",
        "-modulate 120", "-modulate 80,150,70", "-modulate 100,0", "-modulate 0",
        "-modulate 100,100,0", "-modulate 90,0,0", "-modulate 0,0,0", "-modulate 110,90,133.3 -level 5%,95%",
        "-level 10%,90%", "-level 10%,85%,1.4", "-level 5%", "-level 3000,60000", "+level 10%,80%", "-gamma 1.6",
        "-gamma 0.7", "-negate", "-brightness-contrast 10x20", "-brightness-contrast -15x-30", "-evaluate Multiply 1.2",
        "-evaluate add 10%", "-evaluate Subtract 5%", "-sigmoidal-contrast 5x50%", "-sigmoidal-contrast 8,40%",
        "-colorspace Gray", "-grayscale Rec709Luma", "-blur 0x2", "-gaussian-blur 0x1.5", "-motion-blur 0x4+30",
        "-motion-blur 0x3-20", "-radial-blur 10", "-rotational-blur 5", "-unsharp 0x1.5+0.8+0.02", "-unsharp 0x0.8",
        "-sharpen 0x1", "-sharpen 0x0.6", "-sharpen 0x2", "-adaptive-sharpen 0x1", "-statistic Median 3x3",
        "-statistic median 5x5", "-despeckle", "-despeckle -despeckle", "+dither -posterize 6", "-solarize 60%",
        "-solarize 30000", "-charcoal 0x1", "-emboss 0x1", "-paint 2", "-edge 1", "-swirl 60", "-swirl -90",
        "-implode 0.4", "-implode -0.3", "-sketch 0x3+120", "-wave 8x60", "-background '#336699' -wave -5x40",
        "-normalize", "-contrast-stretch 2%x1%", "-contrast-stretch 1%", "-equalize", "-fill '#704214' -colorize 30%",
        "-fill red -colorize 20", "-fill 'rgb(80,60,20)' -tint 70%", "-fuzz 5% -trim +repage", "-deskew 40% +repage",
        "-liquid-rescale 90%x100%", "-liquid-rescale 200x150!", "-border 8", "-bordercolor navy -border 5x5",
        "-mattecolor '#888' -frame 12x12+3+3", "-colorspace Gray -fill orange -tint 60", "-blur 0x1 -rotate 90",
        "-unsharp 0x1 -flop", "-negate -crop 120x80+60+40", "\"-blur\" \\\n '0x'1\"\"",
        "-modulate 100,120  -border 4 -rotate 90",
    ]

    public static let refused: [Refused] = [
        // Files, formats and programs
        Refused("@/etc/passwd", "\"@/etc/passwd\" at character 1 is not an allowed option; names of files are not"),
        Refused("@file -blur 0x1", "@file"), Refused("msl:attack.msl", "msl:attack.msl"),
        Refused("-blur 0x1 msl:/tmp/a", "character 11"), Refused("mvg:- -flip", "mvg:-"),
        Refused("ephemeral:/tmp/secret", "ephemeral:"), Refused("label:@/etc/passwd", "label:@"),
        Refused("https://example.com/a.png", "https:"), Refused("../../../etc/passwd", "../../../"),
        Refused("in.jpg -flip out.jpg", "in.jpg"), Refused("-flip out.png", "character 7"),
        Refused("xc:red -composite", "xc:red"), Refused("'|rm -rf /'", "|rm"),
        Refused("-flip | cat", "\"|\" at character 7"),
        Refused("-flip ; reboot", "\";\""), Refused("-flip && reboot", "\"&\""),
        Refused("-blur `id`", "\"`\" at character 7"),
        Refused("-blur $(id)", "\"$\""), Refused("-blur \"$HOME\"", "\"$\""), Refused("-blur '$HOME'", "$HOME"),
        Refused("-flip > /tmp/out", "\">\""), Refused("-flip < /etc/passwd", "\"<\""),
        // Options that write, run, set or read
        Refused("-write /tmp/x.png", "\"-write\" at character 1 is not an allowed option"),
        Refused("+write x", "+write"),
        Refused("-fx 'u*2'", "-fx"), Refused("-set filename:x y", "-set"), Refused("-set option:x %[EXIF:*]", "-set"),
        Refused("-process analyze", "-process"), Refused("-define delegate:x=y", "-define"),
        Refused("-annotate 0 %[fx:1]", "-annotate"), Refused("-draw 'image over 0,0 0,0 \"x\"'", "-draw"),
        Refused("-profile x.icc", "-profile"), Refused("-clut x", "-clut"), Refused("-tile x", "-tile"),
        Refused("-mask m.png", "-mask"), Refused("-font @x", "-font"), Refused("-limit memory 1TB", "-limit"),
        Refused("-script x", "-script"), Refused("-read x", "-read"), Refused("-size 99999x99999 -flip", "-size"),
        Refused("( +clone -flip )", "("), Refused("-layers merge", "-layers"), Refused("-quality 1", "-quality"),
        Refused("-strip", "-strip"), Refused("-sepia-tone 80%", "-sepia-tone"), Refused("-vignette 0x5", "-vignette"),
        Refused("+noise Gaussian", "+noise"), Refused("-BLUR 0x1", "-BLUR"), Refused("--blur 0x1", "--blur"),
        Refused("-", "\"-\""), Refused("''", "\"\""),
        // Arguments
        Refused("-blur", "needs an argument: 0xSIGMA"),
        Refused("-blur 5", "\"5\" at character 7 is not an argument of -blur"),
        Refused("-blur 3x1", "give 0xSIGMA"), Refused("-blur 0x1e3", "0x1e3"), Refused("-blur 0xnan", "0xnan"),
        Refused("-blur 0xinf", "0xinf"), Refused("-blur 0x0x10", "0x0x10"), Refused("-blur 0x51", "operation blur"),
        Refused("-blur 0x%[fx:2]", "%[fx"), Refused("-blur @sigma", "@sigma"),
        Refused("-blur 0x" + String(repeating: "9", count: 3000), "0x9999"),
        Refused("-gamma 1." + String(repeating: "0", count: 40), "-gamma"), Refused("-gamma 1,2,3", "1,2,3"),
        Refused("-modulate 100,100,100,100", "-modulate"), Refused("-modulate 400", "operation modulate"),
        Refused("-modulate %[w]", "%[w]"), Refused("-level 60%,50%", "operation levels"),
        Refused("-rotate 45", "multiple of 90"), Refused("-rotate '90>'", "90>"), Refused("-rotate 1e2", "1e2"),
        Refused("-crop 100x100", "write +0+0"), Refused("-crop @+1+1", "@+1+1"),
        Refused("-crop 10x10+1+1 -crop 5x5+1+1", "write +repage"), Refused("-posterize 4", "write +dither"),
        Refused("-colorize 50", "write -fill"), Refused("-fill @x -colorize 5", "@x"),
        Refused("-fill '#12' -negate", "#12"),
        Refused("-fill xyzzy -negate", "COLOUR"), Refused("-gravity up -flip", "\"up\" at character 10"),
        Refused("-colorspace CMYK", "CMYK"), Refused("-statistic Mean 3x3", "Median"),
        Refused("-statistic Median 4x4", "odd square"), Refused("-filter Point -resize 5%", "Lanczos"),
        Refused("-fuzz 5 -trim", "N%"), Refused("-contrast-stretch 5x5", "-contrast-stretch"),
        Refused("-evaluate pow 2", "pow"), Refused("-evaluate multiply -1", "-1"), Refused("-border 5%", "5%"),
        Refused("-frame 10x10+9+9", "quarter"), Refused("-liquid-rescale 100x100", "100x100"),
        Refused("-resize 100@", "100@"), Refused("-resize 0x0", "0x0"), Refused("-swirl 9999", "operation swirl"),
        // Orders
        Refused("-blur 0x2 -resize 50%", "\"-resize\" at character 11 cannot follow -blur"),
        Refused("-unsharp 0x1 -modulate 100,120", "-modulate\" at character 14 cannot follow -unsharp"),
        Refused("-border 5 -crop 10x10+1+1", "cannot follow -border"),
        Refused("-emboss 0x1 -rotate 90", "cannot follow"),
        Refused("-flip -auto-orient", "must come first"), Refused("-trim -border 5", "-trim leaves a size"),
        // Bytes
        Refused("-blur 0x1\0 -write x", "\\u{0}"), Refused("-fl\u{0}ip", "\\u{0}"), Refused("-flip \u{7}", "\\u{7}"),
        Refused("-flip \u{1B}[31m", "\\u{1b}"), Refused("－flip", "\\u{ff0d}"), Refused("-flip '", "not closed"),
        Refused("-flip \"a", "not closed"), Refused("", "no operator"), Refused("   ", "no operator"),
        Refused("-fill red", "no operator"), Refused(String(repeating: "-flip ", count: 800), "4096"),
        Refused(String(repeating: "-flip ", count: 300), "256"), Refused(String(repeating: "-flip ", count: 70), "64"),
    ]
}
