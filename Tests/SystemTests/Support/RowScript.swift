import Foundation
import JSONValue
import TestSupport
import Testing

/// The scripts of the folder Rows: clients in plain pyzmq. Each part of a script checks one point and reports its name
/// and outcome.
enum RowScript {
    /// Runs parts of a script of the folder Rows; each must report that it found no problem.
    ///
    /// - Parameters:
    ///   - files: the folder of the files that the script imports; nil for that of the services
    ///   - module: a Python module that the script needs besides pyzmq
    static func run(
        _ script: String,
        _ services: SafelightFixture,
        files: String? = nil,
        module: String = "zmq",
        programs: [String] = [],
        seconds: Double = 120,
        parts: [String]
    ) throws {
        // A script finds the path of a program in the variable of its name.
        var named = ["FILES": files ?? services.folder.path]
        for program in programs { named[program.uppercased()] = try Needed.program(program) }
        let python = try Needed.python("zmq, \(module)")
        let run = try RunningProgram.run(
            python,
            ["-B", TestPaths.package + "/Tests/SystemTests/Rows/" + script] + parts,
            environment: services.environment.merging(named) { $1 },
            seconds: seconds
        )
        #expect(run.status == 0, "\(run.errors)\n\(services.logs)")
        let lines = try run.output.split(separator: "\n").map { try JSON(parsing: String($0)) }
        #expect(lines.compactMap { $0["part"]?.stringValue } == parts, "\(run.output)\n\(run.errors)")
        for line in lines {
            #expect(line["problem"] == nil, "\(line["part"]?.stringValue ?? ""): \(line["problem"]?.stringValue ?? "")")
        }
    }
}
