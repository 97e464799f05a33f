import ArgumentParser
import Hosting
import ObjectStorage

/// The flags of the object store in which the catalog keeps copies of all files.
struct ObjectStoreFlags: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The bucket for copies of all files, as s3://bucket/prefix. (SAFELIGHT_OBJECT_STORE)",
            discussion: "Any service that speaks the S3 protocol. Default: none; all files are on this machine only."
        )
    )
    var objectStore: String?

    @Option(
        help: "The address of the object store, as https://host:port. (SAFELIGHT_OBJECT_STORE_ENDPOINT, else Amazon's)"
    )
    var objectStoreEndpoint: String?

    @Option(help: "The region of the object store. (SAFELIGHT_OBJECT_STORE_REGION, else us-east-1)")
    var objectStoreRegion: String?

    @Option(help: "How requests name the bucket: path or virtualHost. (SAFELIGHT_OBJECT_STORE_STYLE)")
    var objectStoreStyle: String?

    @Option(
        help: ArgumentHelp(
            "A file with aws_access_key_id and aws_secret_access_key. (SAFELIGHT_OBJECT_STORE_CREDENTIALS)",
            discussion: "Only its owner may have read permission. Default: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        )
    )
    var objectStoreCredentials: String?

    @Option(help: "A file with the certificates that are trusted, in PEM. (SAFELIGHT_OBJECT_STORE_CA)")
    var objectStoreCa: String?

    @Option(help: "The maximum bytes per second of an upload; 0 for no limit. (SAFELIGHT_OBJECT_STORE_RATE, else 0)")
    var objectStoreRate: Int64?

    @Option(
        help: ArgumentHelp(
            "The files that stay on this machine: all or optimize. (SAFELIGHT_OBJECT_STORE_POLICY, else all)",
            discussion: "optimize keeps the most recently used files, within --local-bytes."
        )
    )
    var objectStorePolicy: String?

    @Option(help: "The maximum size of the files on this machine, in bytes. (SAFELIGHT_LOCAL_BYTES, else 10 GiB)")
    var localBytes: Int64?

    /// Returns the settings; nil without an object store.
    ///
    /// - Throws: ``HostingError`` for the first setting that is not valid
    func resolve(environment: (String) -> String?) throws -> RemoteStorageOptions? {
        func text(_ flag: String?, _ variable: String) -> String? {
            (flag ?? environment(variable)).flatMap { $0.isEmpty ? nil : $0 }
        }
        guard let url = text(objectStore, "SAFELIGHT_OBJECT_STORE") else { return nil }
        let style = text(objectStoreStyle, "SAFELIGHT_OBJECT_STORE_STYLE")
        try HostingError.require(
            style.map { ObjectStoreLocation.Style(rawValue: $0) != nil } ?? true,
            "--object-store-style",
            "path or virtualHost"
        )
        let location: ObjectStoreLocation
        let credentials: ObjectStoreCredentials?
        let credentialsFile = text(objectStoreCredentials, "SAFELIGHT_OBJECT_STORE_CREDENTIALS")
        do {
            location = try ObjectStoreLocation(
                url: url,
                endpoint: text(objectStoreEndpoint, "SAFELIGHT_OBJECT_STORE_ENDPOINT"),
                style: style.flatMap(ObjectStoreLocation.Style.init),
                region: text(objectStoreRegion, "SAFELIGHT_OBJECT_STORE_REGION") ?? "us-east-1"
            )
            credentials =
                try credentialsFile.map { try ObjectStoreCredentials(file: $0) }
                ?? ObjectStoreCredentials(environment: environment)
        } catch let error as ObjectStoreError {
            throw HostingError.badSetting(source: "--object-store", reason: error.message)
        }
        guard let credentials else {
            throw HostingError.badSetting(
                source: "--object-store",
                reason: "it needs credentials: --object-store-credentials FILE, or AWS_ACCESS_KEY_ID and "
                    + "AWS_SECRET_ACCESS_KEY"
            )
        }
        var options = RemoteStorageOptions(location: location, credentials: credentials)
        options.credentialsFile = credentialsFile
        options.settings.certificateFile = text(objectStoreCa, "SAFELIGHT_OBJECT_STORE_CA")
        try Environment.set(
            &options.settings.bytesPerSecond,
            objectStoreRate,
            "SAFELIGHT_OBJECT_STORE_RATE",
            kind: "whole number",
            environment: environment
        )
        try Environment.set(
            &options.localBytes,
            localBytes,
            "SAFELIGHT_LOCAL_BYTES",
            kind: "whole number",
            environment: environment
        )
        if let policy = text(objectStorePolicy, "SAFELIGHT_OBJECT_STORE_POLICY") {
            let known = RemoteStorageOptions.Policy(rawValue: policy)
            try HostingError.require(known != nil, "--object-store-policy", "all or optimize")
            options.policy = known ?? .all
        }
        try HostingError.require(options.localBytes >= 0, "--local-bytes", "at least 0 bytes")
        try HostingError.require(options.settings.bytesPerSecond >= 0, "--object-store-rate", "at least 0 bytes")
        return options
    }
}
