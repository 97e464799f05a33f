import Foundation
import TestSupport

/// Durable changes on PostgreSQL: the real catalog against pgbench with the statements of one change.
enum PostgreSQLBenchmarks {
    static func run(_ bench: BenchmarkContext) async throws {
        let name = "commits.postgresql"
        guard bench.includes(group: name) || bench.includes("commits") else { return }
        guard let pgbench = ExternalTool.path("pgbench") else {
            return bench.addGap(name, "pgbench is not installed (Debian's package postgresql)")
        }
        let server = try PostgreSQLServer(settings: ["fsync=on", "shared_buffers=256MB", "max_wal_size=4GB"])
        let library = try await generateAndMove(bench, "postgresql", to: server.address(schema: "ours"))
        let peer = try server.address(schema: "peer")
        _ = try await generateAndMove(bench, "postgresql-peer", to: peer)
        let services = try ServicesFixture(bench.paths, "postgresql", library: library)
        try await services.start("catalog", ["--store", server.address(schema: "ours")])
        let favourites = try await FavoriteToggler(services.client)
        let script = try bench.paths.folder("pgbench") + "/change.sql"
        try Data(Self.script.utf8).write(to: URL(filePath: script))
        for clients in [1, 16, 64] {
            let amount = bench.amount(clients == 1 ? 500 : 3_200, quick: 128)
            try await bench.compare(
                [
                    Comparison(
                        name: "\(name).\(clients)",
                        ours: "catalog on PostgreSQL, \(clients) favourite changes outstanding, group commit",
                        peer: "pgbench -M prepared, \(clients) clients, the statements of one change a commit",
                        unit: "changes/s",
                        aim: .ratio(0.5)
                    )
                ],
                ours: { [try await favourites.rate(amount, outstanding: clients)] },
                peer: {
                    [
                        try await runBlocking {
                            try Self.rate(pgbench, script, peer, clients: clients, commitsPerClient: amount / clients)
                        }
                    ]
                }
            )
        }
        await services.stop()
        server.stop()
    }

    /// Generates a library and moves its database to a server.
    ///
    /// - Returns: the folder of the library
    private static func generateAndMove(_ bench: BenchmarkContext, _ name: String, to address: String) async throws
        -> String
    {
        let folder = try await bench.libraries.folder(assets: 10_000, for: name)
        let program = bench.paths.program("catalog")
        let run = try await runBlocking {
            try RunningProgram.run(program, ["migrate", "--library", folder, "--to", address])
        }
        guard run.status == 0 else { throw BenchmarkError("catalog migrate failed: \(run.errors)") }
        return folder
    }

    /// Runs pgbench, and returns its commits per second.
    private static func rate(
        _ pgbench: String,
        _ script: String,
        _ address: String,
        clients: Int,
        commitsPerClient: Int
    ) throws -> Double {
        // No earlier run has used these sequences, even if runs follow each other within a second.
        let base = UInt64(Date().timeIntervalSince1970 * 1000) * 1_000_000
        let run = try RunningProgram.run(
            pgbench,
            [
                "--no-vacuum", "--protocol=prepared", "--client=\(clients)", "--jobs=\(min(clients, 2))",
                "--transactions=\(commitsPerClient)", "--define=base=\(base)", "--define=n=0", "--file=\(script)",
                address,
            ]
        )
        let line = run.output.split(separator: "\n").first { $0.hasPrefix("tps = ") }
        guard run.status == 0, let rate = line?.split(separator: " ").dropFirst(2).first.flatMap({ Double($0) }) else {
            throw BenchmarkError("pgbench failed: \(run.errors.suffix(500))")
        }
        return rate
    }

    /// The statements of one favourite change, as the catalog sends them. Each client uses different sequences, so that
    /// clients wait for each other only when they update the counters.
    private static let script = #"""
        \set n :n + 1
        \set sequence :base + :client_id * 10000 + :n
        \set asset random(1, 1000)
        BEGIN;
        SELECT history, coalesce((SELECT max(sequence) FROM change), head), oldest FROM library;
        SELECT digest, reply FROM outcome WHERE identity = 'uid:0' AND client = 'pgbench' AND "transaction" = (:sequence)::bigint::text;
        SELECT * FROM asset WHERE row = :asset;
        SELECT * FROM resource WHERE asset = :asset ORDER BY asset, position;
        SELECT asset, text FROM keyword WHERE asset = :asset ORDER BY asset, position;
        SELECT m.asset, c.id, m.order_key FROM membership m JOIN collection c ON c.row = m.collection WHERE m.asset = :asset ORDER BY m.asset, m.collection;
        UPDATE asset SET revision = :sequence, modification_date = :sequence, is_favorite = 1 - is_favorite, smart_favorites = CASE WHEN is_favorite = 0 THEN 8 ELSE 0 END WHERE row = :asset;
        INSERT INTO change (sequence, date, library, size, record) SELECT :sequence, 0, history, 1932, decode(repeat('7b', 1932), 'hex') FROM library;
        INSERT INTO change_topic VALUES ('asset.' || (:asset)::bigint, :sequence) ON CONFLICT DO NOTHING;
        INSERT INTO outcome VALUES ('uid:0', 'pgbench', (:sequence)::bigint::text, decode(repeat('7b', 32), 'hex'), decode(repeat('7b', 150), 'hex'), :sequence, 0);
        INSERT INTO counter VALUES ('history.bytes', 1932) ON CONFLICT (name) DO UPDATE SET value = counter.value + 1932;
        INSERT INTO counter VALUES ('visible.favorite', 1) ON CONFLICT (name) DO UPDATE SET value = counter.value + 1;
        INSERT INTO counter VALUES ('smart.203', 1) ON CONFLICT (name) DO UPDATE SET value = counter.value + 1;
        SELECT require_epoch((SELECT epoch FROM library));
        COMMIT;
        """#
}
