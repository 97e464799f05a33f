#include "CWriteAheadLog.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

enum {
    /// The maximum number of gathered bytes: about thirty frames. SQLite's unix VFS writes at most 131,071 bytes with
    /// one call, and takes a larger count modulo 131,072.
    capacity = 127 * 1024,
    /// The bytes of a frame's header.
    header_size = 24,
};

/// An open write-ahead log; the file of the VFS below follows it in memory.
typedef struct log_file {
    sqlite3_file base;
    sqlite3_file *file;
    /// The gathered bytes, allocated with the first write; NULL before.
    unsigned char *bytes;
    sqlite3_int64 start;
    int count;
    /// True if the last write was the header of a frame, so that its page comes next.
    int is_header;
    /// True if that header is of the last frame of a commit.
    int is_last;
} log_file;

static sqlite3_vfs *below;
static sqlite3_vfs gathering;

static int flush(log_file *log) {
    if (log->count == 0) return SQLITE_OK;
    int count = log->count;
    // If writing fails, SQLite rolls the commit back, and writes its frames again.
    log->count = 0;
    log->is_header = 0;
    return log->file->pMethods->xWrite(log->file, log->bytes, count, log->start);
}

static int log_write(sqlite3_file *file, const void *data, int count, sqlite3_int64 offset) {
    log_file *log = (log_file *)file;
    if (!log->bytes) log->bytes = malloc(capacity);
    int is_next = log->count > 0 && offset == log->start + log->count && log->count + count <= capacity;
    if (!is_next) {
        int is_page = log->is_header;
        int status = flush(log);
        if (status != SQLITE_OK) return status;
        // Anything but a header or the page after it is passed on as it is.
        if (!log->bytes || count > capacity || (count != header_size && !is_page)) {
            return log->file->pMethods->xWrite(log->file, data, count, offset);
        }
        log->is_header = is_page;
        log->start = offset;
    }
    memcpy(log->bytes + log->count, data, (size_t)count);
    log->count += count;
    if (count == header_size && !log->is_header) {
        const unsigned char *header = data;
        // The size of the database in pages after a commit; 0 in other frames.
        log->is_last = (header[4] | header[5] | header[6] | header[7]) != 0;
        log->is_header = 1;
        return SQLITE_OK;
    }
    int is_whole = log->is_header && !log->is_last;
    log->is_header = 0;
    return is_whole ? SQLITE_OK : flush(log);
}

static int log_close(sqlite3_file *file) {
    log_file *log = (log_file *)file;
    int flushed = flush(log);
    int closed = log->file->pMethods->xClose(log->file);
    free(log->bytes);
    log->bytes = NULL;
    return flushed != SQLITE_OK ? flushed : closed;
}

static int log_read(sqlite3_file *file, void *data, int count, sqlite3_int64 offset) {
    log_file *log = (log_file *)file;
    int status = flush(log);
    return status != SQLITE_OK ? status : log->file->pMethods->xRead(log->file, data, count, offset);
}

static int log_truncate(sqlite3_file *file, sqlite3_int64 size) {
    log_file *log = (log_file *)file;
    int status = flush(log);
    return status != SQLITE_OK ? status : log->file->pMethods->xTruncate(log->file, size);
}

static int log_sync(sqlite3_file *file, int flags) {
    log_file *log = (log_file *)file;
    int status = flush(log);
    return status != SQLITE_OK ? status : log->file->pMethods->xSync(log->file, flags);
}

static int log_size(sqlite3_file *file, sqlite3_int64 *size) {
    log_file *log = (log_file *)file;
    int status = flush(log);
    return status != SQLITE_OK ? status : log->file->pMethods->xFileSize(log->file, size);
}

static int log_lock(sqlite3_file *file, int level) {
    log_file *log = (log_file *)file;
    return log->file->pMethods->xLock(log->file, level);
}

static int log_unlock(sqlite3_file *file, int level) {
    log_file *log = (log_file *)file;
    return log->file->pMethods->xUnlock(log->file, level);
}

static int log_check_lock(sqlite3_file *file, int *is_locked) {
    log_file *log = (log_file *)file;
    return log->file->pMethods->xCheckReservedLock(log->file, is_locked);
}

static int log_control(sqlite3_file *file, int operation, void *argument) {
    log_file *log = (log_file *)file;
    int status = flush(log);
    return status != SQLITE_OK ? status : log->file->pMethods->xFileControl(log->file, operation, argument);
}

static int log_sector_size(sqlite3_file *file) {
    log_file *log = (log_file *)file;
    return log->file->pMethods->xSectorSize(log->file);
}

static int log_characteristics(sqlite3_file *file) {
    log_file *log = (log_file *)file;
    return log->file->pMethods->xDeviceCharacteristics(log->file);
}

static const sqlite3_io_methods log_methods = {
    .iVersion = 1,
    .xClose = log_close,
    .xRead = log_read,
    .xWrite = log_write,
    .xTruncate = log_truncate,
    .xSync = log_sync,
    .xFileSize = log_size,
    .xLock = log_lock,
    .xUnlock = log_unlock,
    .xCheckReservedLock = log_check_lock,
    .xFileControl = log_control,
    .xSectorSize = log_sector_size,
    .xDeviceCharacteristics = log_characteristics,
};

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *opened) {
    (void)vfs;
    if (!(flags & SQLITE_OPEN_WAL)) return below->xOpen(below, name, file, flags, opened);
    log_file *log = (log_file *)file;
    memset(log, 0, sizeof *log);
    log->file = (sqlite3_file *)(log + 1);
    log->file->pMethods = NULL;
    int status = below->xOpen(below, name, log->file, flags, opened);
    // SQLite closes a file with methods even if it could not be opened.
    if (log->file->pMethods) log->base.pMethods = &log_methods;
    return status;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int registered = SQLITE_ERROR;

static void register_vfs(void) {
    // SQLite's memory statistics, which lock a mutex for each allocation, are not used. The call fails without effect
    // if a database was opened before.
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    registered = sqlite3_initialize();
    below = sqlite3_vfs_find(NULL);
    if (registered != SQLITE_OK || !below) return;
    // All functions but xOpen are those of the VFS below, which uses only the members that are copied here.
    gathering = *below;
    gathering.zName = "safelight-log";
    gathering.pNext = NULL;
    gathering.szOsFile = (int)sizeof(log_file) + below->szOsFile;
    gathering.xOpen = open_file;
    registered = sqlite3_vfs_register(&gathering, 1);
}

static int note_size(void *context, sqlite3 *database, const char *name, int pages) {
    safelight_log_size *size = context;
    __atomic_store_n(&size->pages, pages, __ATOMIC_RELAXED);
    // Like SQLite's own hook: the commit is valid whether or not its log can be written into the database now.
    if (pages >= size->max_pages) sqlite3_wal_checkpoint_v2(database, name, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    return SQLITE_OK;
}

void safelight_note_log_size(void *database, safelight_log_size *size) {
    sqlite3_wal_hook(database, note_size, size);
}

int safelight_log_pages(const safelight_log_size *size) { return __atomic_load_n(&size->pages, __ATOMIC_RELAXED); }

int safelight_gather_log_writes(void) {
    pthread_once(&once, register_vfs);
    return registered;
}
