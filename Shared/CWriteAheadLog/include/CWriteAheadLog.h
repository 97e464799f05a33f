#ifndef SAFELIGHT_CWRITEAHEADLOG_H
#define SAFELIGHT_CWRITEAHEADLOG_H

// Writes the frames of one commit to SQLite's write-ahead log with one system call.
//
// SQLite writes each frame with two calls: 24 bytes of header, then the page. A small commit has a dozen frames, and
// their calls cost more than everything else that it does. This VFS gathers consecutive frames and passes them on with
// the last frame of the commit, whose header says so, and before anything that could notice: reading, syncing,
// truncating and closing the log. So every frame is written before the sync of its commit, and before the index of the
// log shows it to other connections.

/// Registers the VFS as the default for databases that are opened from now on. Calling it again does nothing.
///
/// Returns 0, or an error code of SQLite.
int safelight_gather_log_writes(void);

/// The size of a connection's log, and the size from which a commit writes it into the database itself.
typedef struct safelight_log_size {
    /// The pages of the log after the last commit; read by ``safelight_log_pages``.
    int pages;
    /// The pages from which a commit checkpoints before it returns.
    int max_pages;
} safelight_log_size;

/// Makes the commits of a connection store the size of the log, and replaces SQLite's automatic checkpoints: the caller
/// checkpoints between commits, when no transaction waits.
///
/// - database: of type sqlite3
/// - size: must stay valid as long as the connection is open
void safelight_note_log_size(void *database, safelight_log_size *size);

/// Returns the pages of the log after the last commit, on any thread.
int safelight_log_pages(const safelight_log_size *size);

#endif
