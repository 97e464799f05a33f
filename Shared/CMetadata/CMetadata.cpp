#include "CMetadata.h"
#include <cstdlib>
#include <cstring>
#include <exiv2/exiv2.hpp>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <strings.h>
#include <vector>

struct safelight_metadata {
    std::unique_ptr<Exiv2::Image> image;
};

namespace {

void initialize() {
    static std::once_flag once;
    std::call_once(once, [] {
        Exiv2::XmpParser::initialize();
        Exiv2::LogMsg::setLevel(Exiv2::LogMsg::mute);
#ifdef EXV_ENABLE_BMFF
        Exiv2::enableBMFF(true);
#endif
    });
}

/* Returns the result of `body`, or `failure` if it throws: no exception may reach Swift. */
template <typename Result, typename Body> Result guarded(Result failure, Body body) {
    try {
        return body();
    } catch (...) {
        return failure;
    }
}

char *copy(const std::string &text) { return strdup(text.c_str()); }

bool is_xmp(const char *tag) { return strncmp(tag, "Xmp.", 4) == 0; }
bool is_exif(const char *tag) { return strncmp(tag, "Exif.", 5) == 0; }

/* Returns the first field with a key if it has a value, else the end. */
template <typename Data, typename Key> typename Data::const_iterator find(const Data &data, const Key &key) {
    auto field = data.findKey(key);
    return field != data.end() && field->count() > 0 ? field : data.end();
}

/* Returns true for a field that has a value of an IPTC dataset. */
bool has_value(const Exiv2::Iptcdatum &field, const Exiv2::IptcKey &key) {
    return field.record() == key.record() && field.tag() == key.tag() && field.count() > 0;
}

/* Returns the values of a repeatable IPTC dataset. Each is a field of its own. */
std::vector<std::string> iptc_values(const Exiv2::IptcData &data, const Exiv2::IptcKey &key) {
    std::vector<std::string> values;
    for (const auto &field : data) {
        if (has_value(field, key)) values.push_back(field.toString());
    }
    return values;
}

template <typename Data> void append_names(const Data &data, std::string &names) {
    for (const auto &field : data) {
        if (field.count() == 0) continue;
        if (!names.empty()) names += '\n';
        names += field.key();
    }
}

template <typename Data> void erase(Data &data, const char *tag) {
    for (auto field = data.begin(); field != data.end();) {
        if (field->count() > 0 && strcasecmp(tag, field->key().c_str()) == 0) {
            field = data.erase(field);
        } else {
            ++field;
        }
    }
}

} // namespace

int safelight_metadata_version(void) { return static_cast<int>(Exiv2::versionNumber()); }

safelight_metadata *safelight_metadata_open(const uint8_t *bytes, size_t count) {
    if (!bytes || count == 0 || count > LONG_MAX) return nullptr;
    return guarded<safelight_metadata *>(nullptr, [&]() -> safelight_metadata * {
        initialize();
        // The library does not copy the bytes, because nothing is written.
        std::unique_ptr<Exiv2::Image> image(
            Exiv2::ImageFactory::open(bytes, static_cast<long>(count)).release());
        if (!image || !image->good()) return nullptr;
        image->readMetadata();
        auto metadata = std::make_unique<safelight_metadata>();
        metadata->image = std::move(image);
        return metadata.release();
    });
}

safelight_metadata *safelight_metadata_open_xmp(const uint8_t *bytes, size_t count) {
    if (!bytes || count == 0) return nullptr;
    return guarded<safelight_metadata *>(nullptr, [&]() -> safelight_metadata * {
        initialize();
        // A packet that cannot be parsed must be an error. Opened as an image, it would appear to have no fields.
        auto metadata = std::make_unique<safelight_metadata>();
        metadata->image.reset(Exiv2::ImageFactory::create(Exiv2::ImageType::xmp).release());
        if (!metadata->image) return nullptr;
        const std::string packet(reinterpret_cast<const char *>(bytes), count);
        if (Exiv2::XmpParser::decode(metadata->image->xmpData(), packet) != 0) return nullptr;
        return metadata.release();
    });
}

void safelight_metadata_add(safelight_metadata *metadata, const uint8_t *xmp, size_t xmp_count, const uint8_t *iptc,
                            size_t iptc_count) {
    guarded(0, [&] {
        if (xmp_count > 0) {
            Exiv2::XmpParser::decode(metadata->image->xmpData(),
                                     std::string(reinterpret_cast<const char *>(xmp), xmp_count));
        }
        return 1;
    });
    guarded(0, [&] {
        if (iptc_count > 0 && iptc_count < UINT32_MAX) {
            Exiv2::IptcParser::decode(metadata->image->iptcData(), iptc, static_cast<uint32_t>(iptc_count));
        }
        return 1;
    });
}

void safelight_metadata_extend(safelight_metadata *metadata, const uint8_t *xmp, size_t count,
                               const char *const *tags) {
    guarded(0, [&] {
        Exiv2::XmpData added;
        const std::string packet(reinterpret_cast<const char *>(xmp), count);
        if (Exiv2::XmpParser::decode(added, packet) != 0) return 0;
        auto &data = metadata->image->xmpData();
        for (; *tags; tags++) {
            const Exiv2::XmpKey key(*tags);
            const auto field = find(added, key);
            if (field != added.end() && find(data, key) == data.end()) data.add(key, &field->value());
        }
        return 1;
    });
}

void safelight_metadata_close(safelight_metadata *metadata) { delete metadata; }

int safelight_metadata_has_field(safelight_metadata *metadata, const char *tag) {
    return guarded(0, [&] {
        const auto &data = metadata->image->xmpData();
        return is_xmp(tag) && data.findKey(Exiv2::XmpKey(tag)) != data.end() ? 1 : 0;
    });
}

char *safelight_metadata_text(safelight_metadata *metadata, const char *tag) {
    return guarded<char *>(nullptr, [&]() -> char * {
        if (is_exif(tag)) {
            const auto &data = metadata->image->exifData();
            auto field = find(data, Exiv2::ExifKey(tag));
            return field == data.end() ? nullptr : copy(field->toString());
        }
        if (is_xmp(tag)) {
            const auto &data = metadata->image->xmpData();
            auto field = find(data, Exiv2::XmpKey(tag));
            return field == data.end() ? nullptr : copy(field->toString());
        }
        const Exiv2::IptcKey key(tag);
        const auto values = iptc_values(metadata->image->iptcData(), key);
        if (values.empty()) return nullptr;
        if (!Exiv2::IptcDataSets::dataSetRepeatable(key.tag(), key.record())) return copy(values[0]);
        std::string joined;
        for (const auto &value : values) joined += (joined.empty() ? "" : ", ") + value;
        return copy(joined);
    });
}

char *safelight_metadata_element(safelight_metadata *metadata, const char *tag, size_t index) {
    return guarded<char *>(nullptr, [&]() -> char * {
        if (is_xmp(tag)) {
            const auto &data = metadata->image->xmpData();
            auto field = find(data, Exiv2::XmpKey(tag));
            if (field == data.end()) return nullptr;
            // For a value in several languages the library returns only the default text.
            const bool is_single = field->typeId() == Exiv2::xmpText || field->typeId() == Exiv2::langAlt;
            if (is_single) return index == 0 ? copy(field->toString()) : nullptr;
            return index < static_cast<size_t>(field->count()) ? copy(field->toString(static_cast<long>(index)))
                                                               : nullptr;
        }
        if (is_exif(tag)) return index == 0 ? safelight_metadata_text(metadata, tag) : nullptr;
        const Exiv2::IptcKey key(tag);
        for (const auto &field : metadata->image->iptcData()) {
            if (has_value(field, key) && index-- == 0) return copy(field.toString());
        }
        return nullptr;
    });
}

uint8_t *safelight_metadata_bytes(safelight_metadata *metadata, const char *tag, size_t *count) {
    *count = 0;
    return guarded<uint8_t *>(nullptr, [&]() -> uint8_t * {
        if (!is_exif(tag)) return nullptr;
        const auto &data = metadata->image->exifData();
        auto field = find(data, Exiv2::ExifKey(tag));
        if (field == data.end() || field->size() <= 0) return nullptr;
        auto bytes = static_cast<uint8_t *>(malloc(static_cast<size_t>(field->size())));
        if (bytes) *count = static_cast<size_t>(field->copy(bytes, Exiv2::invalidByteOrder));
        return bytes;
    });
}

void safelight_metadata_free(void *pointer) { free(pointer); }

char *safelight_metadata_interpretation(safelight_metadata *metadata, const char *tag) {
    return guarded<char *>(nullptr, [&]() -> char * {
        std::ostringstream text;
        if (is_exif(tag)) {
            const auto &data = metadata->image->exifData();
            auto field = find(data, Exiv2::ExifKey(tag));
            if (field == data.end()) return nullptr;
            field->write(text, &data);
        } else if (is_xmp(tag)) {
            const auto &data = metadata->image->xmpData();
            auto field = find(data, Exiv2::XmpKey(tag));
            if (field == data.end()) return nullptr;
            field->write(text);
        } else {
            return safelight_metadata_text(metadata, tag);
        }
        return copy(text.str());
    });
}

char *safelight_metadata_names(safelight_metadata *metadata, safelight_metadata_standard standard) {
    return guarded<char *>(nullptr, [&]() -> char * {
        std::string names;
        switch (standard) {
        case SAFELIGHT_METADATA_EXIF: append_names(metadata->image->exifData(), names); break;
        case SAFELIGHT_METADATA_XMP: append_names(metadata->image->xmpData(), names); break;
        case SAFELIGHT_METADATA_IPTC: append_names(metadata->image->iptcData(), names); break;
        }
        return copy(names);
    });
}

void safelight_metadata_remove(safelight_metadata *metadata, const char *tag) {
    guarded(0, [&] {
        if (is_exif(tag)) {
            erase(metadata->image->exifData(), tag);
        } else if (is_xmp(tag)) {
            erase(metadata->image->xmpData(), tag);
        } else {
            erase(metadata->image->iptcData(), tag);
        }
        return 1;
    });
}

int safelight_metadata_set(safelight_metadata *metadata, const char *tag, const char *value) {
    return guarded(0, [&] {
        if (is_exif(tag)) {
            metadata->image->exifData()[tag] = std::string(value);
        } else if (is_xmp(tag)) {
            metadata->image->xmpData()[tag] = std::string(value);
        } else {
            metadata->image->iptcData()[tag] = std::string(value);
        }
        return 1;
    });
}

int safelight_metadata_set_list(safelight_metadata *metadata, const char *tag, const char *const *values) {
    return guarded(0, [&] {
        if (!is_xmp(tag)) return 0;
        auto &data = metadata->image->xmpData();
        auto field = data.findKey(Exiv2::XmpKey(tag));
        if (field != data.end()) data.erase(field);
        // An assignment to an array appends an element.
        for (; *values; values++) data[tag] = std::string(*values);
        return 1;
    });
}

void safelight_metadata_remove_thumbnail(safelight_metadata *metadata) {
    guarded(0, [&] {
        Exiv2::ExifThumb(metadata->image->exifData()).erase();
        return 1;
    });
}

uint8_t *safelight_metadata_exif(safelight_metadata *metadata, size_t *count) {
    *count = 0;
    return guarded<uint8_t *>(nullptr, [&]() -> uint8_t * {
        Exiv2::Blob blob;
        Exiv2::ExifParser::encode(blob, Exiv2::littleEndian, metadata->image->exifData());
        if (blob.empty()) return nullptr;
        auto bytes = static_cast<uint8_t *>(malloc(blob.size()));
        if (!bytes) return nullptr;
        memcpy(bytes, blob.data(), blob.size());
        *count = blob.size();
        return bytes;
    });
}

char *safelight_metadata_xmp(safelight_metadata *metadata) {
    return guarded<char *>(nullptr, [&]() -> char * {
        std::string packet;
        const auto &data = metadata->image->xmpData();
        if (Exiv2::XmpParser::encode(packet, data, Exiv2::XmpParser::omitPacketWrapper, 0) != 0) return nullptr;
        return copy(packet);
    });
}
