import Catalog

@main
enum Program {
    static func main() { CatalogProgram.run() }
}
